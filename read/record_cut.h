/* SPDX-License-Identifier: MIT */
/* Where records begin in the inflated bytes of BAM, chunk by chunk (read/chunk_reader.h), and where units do: a unit is
 * one record, or all records with the same name that follow each other (a template).
 *
 *   chunk 4  .. a a | b b | c             chunk 5  c c | d d | e e           units of one name
 *                         -> carry -> its head: c c c
 *
 * A task that inflates a block guesses where records begin in it. The main thread follows the records to the end of
 * each chunk, leaps over the records of each block whose guess was right, and so cuts the chunk where units begin. The
 * task of a chunk checks its records, gives names the NUL that they lack, and hands whole units to the owner.
 *
 * A unit that is longer than a chunk goes on in the carry, until another one begins. Then all of it is one head. */
#ifndef RECORD_CUT_H
#define RECORD_CUT_H

#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "read/chunk_reader.h"

struct block_records;
struct record_walk;

/* A unit, all of whose records are checked. */
struct record_unit {
    const uint8_t *bytes;        /* its records ... */
    size_t size;                 /* ... and their bytes, with the NULs that their names have got */
    const uint8_t *from;         /* where it begins in the chunk, or in its head */
    uint64_t n;                  /* records */
    bool needs_fix;              /* bam_record_fix() would change one of them, or a name has got its NUL */
};

/* The reason why the task of a chunk stopped behind the units that the chunk counts. Both 0: nothing did. */
struct record_found {
    int status;                  /* what unit() has returned, or RECORD_CUT_NO_MEMORY */
    enum bam_fault fault;        /* why the next record cannot be read */
};

enum { RECORD_CUT_NO_MEMORY = -1 };

/* Makes records of a unit. In the chunk's task. 0; or what is wrong with it: no more units of the chunk are handed over
 * then. */
typedef int record_unit_fn(void *arg, uint32_t number, struct chunk *chunk, const struct record_unit *unit);

struct record_cut_options {
    const struct chunk_input *in;    /* used by record_cut_open() alone */
    uint32_t n_chunks;
    int32_t n_ref;               /* number of @SQ lines */
    bool by_name;                /* units are templates; else records */
    bool counts_bytes;           /* of records found, in the clocks; else another producer counts them */
    record_unit_fn *unit;
    void *arg;
};

/* What the main thread knows of the end of the bytes that it has cut. */
struct record_carry {
    char name[UINT8_MAX + 1];    /* of the last record whose name is whole; by_name only */
    size_t name_size;            /* 0: there is none */
    size_t part;                 /* bytes of the record that is cut, which are carried; 0: none is */
    bool is_broken;              /* it cannot be known where the next record begins */
};

/* Where units begin in bytes whose records were followed up to `end`: the first one and the last. */
struct unit_borders {
    size_t first, last, end;
    bool any;
    uint64_t n;                  /* whole records that end in these bytes */
};

/* All zeros: nothing is open. */
struct record_cut {
    struct record_cut_options opt;
    struct clocks *clocks;
    struct block_records *blocks;    /* what was guessed, by the source's slots; the task's that inflates the block */
    struct record_walk *walks;   /* by the chunk's number; the claimer's before DONE */
    struct record_carry carry;   /* main thread, as all below */
    bool follows;                /* in the chunk whose bytes come, it is known where records begin ... */
    struct unit_borders borders; /* ... and these are there so far */
};

/* -1: out of memory; close it anyway. */
int record_cut_open(struct record_cut *cut, const struct record_cut_options *options);
void record_cut_close(struct record_cut *cut);

/* For chunk_reader_options. */
struct chunk_cutter record_cut_cutter(struct record_cut *cut);

/* Hands over the units of the chunk's head and bytes, and counts those that went well. In the chunk's task. */
void record_cut_make(struct record_cut *cut, uint32_t number, struct chunk *chunk);

/* The finding of that chunk's task. */
struct record_found record_cut_found(const struct record_cut *cut, uint32_t number);

/* Whether what is carried at the end of the input has whole records only. */
bool record_cut_is_whole(const struct record_cut *cut);

/* A unit that an input before this one has left, p[n], goes on here. Returns how many records it has. */
uint64_t record_cut_go_on(struct record_cut *cut, const uint8_t *p, size_t n);

/* Whether two records have one name. One of the names may lack its NUL. */
bool record_cut_same_name(const uint8_t *a, const uint8_t *b);

#endif
