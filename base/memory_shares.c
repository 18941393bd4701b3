/* SPDX-License-Identifier: MIT */
#include "base/memory_shares.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

struct htslib_use memory_shares_htslib(bool is_cram, bool writing, const struct htslib_room *room, int n_threads)
{
    size_t base = !is_cram ? 3 * MIB : writing ? 20 * MIB : 10 * MIB;
    size_t each = room->thread_space + (!is_cram ? 3 * MIB / 2 : writing ? 32 * MIB : 16 * MIB);
    uint64_t most = room->bytes > base ? (room->bytes - base) / each : 0;
    int n = (uint64_t)n_threads < most ? n_threads : most > 1 ? (int)most : 1;
    return (struct htslib_use){.n_threads = n, .bytes = base + (n > 1 ? (size_t)n * each : 0)};
}

/* The size of a store that keeps all runs in memory, packed, beside the last arenas; 0: none does. */
static size_t store_size(size_t arenas, double expected)
{
    static const double PACKED = 0.5, MOST = 0.7, MARGIN = 1.1;
    double all = (double)arenas, needed = (expected * MARGIN - all / 2) / (1 / PACKED - 0.5);
    return needed > 0 && needed <= MOST * all ? (size_t)needed : 0;
}

/* Smaller slices are better than a second merge, unless they become tiny. */
static size_t slice_size_for(const struct memory_plan *p, size_t arena_size, double expected)
{
    static const size_t LEAST = 768 * KIB;
    double runs = expected / (double)arena_size * 1.2 + 1;
    size_t fitting = whole_pages((size_t)((double)arena_size / 2 / runs));
    return fitting >= LEAST && fitting < p->slice_size ? fitting : p->slice_size;
}

struct memory_spilling memory_shares_spilling(const struct memory_plan *p, double expected, bool late)
{
    size_t arenas = 2 * p->arena_size;
    struct memory_spilling s = {.store = late ? 0 : store_size(arenas, expected)};
    s.arena_size = whole_pages((arenas - s.store) / 2);
    s.slice_size = slice_size_for(p, s.arena_size, expected);
    s.fan_in = s.arena_size / (2 * s.slice_size);
    return s;
}
