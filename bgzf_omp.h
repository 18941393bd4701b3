/* SPDX-License-Identifier: MIT */
/* BGZF output by OpenMP tasks: one deflate task per block, and several writes at a time where the file has places to
 * write to. The sink knows bytes only. Its owner keeps what goes into the block of each slot. */
#ifndef BGZF_OMP_H
#define BGZF_OMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct latch;
struct stats;

struct bgzf_sink;

/* Called in the deflate task, in any thread: puts the bytes of the slot's block into data. Returns their number, 1 ..
 * BGZF_FILL. */
typedef uint32_t bgzf_sink_fill_fn(void *arg, uint32_t slot, uint8_t *data);

/* Called in the same task when the block is deflated. data: as fill() left it; block[length]: what will be written. */
typedef void bgzf_sink_deflated_fn(void *arg, uint32_t slot, const uint8_t *data, const uint8_t *block, uint32_t length);

/* Called when the block has its place in the file: in the order of the file, by one thread at a time, and never after an
 * error. place: where it lies, in bytes after the first block; next: where the next one will lie. */
typedef void bgzf_sink_placed_fn(void *arg, uint32_t slot, uint64_t place, uint64_t next);

struct bgzf_sink_options {
    int fd;                      /* written from its present position on, and left at the end; stays the caller's */
    const char *path;            /* for messages */
    int level;                   /* see bgzf_codec_new() */
    int n_threads;
    uint32_t n_slots;            /* blocks under way at most */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
    bgzf_sink_fill_fn *fill;
    bgzf_sink_deflated_fn *deflated;
    bgzf_sink_placed_fn *placed;
    void *arg;                   /* of these three */
};

/* NULL: there is no memory, and the error is recorded in the latch. */
struct bgzf_sink *bgzf_sink_open(const struct bgzf_sink_options *options);
void bgzf_sink_close(struct bgzf_sink *sink);

/* Begins the next block. Helps until a slot is free. The slot is the caller's until the block is handed out. Call it only
 * when no block is begun. -1: stop. */
int bgzf_sink_begin(struct bgzf_sink *sink, uint32_t *slot);

/* Hands the begun block, if there is one, to a task. -1: stop. */
int bgzf_sink_hand_out(struct bgzf_sink *sink);

/* A mark behind all blocks begun so far. */
uint64_t bgzf_sink_mark(const struct bgzf_sink *sink);

/* Whether all blocks before the mark are filled and deflated, so that what they were filled from may change. */
bool bgzf_sink_passed(const struct bgzf_sink *sink, uint64_t mark);

/* Whether that needs no more than waiting: false while the begun block is before the mark. */
bool bgzf_sink_will_pass(const struct bgzf_sink *sink, uint64_t mark);

/* Works at a block that no thread has begun to deflate. 0: there is none. */
int bgzf_sink_help(struct bgzf_sink *sink);

/* Hands out the begun block, helps until everything is written, and adds the EOF block. -1: failed, and the error is
 * recorded in the latch. */
int bgzf_sink_finish(struct bgzf_sink *sink);

/* Bytes of memory that a sink with these options takes. */
size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level);

#endif
