/* SPDX-License-Identifier: MIT */
/* The input, read ahead in pieces: a regular file by tasks, several at a time; a pipe by a thread that does nothing
 * else, so that its writer waits only when all pieces are full; a URL by the main thread, when it has nothing left to
 * look at. */
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

/* Pieces in memory at most, where there is memory for them: blocks of two or three are being inflated, the main thread
 * looks at one, the others are being read. At least four. */
enum { READ_AHEAD_PIECES = 16, READ_AHEAD_PIECES_LEAST = 4 };
void read_ahead_close(struct read_ahead *ahead);

/* Tasks of its pieces become parts of `batches` (task_ring_use_batches()). */
void read_ahead_use_batches(struct read_ahead *ahead, struct task_batches *batches);

/* Gives the buffers back when everything has been read and used. Tasks may still look at the ring: close it later. */
void read_ahead_end(struct read_ahead *ahead);

/* The bytes that were read and not yet used. */
struct byte_window *read_ahead_window(struct read_ahead *ahead);

/* Bytes of memory that it takes. */
size_t read_ahead_memory(size_t piece_size, uint32_t n_pieces);

#endif
