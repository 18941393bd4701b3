/* SPDX-License-Identifier: MIT */
/* -M on one sublist: ranks, turned reads and keys, in the task that sorts it. */
#ifndef MINHASH_RUN_H
#define MINHASH_RUN_H

#include <stddef.h>
#include <stdint.h>
#include "bam_arena.h"

struct minhash;

/* Gives every key of a read without reference its minimiser key and turns the
 * read where its rank says so. If minhash_decides(), the records are then as
 * they are written; else minhash_run_finish() is still to come, after the merge.
 * Not before a sublist is closed: a walk from a wrong guess must change nothing.
 * Returns what the checksum of the records as they are written has above that
 * of the records as they came in, modulo 2^64. */
uint64_t minhash_run(const struct minhash *m, uint8_t *base, struct bam_key *keys, size_t n);

/* After the merge, to each record that goes out: puts away the rank if there is one. */
void minhash_run_finish(uint8_t *record);

#endif
