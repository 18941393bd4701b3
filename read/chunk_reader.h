/* SPDX-License-Identifier: MIT */
/* Inflated bytes of an input, its text, or records of another producer, made into BAM records by tasks, chunk by chunk.
 * The owner knows what the bytes are and what becomes of them: lines of SAM (sam_reader), records or templates of BAM
 * (record_cut). All are called units here. The result is a record_stream. */
#ifndef CHUNK_READER_H
#define CHUNK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"
#include "base/memory_shares.h"
#include "base/tally.h"
#include "read/chunk_pool.h"
#include "read/record_slice.h"
#include "read/record_stream.h"
#include "read/slice_feed.h"

struct bam_header;
struct bgzf_source;
struct bgzf_source_block;
struct byte_window;
struct chunk_reader;
struct latch;
struct clocks;
struct task_batches;

/* A block of the bytes whose compressed bytes were kept (codec/kept_block.h). */
struct chunk_block {
    size_t at;                   /* of its first byte, in the bytes of the chunk */
    uint32_t size, compressed_size;
    size_t kept;                 /* where its compressed bytes are, in `kept` of the chunk */
};

struct chunk {
    uint8_t *bytes;              /* one more than the plan says; the main thread's before READY, then the claimer's, who
                                  * may change them */
    struct slice_span span;      /* that `bytes` are of, until they are made: records of another stage, or, without a
                                  * slice, text of the window. No users: they are the chunk's own */
    size_t filled;               /* bytes handed out; main thread only, as the next */
    size_t arrived;              /* bytes that have been inflated */
    struct byte_buffer head;     /* the unit that began in a chunk before, if any */
    uint64_t last_block;         /* file offset of the last block of bytes; main thread */
    size_t begin, end;           /* the other units in bytes; the main thread sets it before READY */
    struct record_slice made;    /* of the units: records as BAM, and whatever else the owner lists of them; the
                                  * claimer's before DONE, as the next two */
    uint64_t n, size;            /* units that were looked at, up to one that has a fault; their bytes, of BAM */
    uint64_t dropped;            /* of them: they are left out */
    struct chunk_block *blocks;  /* n_blocks; this and the next two: as `bytes`. NULL: none is kept (chunk_memory) */
    uint8_t *kept;               /* compressed bytes of these blocks */
    size_t n_blocks, n_kept;
};

/* Where the units of a chunk's bytes are. */
struct chunk_cut {
    size_t begin, end;           /* of those that are whole, without the carried one; what is behind them is carried */
    bool ends_carried;           /* the bytes before `begin` end the carried unit, if there is one; else begin and end
                                  * are the end of the bytes */
    uint64_t n;                  /* units that end in the bytes; only chunk_reader_compare() asks */
};

/* The slices lent so far; the main thread's. */
struct chunk_counts {
    uint64_t seen;               /* units that end in chunks that are closed, as cut() has counted them */
    uint64_t n, bytes, dropped;  /* of the chunks, see there; bytes: their sizes, with all before them */
    struct tally made;           /* records that are listed in what was made */
};

/* Adds what another input has seen and made. */
static inline void chunk_counts_add(struct chunk_counts *sum, const struct chunk_counts *more)
{
    sum->seen += more->seen;
    tally_add(&sum->made, more->made);
}

/* The ingredients of chunks, for the owner of a reader. */
struct chunk_input {
    /* One of these three; they stay the caller's: */
    struct bgzf_source *source;  /* of blocks, whose bytes are inflated into the chunks; closed before the reader */
    struct byte_window *text;    /* whose bytes are made where they lie; make() may change them */
    struct record_stream stream; /* records, in order */
    struct chunk_memory use;          /* memory, as the plan divides it */
    const char *path;            /* for messages */
    struct latch *latch;
    struct clocks *clocks;       /* may be NULL */
    uint64_t n_before;           /* records of the input that were read before, for messages */
};

/* Finds the units in the bytes of chunks. */
struct chunk_cutter {
    /* Finds those in bytes[n]; `carried` is the beginning of a unit. Main thread. -1: failed, and the error is recorded
     * in the latch. */
    int (*cut)(void *arg, const struct byte_buffer *carried, const uint8_t *bytes, size_t n, struct chunk_cut *cut);
    /* Likewise for bytes that are whole records. It finds *cut as if each of them was a unit. NULL: so they are. */
    void (*cut_span)(void *arg, const struct slice_span *span, struct chunk_cut *cut);
    /* The first n bytes of a chunk are there, the last ones as this block; cut() is called when all are. Main thread;
     * may be NULL. */
    void (*arrived)(void *arg, const struct byte_buffer *carried, const uint8_t *bytes, size_t n,
                    const struct bgzf_source_block *block);
    /* A block was inflated. In the task that did it; may be NULL. */
    void (*inflated)(void *arg, const struct bgzf_source_block *block);
    void *arg;                   /* of these */
};

struct chunk_reader_options {
    struct chunk_input in;
    struct bam_header *header;   /* of BAM: the records behind it come before the bytes of the source. If all goes well
                                  * they are taken over. NULL: it is not BAM */
    struct chunk_borrower *borrower; /* by which it gets some of its chunks; NULL: all of them are its own */
    struct chunk_cutter cutter;
    /* Makes the units of the head, then those of the bytes, into records, and counts them. In a task, not after an
     * error. At the end of the input the head may be a unit that is cut. number: of the chunk's slot, below
     * use.n_chunks. */
    void (*make)(void *arg, uint32_t number, struct chunk *chunk);
    /* Its records are next. Main thread. -1: failed, and the error is recorded in the latch. */
    int (*lend)(void *arg, uint32_t number, struct chunk *chunk);
    /* The input ends in this unit: where it is left, with how many units of BAM, as it may go on in another input.
     * Main thread. NULL, and if this is NULL: nowhere, so it is made. */
    struct byte_buffer *(*leave)(void *arg, const struct byte_buffer *carried, uint64_t *n);
    /* All records were lent. Main thread; may be NULL. */
    void (*ended)(void *arg);
    void *arg;                   /* of all but the cutter */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct chunk_reader *chunk_reader_open(const struct chunk_reader_options *options);

/* Call it after the parallel region, because late tasks still look at their chunk; and after the source is closed. */
void chunk_reader_close(struct chunk_reader *reader);

/* Tasks of its chunks, and of the source's blocks, become parts of `batches` (task_ring_use_batches()). */
void chunk_reader_use_batches(struct chunk_reader *reader, struct task_batches *batches);

/* Frees everything except the ring. Call it when all records are used. Tasks may still look at that: close it later. */
void chunk_reader_end(struct chunk_reader *reader);

/* Bytes that come before those of the source, without a header: a block's at most. Call it before they are looked
 * at. */
void chunk_reader_put(struct chunk_reader *reader, const uint8_t *bytes, size_t n);

/* Likewise for a unit that an input before this one has left, with n units of BAM: it may go on here. Takes it over. */
void chunk_reader_go_on(struct chunk_reader *reader, struct byte_buffer *unit, uint64_t n);

/* Waits for the first records of the stream that it reads. Returns them, *size bytes, which stay to be read, or NULL:
 * there are none, or there is an error, which is recorded in the latch. */
const uint8_t *chunk_reader_first(struct chunk_reader *reader, size_t *size);

/* Those of the chunks that were lent, without the one that lend() looks at. */
const struct chunk_counts *chunk_reader_counts(const struct chunk_reader *reader);

/* All are lent: each unit that the main thread has found in the input, and has not left, is a record now, or was left
 * out. -1: it is not, and the error is recorded in the latch. */
int chunk_reader_compare(const struct chunk_reader *reader);

/* Records in the latch what is wrong with the record behind the units of BAM in the chunk that lend() looks at. fault:
 * `record` is where it lies, see record_fault_report(). BAM_OK: `why` ends the sentence. Returns -1. */
int chunk_reader_report(const struct chunk_reader *reader, const struct chunk *chunk, enum bam_fault fault,
                        const uint8_t *record, const char *why);

/* ---- the functions of its stream ---- */

/* Hands out what there is room for, and takes back what is inflated. Says what there is of the next chunk. */
enum chunk_state chunk_reader_advance(void *reader);

/* Lends the chunk that is made: puts what was made, which may be no records, into *slice, whose buffers it takes in
 * exchange. -1: lend() failed. */
int chunk_reader_take(void *reader, struct record_slice *slice);

/* Does a little of the work that is handed out. False: there is none. */
bool chunk_reader_help(void *reader);

/* Likewise, but blocks are inflated first: each takes a tenth of the time of a chunk, so that the caller is soon back
 * to hand out more. */
bool chunk_reader_help_briefly(void *reader);

/* All were taken: says what was made, see chunk_reader_compare(). */
static inline int chunk_reader_tally(void *reader, struct tally *given)
{
    *given = chunk_reader_counts(reader)->made;
    return chunk_reader_compare(reader);
}

/* The four as a stream. */
static inline struct record_stream chunk_reader_stream(struct chunk_reader *reader)
{
    return (struct record_stream){chunk_reader_advance, chunk_reader_take, chunk_reader_help, chunk_reader_tally,
                                  reader, 0};
}

#endif
