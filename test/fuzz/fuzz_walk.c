/* SPDX-License-Identifier: MIT */
/* A foreign stream of records, cut into blocks anywhere: for any guess about a block, the list has the records that one
 * walk over all blocks finds.
 *
 *   references | blocks | size 2 of each block | stream */
#include "bam_arena.h"
#include "fuzz.h"
#include "base/latch.h"

enum { ARENA = 512 << 10, STREAM_MAX = 64 << 10, BLOCKS_MAX = 15 };

static size_t keys_max(size_t bytes)
{
    return bytes / BAM_MIN_RECORD + 1;
}

/* Takes the blocks in one after another, like the driver. 0: all are taken. */
static int accept_blocks(struct bam_arena *arena, const uint16_t sizes[], unsigned n, const uint8_t *stream, size_t left,
                         struct latch *latch)
{
    struct bam_origin origin = {"fuzz", 0};
    for (unsigned i = 0; i <= n && left > 0; i++) {
        size_t size = i < n && sizes[i] < left ? sizes[i] : left;
        uint8_t *place = bam_arena_take(arena, size);
        uint64_t start = (uint64_t)(place - arena->base);
        struct bam_key *keys = must_alloc(keys_max(size) * sizeof *keys);
        memcpy(place, stream, size);
        struct bam_walk guess = bam_arena_guess(arena, start, start + size, keys);
        int failed = bam_arena_accept(arena, &guess, keys, start + size, NULL, latch, &origin);
        free(keys);
        if (failed)
            return -1;
        stream += size;
        left -= size;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    struct bam_arena arena, all = {0};
    struct latch latch = {0};
    uint16_t sizes[BLOCKS_MAX] = {0};
    MUST(bam_arena_init(&arena, ARENA) == 0);
    all.n_ref = arena.n_ref = feed_byte(&f) & 7;
    unsigned n = feed_byte(&f) & BLOCKS_MAX;
    feed_copy(&f, (uint8_t *)sizes, n * sizeof *sizes);
    if (f.left <= STREAM_MAX) {
        struct bam_key *keys = must_alloc(keys_max(f.left) * sizeof *keys);
        all.base = exact_copy(f.p, f.left);
        struct bam_walk walk = bam_arena_walk(&all, 0, f.left, keys);
        int failed = accept_blocks(&arena, sizes, n, f.p, f.left, &latch);
        MUST(walk.n == arena.n_records && walk.end == arena.walked);
        MUST(!failed == (walk.fault == BAM_OK || walk.fault == BAM_CUT));
        MUST(walk.n_fix || walk.checksum == arena.checksum);
        free(all.base);
        free(keys);
    }
    bam_arena_free(&arena);
    return 0;
}
