/* SPDX-License-Identifier: MIT */
/* Keys sampled from the sorted sublists of an arena, where the last merge may cut the order. Sampled keys lie far
 * apart, each on a page of its own, so that one thread would take 5 ms for 64 Ki of them. Tasks take them, one task for
 * each sublist. */
#ifndef RUN_SAMPLES_H
#define RUN_SAMPLES_H

#include "bam_arena.h"
#include "base/task_ring.h"

struct clocks;
struct engine;

struct run_samples {
    const struct bam_arena *arena;
    size_t every;
    struct bam_key *keys;        /* sorted, once taken */
    size_t n;
    size_t next;                 /* the caller's: the number of samples that are used */
    size_t *first;               /* for each sublist: where its samples go; set before the tasks begin */
    struct task_ring ring;       /* ring of the sublists */
    struct clocks *clocks;
};

/* Makes room for the samples that run_cut_sample() takes. All sublists must be sorted. -1: out of memory; free the
 * samples anyway. */
int run_samples_open(struct run_samples *samples, const struct bam_arena *arena, size_t every,
                     const struct engine *engine);

/* Takes the samples. Call it once, on the main thread, which waits for the team. */
void run_samples_take(struct run_samples *samples);

/* Call it before run_samples_take(), or when all tasks are done: late tasks still look at the ring. */
void run_samples_free(struct run_samples *samples);

#endif
