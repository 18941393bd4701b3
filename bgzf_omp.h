/* SPDX-License-Identifier: MIT */
/* BGZF on OpenMP tasks: one task inflates a block of the input, one task deflates a block of the output.
 *
 *            source: the inflate ring                             sink: the two circular buffers
 *         +-----+-----+-----+-----+                    U +-----+-----+-----+-----+   C +-----+-----+-----+
 * input ->| i   | i+1 | i+2 |  .. |-> arena   merge ->   | j   | j+1 | j+2 |  .. | ->  | j   | j+1 |  .. | -> output
 *         +-----+-----+-----+-----+                      +-----+-----+-----+-----+     +-----+-----+-----+
 *          compressed, inflated in place                  what goes into block j        block j, deflated
 *
 * Both have a ring of slots (base/task_ring.h), one block a slot. The main thread hands blocks out in order. Any thread
 * may run them. When the main thread has to wait, it runs blocks itself.
 *
 * Source. Who owns a block when:
 *   main thread      finds the block's frame, chooses where its data go (the arena), and hands it out
 *   a task           inflates it to that place, and calls the owner's function (it walks the records)
 *   main thread      takes blocks back in the order of the file
 *
 * Sink. U and C have the same slots. Who owns a block when:
 *   main thread      begins a block: its slot of U is the caller's, who puts references to records there
 *   a task           gathers their bytes, deflates them into C, and finishes the block
 *   a writer         takes finished blocks when the ticket comes to them, gives them their places and writes them
 *   nobody           the slot is free, and the main thread may begin another block in it
 * base/bgzf_ticket.h keeps the order of the file, whichever block is finished first. The sink knows bytes only.
 *
 * Each thread has a codec of its own, made when it is first needed. */
#ifndef BGZF_OMP_H
#define BGZF_OMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/sink_form.h"
#include "base/bgzf_ticket.h"

struct bgzf_codec;
struct byte_window;
struct latch;
struct clocks;
struct task_batches;

/* ------------------------------------------------------------------ the source */

struct bgzf_source;

struct bgzf_source_options {
    struct byte_window *input;   /* stays the caller's, who closes it later */
    const char *path;            /* for messages */
    int n_threads;               /* of the team that runs the tasks */
    int n_sharing;               /* of them for each source, if several are read at once; 0: all */
    uint32_t n_slots;            /* blocks under way at most */
    struct bgzf_codec **codecs;  /* of each thread, of several sources (bgzf_codec_of); the caller's, who frees them
                                  * later. NULL: it has its own */
    struct latch *latch;
    struct clocks *clocks;       /* may be NULL */
    bool is_text;                /* SAM: its bytes are not counted as those of records */
    const uint8_t *tail;         /* inflated bytes that come behind those of the input; the caller's */
    size_t tail_size;
    bool goes_on;                /* the file does, behind the input: no EOF block is missed */
};

/* A block as its consumer sees it. */
struct bgzf_source_block {
    uint64_t file_offset;
    uint8_t *data;               /* where it was inflated to */
    uint32_t size;               /* inflated */
    uint32_t slot;               /* 0 .. n_slots - 1; free again when the next block is handed out */
};

/* Called in the inflate task, in any thread, as soon as the block is inflated. */
typedef void bgzf_source_inflated_fn(void *arg, const struct bgzf_source_block *block);

/* NULL: there is no memory, and the error is recorded in the latch. */
struct bgzf_source *bgzf_source_open(const struct bgzf_source_options *options);
void bgzf_source_close(struct bgzf_source *source);

/* Frees everything except the ring. Call it when all blocks are taken back and no other is wanted. Tasks may still look
 * at the ring: close it later. */
void bgzf_source_end(struct bgzf_source *source);

/* Tasks of its blocks become parts of `batches` (task_ring_use_batches()). */
void bgzf_source_use_batches(struct bgzf_source *source, struct task_batches *batches);

/* fn is called for every block that is handed out from now on. */
void bgzf_source_on_inflated(struct bgzf_source *source, bgzf_source_inflated_fn *fn, void *arg);

/* Finds the next block that is not empty, and its inflated size. Waits for more input where that is needed. 1: found;
 * 0: the input ends here; -1: failed, and the error is recorded in the latch. Finds the same block until it is handed
 * out. */
int bgzf_source_peek(struct bgzf_source *source, uint32_t *inflated_size);

/* Compressed size of the peeked block, if it is one that may be written as it is; else 0. */
uint32_t bgzf_source_compressed_size(const struct bgzf_source *source);

/* Hands out the peeked block: a task inflates it to dst, and copies its compressed bytes to `keep`, if that is not
 * NULL. The ring must not be full. */
void bgzf_source_hand_out(struct bgzf_source *source, uint8_t *dst, uint8_t *keep);

/* These bytes come next: copies of the last ones that were taken back. No block may be out; call it once. -1: no
 * memory, and the error is recorded in the latch. */
int bgzf_source_put_back(struct bgzf_source *source, const uint8_t *bytes, size_t n);

/* Blocks that were handed out wait no longer for others that would share their task. */
void bgzf_source_make_task(struct bgzf_source *source);

/* Inflates the peeked block to dst at once, on the calling thread: for the header, before any block is handed out.
 * -1: failed, and the error is recorded in the latch. */
int bgzf_source_inflate(struct bgzf_source *source, uint8_t *dst);

/* Goes behind the peeked block, which is not inflated but counts: for a header that was read before. */
void bgzf_source_skip(struct bgzf_source *source);

/* Takes back the oldest block that was handed out, if it is inflated. With wait, helps until it is. 1: *block is it;
 * 0: no block is out, or it is not inflated yet; -1: it could not be inflated. */
int bgzf_source_take(struct bgzf_source *source, int wait, struct bgzf_source_block *block);

uint32_t bgzf_source_slots(const struct bgzf_source *source);   /* as opened with */
int bgzf_source_ring_full(const struct bgzf_source *source);

/* File offset of the block behind those that were handed out or inflated, or of the end. */
uint64_t bgzf_source_offset(const struct bgzf_source *source);

/* After the end: false if the last block was not the empty EOF block. */
int bgzf_source_saw_eof_block(const struct bgzf_source *source);

/* After the end: warns if that is false. */
void bgzf_source_warn_of_end(const struct bgzf_source *source);

/* Bytes of memory that a source with these options takes, without its input. n_threads: 0 if its codecs are the
 * caller's; of codecs alone n_slots is 0. */
size_t bgzf_source_memory(int n_threads, uint32_t n_slots);

/* -------------------------------------------------------------------- the sink */

struct bgzf_sink;

/* Called in the deflate task, in any thread: puts the bytes of the slot's block into data. Returns their number, 1 ..
 * BGZF_FILL, or BGZF_MAX_BLOCK if the block is kept. */
typedef uint32_t bgzf_sink_fill_fn(void *arg, uint32_t slot, uint8_t *data);

/* Called in the same task when the block is deflated. data: as fill() left it; block[length]: what will be written. */
typedef void bgzf_sink_deflated_fn(void *arg, uint32_t slot, const uint8_t *data, const uint8_t *block,
                                   uint32_t length);

/* Called between the two: what the slot's block is to be instead of deflated data, which it must hold, and its length.
 * NULL: deflate the data. */
typedef const uint8_t *bgzf_sink_kept_fn(void *arg, uint32_t slot, uint32_t *length);

/* In place of these if the output is SAM: makes the bytes that will be written for the slot's block, plain text or
 * BGZF blocks. They stay the owner's, unchanged until the slot is begun again. Returns their number, 1 .. 2^31 - 1.
 * If that fails, records an error in the latch; then any number will do. After an error it is not called any more. */
typedef uint32_t bgzf_sink_make_fn(void *arg, uint32_t slot, const uint8_t **bytes);

struct bgzf_sink_options {
    int fd;                      /* written from its present position on, and left at the end; stays the caller's */
    const char *path;            /* for messages */
    enum sink_form form;         /* not SINK_HTSLIB */
    int level;                   /* see bgzf_codec_new() */
    int n_threads;
    uint32_t n_slots;            /* blocks under way at most */
    size_t piece_size;           /* bytes per write to a regular file, see bgzf_sink_piece_size(); 0: blocks are not
                                  * gathered */
    struct latch *latch;
    struct clocks *clocks;       /* may be NULL */
    bool copies;                 /* some blocks are kept; and what is in the begun block may go to the next one, too */
    bgzf_sink_fill_fn *fill;     /* this and the next two: for BAM */
    bgzf_sink_kept_fn *kept;     /* asked if it copies */
    bgzf_sink_deflated_fn *deflated;     /* may be NULL */
    bgzf_sink_make_fn *make;     /* for SAM */
    bgzf_ticket_placed_fn *placed;
    void *arg;                   /* of these */
};

/* For the latch, with the path. */
#define BGZF_SINK_NO_MEMORY "%s: out of memory for write buffers; try fewer threads (-@)"

/* NULL: out of memory. */
struct bgzf_sink *bgzf_sink_open(const struct bgzf_sink_options *options);
void bgzf_sink_close(struct bgzf_sink *sink);

/* Begins the next block. Helps until a slot is free. The slot is the caller's until the block is handed out. Call it
 * only when no block is begun. -1: stop. */
int bgzf_sink_begin(struct bgzf_sink *sink, uint32_t *slot);

/* Helps until the slot of a block that was handed out is free. -1: stop. */
int bgzf_sink_wait(struct bgzf_sink *sink, uint32_t slot);

/* Hands the begun block, if there is one, to a task. -1: stop. */
int bgzf_sink_hand_out(struct bgzf_sink *sink);

/* A mark behind all blocks begun so far. */
uint64_t bgzf_sink_mark(const struct bgzf_sink *sink);

/* Whether all blocks before the mark are filled and deflated, so that what they were filled from may change. */
bool bgzf_sink_passed(const struct bgzf_sink *sink, uint64_t mark);

/* Whether that needs no more than waiting: false while the begun block is before the mark. */
bool bgzf_sink_will_pass(const struct bgzf_sink *sink, uint64_t mark);

/* Makes a task of the blocks handed out that wait for more to share one. For who waits or works at something else. */
void bgzf_sink_make_task(struct bgzf_sink *sink);

/* Works at a block that no thread has begun to deflate. 0: there is none. */
int bgzf_sink_help(struct bgzf_sink *sink);

/* Hands out the begun block, helps until everything is written, and adds the EOF block of BGZF. Tasks give back most of
 * the memory meanwhile: nothing can be put any more, and bgzf_sink_close() is for after the parallel region. -1:
 * failed, and the error is recorded in the latch. */
int bgzf_sink_finish(struct bgzf_sink *sink);

/* The largest piece_size, a power of two from 64 to 512 KiB, with which the sink's buffers for writing take no more
 * memory than this; or the least. 0 at level 0. */
size_t bgzf_sink_piece_size(int n_threads, int level, size_t memory);

/* Bytes of memory that a sink of BAM with these options takes. One of SAM takes less. */
size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level, size_t piece_size);

#endif
