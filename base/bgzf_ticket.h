/* SPDX-License-Identifier: MIT */
/* The ticket lock of the output: it gives deflated blocks their places in the file, in order, and writes them (Weeks
 * and Luecke 2017, section 4.4). The ticket is the number of the block that gets its place next. base/bgzf_ticket.c has
 * the picture, and the proof that no block is forgotten, written twice or written early.
 *
 * The main thread numbers the blocks from 0 up, each in a slot of the sink's ring. A task finishes a block. A thread
 * that has finished one becomes a writer, unless there are enough writers. */
#ifndef BGZF_TICKET_H
#define BGZF_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct task_ring;

struct bgzf_ticket;

/* Called when the block has its place in the file. Calls are made in the order of the file, by one thread at a time,
 * and never after an error. place: where the block lies, in bytes from the beginning of the first block; next: where
 * the next block will lie. */
typedef void bgzf_ticket_placed_fn(void *arg, uint32_t slot, uint64_t place, uint64_t next);

struct bgzf_ticket_options {
    int fd;                      /* the caller's; written from its present position on, and left at the end */
    const char *path;            /* for messages */
    struct task_ring *ring;      /* the caller's; its slots have the blocks. The ticket releases a slot once the bytes
                                  * of its block are no longer needed */
    uint32_t n_slots;            /* slots of the ring */
    const struct engine *engine;
    int n_writers;               /* threads that write at the same time into a regular file */
    size_t piece_size;           /* bytes per write to a regular file, a power of two; 0: blocks are written without a
                                  * copy */
    bgzf_ticket_placed_fn *placed;
    void *arg;                   /* argument of placed() */
};

/* NULL: out of memory. */
struct bgzf_ticket *bgzf_ticket_open(const struct bgzf_ticket_options *options);
void bgzf_ticket_close(struct bgzf_ticket *ticket);

/* Main thread: begins the block of this number, whose slot is free. */
void bgzf_ticket_begin(struct bgzf_ticket *ticket, uint64_t number);

/* Any thread: finishes the slot's block, which consists of these bytes. They must stay unchanged until the slot is
 * released. The thread writes all blocks that can be written, unless enough other threads do. */
void bgzf_ticket_finish(struct bgzf_ticket *ticket, uint32_t slot, const uint8_t *bytes, uint32_t length);

/* Main thread, before and after it waits for a slot out of turn. With flush, finished blocks do not wait until they can
 * be written together with others. */
void bgzf_ticket_flush(struct bgzf_ticket *ticket, bool flush);

/* Returns whether all blocks before this number have their places. */
bool bgzf_ticket_passed(const struct bgzf_ticket *ticket, uint64_t number);

/* Main thread, when all slots are free: adds these last bytes, writes everything that is left, and leaves the file at
 * its end. -1: writing failed now or before, and the error is recorded in the latch. */
int bgzf_ticket_end(struct bgzf_ticket *ticket, const uint8_t *last, size_t size);

/* The n_writers of a team of n_threads. */
int bgzf_ticket_writers(int n_threads);

/* Bytes of memory that the pieces of n_writers writers take. */
size_t bgzf_ticket_pieces(int n_writers, size_t piece_size);

/* Bytes of memory for n_slots slots, without pieces. */
size_t bgzf_ticket_memory(uint32_t n_slots);

#endif
