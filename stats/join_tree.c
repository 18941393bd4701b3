/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/clocks.h"
#include "base/latch.h"
#include "stats/counts.h"
#include "stats/join_tree.h"

/* Neighbouring slots. */
struct run {
    uint32_t first, n;
};

enum step_kind { STEP_NONE, STEP_JOIN, STEP_PAIR };

/* The next step of a thread, and the runs that the thread has taken for it. */
struct step {
    enum step_kind kind;
    struct run run;
    struct run right;            /* STEP_PAIR: the run after it */
};

int join_tree_open(struct join_tree *t, struct counts *counts, uint32_t n_slots, struct clocks *clocks)
{
    t->counts = counts;
    t->clocks = clocks;
    t->n_slots = n_slots;
    t->slots = calloc(n_slots, sizeof *t->slots);
    if (t->slots && pthread_mutex_init(&t->lock, NULL) == 0)
        return 0;
    free(t->slots);
    t->slots = NULL;
    return -1;
}

void join_tree_close(struct join_tree *t)
{
    if (t->slots)
        pthread_mutex_destroy(&t->lock);
    free(t->slots);
    t->slots = NULL;
}

size_t join_tree_memory(uint32_t n_slots)
{
    return n_slots * sizeof(struct join_slot);
}

/* ---- under the lock ---- */

static uint32_t slot_of(const struct join_tree *t, uint64_t number)
{
    return (uint32_t)(number % t->n_slots);
}

static void set_waiting(struct join_tree *t, struct run run, uint32_t n)
{
    t->slots[run.first].n = t->slots[slot_of(t, (uint64_t)run.first + run.n - 1)].n = n;
}

/* Takes the run whose first slot is this one. */
static struct run take(struct join_tree *t, uint32_t first)
{
    struct run run = {first, t->slots[first].n};
    set_waiting(t, run, 0);
    return run;
}

/* Takes two neighbouring runs, if both wait and can be prepared as a pair. right: the first slot of the right run. */
static bool take_pair(struct join_tree *t, uint32_t right, struct step *step)
{
    uint32_t before = slot_of(t, (uint64_t)right + t->n_slots - 1), n = t->slots[before].n;
    if (n == 0 || t->slots[right].n == 0 || t->slots[right].is_apart)
        return false;
    step->kind = STEP_PAIR;
    step->run = take(t, slot_of(t, (uint64_t)before + t->n_slots + 1 - n));
    step->right = take(t, right);
    return true;
}

/* Leaves the run, and chooses the next step: to join the run that is next, or to prepare this run with a neighbour. A
 * neighbour is looked for only while the next part does not wait: another thread has it, or it is not counted yet. So
 * the next part is not paired with the slot before its own, which may be in use for a much later part. */
static struct step leave(struct join_tree *t, struct run run)
{
    struct step step = {.kind = STEP_NONE};
    uint32_t next = slot_of(t, atomic_load_explicit(&t->joined, memory_order_relaxed));
    if (run.n > 0)
        set_waiting(t, run, run.n);
    if (t->slots[next].n > 0) {
        step.kind = STEP_JOIN;
        step.run = take(t, next);
    } else if (run.n > 0 && !take_pair(t, run.first, &step)) {
        take_pair(t, slot_of(t, (uint64_t)run.first + run.n), &step);
    }
    return step;
}

/* Counts one more part as joined. */
static void pass(struct join_tree *t)
{
    atomic_fetch_add_explicit(&t->joined, 1, memory_order_release);
}

/* ---- on any thread ---- */

/* Joins the parts of the run, which are next. The caller passes the last one. Returns false on an error. */
static bool join_run(struct join_tree *t, struct run run)
{
    for (uint32_t i = 0; i < run.n; i++) {
        if (i > 0)
            pass(t);
        if (counts_join(t->counts, slot_of(t, (uint64_t)run.first + i)) < 0)
            return false;
    }
    return true;
}

/* Does the step. *run becomes the run that the thread then has. Returns false on an error. After that no thread joins
 * parts, because the next part never waits. */
static bool make(struct join_tree *t, const struct step *step, struct run *run)
{
    *run = (struct run){0, 0};
    if (step->kind == STEP_JOIN)
        return join_run(t, step->run);
    uint32_t last = slot_of(t, (uint64_t)step->run.first + step->run.n - 1);
    *run = step->run;
    if (counts_pair(t->counts, step->run.first, last, step->right.first))
        run->n += step->right.n;
    return true;
}

void join_tree_put(struct join_tree *t, uint32_t slot)
{
    pthread_mutex_lock(&t->lock);
    t->slots[slot].is_apart = false;
    set_waiting(t, (struct run){slot, 1}, 1);
    pthread_mutex_unlock(&t->lock);
}

/* Returns the part of the slot, if it waits alone. Otherwise another thread has it, or it is prepared or joined. */
static struct run waiting_alone(const struct join_tree *t, uint32_t slot)
{
    return (struct run){slot, t->slots[slot].n == 1};
}

void join_tree_work(struct join_tree *t, uint32_t slot)
{
    enum stage before = clocks_enter(t->clocks, STAGE_JOIN);
    pthread_mutex_lock(&t->lock);
    struct run run = waiting_alone(t, slot);
    for (struct step step; (step = leave(t, run)).kind != STEP_NONE;) {
        pthread_mutex_unlock(&t->lock);
        bool is_done = make(t, &step, &run);
        pthread_mutex_lock(&t->lock);
        if (!is_done)
            break;
        if (step.kind == STEP_JOIN) {
            pass(t);
        } else if (run.n == step.run.n) {
            t->slots[step.right.first].is_apart = true;
            set_waiting(t, step.right, step.right.n);
        }
    }
    pthread_mutex_unlock(&t->lock);
    clocks_leave(t->clocks, before, 0);
}

/* ---- on the main thread ---- */

struct join_wait {
    const struct join_tree *tree;
    uint64_t n;
    task_help_fn *help;
    void *arg;
    const struct latch *latch;
};

static bool is_joined(void *wait)
{
    const struct join_wait *w = wait;
    return join_tree_has(w->tree, w->n) || latch_tripped(w->latch);
}

static bool help_caller(void *wait)
{
    const struct join_wait *w = wait;
    return w->help(w->arg);
}

int join_tree_wait(const struct join_tree *t, uint64_t n, task_help_fn *help, void *arg, const struct latch *latch)
{
    struct join_wait w = {t, n, help, arg, latch};
    if (!is_joined(&w))
        task_wait(is_joined, help_caller, &w, t->clocks);
    return latch_tripped(latch) ? -1 : 0;
}
