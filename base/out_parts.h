/* SPDX-License-Identifier: MIT */
/* A regular file that several threads write in large parts, which begin at multiples of their size. Small blocks are
 * copied into buffers; who makes a part whole writes it. */
#ifndef OUT_PARTS_H
#define OUT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct latch;
struct out_parts;

struct out_parts_options {
    int fd;                      /* stays the caller's */
    const char *path;            /* for messages */
    uint64_t begin;              /* where in the file the first byte goes */
    size_t part_size;            /* a power of two */
    uint32_t n;                  /* buffers: two at least */
    struct latch *latch;
};

/* NULL: no memory. */
struct out_parts *out_parts_new(const struct out_parts_options *options);
void out_parts_free(struct out_parts *parts);

/* Whether the part that holds the byte before `end` has a buffer. */
bool out_parts_has_room(struct out_parts *parts, uint64_t end);

/* Copies bytes to their place `at` in the file, and writes each part that this makes whole; in any thread. All their
 * parts must have buffers. An error is recorded in the latch. */
void out_parts_copy(struct out_parts *parts, const uint8_t *data, size_t size, uint64_t at);

/* Writes the last part, which ends at `end`. Everything before is copied. */
void out_parts_end(struct out_parts *parts, uint64_t end);

#endif
