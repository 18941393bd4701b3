/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "sort/greedy_merge.h"

/* Returns the keys of a slice that are not merged yet. */
static struct merge_way keys_left(const struct greedy_merge *g, size_t run, size_t slice)
{
    struct merge_way keys = g->runs->slice(g->runs->reader, run, slice);
    if (g->from && slice < g->taken[run] && run != g->from->way)
        keys.next = run_cut_find(g->from, g->rule, keys, run);
    return keys;
}

/* Steps over slices of which all records are merged. Returns whether the run's next slice is in memory, or there is
 * none. */
static bool find_slice(const struct greedy_merge *g, size_t run)
{
    const struct merge_runs *runs = g->runs;
    uint64_t key;
    for (; runs->first_key(runs->reader, run, g->next[run], &key); g->next[run]++) {
        if (!runs->ready(runs->reader, run, g->next[run], true))
            return false;
        struct merge_way keys = keys_left(g, run, g->next[run]);
        if (keys.next < keys.end)
            break;
    }
    return true;
}

/* Gives the next slice of a run, which find_slice() has found. */
static int next_slice(void *greedy, size_t run, struct merge_way *way)
{
    const struct greedy_merge *g = greedy;
    uint64_t key;
    if (!g->runs->first_key(g->runs->reader, run, g->next[run], &key))
        return 0;
    *way = keys_left(g, run, g->next[run]++);
    return 1;
}

int greedy_merge_open(struct greedy_merge *g, const size_t *first)
{
    size_t n = g->runs->n;
    if (!(g->next = malloc((n + 1) * sizeof *g->next)) || run_merge_init(&g->merge, g->rule, n, n) < 0)
        return latch_fail(g->engine->latch, "out of memory for merging");
    memcpy(g->next, first, n * sizeof *first);
    g->end_awaited = n;
    record_list_empty(&g->list);
    return 0;
}

void greedy_merge_close(struct greedy_merge *g)
{
    free(g->next);
    run_merge_free(&g->merge);
}

/* Called when the records of the list are in the sink. Releases all slices before those that are being merged. */
static int put_back(struct greedy_merge *g)
{
    for (size_t i = 0; i < g->runs->n; i++)
        if (g->next[i] > 0 && g->runs->leave(g->runs->reader, i, g->next[i] - 1) < 0)
            return -1;
    record_list_empty(&g->list);
    g->is_out = false;
    return 0;
}

static void begin(struct greedy_merge *g)
{
    run_merge_start(&g->merge, next_slice, g);   /* next_slice() cannot fail */
    g->is_begun = true;
    g->from = NULL;
}

/* Ends the list where a slice ends: the next slice may not be in memory yet, and may need the buffer of a slice whose
 * records are in the list. */
static void fill_list(struct greedy_merge *g)
{
    struct merge_item item;
    bool ends = false;
    enum stage before = clocks_enter(g->engine->clocks, STAGE_MERGE);
    if (!g->is_begun)
        begin(g);
    while (g->list.n < g->max && !ends && run_merge_next(&g->merge, &item) > 0) {
        const struct merge_way *way = &g->merge.ways[item.way];
        record_list_add(&g->list, bam_key_record(item.base, item.key),
                        (uint32_t)bam_key_record_size(item.base, item.key), (uint16_t)item.way);
        if ((ends = way->next + 1 == way->end)) {
            g->awaited = item.way;
            g->end_awaited = item.way + 1;
        }
    }
    clocks_records(g->engine->clocks, g->list.n);
    clocks_leave(g->engine->clocks, before, 0);
}

enum chunk_state greedy_merge_advance(struct greedy_merge *g)
{
    if (g->is_out && put_back(g) < 0)
        return CHUNK_FAILED;
    for (; g->list.n == 0 && g->awaited < g->end_awaited; g->awaited++)
        if (!find_slice(g, g->awaited))
            return CHUNK_AWAITED;
    if (g->list.n == 0)
        fill_list(g);
    return g->list.n > 0 ? CHUNK_MADE : CHUNK_NONE;
}

void greedy_merge_take(struct greedy_merge *g, struct record_list *list)
{
    *list = g->list;
    list->fit = NULL;            /* because the list is used again */
    g->is_out = true;
}
