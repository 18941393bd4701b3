/* SPDX-License-Identifier: MIT */
/* BGZF that is written by OpenMP tasks: the sink deflates blocks of output, one task per block, and several threads
 * write at a time where the file has places to write to, in large pieces. It has a ring of slots (base/task_ring.h):
 * the main thread hands blocks out, and deflates blocks itself when it has to wait.
 *
 * The sink knows bytes only. Its owner keeps what goes into the block of each slot. */
#ifndef BGZF_SINK_H
#define BGZF_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/sink_form.h"

struct latch;
struct stats;

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

/* Called when the block has its place in the file: in the order of the file, by one thread at a time, and never after
 * an error. place: where it lies, in bytes from the beginning of the first block; next: where the next one will lie. */
typedef void bgzf_sink_placed_fn(void *arg, uint32_t slot, uint64_t place, uint64_t next);

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
    struct stats *stats;         /* may be NULL */
    bool copies;                 /* some blocks are kept; and what is in the begun block may go to the next one, too */
    bgzf_sink_fill_fn *fill;     /* this and the next two: for BAM */
    bgzf_sink_kept_fn *kept;     /* asked if it copies */
    bgzf_sink_deflated_fn *deflated;     /* may be NULL */
    bgzf_sink_make_fn *make;     /* for SAM */
    bgzf_sink_placed_fn *placed;
    void *arg;                   /* of these */
};

/* For the latch, with the path. */
#define BGZF_SINK_NO_MEMORY "%s: out of memory for write buffers; try fewer threads (-@)"

/* NULL: no memory. */
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
 * the memory meanwhile: nothing can be put any more, and bgzf_sink_close() is for behind the parallel region. -1:
 * failed, and the error is recorded in the latch. */
int bgzf_sink_finish(struct bgzf_sink *sink);

/* The largest piece_size, a power of two from 64 to 512 KiB, with which the sink's buffers for writing take no more
 * memory than this; or the least. 0 at level 0. */
size_t bgzf_sink_piece_size(int n_threads, int level, size_t memory);

/* Bytes of memory that a sink of BAM with these options takes. One of SAM takes less. */
size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level, size_t piece_size);

#endif
