/* SPDX-License-Identifier: MIT */
/* How the memory is divided: the one place that counts it. */
#ifndef MEMORY_PLAN_H
#define MEMORY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* It is made in two parts, each once. First, before any file is opened, the rings: how many blocks are under way, and
 * how much is read at once. They depend on nothing that is read, for sources and sinks are opened with them. Then,
 * when the headers are known, the arenas get what is left. */

/* What is known first. */
struct memory_job {
    uint64_t budget;             /* -m x -@, or --total-memory, or what a limit on addresses leaves of them */
    int n_threads;
    int level;                   /* of BAM output, see bgzf_codec_new() */
    size_t n_inputs;
    size_t found;                /* bytes of one list of records found, see arena_fill_slot_memory() */
    size_t thread_space;         /* bytes of addresses that one more thread takes; 0: they are without limit */
};

/* What is known once the headers are read. */
struct memory_use {
    size_t header;               /* bytes of the headers as text ... */
    size_t references;           /* ... and the @SQ lines in them */
    size_t htslib;               /* what other formats take: hts_reader_memory() and its like */
    size_t stats;                /* see stats_memory() */
};

/* What htslib may take for one file of a format other than BAM. */
struct htslib_room {
    uint64_t bytes;
    size_t thread_space;         /* of them, for each thread, beside what it keeps; see memory_job */
};

/* What it takes. */
struct htslib_use {
    int n_threads;               /* as many as may be given to it, one at least */
    size_t bytes;
};

/* Measured with htslib 1.16: CRAM keeps whole containers for each thread. Where the room is too little for all
 * threads they are fewer. */
struct htslib_use memory_plan_htslib(bool is_cram, bool writing, const struct htslib_room *room, int n_threads);

/* What it takes to parse SAM text, see sam_reader.c. */
struct sam_use {
    size_t piece_size;           /* bytes per read of the text */
    uint32_t source_slots;       /* blocks of text under way */
    uint32_t n_chunks;           /* two at least */
    size_t text_size;            /* bytes of a chunk's text; any block fits */
    size_t records_size;         /* and of its records, mostly */
    size_t bytes;                /* all together */
};

/* The chunks of all inputs take an eighth of the budget and allowance at most, or two for each input the
 * least that works; reading takes half as much as it does for BAM. */
struct sam_use memory_plan_sam(uint64_t budget, size_t n_inputs, int n_threads);

/* The first part. */
struct memory_rings {
    struct memory_job job;       /* that it was made for */
    size_t piece_size;           /* bytes per read, of each input */
    uint32_t source_slots;       /* blocks under way, and lists of the records found in them */
    uint32_t sink_slots;
    uint32_t merge_ranges, merge_records;   /* see struct merge_ring_options */
    struct sam_use sam;          /* of each input, if it is SAM */
    struct htslib_room reader;   /* for each input: a third of all for them together */
    struct htslib_room writer;   /* for the output: another third */
};

/* The second. */
struct memory_plan {
    struct memory_rings rings;   /* as they are */
    size_t arena_size;           /* bytes of each of the two arenas */
    size_t slice_size;           /* bytes of a slice of a run at most, see spill_slice.h */
    size_t merge_memory;         /* for merging runs in the background */
};

/* What changes when it is known that not all will fit. */
struct memory_spilling {
    size_t store;                /* bytes for packed runs, before any goes to disk */
    size_t arena_size;           /* of each arena, beside it */
    size_t slice_size;           /* of the runs: small enough for all of them, if that is not too small */
    size_t fan_in;               /* runs that the last merge can take */
};

/* What may be taken beside the budget, in bytes. */
static const uint64_t MEMORY_PLAN_BESIDE = (uint64_t)64 << 20;

struct memory_rings memory_plan_rings(const struct memory_job *job);

/* Everything together stays below budget + MEMORY_PLAN_BESIDE, whatever the records are
 * (but for records larger than an arena). For tests, the environment's SAMTOOLS_OMP_ARENA is
 * arena_size: a small one makes small inputs leave memory. */
struct memory_plan memory_plan_make(const struct memory_rings *rings, const struct memory_use *use);

/* expected: bytes of records, 0 if nobody knows; late: both arenas are full, so
 * that there is no memory for a store. */
struct memory_spilling memory_plan_spilling(const struct memory_plan *plan, double expected, bool late);

#endif
