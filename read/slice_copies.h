/* SPDX-License-Identifier: MIT */
/* The slices of a stream on their way into the arena. Where each record begins is known, so a span of a slice, and its
 * keys, have their places in the arena as soon as the span is handed out. A task copies it there, and makes or copies
 * the keys. Only the main thread calls these functions. */
#ifndef SLICE_COPIES_H
#define SLICE_COPIES_H

#include "bam_arena.h"
#include "base/task_ring.h"
#include "read/slice_feed.h"

struct copied_span;
struct input;

struct slice_copies_options {
    uint32_t n_slots;            /* spans under way at most */
    uint32_t n_lent;             /* slices that it has at one time */
    struct latch *latch;
    struct clocks *clocks;
};

struct slice_copies {
    struct slice_copies_options opt;
    const struct input *in;      /* whose stream is read; NULL: none is */
    struct bam_arena *arena;     /* where records go; set by the main thread while no span is out */
    bool keyed;                  /* the slices bring the arena's keys */
    struct slice_feed feed;
    struct task_ring ring;       /* of spans: copying one is its work */
    struct copied_span *copied;  /* one per slot */
    uint64_t offset;             /* in the file, of the slice whose span was taken back last */
};

/* -1: out of memory. */
int slice_copies_open(struct slice_copies *copies, const struct slice_copies_options *options);

/* Call it after the parallel region. */
void slice_copies_close(struct slice_copies *copies);

/* Goes on with the stream of this input, in this arena. -1: out of memory, and the error is recorded in the latch. */
int slice_copies_begin(struct slice_copies *copies, const struct input *in, struct bam_arena *arena);

/* As the functions of block_reader.h. */
int slice_copies_peek(struct slice_copies *copies, size_t *size);
void slice_copies_hand_out(struct slice_copies *copies, uint64_t start);
int slice_copies_take(struct slice_copies *copies, bool wait);

/* Lets the order look at the records of the peeked span, so many bytes at most. */
void slice_copies_learn(const struct slice_copies *copies, struct sort_rule *rule, size_t most);

/* Bytes of memory for each slot. */
size_t slice_copies_slot_memory(void);

#endif
