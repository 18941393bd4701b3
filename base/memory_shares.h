/* SPDX-License-Identifier: MIT */
/* The numbers that the memory plan (engine/memory_plan.h) passes to the modules that use memory, and the numbers that
 * these modules pass to the plan. */
#ifndef MEMORY_SHARES_H
#define MEMORY_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/sink_form.h"

/* Bytes that the program may use besides -m times -@. */
static const uint64_t MEMORY_OVERHEAD = (uint64_t)64 << 20;

/* How the inputs are read. */
enum memory_reads {
    MEMORY_IN_TURN,
    MEMORY_PARTS,  /* one after another, a part of each; a part is not a file, so it has buffers before its turn */
    MEMORY_AT_ONCE,  /* all at once, in chunks, by commands that keep no records: there are no arenas and no runs */
};

/* The facts that the memory plan knows before any file is opened. */
struct memory_job {
    uint64_t all;                /* bytes that the program may use in total */
    int n_threads;
    int level;                   /* compression level of BAM and SAM.gz, see bgzf_codec_new() */
    size_t n_inputs;
    size_t thread_space;         /* bytes of address space for one more thread; 0: address space has no limit */
    enum sink_form form;         /* form of the output */
    size_t program;              /* see machine_program_memory() */
    size_t n_waiting;  /* inputs after the first that have buffers before their turn, because they are not files */
    bool in_chunks;              /* see MEMORY_AT_ONCE; all inputs after the first are waiting then */
    bool copies;                 /* for a merge: compressed blocks of the inputs may be copied to the output */
    bool within;                 /* for a sort before another one, whose plan includes the program, its threads, and
                                  * reading and decoding the input; it writes nothing */
};

struct memory_rings;

/* Bytes of something that grows with the available memory, for these rings. */
typedef size_t memory_overhead_fn(const void *arg, const struct memory_rings *rings);

/* Bytes that an output, and similar consumers, use besides the rings. */
struct output_use {
    size_t htslib;               /* bytes that htslib uses to write the output; more if more are available */
    bool is_cram;
    size_t overhead;             /* --verify, ranks of -M, regions: independent of the available memory */
    uint64_t references;         /* bytes for its index or for references of CRAM; a third of all at most is planned */
    memory_overhead_fn *more;    /* memory that other modules of the command take, with its argument; NULL: none */
    const void *arg;
};

/* The facts that the plan knows once the headers are read. */
struct memory_use {
    size_t header;               /* bytes of the headers as text */
    size_t references;           /* @SQ lines in them */
    bool parsed;  /* htslib parses them: they are not plain (plain_header.h), or htslib writes the output */
    size_t htslib;               /* bytes that htslib uses to read formats other than BAM and SAM; see the output's */
    size_t n_chunked;            /* inputs that go through chunks (chunk_memory) at one time */
    size_t clocks;               /* see clocks_memory() */
    struct output_use output;
};

/* The memory that htslib may use for one file of a format other than BAM. */
struct htslib_room {
    uint64_t bytes;
    size_t thread_space;  /* bytes of address space for each thread besides the memory that it keeps; see memory_job */
};

/* The memory that htslib uses for it. */
struct htslib_use {
    int n_threads;               /* threads that it may be given, at least one */
    size_t bytes;
};

/* Records made in chunks (read/chunk_reader.h): of SAM text, or of BAM that is filtered, changed or merged. See
 * chunk_reader_chunk_memory(). */
struct chunk_memory {
    size_t piece_size;           /* bytes per read of the text */
    uint32_t source_slots;       /* blocks of text being read */
    uint32_t n_chunks;           /* at least two */
    uint32_t n_lent;             /* slices of such records that the consumer holds at one time */
    size_t chunk_size;           /* bytes of a chunk's text; any block fits */
    size_t records_size;         /* usual bytes for a chunk's records */
    bool keeps;                  /* records keep the compressed blocks that they came from (codec/kept_block.h) */
    bool tight;                  /* chunks are smaller than they should be, because memory is short */
};

/* The first part of the plan: the buffers in use at one time. */
struct memory_rings {
    struct memory_job job;       /* the job that it was made for */
    size_t piece_size;           /* bytes per read of an input */
    uint32_t n_pieces;           /* pieces in memory, for an input that is being read */
    uint32_t source_slots;       /* blocks being read, and lists of the records found in them */
    uint32_t sink_slots;
    size_t out_piece_size;       /* bytes per write of BAM */
    uint32_t merge_ranges, merge_spare, merge_records;   /* see struct merge_ring_options */
    struct chunk_memory chunks;  /* for an input that is SAM, or is read while its records are passed on */
    uint32_t n_slices;           /* slices of an input that is read in chunks, see read/sliced_input.h */
    size_t n_shared;             /* chunks, and slices, that all inputs share ... */
    uint32_t borrows;            /* ... and how many of them one input may have: see read/chunk_pool.h */
    struct htslib_room reader;   /* for each input */
    struct htslib_room writer;   /* for the output */
};

/* The second part: the arenas get the memory that is left. */
struct memory_plan {
    struct memory_rings rings;   /* the first part */
    size_t arena_size;           /* bytes of each of the two arenas */
    size_t slice_size;           /* largest size of a slice of a run, see spill_slice.h */
    size_t merge_memory;         /* for merging runs in the background */
    size_t fixed;                /* bytes of everything else together ... */
    size_t spilling;             /* ... of which this many are not touched if all records stay in memory */
};

/* Sizes of arenas and slices are whole pages. */
static inline size_t whole_pages(size_t size)
{
    enum { PAGE = 4096 };
    return size / PAGE * PAGE;
}

/* Returns the value, or the bound that it exceeds. */
static inline size_t memory_clamp(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

#endif
