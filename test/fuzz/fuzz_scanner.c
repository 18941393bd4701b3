/* SPDX-License-Identifier: MIT */
/* A complete foreign file, up to its blocks: format, pieces, ring. */
#include <unistd.h>
#include "codec/bgzf_block.h"
#include "bgzf_omp.h"
#include "read/input_format.h"
#include "fuzz.h"
#include "base/engine.h"
#include "base/latch.h"

enum { SLOTS = 3 };

static void take(struct bgzf_source *source, uint8_t *ring[SLOTS], int wait, uint64_t *bytes)
{
    struct bgzf_source_block block;
    while (bgzf_source_take(source, wait, &block) > 0) {
        MUST(block.slot < SLOTS && block.data == ring[block.slot] && block.size <= BGZF_MAX_BLOCK);
        *bytes += block.size;
        free(ring[block.slot]);
        ring[block.slot] = NULL;
    }
}

/* Takes the blocks in like the driver, each into memory of exactly its size. */
static void read_all(struct bgzf_source *source, struct latch *latch, uint8_t *ring[SLOTS])
{
    uint64_t given = 0, taken = 0;
    uint32_t size;
    int found;
    for (unsigned next = 0; (found = bgzf_source_peek(source, &size)) > 0; next = (next + 1) % SLOTS) {
        MUST(size > 0 && size <= BGZF_MAX_BLOCK);
        if (bgzf_source_ring_full(source))
            take(source, ring, 1, &taken);
        if (latch_tripped(latch))
            break;
        given += size;
        bgzf_source_hand_out(source, ring[next] = must_alloc(size), NULL);
    }
    take(source, ring, 1, &taken);
    MUST(latch_tripped(latch) ? latch->message[0] : given == taken && found == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fuzz_is_bam(data, size))
        return 0;
    char path[32];
    int fd = fuzz_file(data, size, path);
    struct latch latch = {0};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    struct input_options from = {.path = path, .engine = &engine, .piece_size = BGZF_MAX_BLOCK, .n_pieces = 4};
    struct input_format *input = input_format_open(&from);
    if (input && input->framing == INPUT_BGZF) {
        uint8_t *ring[SLOTS] = {0};
        struct bgzf_source_options how = {
            .input = input->window,
            .path = path,
            .n_slots = SLOTS,
            .engine = &engine,
        };
        struct bgzf_source *source = bgzf_source_open(&how);
        MUST(source);
        read_all(source, &latch, ring);
        bgzf_source_close(source);
        for (int i = 0; i < SLOTS; i++)
            free(ring[i]);
    }
    input_format_close(input);
    close(fd);
    return 0;
}
