/* SPDX-License-Identifier: MIT */
#include "base/memory_shares.h"

#define MIB ((size_t)1 << 20)

struct htslib_use memory_shares_htslib(bool is_cram, bool writing, const struct htslib_room *room, int n_threads)
{
    size_t base = !is_cram ? 3 * MIB : writing ? 20 * MIB : 10 * MIB;
    size_t each = room->thread_space + (!is_cram ? 3 * MIB / 2 : writing ? 32 * MIB : 16 * MIB);
    uint64_t most = room->bytes > base ? (room->bytes - base) / each : 0;
    int n = (uint64_t)n_threads < most ? n_threads : most > 1 ? (int)most : 1;
    return (struct htslib_use){.n_threads = n, .bytes = base + (n > 1 ? (size_t)n * each : 0)};
}
