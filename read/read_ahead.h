/* SPDX-License-Identifier: MIT */
/* The input, read ahead in pieces. Who reads them depends on what it is:
 *
 *   a regular file      tasks, several at a time, each a piece at its place
 *   a pipe              one thread that does nothing else, so that whoever writes to
 *                       the pipe waits only when all pieces are full
 *   what htslib reads   the master, when it has nothing left to look at
 *   what tasks make     they: it is not copied, and there are no pieces
 *
 * All functions but read_ahead_release() are for the master. */
#ifndef READ_AHEAD_H
#define READ_AHEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "read/byte_source.h"

struct latch;
struct read_ahead;
struct stats;

enum { READ_AHEAD_KEPT = 65536 };    /* bytes; one BGZF block */

struct read_ahead_options {
    struct byte_source *input;   /* stays the caller's */
    size_t piece_size;           /* bytes per read */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* The bytes of the input that are there and not yet used, in one piece of memory. */
struct read_window {
    const uint8_t *data;
    size_t size;
    uint64_t offset;             /* bytes of the input before them */
};

/* NULL: no memory. Nothing is told to the latch. */
struct read_ahead *read_ahead_open(const struct read_ahead_options *options);
void read_ahead_close(struct read_ahead *ahead);

/* The window, which changes with the calls below. */
const struct read_window *read_ahead_window(const struct read_ahead *ahead);

/* Waits, helping, until the window is larger. It may not have READ_AHEAD_KEPT bytes
 * before, for these may have to move. 1: it is; 0: the input ends there; -1: told to the latch. */
int read_ahead_more(struct read_ahead *ahead, byte_source_help_fn *help, void *arg);

/* Takes n bytes off the beginning of the window. */
void read_ahead_skip(struct read_ahead *ahead, size_t n);

/* Lets the bytes of the window stay where they are, though they be skipped, until
 * read_ahead_release(), by any thread. */
atomic_int *read_ahead_hold(struct read_ahead *ahead);
void read_ahead_release(atomic_int *users);

/* Bytes of memory that it takes. */
size_t read_ahead_memory(size_t piece_size);

#endif
