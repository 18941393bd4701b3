/* SPDX-License-Identifier: MIT */
/* Where losses go that outgrow memory: what the caller of markdup/ gives, who has files. */
#ifndef DUP_STORE_H
#define DUP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"

/* Where bytes are that were put at once. */
struct dup_place {
    uint64_t offset;
    uint32_t size, volume;       /* with offset, as the owner of the store has it */
};

/* put, get: -1: failed, and the owner knows why. */
struct dup_store {
    int (*put)(void *context, const void *data, size_t n, struct dup_place *place);
    /* n bytes from `offset` on of what was put there. hash: byte_hash() of them, with seed 0; others are a failure */
    int (*get)(void *context, const struct dup_place *place, size_t offset, size_t n, uint64_t hash, void *data);
    void (*drop)(void *context, const struct dup_place *place);   /* it is not needed any more */
    void *context;
    size_t most;                 /* bytes of memory that losses may take before any leave */
    bool is_open;                /* some may leave now */
};

/* Bytes that were put at once, and byte_hash() of them. */
struct dup_piece {
    struct dup_place place;
    uint64_t hash;
};

/* Puts bytes->n bytes, after which it is empty, and appends the piece to *pieces. -1: it failed, or there is no
 * memory. */
int dup_store_put(const struct dup_store *store, struct byte_buffer *bytes, struct byte_buffer *pieces);

/* Appends the bytes of the piece to *to. last: the piece is not needed any more. -1: as above. */
int dup_store_get(const struct dup_store *store, const struct dup_piece *piece, bool last, struct byte_buffer *to);

#endif
