/* SPDX-License-Identifier: MIT */
/* BGZF output by OpenMP tasks: one deflate task per block, and several writes at a
 * time where the file has places to write to. Slots are claimed as in bgzf_source.h. */
#ifndef BGZF_SINK_H
#define BGZF_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bam_index;
struct latch;
struct sink_verify;
struct stats;

struct bgzf_sink;

struct bgzf_sink_options {
    int fd;                      /* written from its present position on, and left at the end; stays the caller's */
    const char *path;            /* for messages */
    int level;                   /* see bgzf_codec_new() */
    int n_threads;
    uint32_t n_slots;            /* blocks under way at most */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* A record on its way into blocks, or a part of one that is longer than a block.
 * Its bytes must stay unchanged until bgzf_sink_passed(). */
struct bgzf_piece {
    const uint8_t *data;
    uint32_t size;
    uint32_t segment;            /* the sink's own; 0 */
};

/* NULL: no memory, told to the latch. */
struct bgzf_sink *bgzf_sink_open(const struct bgzf_sink_options *options);
void bgzf_sink_close(struct bgzf_sink *sink);

/* From now on every record is entered into the index, in its order. -1: no memory. */
int bgzf_sink_set_index(struct bgzf_sink *sink, struct bam_index *index);

/* Called in the deflate task for what goes out of every record, or of its first
 * segment: a copy, to be changed in place. NULL: nothing is. Before the first put. */
typedef void bgzf_sink_finish_fn(uint8_t *record);
void bgzf_sink_set_finish(struct bgzf_sink *sink, bgzf_sink_finish_fn *finish);

/* Looks at every block once more before it is written. Before the first put. */
void bgzf_sink_set_verify(struct bgzf_sink *sink, struct sink_verify *verify);

/* Adds bytes that belong to no record: a header. -1: stop. */
int bgzf_sink_put_header(struct bgzf_sink *sink, const uint8_t *data, size_t size);

/* Adds records, in order: each to the block being filled, or, when it does not fit,
 * that block is handed to a task and the next one begun. A record that fits into no
 * block has its own from the beginning. -1: stop. */
int bgzf_sink_put(struct bgzf_sink *sink, const struct bgzf_piece *records, size_t n);

/* A mark behind everything put so far. */
uint64_t bgzf_sink_mark(const struct bgzf_sink *sink);

/* Whether everything before the mark is deflated, so that its pieces may change. */
bool bgzf_sink_passed(const struct bgzf_sink *sink, uint64_t mark);

/* Whether that needs no more than waiting: not while the block that is being
 * filled has pieces from before the mark. */
bool bgzf_sink_will_pass(const struct bgzf_sink *sink, uint64_t mark);

/* Works at a block that nobody has begun; 0: there is none. */
int bgzf_sink_help(struct bgzf_sink *sink);

/* Ends the block being filled. -1: stop. */
int bgzf_sink_flush(struct bgzf_sink *sink);

/* Flushes, helps until everything is written, adds the EOF block. -1: told to the latch. */
int bgzf_sink_finish(struct bgzf_sink *sink);

/* After finish: sum of bam_checksum() over the records put, made of their pieces. */
uint64_t bgzf_sink_checksum(const struct bgzf_sink *sink);

/* Bytes of memory that a sink with these options takes. */
size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level);

#endif
