/* SPDX-License-Identifier: MIT */
/* --verify: checks the output once more before it is written. Blocks are inflated again, by
 * libdeflate, and the order of their records is checked. */
#ifndef SINK_VERIFY_H
#define SINK_VERIFY_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct record_ref;
struct sort_rule;
struct sink_verify;

/* n_threads: that check blocks; 0: there are no blocks, as in SAM and CRAM. rule: the order; NULL: it is not checked.
 * path: of the output, for messages. Both stay the caller's. NULL: out of memory. */
struct sink_verify *sink_verify_new(int n_threads, const struct sort_rule *rule, const char *path, struct latch *latch);
void sink_verify_free(struct sink_verify *v);

/* Bytes of memory that this takes. */
size_t sink_verify_memory(int n_threads);

/* Checks that the BGZF block made of data[n] gives the data back, with their length and CRC-32. Call
 * it from the thread of this number. -1: it does not, and the error is recorded in the latch. */
int sink_verify_block(struct sink_verify *v, int thread, const uint8_t *block, uint32_t length,
                      const uint8_t *data, uint32_t n);

/* The bytes that the thread's last block has inflated to, until its next. */
const uint8_t *sink_verify_inflated(const struct sink_verify *v, int thread);

/* A record and its key; record NULL: there is none. */
struct verify_end {
    const uint8_t *record;
    uint64_t key;
};

/* The first and the last record that begin in a block. */
struct verify_ends {
    struct verify_end first, last;
};

/* The records that are put from now on need not be in order. */
void sink_verify_forget_order(struct sink_verify *v);

/* Checks that the records that begin in a block are in order. Any thread may call it.
 * -1: they are not, and the error is recorded in the latch. */
int sink_verify_order(const struct sink_verify *v, const struct record_ref *records, uint32_t n,
                      struct verify_ends *ends);

/* Checks that this block may follow the one before it. One thread at a time calls it, in output order.
 * The records may go away afterwards. -1: it may not, and the error is recorded in the latch. */
int sink_verify_join(struct sink_verify *v, const struct verify_ends *ends);

#endif
