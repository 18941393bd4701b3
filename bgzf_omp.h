/* SPDX-License-Identifier: MIT */
/* BGZF on OpenMP tasks: one task inflates a block of the input, one task deflates a block of the output.
 *
 *            source: the inflate ring                             sink: the two circular buffers
 *         +-----+-----+-----+-----+                    U +-----+-----+-----+-----+   C +-----+-----+-----+
 * input ->| i   | i+1 | i+2 |  .. |-> arena   merge ->   | j   | j+1 | j+2 |  .. | ->  | j   | j+1 |  .. | -> output
 *         +-----+-----+-----+-----+                      +-----+-----+-----+-----+     +-----+-----+-----+
 *          compressed, inflated in place                  what goes into block j        block j, deflated
 *
 * The source and the sink each have a ring of slots (base/task_ring.h), with one block in each slot. The main thread
 * hands blocks out in order. Any thread may run them. When the main thread has to wait, it runs blocks itself.
 *
 * Source. The owners of a block, in turn:
 *   main thread      finds the block's frame, chooses where its data go (the arena), and hands it out
 *   a task           inflates it to that place, and calls the owner's function (it walks the records)
 *   main thread      takes blocks back in the order of the file
 *
 * Sink. U and C have the same slots. The owners of a block, in turn:
 *   main thread      begins a block: the caller owns its slot of U, and puts references to records there
 *   a task           gathers their bytes, deflates them into C, and finishes the block
 *   a writer         takes finished blocks when the ticket comes to them, gives them their places and writes them
 *   no owner         the slot is free, and the main thread may begin another block in it
 * base/bgzf_ticket.h keeps the order of the file, even if blocks are finished in another order. The sink knows only
 * bytes.
 *
 * Each thread has its own codec, which is made when the thread first needs it. */
#ifndef BGZF_OMP_H
#define BGZF_OMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/sink_form.h"
#include "base/bgzf_ticket.h"

struct bgzf_codec;
struct byte_window;
struct engine;
struct task_batches;

/* ------------------------------------------------------------------ the source */

struct bgzf_source;

struct bgzf_source_options {
    struct byte_window *input;   /* owned by the caller, who closes it later */
    const char *path;            /* for messages */
    const struct engine *engine;
    int n_sharing;               /* threads for each source, if several sources are read at once; 0: all */
    uint32_t n_slots;            /* blocks under way at most */
    struct bgzf_codec **codecs;  /* one for each thread, shared by several sources (bgzf_codec_of); owned by the
                                  * caller, who frees them later. NULL: the source has its own */
    bool is_text;                /* SAM: its bytes are not counted as bytes of records */
    const uint8_t *tail;         /* inflated bytes that follow those of the input; the caller's */
    size_t tail_size;
    bool goes_on;                /* the file continues after the input: no EOF block is expected */
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

/* NULL: out of memory, and the error is recorded in the latch. */
struct bgzf_source *bgzf_source_open(const struct bgzf_source_options *options);
void bgzf_source_close(struct bgzf_source *source);

/* Frees everything except the ring. Call it when all blocks are taken back and no other block is wanted. Tasks may
 * still look at the ring: close the source later. */
void bgzf_source_end(struct bgzf_source *source);

/* The tasks of this source's blocks become parts of `batches` (task_ring_use_batches()). */
void bgzf_source_use_batches(struct bgzf_source *source, struct task_batches *batches);

/* From now on, fn is called for every block that is handed out. */
void bgzf_source_on_inflated(struct bgzf_source *source, bgzf_source_inflated_fn *fn, void *arg);

/* Finds the next block that is not empty, and its inflated size. Waits for more input where necessary. 1: found; 0: the
 * input ends here; -1: failed, and the error is recorded in the latch. Further calls find the same block until it is
 * handed out. */
int bgzf_source_peek(struct bgzf_source *source, uint32_t *inflated_size);

/* Compressed size of the peeked block if it may be written unchanged; else 0. */
uint32_t bgzf_source_compressed_size(const struct bgzf_source *source);

/* Hands out the peeked block: a task inflates it to dst, and copies its compressed bytes to `keep` if `keep` is not
 * NULL. The ring must not be full. */
void bgzf_source_hand_out(struct bgzf_source *source, uint8_t *dst, uint8_t *keep);

/* Makes these bytes the next ones of the source: they are copies of the last bytes that were taken back. No block may
 * be out. Call it at most once. -1: out of memory, and the error is recorded in the latch. */
int bgzf_source_put_back(struct bgzf_source *source, const uint8_t *bytes, size_t n);

/* Makes a task of the blocks that were handed out and that wait for more blocks to share their task. */
void bgzf_source_make_task(struct bgzf_source *source);

/* Inflates the peeked block to dst at once, on the calling thread: for the header, before any block is handed out.
 * -1: failed, and the error is recorded in the latch. */
int bgzf_source_inflate(struct bgzf_source *source, uint8_t *dst);

/* Skips the peeked block. It is not inflated, but it is counted. For a header that was read before. */
void bgzf_source_skip(struct bgzf_source *source);

/* Takes back the oldest block that was handed out, if it is inflated. With wait, helps until it is inflated. 1: *block
 * is that block; 0: no block is out, or it is not inflated yet; -1: it could not be inflated. */
int bgzf_source_take(struct bgzf_source *source, int wait, struct bgzf_source_block *block);

uint32_t bgzf_source_slots(const struct bgzf_source *source);   /* as given to bgzf_source_open() */
int bgzf_source_ring_full(const struct bgzf_source *source);

/* File offset of the block after those that were handed out or inflated, or of the end. */
uint64_t bgzf_source_offset(const struct bgzf_source *source);

/* After the end: false if the last block was not the empty EOF block. */
int bgzf_source_saw_eof_block(const struct bgzf_source *source);

/* After the end: warns if bgzf_source_saw_eof_block() is false. */
void bgzf_source_warn_of_end(const struct bgzf_source *source);

/* Bytes of memory that a source with these options takes, without its input. n_threads is 0 if the codecs are the
 * caller's. For the codecs alone, n_slots is 0. */
size_t bgzf_source_memory(int n_threads, uint32_t n_slots);

/* -------------------------------------------------------------------- the sink */

struct bgzf_sink;

/* Called in the deflate task, in any thread: puts the bytes of the slot's block into data. Returns their number, 1 ..
 * BGZF_FILL, or BGZF_MAX_BLOCK if the block is kept. */
typedef uint32_t bgzf_sink_fill_fn(void *arg, uint32_t slot, uint8_t *data);

/* Called in the same task when the block is deflated. data: as fill() left it; block[length]: what will be written. */
typedef void bgzf_sink_deflated_fn(void *arg, uint32_t slot, const uint8_t *data, const uint8_t *block,
                                   uint32_t length);

/* Called between these two functions. Returns the block to write for the slot instead of deflated data, and sets its
 * length. The block must hold these data. NULL: deflate the data. */
typedef const uint8_t *bgzf_sink_kept_fn(void *arg, uint32_t slot, uint32_t *length);

/* Called instead of these three if the output is SAM: makes the bytes that will be written for the slot's block, plain
 * text or BGZF blocks. The owner keeps them unchanged until the slot is begun again. Returns their number, from 1 to
 * 2^31 - 1. If that fails, it records an error in the latch and may return any number. It is not called after an
 * error. */
typedef uint32_t bgzf_sink_make_fn(void *arg, uint32_t slot, const uint8_t **bytes);

/* Called in the same task when the slot's block no longer needs this thread: other threads may write the block, and the
 * slot may be begun again. */
typedef void bgzf_sink_finished_fn(void *arg, uint32_t slot);

struct bgzf_sink_options {
    int fd;                      /* the caller's; written from its present position on, and left at the end */
    const char *path;            /* for messages */
    enum sink_form form;         /* not SINK_HTSLIB */
    int level;                   /* see bgzf_codec_new() */
    const struct engine *engine;
    uint32_t n_slots;            /* blocks under way at most */
    size_t piece_size;           /* bytes per write to a regular file, see bgzf_sink_piece_size(); 0: blocks are not
                                  * gathered */
    bool copies;                 /* some blocks are kept; and contents of the begun block may move to the next block */
    bgzf_sink_fill_fn *fill;     /* this function and the next two are for BAM */
    bgzf_sink_kept_fn *kept;     /* called if `copies` is set */
    bgzf_sink_deflated_fn *deflated;     /* may be NULL */
    bgzf_sink_make_fn *make;     /* for SAM */
    bgzf_ticket_placed_fn *placed;
    bgzf_sink_finished_fn *finished;     /* may be NULL */
    void *arg;                   /* argument of these functions */
};

/* Error message for the latch; its argument is the path. */
#define BGZF_SINK_NO_MEMORY "%s: out of memory for write buffers; try fewer threads (-@)"

/* NULL: out of memory. */
struct bgzf_sink *bgzf_sink_open(const struct bgzf_sink_options *options);
void bgzf_sink_close(struct bgzf_sink *sink);

/* Begins the next block. Helps until a slot is free. The slot is the caller's until the block is handed out. Call it
 * only while no block is begun. -1: stop. */
int bgzf_sink_begin(struct bgzf_sink *sink, uint32_t *slot);

/* Helps until the slot of a block that was handed out is free. -1: stop. */
int bgzf_sink_wait(struct bgzf_sink *sink, uint32_t slot);

/* Hands the begun block, if there is one, to a task. -1: stop. */
int bgzf_sink_hand_out(struct bgzf_sink *sink);

/* Returns a mark after all blocks begun so far. If a block is begun and `copies` is set, the mark is one block later,
 * because contents may move to that block. */
uint64_t bgzf_sink_mark(const struct bgzf_sink *sink);

/* Returns whether all blocks before the mark are filled and deflated, so that the data they were filled from may
 * change. */
bool bgzf_sink_passed(const struct bgzf_sink *sink, uint64_t mark);

/* Returns whether it is enough to wait until the mark is passed: false while the begun block is before the mark. */
bool bgzf_sink_will_pass(const struct bgzf_sink *sink, uint64_t mark);

/* Makes a task of the blocks that were handed out and that wait for more blocks to share a task. For a thread that is
 * about to wait or to work on something else. */
void bgzf_sink_make_task(struct bgzf_sink *sink);

/* Deflates a block that no thread has begun to deflate. 0: there is no such block. */
int bgzf_sink_help(struct bgzf_sink *sink);

/* Hands out the begun block, helps until everything is written, and adds the EOF block of BGZF. Meanwhile tasks free
 * most of the memory: nothing can be put afterwards, and bgzf_sink_close() must be called after the parallel region.
 * -1: failed, and the error is recorded in the latch. */
int bgzf_sink_finish(struct bgzf_sink *sink);

/* The largest piece_size, a power of two from 64 to 512 KiB, with which the sink's buffers for writing take no more
 * than `memory` bytes; or the smallest, if none does. 0 at level 0. */
size_t bgzf_sink_piece_size(int n_threads, int level, size_t memory);

/* Bytes of memory that a BAM sink with these options takes. A SAM sink takes less. */
size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level, size_t piece_size);

#endif
