/* SPDX-License-Identifier: MIT */
/* A pass over the records of one input that keeps none of them. A task inflates a block and walks the records in it;
 * where the first one begins it must guess. The main thread verifies that, walks the block again if the guess was
 * wrong, joins records that lie in several blocks, and takes the records in file order.
 *
 * Two callbacks say what a pass is for: look() works in the block's task, next() on the main thread. */
#ifndef RECORD_PASS_H
#define RECORD_PASS_H

#include <stdint.h>
#include "base/byte_buffer.h"
#include "order/bam_key.h"

struct latch;
struct input;
struct stats;

/* Records that lie one after another: the whole ones of a block, or one that lies in several blocks. They are mended as
 * htslib would write them. */
struct record_found {
    const uint8_t *base;         /* what the places of the keys are relative to */
    const struct bam_key *keys;  /* of n records */
    uint32_t n;
    uint64_t checksum;           /* sum of record_checksum() over the records, modulo 2^64 */
    uint64_t seen;               /* what look() returned of them */
    uint32_t slot;               /* 0 .. n_slots; until next() has seen them, look() gets no others under that number */
};

static inline const struct bam_record *record_found_at(const struct record_found *found, uint64_t number)
{
    return (const struct bam_record *)bam_key_record(found->base, found->keys[number]);
}

/* Called in any thread, for records that a task found. A guess may be wrong: then these are no records of the input,
 * and it is called again for those that are. So it changes nothing but what the slot has. */
typedef uint64_t record_pass_look_fn(void *arg, const struct record_found *found);

/* Called by the main thread, in file order, for every record of the input once. The records go when it returns. -1:
 * stop, and the error is recorded in the latch. */
typedef int record_pass_next_fn(void *arg, const struct record_found *found);

struct record_pass_options {
    struct input *input;    /* its header is read */
    const struct sort_rule *rule;   /* makes the keys; NULL: coordinate order */
    record_pass_look_fn *look;
    record_pass_next_fn *next;
    void *arg;                   /* of these */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

struct record_pass_slot;

struct record_pass {
    struct record_pass_options opt;
    int32_t n_ref;               /* number of @SQ lines */
    uint32_t n_slots;            /* of the input's source */
    uint8_t *blocks;             /* one per slot */
    struct record_pass_slot *slots;   /* one more: what the main thread walks by itself */
    uint64_t n_blocks;           /* handed out; this and all below: main thread */
    struct byte_buffer cut;      /* the record that a block has ended in, as far as it came */
    uint64_t n, bytes;           /* of the records given to next(); bytes: of the header, too */
    uint64_t block;              /* file offset of the block taken last */
};

/* -1: no memory, and the error is recorded in the latch; close it all the same. */
int record_pass_open(struct record_pass *pass, const struct record_pass_options *options);

/* Reads the input to its end. Call it on the main thread of a team. -1: a bad block or record, an input that ends
 * inside a record, no memory, or next() failed; the error is recorded in the latch. */
int record_pass_run(struct record_pass *pass);

/* Call it behind the parallel region, because late tasks still look at the slots. */
void record_pass_close(struct record_pass *pass);

#endif
