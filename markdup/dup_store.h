/* SPDX-License-Identifier: MIT */
/* A store for losses that do not fit into memory. The caller of markdup/ provides it, and has the files. */
#ifndef DUP_STORE_H
#define DUP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"

/* The location of bytes that were stored at once. */
struct dup_place {
    uint64_t offset;
    uint32_t size, volume;       /* only the store knows the meaning of these fields and of offset */
};

/* put, get: -1: failed, and the owner has recorded the error. */
struct dup_store {
    int (*put)(void *context, const void *data, size_t n, struct dup_place *place);
    /* Reads n of the bytes stored there, from `offset` on. hash: byte_hash() of these n bytes, with seed 0; the
     * function fails if it differs */
    int (*get)(void *context, const struct dup_place *place, size_t offset, size_t n, uint64_t hash, void *data);
    void (*drop)(void *context, const struct dup_place *place);   /* frees bytes that are no longer needed */
    void *context;
    size_t most;                 /* bytes of memory that losses may use before any are stored */
    bool is_open;                /* losses may be stored now */
};

/* Bytes that were stored at once, and byte_hash() of them. */
struct dup_piece {
    struct dup_place place;
    uint64_t hash;
};

/* Stores bytes->n bytes, empties `bytes`, and appends the piece to *pieces. -1: it failed, or out of memory. */
int dup_store_put(const struct dup_store *store, struct byte_buffer *bytes, struct byte_buffer *pieces);

/* Appends the bytes of the piece to *to. last: the piece is not needed after that. -1: as above. */
int dup_store_get(const struct dup_store *store, const struct dup_piece *piece, bool last, struct byte_buffer *to);

#endif
