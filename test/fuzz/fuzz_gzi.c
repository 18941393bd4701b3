/* SPDX-License-Identifier: MIT */
/* A foreign .gzi index: refused, or in order, and then it is used to find and cut blocks.
 *
 *   place 4 | the index */
#include "base/endian_io.h"
#include "bgzip/block_cut.h"
#include "bgzip/gzi_index.h"
#include "codec/bgzf_block.h"
#include "fuzz.h"

static void check_order(const struct gzi_index *index)
{
    for (size_t i = 1; i < index->n; i++)
        MUST(index->places[i - 1].file < index->places[i].file && index->places[i - 1].data <= index->places[i].data);
}

static void find(const struct gzi_index *index, uint64_t data)
{
    struct gzi_place found = gzi_index_find(index, data);
    MUST(found.data <= data);
    for (size_t i = 0; i < index->n; i++)
        MUST(index->places[i].data > data || index->places[i].file <= found.file);
}

static void cut(const struct gzi_index *index)
{
    static const uint8_t data[BGZF_FILL];
    struct block_cut cut = {.kind = CUT_PLACES, .places = index};
    for (int i = 0; i < 100; i++) {
        uint64_t from = cut.at;
        uint32_t n = block_cut_next(&cut, data, BGZF_FILL);
        MUST(n > 0 && n <= BGZF_FILL && cut.at == from + n);
        MUST(gzi_index_find(index, cut.at - 1).data <= from);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    struct gzi_index index;
    uint64_t at = feed_word(&f);
    uint8_t *exact = must_alloc(f.left);
    feed_copy(&f, exact, f.left);
    size_t n = size > 4 ? size - 4 : 0;
    if (gzi_index_parse(&index, exact, n))
        MUST(index.n == 0 && !index.places);
    else
        MUST(8 + 16 * index.n == n);
    check_order(&index);
    find(&index, at);
    find(&index, at << 31);
    cut(&index);
    gzi_index_free(&index);
    free(exact);
    return 0;
}
