/* SPDX-License-Identifier: MIT */
/* The .gzi index: where the blocks of a BGZF file begin, except the first one and those without data.
 *
 *   n                              | n pairs
 *   number of pairs, 64 bits, LE   | place in the file, place in the data: 64 bits each, LE */
#ifndef GZI_INDEX_H
#define GZI_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct latch;

struct gzi_place {
    uint64_t file, data;         /* bytes before the block: compressed, and decompressed */
};

/* A zero-initialised struct is an empty index. */
struct gzi_index {
    struct gzi_place *places;    /* in the order of the file */
    size_t n, room;
};

/* -1: out of memory. */
int gzi_index_add(struct gzi_index *index, struct gzi_place place);

/* Makes an index from the bytes of a file. Returns NULL, or the fault; then the index is empty. */
const char *gzi_index_parse(struct gzi_index *index, const uint8_t *bytes, size_t n);

/* -1: failed, and the error is recorded in the latch. */
int gzi_index_read(struct gzi_index *index, const char *path, struct latch *latch);
int gzi_index_write(const struct gzi_index *index, int fd, const char *path, struct latch *latch);

/* The last block that begins at or before this place in the data. */
struct gzi_place gzi_index_find(const struct gzi_index *index, uint64_t data);

void gzi_index_free(struct gzi_index *index);

#endif
