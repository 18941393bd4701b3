/* SPDX-License-Identifier: MIT */
#include <sys/syscall.h>
#include <unistd.h>
#include "base/memory_nodes.h"

enum {
    /* Shares are right to 1.6 % (two standard deviations). A prime: places at equal distances that are special, such
     * as the first page of every 64 MiB, are met as often as they are there. */
    SAMPLE = 4099,
    APART = 64 << 10,            /* bytes between two pages at least, so that a small sort is not held up */
};

/* Asked without nodes to move pages to, the call only tells where pages are. /proc/self/numa_maps tells it exactly, but
 * takes 14 ms for each GiB of small pages. */
int memory_nodes_ask(size_t n, void **pages, int *nodes)
{
#ifdef SYS_move_pages
    return syscall(SYS_move_pages, 0, n, pages, NULL, nodes, 0) == 0 ? 0 : -1;
#else
    (void)n, (void)pages, (void)nodes;
    return -1;
#endif
}

static uint64_t size_of(const struct memory_area *areas, int n_areas)
{
    uint64_t size = 0;
    for (int i = 0; i < n_areas; i++)
        size += areas[i].size;
    return size;
}

/* at: below the size of all areas together. */
static uint8_t *byte_of(const struct memory_area *areas, uint64_t at)
{
    for (; at >= areas->size; areas++)
        at -= areas->size;
    return areas->base + at;
}

struct memory_nodes memory_nodes_of(const struct memory_area *areas, int n_areas, memory_nodes_ask_fn *ask)
{
    struct memory_nodes found = {0};
    uint64_t size = size_of(areas, n_areas), n = size / APART < SAMPLE ? (size + APART - 1) / APART : SAMPLE;
    void *pages[SAMPLE];
    int nodes[SAMPLE];
    for (uint64_t i = 0; i < n; i++)
        pages[i] = byte_of(areas, (2 * i + 1) * size / (2 * n));
    if (n == 0 || ask(n, pages, nodes) < 0)
        return found;
    for (uint64_t i = 0; i < n; i++)
        if (nodes[i] >= 0 && nodes[i] < MEMORY_NODES_MAX)
            found.bytes[nodes[i]]++;
    for (int node = 0; node < MEMORY_NODES_MAX; node++)
        found.bytes[node] = found.bytes[node] * size / n;
    return found;
}

uint64_t memory_nodes_total(const struct memory_nodes *m)
{
    uint64_t total = 0;
    for (int node = 0; node < MEMORY_NODES_MAX; node++)
        total += m->bytes[node];
    return total;
}

int memory_nodes_fullest(const struct memory_nodes *m)
{
    int fullest = 0;
    for (int node = 1; node < MEMORY_NODES_MAX; node++)
        if (m->bytes[node] > m->bytes[fullest])
            fullest = node;
    return fullest;
}

double memory_nodes_share(const struct memory_nodes *m, int node)
{
    uint64_t total = memory_nodes_total(m);
    return total > 0 ? (double)m->bytes[node] / (double)total : 0;
}
