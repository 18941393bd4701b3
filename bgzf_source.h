/* SPDX-License-Identifier: MIT */
/* BGZF that is read by OpenMP tasks: the source inflates blocks of input, one task per block. It has a ring of slots
 * (base/task_ring.h): the main thread hands blocks out, and inflates blocks itself when it has to wait. */
#ifndef BGZF_SOURCE_H
#define BGZF_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bgzf_codec;
struct byte_window;
struct latch;
struct record_slice;
struct stats;
struct task_bundle;

struct bgzf_source;

struct bgzf_source_options {
    struct byte_window *input;   /* stays the caller's, who closes it later */
    bool framed;                 /* it holds BGZF blocks; else plain bytes, which are cut anywhere */
    const char *path;            /* for messages */
    int n_threads;               /* of the team that runs the tasks */
    int n_sharing;               /* of them for each source, if several are read at once; 0: all */
    uint32_t n_slots;            /* blocks under way at most */
    struct bgzf_codec **codecs;  /* of each thread, of several sources (bgzf_codec_of); the caller's, who frees them
                                  * later. NULL: it has its own */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
    uint32_t text_size;          /* SAM: bytes at most of a "block" of plain text; they are not counted as bytes of
                                  * records. 0: the bytes are records */
};

/* A block as its consumer sees it. */
struct bgzf_source_block {
    uint64_t file_offset;
    uint8_t *data;               /* where it was inflated to */
    uint32_t size;               /* inflated */
    uint32_t slot;               /* 0 .. n_slots - 1; free again when the next block is handed out */
    const struct record_slice *slice;    /* these three: of the input's window; until the function that is called once
                                  * the bytes are there returns */
    size_t first;
    uint32_t n_records;
};

/* Called in the inflate task, in any thread, as soon as the block is inflated. */
typedef void bgzf_source_inflated_fn(void *arg, const struct bgzf_source_block *block);

/* NULL: there is no memory, and the error is recorded in the latch. A source of plain bytes (raw BAM, records) gives
 * "blocks" that are cut anywhere, but where the window lists its records: these are one block. */
struct bgzf_source *bgzf_source_open(const struct bgzf_source_options *options);
void bgzf_source_close(struct bgzf_source *source);

/* Gives back all but the ring, when all blocks are taken back and no other is wanted. Tasks may still look at the ring:
 * close it later. */
void bgzf_source_end(struct bgzf_source *source);

/* Tasks of its blocks become parts of the bundle (task_ring_collect()). */
void bgzf_source_collect(struct bgzf_source *source, struct task_bundle *bundle);

/* fn is called for every block that is handed out from now on. */
void bgzf_source_on_inflated(struct bgzf_source *source, bgzf_source_inflated_fn *fn, void *arg);

/* Finds the next block that is not empty, and its inflated size. Waits for more input where that is needed. 1: found;
 * 0: the input ends here; -1: failed, and the error is recorded in the latch. Finds the same block until it is handed
 * out. */
int bgzf_source_peek(struct bgzf_source *source, uint32_t *inflated_size);

/* Compressed size of the peeked block, if it is one that may be written as it is; else 0. */
uint32_t bgzf_source_compressed_size(const struct bgzf_source *source);

/* Records of the peeked block, if its window lists them; else 0. */
uint32_t bgzf_source_records(const struct bgzf_source *source);

/* The slot that it gets. */
uint32_t bgzf_source_next_slot(const struct bgzf_source *source);

/* Hands out the peeked block: a task inflates it to dst, and copies its compressed bytes to `keep`, if that is not
 * NULL. The ring must not be full. */
void bgzf_source_hand_out(struct bgzf_source *source, uint8_t *dst, uint8_t *keep);

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
uint32_t bgzf_source_out(const struct bgzf_source *source);     /* blocks that are handed out and not taken back */

/* File offset of the block behind those that were handed out or inflated, or of the end. */
uint64_t bgzf_source_offset(const struct bgzf_source *source);

/* After the end: false if the input is BGZF and its last block was not the empty EOF block. */
int bgzf_source_saw_eof_block(const struct bgzf_source *source);

/* After the end: warns if that is false. */
void bgzf_source_warn_of_end(const struct bgzf_source *source);

/* Bytes of memory that a source with these options takes, without its input. n_threads: 0 if its codecs are the
 * caller's; of codecs alone n_slots is 0. */
size_t bgzf_source_memory(int n_threads, uint32_t n_slots);

#endif
