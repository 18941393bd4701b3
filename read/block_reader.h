/* SPDX-License-Identifier: MIT */
/* Reading: the blocks of the inputs, one after the other, to the memory for records.
 * A task inflates a block at its place and finds the records in it; the master
 * gives out places and takes the blocks back in order. All functions are his. */
#ifndef ARENA_FILL_H
#define ARENA_FILL_H

#include "sort/sort_tasks.h"
#include "bgzf_source.h"
#include "base/memory_watch.h"
#include "read/sort_input.h"

struct latch;
struct progress;
struct sort_rule;
struct stats;

struct arena_fill_options {
    struct arena_pair *memory;
    struct sort_inputs *inputs;  /* stay the caller's */
    uint32_t n_slots;            /* of each input's source, and as the memory was planned */
    uint64_t size_hint;          /* bytes of records to be expected; 0: nobody knows */
    struct progress *progress;
    struct latch *latch;
    struct stats *stats;
};

struct found;

struct arena_fill {
    struct arena_fill_options opt;
    struct sort_input *in;       /* the one being read */
    struct found *found;         /* one per slot of the source */
    struct memory_watch watch;
    uint64_t last_block;         /* file offset of the block taken back last */
};

/* -1: no memory, told to the latch. */
int arena_fill_open(struct arena_fill *fill, const struct arena_fill_options *options);

/* Behind the parallel region: tasks that came too late for their block still look at its slot. */
void arena_fill_close(struct arena_fill *fill);

/* Reads everything; inflates, finds and sorts as the blocks come. rule learns from the first
 * records, if the order needs one. Afterwards all is sorted. -1: told to the latch. */
int arena_fill_read(struct arena_fill *fill, struct sort_rule *rule);

/* Bytes of records to be expected in all, by what is read so far; 0: nobody knows. arg: the arena_fill. */
double arena_fill_expected(void *arg);

/* Bytes that will come for certain. */
uint64_t arena_fill_least(const struct arena_fill *fill);

/* Bytes of memory for each slot. */
size_t arena_fill_slot_memory(void);

#endif
