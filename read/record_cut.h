/* SPDX-License-Identifier: MIT */
/* Finds where records begin in the inflated bytes of BAM, chunk by chunk (read/chunk_reader.h), and where units begin.
 * A unit is one record, or all records with the same name that follow each other (a template).
 *
 *   chunk 4  .. a a | b b | c             chunk 5  c c | d d | e e           units of one name
 *                         -> carry -> its head: c c c
 *
 * A task that inflates a block guesses where records begin in it. The main thread follows the records to the end of
 * each chunk, skips the records of each block whose guess was right, and so cuts the chunk where units begin. The task
 * of a chunk checks its records, adds the NUL to names that lack it, and hands complete units to the owner.
 *
 * A unit that is longer than a chunk continues in the carry until another unit begins. Then the complete unit is one
 * head. */
#ifndef RECORD_CUT_H
#define RECORD_CUT_H

#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "read/chunk_reader.h"

struct block_records;
struct record_walk;

/* A unit. All of its records are checked. */
struct record_unit {
    const uint8_t *bytes;        /* its records ... */
    size_t size;                 /* ... and their size, with the NULs that were added to their names */
    const uint8_t *from;         /* where the unit begins in the chunk, or in the chunk's head */
    uint64_t n;                  /* number of records */
    bool needs_fix;              /* bam_record_fix() would change one of the records, or a NUL was added to a name */
};

/* The reason why the task of a chunk stopped after the units that the chunk counts. Both 0: the task did not stop. */
struct record_found {
    int status;                  /* the value that unit() returned, or RECORD_CUT_NO_MEMORY */
    enum bam_fault fault;        /* why the next record cannot be read */
};

enum { RECORD_CUT_NO_MEMORY = -1 };

/* Turns a unit into records. Runs in the chunk's task. Returns 0, or the fault of the unit; then no more units of the
 * chunk are handed over. */
typedef int record_unit_fn(void *arg, uint32_t number, struct chunk *chunk, const struct record_unit *unit);

struct record_cut_options {
    const struct chunk_input *in;    /* used by record_cut_open() alone */
    uint32_t n_chunks;
    int32_t n_ref;               /* number of @SQ lines */
    bool by_name;                /* units are templates; if not set, records */
    bool counts_bytes;           /* the clocks count the bytes of the records that are found; if not set, another
                                  * producer counts them */
    record_unit_fn *unit;
    void *arg;
};

/* The state of the main thread at the end of the bytes that it has cut. */
struct record_carry {
    char name[UINT8_MAX + 1];    /* name of the last record whose name is complete; by_name only */
    size_t name_size;            /* 0: there is no name */
    size_t part;                 /* carried bytes of the record that is cut; 0: no record is cut */
    bool is_broken;              /* there is no way to know where the next record begins */
};

/* The offsets where the first and the last unit begin, in bytes whose records were followed up to `end`. */
struct unit_borders {
    size_t first, last, end;
    bool any;
    uint64_t n;                  /* number of complete records that end in these bytes */
};

/* A zero-initialised struct has nothing open. */
struct record_cut {
    struct record_cut_options opt;
    struct clocks *clocks;
    struct block_records *blocks;    /* the guesses, by the source's slots; owned by the task that inflates the block */
    struct record_walk *walks;   /* results of the chunks' tasks, by the chunk's number; the claimer's before DONE */
    struct record_carry carry;   /* main thread, as are all fields below */
    bool follows;                /* it is known where records begin in the chunk that is arriving ... */
    struct unit_borders borders; /* ... and these borders were found so far */
};

/* Returns the bytes that it takes for this many chunks, and for the blocks of a source of n_slots. */
size_t record_cut_memory(uint32_t n_chunks, uint32_t n_slots);

/* -1: out of memory; close it anyway. */
int record_cut_open(struct record_cut *cut, const struct record_cut_options *options);
void record_cut_close(struct record_cut *cut);

/* Returns the cutter for chunk_reader_options. */
struct chunk_cutter record_cut_cutter(struct record_cut *cut);

/* Cuts the chunk's head and bytes into units, passes each unit to the caller's function, and counts the units without a
 * fault. Runs in the chunk's task. */
void record_cut_make(struct record_cut *cut, uint32_t number, struct chunk *chunk);

/* Returns the result of that chunk's task. */
struct record_found record_cut_found(const struct record_cut *cut, uint32_t number);

/* Returns whether the bytes that are carried at the end of the input are complete records. */
bool record_cut_is_whole(const struct record_cut *cut);

/* Continues the unit p[n] that an earlier input has left. Returns the number of its records. */
uint64_t record_cut_go_on(struct record_cut *cut, const uint8_t *p, size_t n);

#endif
