/* SPDX-License-Identifier: MIT */
/* Inflated bytes of an input, its text, or records of another producer, made into BAM records by tasks, chunk by chunk.
 * The owner knows what the bytes are and what they are made into: lines of SAM (sam_reader), records or templates of
 * BAM (record_cut). All of these are called units here. The result is a record_stream. */
#ifndef CHUNK_READER_H
#define CHUNK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"
#include "base/memory_shares.h"
#include "base/record_stream.h"
#include "base/tally.h"
#include "read/chunk_pool.h"
#include "read/record_slice.h"
#include "read/slice_feed.h"

struct bam_header;
struct bgzf_source;
struct bgzf_source_block;
struct byte_window;
struct chunk_reader;
struct engine;
struct task_batches;

/* A block of a chunk's bytes whose compressed form was kept (codec/kept_block.h). */
struct chunk_block {
    size_t at;                   /* offset of its first byte in the bytes of the chunk */
    uint32_t size, compressed_size;
    size_t kept;                 /* offset of its compressed bytes in `kept` of the chunk */
};

struct chunk {
    uint8_t *bytes;              /* one byte more than the plan says; owned by the main thread before READY, then by the
                                  * claimer, which may change them */
    struct slice_span span;      /* the span that `bytes` point into, until the records are made: records of another
                                  * producer or, without a slice, text of the window. No users: the bytes are the
                                  * chunk's own */
    size_t filled;               /* bytes handed out; main thread only, as is the next field */
    size_t arrived;              /* bytes that have been inflated */
    struct byte_buffer head;     /* the unit that began in an earlier chunk, if any */
    uint64_t last_block;         /* file offset of the last block of its bytes; main thread */
    size_t begin, end;           /* the range of the other units in `bytes`; the main thread sets it before READY */
    struct record_slice made;    /* what the units became: records as BAM, and everything else that the owner lists of
                                  * them; the claimer's before DONE, as are the next two fields */
    uint64_t n, size;            /* number of units that were read, up to one with a fault, and their bytes as BAM */
    uint64_t dropped;            /* number of them that are left out */
    struct chunk_block *blocks;  /* n_blocks of them; this and the next two fields are owned as `bytes` is. NULL: no
                                  * block is kept (chunk_memory) */
    uint8_t *kept;               /* compressed bytes of these blocks */
    size_t n_blocks, n_kept;
};

/* The place of the units in a chunk's bytes. */
struct chunk_cut {
    size_t begin, end;           /* range of the complete units, without the carried one; the bytes after it are
                                  * carried */
    bool ends_carried;           /* the bytes before `begin` end the carried unit, if there is one; if not set, begin
                                  * and end are the end of the bytes */
    uint64_t n;                  /* number of units that end in the bytes, for comparisons only; 0 for SAM, whose lines
                                  * are not counted */
};

/* Counts of the slices lent so far; main thread. */
struct chunk_counts {
    uint64_t seen;               /* units that end in closed chunks, as cut() has counted them, without those that are
                                  * left to another input */
    uint64_t n, bytes, dropped;  /* sums over the chunks, see struct chunk; bytes: the sum of `size`, and all bytes
                                  * before the chunks */
    struct tally made;           /* records that are listed in the slices that were made */
};

/* The input of chunks, which the owner of a reader passes on. */
struct chunk_input {
    /* One of these three is set; it stays the caller's: */
    struct bgzf_source *source;  /* a source of blocks, which are inflated into the chunks; close it before the
                                  * reader */
    struct byte_window *text;    /* text that is parsed in place; make() may change it */
    struct record_stream stream; /* a stream of records, in order */
    struct chunk_memory use;          /* memory, as divided by the plan */
    const char *path;            /* for messages */
    const struct engine *engine;
    uint64_t n_before;           /* records of the input that were read earlier, for messages */
};

/* Finds the units in the bytes of chunks. */
struct chunk_cutter {
    /* Finds the units in bytes[n]; `carried` is the beginning of a unit. Main thread. -1: failed, and the error is
     * recorded in the latch. */
    int (*cut)(void *arg, const struct byte_buffer *carried, const uint8_t *bytes, size_t n, struct chunk_cut *cut);
    /* As cut(), for bytes that are complete records. On entry *cut is set as if each record were a unit. NULL: each
     * record is a unit. */
    void (*cut_span)(void *arg, const struct slice_span *span, struct chunk_cut *cut);
    /* The first n bytes of a chunk have arrived, the last of them with this block. cut() is called when all have
     * arrived. Main thread; may be NULL. */
    void (*arrived)(void *arg, const struct byte_buffer *carried, const uint8_t *bytes, size_t n,
                    const struct bgzf_source_block *block);
    /* A block was inflated. Runs in the task that inflated it; may be NULL. */
    void (*inflated)(void *arg, const struct bgzf_source_block *block);
    void *arg;                   /* for these functions */
};

struct chunk_reader_options {
    struct chunk_input in;
    struct bam_header *header;   /* header of BAM: the records after it come before the bytes of the source. They are
                                  * taken over if the reader opens. NULL: the input is not BAM */
    struct chunk_borrower *borrower; /* provides some of the chunks; NULL: all chunks are the reader's own */
    struct chunk_cutter cutter;
    /* Makes the units of the head, then the units of the bytes, into records, and counts them. Runs in a task, but not
     * after an error. At the end of the input the head may be a unit that is cut. number: number of the chunk's slot,
     * below use.n_chunks. */
    void (*make)(void *arg, uint32_t number, struct chunk *chunk);
    bool counts_only;            /* `make` adds up no checksum */
    /* The records of this chunk are taken next. Main thread. -1: failed, and the error is recorded in the latch. */
    int (*lend)(void *arg, uint32_t number, struct chunk *chunk);
    /* The input ends in this unit, which may continue in another input. Returns the buffer in which the unit is left;
     * *n: the number of its units of BAM. Main thread. NULL returned, or no function: it is not left, so it is made
     * into records. */
    struct byte_buffer *(*leave)(void *arg, const struct byte_buffer *carried, uint64_t *n);
    /* Called when all records were lent. Main thread; may be NULL. */
    void (*ended)(void *arg);
    void *arg;                   /* for all functions except those of the cutter */
};

/* NULL: out of memory, and the error is recorded in the latch. */
struct chunk_reader *chunk_reader_open(const struct chunk_reader_options *options);

/* Returns the bytes of one slice of its records; and those of a chunk with such a slice, and with text of its own. The
 * number of keys bounds records whose lines have 256 bytes and more. Records of shorter lines have more keys, but are
 * smaller: of lines from 48 bytes on, records and keys together touch less. */
size_t chunk_reader_slice_memory(const struct chunk_memory *use);
size_t chunk_reader_chunk_memory(const struct chunk_memory *use);

/* Returns the bytes that it keeps for each chunk, even if it has borrowed no memory for that chunk. */
size_t chunk_reader_slot_memory(void);

/* Call it after the parallel region, because late tasks still look at their chunk; and after the source is closed. */
void chunk_reader_close(struct chunk_reader *reader);

/* The tasks of its chunks and of the source's blocks become parts of `batches` (task_ring_use_batches()). */
void chunk_reader_use_batches(struct chunk_reader *reader, struct task_batches *batches);

/* Frees everything except the ring, which tasks may still look at: close it later. Call it when all records are
 * used. */
void chunk_reader_end(struct chunk_reader *reader);

/* Gives the reader bytes that come before the bytes of the source, where there is no header: at most as many as a block
 * has. Call it before the source's bytes are looked at. */
void chunk_reader_put(struct chunk_reader *reader, const uint8_t *bytes, size_t n);

/* Gives the reader a unit that an earlier input has left, with n units of BAM: it may continue here. Takes the unit
 * over. */
void chunk_reader_go_on(struct chunk_reader *reader, struct byte_buffer *unit, uint64_t n);

/* Waits for the first records of the stream that it reads. Returns them, *size bytes; they will still be read. NULL:
 * there are none, or there is an error, which is recorded in the latch. */
const uint8_t *chunk_reader_first(struct chunk_reader *reader, size_t *size);

/* The counts of the chunks that were lent, without the chunk that lend() looks at. */
const struct chunk_counts *chunk_reader_counts(const struct chunk_reader *reader);

/* Call it when all chunks are lent. Checks that each unit that the main thread has found in the input, and has not left
 * to another input, is now a record or was left out. -1: this is not so, and the error is recorded in the latch. */
int chunk_reader_compare(const struct chunk_reader *reader);

/* Records in the latch the fault of the record that follows the counted units of BAM in the chunk that lend() looks at.
 * fault: `record` is where it lies, see record_fault_report(). If fault is BAM_OK, `why` ends the sentence. Returns
 * -1. */
int chunk_reader_report(const struct chunk_reader *reader, const struct chunk *chunk, enum bam_fault fault,
                        const uint8_t *record, const char *why);

/* ---- the functions of its stream ---- */

/* Hands out blocks as far as there is room, takes inflated blocks back, and returns the state of the next chunk. At the
 * end it compares the tally of a stream that it reads with the records that it took. */
enum chunk_state chunk_reader_advance(void *reader);

/* Lends the chunk that is made: puts its records, possibly none, into *slice, and takes the buffers of *slice in
 * exchange. -1: lend() failed. */
int chunk_reader_take(void *reader, struct record_slice *slice);

/* Does a small part of the work that is handed out. False: there is none. */
bool chunk_reader_help(void *reader);

/* Call it when all chunks were taken: returns the tally of what was made, see chunk_reader_compare(). */
static inline int chunk_reader_tally(void *reader, struct tally *given)
{
    *given = chunk_reader_counts(reader)->made;
    return chunk_reader_compare(reader);
}

/* Returns the stream that consists of chunk_reader_advance(), _take(), _help() and _tally(). */
static inline struct record_stream chunk_reader_stream(struct chunk_reader *reader)
{
    return (struct record_stream){chunk_reader_advance, chunk_reader_take, chunk_reader_help, chunk_reader_tally,
                                  reader, .most_lent = 0};
}

#endif
