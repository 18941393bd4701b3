/* SPDX-License-Identifier: MIT */
/* A regular file that several threads write in large pieces, which begin at multiples of their size. Small blocks are
 * copied into buffers; the thread that completes a piece writes it. */
#ifndef OUT_PIECES_H
#define OUT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct latch;
struct out_pieces;

struct out_pieces_options {
    int fd;                      /* owned by the caller */
    const char *path;            /* for messages */
    uint64_t begin;              /* offset of the first byte in the file */
    size_t piece_size;           /* a power of two */
    uint32_t n;                  /* number of buffers, at least two */
    struct latch *latch;
};

/* NULL: out of memory. */
struct out_pieces *out_pieces_new(const struct out_pieces_options *options);
void out_pieces_free(struct out_pieces *pieces);

/* Returns whether the piece of the byte before `end` has a buffer. */
bool out_pieces_has_room(struct out_pieces *pieces, uint64_t end);

/* Copies bytes to offset `at` of the file, and writes each piece that they complete; on any thread. All their pieces
 * must have buffers. An error is recorded in the latch. */
void out_pieces_copy(struct out_pieces *pieces, const uint8_t *data, size_t size, uint64_t at);

/* Writes the last piece, which ends at `end`. All bytes before it must have been copied. */
void out_pieces_end(struct out_pieces *pieces, uint64_t end);

#endif
