/* SPDX-License-Identifier: MIT */
/* -M on one sublist, in the task that sorts it: ranks reads, turns them, and makes their keys. */
#ifndef MINHASH_RUN_H
#define MINHASH_RUN_H

#include <stddef.h>
#include <stdint.h>
#include "order/bam_key.h"

struct minhash;

/* Gives every key its -M key. A read without reference gets the key of its minimiser, and is turned if
 * its rank says so. If minhash_decides(), the records are then as they will be written; else
 * minhash_run_finish() must follow, after the merge.
 *
 * Call it only for a closed sublist, because a walk from a wrong guess must change nothing.
 *
 * Returns the checksum of the records as they will be written minus the checksum of the
 * records as they came in, modulo 2^64. */
uint64_t minhash_run(const struct minhash *m, uint8_t *base, struct bam_key *keys, size_t n);

/* Clears the rank, if there is one. Call it after the merge for each record that goes out. */
void minhash_run_finish(uint8_t *record);

#endif
