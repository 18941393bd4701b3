/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "sort/greedy_merge.h"

/* A run whose next slice the main thread waits for. */
struct awaited {
    struct greedy_merge *greedy;
    size_t run;
};

static bool is_ready(void *awaited)
{
    const struct awaited *a = awaited;
    const struct merge_runs *runs = a->greedy->runs;
    return latch_tripped(a->greedy->engine->latch) || runs->ready(runs->reader, a->run, a->greedy->next[a->run], true);
}

static bool help(void *awaited)
{
    const struct awaited *a = awaited;
    return a->greedy->help(a->greedy->help_arg);
}

/* Gives the next slice of a run. Some records of the first slices may already be merged. A list ends where a run
 * continues in another slice: otherwise all buffers of the run could be waiting until the list is put. */
static int next_slice(void *greedy, size_t run, struct merge_way *way)
{
    struct greedy_merge *g = greedy;
    struct awaited awaited = {g, run};
    const struct merge_runs *runs = g->runs;
    uint64_t key;
    if (!runs->first_key(runs->reader, run, g->next[run], &key))
        return 0;
    task_wait(is_ready, help, &awaited, g->engine->clocks);
    if (latch_tripped(g->engine->latch))
        return -1;
    size_t slice = g->next[run]++;
    *way = runs->slice(runs->reader, run, slice);
    g->has_crossed = true;
    if (g->from && slice < g->taken[run] && run != g->from->way)
        way->next = run_cut_find(g->from, g->rule, *way, run);
    return 1;
}

int greedy_merge_open(struct greedy_merge *g, const size_t *first)
{
    size_t n = g->runs->n;
    if (!(g->next = malloc((n + 1) * sizeof *g->next)) || run_merge_init(&g->merge, g->rule, n, n) < 0)
        return latch_fail(g->engine->latch, "out of memory for merging");
    memcpy(g->next, first, n * sizeof *first);
    int result = run_merge_start(&g->merge, next_slice, g);
    g->from = NULL;
    return result;
}

void greedy_merge_close(struct greedy_merge *g)
{
    free(g->next);
    run_merge_free(&g->merge);
}

/* Releases all slices before the one that is being merged. Call it when the records of the list are in the sink. */
static int put_back(struct greedy_merge *g)
{
    for (size_t i = 0; i < g->runs->n; i++)
        if (g->next[i] > 0 && g->runs->leave(g->runs->reader, i, g->next[i] - 1) < 0)
            return -1;
    return 0;
}

int greedy_merge_next(struct greedy_merge *g, struct record_list *list)
{
    struct merge_item item;
    int found = 1;
    if (g->is_out && put_back(g) < 0)
        return -1;
    record_list_empty(&g->list);
    g->has_crossed = false;
    enum stage before = clocks_enter(g->engine->clocks, STAGE_MERGE);
    while (g->list.n < g->max && !g->has_crossed && (found = run_merge_next(&g->merge, &item)) > 0)
        record_list_add(&g->list, bam_key_record(item.base, item.key),
                        (uint32_t)bam_key_record_size(item.base, item.key), (uint16_t)item.way);
    clocks_records(g->engine->clocks, g->list.n);
    clocks_leave(g->engine->clocks, before, 0);
    *list = g->list;
    list->fit = NULL;            /* because the list is used again */
    g->is_out = true;
    return found < 0 ? -1 : g->list.n > 0;
}
