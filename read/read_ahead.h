/* SPDX-License-Identifier: MIT */
/* The input, read ahead in pieces. Who reads them depends on what the input is:
 *
 *   a regular file      tasks, several at a time; each reads one piece
 *   a pipe              one thread that does nothing else, so that whoever writes to
 *                       the pipe waits only when all pieces are full
 *   what htslib reads   the main thread, when it has nothing left to look at
 */
#ifndef READ_AHEAD_H
#define READ_AHEAD_H

#include <stddef.h>

struct byte_window;
struct hts_reader;
struct input_file;
struct read_ahead;
struct stats;

struct read_ahead_options {
    struct input_file *file;     /* this and the next stay the caller's */
    struct hts_reader *reader;   /* whose records are read; NULL: the bytes of the file are */
    size_t piece_size;           /* bytes per read */
    struct stats *stats;         /* may be NULL */
};

/* NULL: no memory. Nothing is recorded in the latch. */
struct read_ahead *read_ahead_open(const struct read_ahead_options *options);
void read_ahead_close(struct read_ahead *ahead);

/* The bytes that were read and not yet used. */
struct byte_window *read_ahead_window(struct read_ahead *ahead);

/* Bytes of memory that it takes. */
size_t read_ahead_memory(size_t piece_size);

#endif
