/* SPDX-License-Identifier: MIT */
/* Reads the input ahead in pieces. A regular file is read by tasks, several at a time. A pipe is read by a thread that
 * does nothing else, so that the writer of the pipe waits only when all pieces are full. A URL is read by the main
 * thread, when it has nothing left to look at. */
#ifndef READ_AHEAD_H
#define READ_AHEAD_H

#include <stddef.h>
#include <stdint.h>

struct byte_window;
struct input_file;
struct read_ahead;
struct clocks;
struct task_batches;

/* The file stays the caller's. clocks may be NULL. NULL: out of memory. Nothing is recorded in the latch. */
struct read_ahead *read_ahead_open(struct input_file *file, size_t piece_size, uint32_t n_pieces,
                                  struct clocks *clocks);

/* The largest number of pieces in memory, if there is memory for them: blocks of two or three pieces are being
 * inflated, the main thread looks at one piece, and the others are being read. There are at least four. */
enum { READ_AHEAD_PIECES = 16, READ_AHEAD_PIECES_LEAST = 4 };
void read_ahead_close(struct read_ahead *ahead);

/* The tasks of its pieces become parts of `batches` (task_ring_use_batches()). */
void read_ahead_use_batches(struct read_ahead *ahead, struct task_batches *batches);

/* Frees the buffers. Call it when everything has been read and used. Tasks may still look at the ring: close it
 * later. */
void read_ahead_end(struct read_ahead *ahead);

/* Returns the window of the bytes that were read and are not yet used. */
struct byte_window *read_ahead_window(struct read_ahead *ahead);

/* Returns the bytes of memory that it takes. */
size_t read_ahead_memory(size_t piece_size, uint32_t n_pieces);

#endif
