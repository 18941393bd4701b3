/* SPDX-License-Identifier: MIT */
#include "markdup/marked_flow.h"
#include "sormadup/sormadup_memory.h"
#include "sormadup/sorted_slices.h"

size_t sormadup_memory_least(int n_threads)
{
    return sorted_slices_memory(n_threads) + marked_flow_memory(n_threads, SORTED_SLICE);
}

size_t sormadup_memory_marking(const struct memory_rings *rings)
{
    enum { SHARE = 6 };  /* one byte in this many is for consumers that take ownership of the records */
    size_t share = (size_t)(rings->job.all / SHARE), least = sormadup_memory_least(rings->job.n_threads);
    return share > least ? share : least;
}
