/* SPDX-License-Identifier: MIT */
/* How the memory is divided: the one place that counts it. */
#ifndef MEMORY_PLAN_H
#define MEMORY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_use {
    uint64_t budget;             /* -m x -@, or --total-memory */
    int n_threads;
    int level;                   /* of BAM output, see bgzf_codec_new() */
    size_t n_inputs;
    size_t header;               /* bytes of the headers as text */
};

struct memory_plan {
    size_t piece_size;           /* bytes per read, of each input */
    uint32_t source_slots;       /* blocks under way, and lists of the records found in them */
    uint32_t sink_slots;
    size_t arena_size;           /* bytes of each of the two arenas */
    size_t slice_size;           /* bytes of a slice of a run, see spill_slice.h */
    size_t merge_memory;         /* for merging runs in the background */
    size_t store_memory;         /* for packed runs, once it is known that not all fits */
    size_t fan_in;               /* runs that the last merge can take */
};

/* Everything together stays below budget + 64 MiB, whatever the records are
 * (but for records larger than an arena). found: bytes of one list of records
 * found. For tests, the environment's SAMTOOLS_OMP_ARENA is arena_size: a small
 * one makes small inputs leave memory. */
struct memory_plan memory_plan_make(const struct memory_use *use, size_t found);

/* Bytes of each arena, beside the store's memory or without it. */
size_t memory_plan_arena_size(const struct memory_plan *plan, bool beside_store);

#endif
