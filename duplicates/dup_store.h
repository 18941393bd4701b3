/* SPDX-License-Identifier: MIT */
/* Where losses go that outgrow memory: what the caller of duplicates/ gives, who has files. */
#ifndef DUP_STORE_H
#define DUP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that were put at once. */
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

#endif
