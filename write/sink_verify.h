/* SPDX-License-Identifier: MIT */
/* --verify: checks the output again before it is written. Blocks are inflated with libdeflate, and the order of their
 * records is checked. */
#ifndef SINK_VERIFY_H
#define SINK_VERIFY_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct record_ref;
struct sort_rule;
struct sink_verify;

/* n_threads: number of threads that check blocks; 0: there are no blocks, as for SAM and CRAM. rule: the order; NULL:
 * it is not checked. path: the output, for messages. The caller owns both. NULL: out of memory. */
struct sink_verify *sink_verify_new(int n_threads, const struct sort_rule *rule, const char *path, struct latch *latch);
void sink_verify_free(struct sink_verify *v);

/* Bytes of memory for this. */
size_t sink_verify_memory(int n_threads);

/* Checks that the BGZF block made from data[n] inflates to the same data, with their length and CRC-32. Call it from
 * the thread of this number. -1: it does not, and the error is recorded in the latch. */
int sink_verify_block(struct sink_verify *v, int thread, const uint8_t *block, uint32_t length,
                      const uint8_t *data, uint32_t n);

/* The bytes inflated from the thread's last block, valid until its next one. */
const uint8_t *sink_verify_inflated(const struct sink_verify *v, int thread);

/* A record and its key; record NULL: none. */
struct verify_end {
    const uint8_t *record;
    uint64_t key;
};

/* The first and the last record that begin in a block. */
struct verify_ends {
    struct verify_end first, last;
};

/* From now on records need not be in order. */
void sink_verify_forget_order(struct sink_verify *v);

/* Checks that the records that begin in a block are in order. Any thread may call it. -1: they are not, and the error
 * is recorded in the latch. */
int sink_verify_order(const struct sink_verify *v, const struct record_ref *records, uint32_t n,
                      struct verify_ends *ends);

/* Checks that this block may follow the one before it. One thread at a time calls it, in output order. The records may
 * be freed afterwards. -1: it may not, and the error is recorded in the latch. */
int sink_verify_join(struct sink_verify *v, const struct verify_ends *ends);

#endif
