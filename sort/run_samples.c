/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include "base/clocks.h"
#include "base/engine.h"
#include "sort/run_cut.h"
#include "sort/run_samples.h"
#include "order/sublist_sort.h"

static void sample_sublist(void *samples, uint32_t number)
{
    struct run_samples *s = samples;
    enum stage before = clocks_enter(s->clocks, STAGE_MERGE);
    run_cut_take(&s->arena->sublists[number], s->every, s->keys + s->first[number], SIZE_MAX);
    clocks_leave(s->clocks, before, 0);
}

int run_samples_open(struct run_samples *s, const struct bam_arena *arena, size_t every,
                     const struct engine *engine)
{
    size_t n = arena->n_sublists;
    struct task_ring_options ring = {
        .n_slots = (uint32_t)n, .n_threads = engine->n_threads, .large_batches = true, .run = sample_sublist, .arg = s,
    };
    *s = (struct run_samples){.arena = arena, .every = every, .clocks = engine->clocks};
    if (!(s->first = malloc((n + 1) * sizeof *s->first)))
        return -1;
    for (size_t i = 0; i < n; i++) {
        s->first[i] = s->n;
        s->n += run_cut_count(&arena->sublists[i], every);
    }
    s->keys = malloc((s->n + 1) * sizeof *s->keys);
    return s->keys ? task_ring_open(&s->ring, &ring) : -1;
}

void run_samples_take(struct run_samples *s)
{
    struct bam_key_order order = bam_arena_order(s->arena);
    task_ring_hand_out_all(&s->ring);
    task_ring_take_all(&s->ring, s->clocks);
    sublist_sort(s->keys, s->n, &order);
}

void run_samples_free(struct run_samples *s)
{
    task_ring_close(&s->ring, true);
    free(s->first);
    free(s->keys);
}
