/* SPDX-License-Identifier: MIT */
/* Copies the slices of a stream into the arena. The beginning of each record is known, so a span of a slice, and its
 * keys, have their places in the arena as soon as the span is handed out. A task copies the span to its place, and
 * makes or copies the keys. Only the main thread calls these functions. */
#ifndef SLICE_COPIES_H
#define SLICE_COPIES_H

#include "bam_arena.h"
#include "base/task_ring.h"
#include "read/slice_feed.h"

struct copied_span;
struct engine;
struct input;

struct slice_copies_options {
    uint32_t n_slots;            /* largest number of spans that are being copied at one time */
    uint32_t n_lent;             /* largest number of slices that it holds at one time */
    const struct engine *engine;
};

struct slice_copies {
    struct slice_copies_options opt;
    const struct input *in;      /* the input whose stream is read; NULL: none */
    struct bam_arena *arena;     /* the destination of the records; set by the main thread while no span is out */
    bool keyed;                  /* the slices bring the arena's keys */
    struct slice_feed feed;
    struct task_ring ring;       /* ring of spans: the work of a slot is to copy its span */
    struct copied_span *copied;  /* one per slot */
    uint64_t offset;             /* file offset of the slice whose span was taken back last */
    struct tally taken;          /* records of the stream that are in the arenas */
};

/* -1: out of memory. */
int slice_copies_open(struct slice_copies *copies, const struct slice_copies_options *options);

/* Call it after the parallel region. */
void slice_copies_close(struct slice_copies *copies);

/* Continues with the stream of this input, in this arena. -1: out of memory, and the error is recorded in the latch. */
int slice_copies_begin(struct slice_copies *copies, const struct input *in, struct bam_arena *arena);

/* These functions work as those of the same names in block_reader.h. start: the offset in the arena to which the span
 * is copied. */
int slice_copies_peek(struct slice_copies *copies, size_t *size);
void slice_copies_hand_out(struct slice_copies *copies, uint64_t start);
int slice_copies_take(struct slice_copies *copies, bool wait);

/* Call it when all spans were taken back. Checks that the records that they brought are those that the stream gave. -1:
 * they are not, and the error is recorded in the latch. */
int slice_copies_end(const struct slice_copies *copies);

/* Lets the order look at the records of the peeked span, at most `most` bytes of them. */
void slice_copies_learn(const struct slice_copies *copies, struct sort_rule *rule, size_t most);

/* Returns the bytes of memory for each slot. */
size_t slice_copies_slot_memory(void);

#endif
