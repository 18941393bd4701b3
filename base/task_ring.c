/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"

/* Slots per task, if the ring has that many for each thread. A task costs the thread that makes it 0.4 to 1.4 us with
 * libgomp, more with more threads; 4 blocks take 0.2 ms and more (bench/task_cost). */
enum { TASKS_PER_THREAD = 2 };
/* If a thread sleeps, the thread that makes a task also pays for waking it: 1 to 5 us. Many threads sleep if the main
 * thread is too slow for them, and then waking makes it slower still. So in a large team the main thread makes one task
 * of a large batch. The thread that gets it makes tasks of its parts, which are halves of batches, and wakes others. */
enum { THREADS_PER_BATCH = 8, BATCHES_MOST = 8, LARGE_BATCHES_LEAST = 8 };

/* The largest batch that leaves every thread of the team some tasks. */
static uint32_t batch_size(uint32_t n_slots, int n_threads)
{
    uint32_t most = n_threads > 0 ? n_slots / (TASKS_PER_THREAD * (uint32_t)n_threads) : 1;
    return most < 1 ? 1 : most < TASK_BATCH_MOST ? most : TASK_BATCH_MOST;
}

static uint32_t large_batch_size(const struct task_ring_options *o, uint32_t batch)
{
    uint32_t batches = o->large_batches ? (uint32_t)o->n_threads / THREADS_PER_BATCH : 1;
    uint32_t room = o->n_slots / LARGE_BATCHES_LEAST / batch;
    batches = batches < BATCHES_MOST ? batches : BATCHES_MOST;
    batches = batches < room ? batches : room;
    return batches > 1 ? batches * batch : batch;
}

/* In a large team, slots that a thread keeps for later are missing elsewhere: with full batches, 128 threads would be
 * idle for 16 % of the writing (-l 1, slow motion). So a thread shares each batch that the main thread has made a task
 * of. */
static uint32_t kept_size(const struct task_ring *r)
{
    return r->large > r->batch ? (r->batch + 1) / 2 : r->batch;
}

size_t task_ring_memory(uint32_t n_slots)
{
    return n_slots * sizeof(struct task_slot);
}

int task_ring_open(struct task_ring *r, const struct task_ring_options *options)
{
    memset(r, 0, sizeof *r);
    r->opt = *options;
    r->batch = batch_size(options->n_slots, options->n_threads);
    r->large = large_batch_size(options, r->batch);
    r->kept = kept_size(r);
    r->slots = aligned_alloc(_Alignof(struct task_slot), (options->n_slots + 1) * sizeof *r->slots);
    for (uint32_t i = 0; r->slots && i < options->n_slots; i++)
        atomic_init(&r->slots[i].state, TASK_FREE);
    return r->slots ? 0 : -1;
}

void task_ring_close(struct task_ring *r, bool all_free)
{
    for (uint32_t i = 0; r->slots && all_free && i < r->opt.n_slots; i++)
        assert(task_ring_state(r, i) == TASK_FREE);
    free(r->slots);
    r->slots = NULL;
}

/* --------------------------------------------------------------- one slot */

bool task_ring_run(struct task_ring *r, uint32_t slot)
{
    if (!task_ring_claim(r, slot))
        return false;
    r->opt.run(r->opt.arg, slot);
    if (!r->opt.run_releases)
        task_ring_finish(r, slot);
    return true;
}

static void run_slots(struct task_ring *r, uint64_t n);

/* Makes a task that runs n slots. */
static void make_task(struct task_ring *r, uint64_t n)
{
    #pragma omp task default(none) firstprivate(r, n)
    run_slots(r, n);
}

/* Gives half of its slots to another task, as often as needed. Then runs the oldest slots that no task has begun: tasks
 * of halves begin late, and the main thread takes slots back in their order. All tasks so far were made for as many
 * slots as were handed out, so these slots have been handed out. */
static void run_slots(struct task_ring *r, uint64_t n)
{
    for (; n > r->kept; n -= n / 2)
        make_task(r, n / 2);
    uint64_t first = atomic_fetch_add(&r->begun, n);
    for (uint64_t i = first; i < first + n; i++)
        task_ring_run(r, task_ring_slot(r, i));
}

static void make_ready(struct task_ring *r, uint32_t slot)
{
    atomic_store_explicit(&r->slots[slot].state, TASK_READY, memory_order_release);
}

void task_ring_submit_batch(struct task_ring *r, struct task_batch *batch)
{
    struct task_batch slots = *batch;
    batch->n = 0;
    if (slots.n == 0)
        return;
    #pragma omp task default(none) firstprivate(r, slots)
    for (uint32_t i = 0; i < slots.n; i++)
        task_ring_run(r, slots.slots[i]);
}

void task_ring_submit(struct task_ring *r, uint32_t slot)
{
    struct task_batch batch = {1, {slot}};
    make_ready(r, slot);
    task_ring_submit_batch(r, &batch);
}

void task_ring_add(struct task_ring *r, struct task_batch *batch, uint32_t slot)
{
    make_ready(r, slot);
    batch->slots[batch->n++] = slot;
    if (batch->n >= r->batch)
        task_ring_submit_batch(r, batch);
}

/* -------------------------------------------------------------- many rings */

static void run_batches(struct task_batches *batches);

static void make_batches_task(const struct task_batches *batches)
{
    struct task_batches parts = *batches;
    #pragma omp task default(none) firstprivate(parts)
    run_batches(&parts);
}

/* Gives the newer half to another task as long as there is one. That wakes a thread, for which the main thread has no
 * time. */
static void run_batches(struct task_batches *batches)
{
    while (batches->n > 1) {
        struct task_batches half = {.n = batches->n / 2};
        batches->n -= half.n;
        memcpy(half.parts, &batches->parts[batches->n], half.n * sizeof *half.parts);
        make_batches_task(&half);
    }
    run_slots(batches->parts[0].ring, batches->parts[0].n);
}

void task_batches_submit(struct task_batches *batches)
{
    if (!batches || batches->n == 0)
        return;
    make_batches_task(batches);
    batches->n = 0;
}

static void put_part(struct task_batches *batches, struct task_ring *ring, uint64_t n)
{
    batches->parts[batches->n++] = (struct task_part){ring, n};
    if (batches->n == TASK_BATCHES_MOST)
        task_batches_submit(batches);
}

/* ----------------------------------------------------------- slots in turn */

void task_ring_make_ready(struct task_ring *r)
{
    make_ready(r, task_ring_slot(r, r->head++));
}

void task_ring_make_task(struct task_ring *r)
{
    uint64_t n = r->head - r->tasked;
    r->tasked = r->head;
    if (n > 0 && r->batches)
        put_part(r->batches, r, n);
    else if (n > 0)
        make_task(r, n);
}

/* Returns whether a quarter of the ring waits for a thread: then tasks are best made in order, and no thread has to be
 * woken. */
static bool is_ahead(const struct task_ring *r)
{
    uint64_t quarter = r->opt.n_slots / 4;
    return r->head > quarter && task_ring_state(r, task_ring_slot(r, r->head - quarter)) == TASK_READY;
}

void task_ring_hand_out(struct task_ring *r)
{
    task_ring_make_ready(r);
    uint64_t n = r->head - r->tasked;
    if (n >= r->large || (n % r->batch == 0 && is_ahead(r)))
        task_ring_make_task(r);
}

void task_ring_hand_out_all(struct task_ring *r)
{
    while (!task_ring_full(r))
        task_ring_hand_out(r);
}

void task_ring_take(struct task_ring *r)
{
    task_ring_release(r, task_ring_slot(r, r->tail++));
}

/* A slot is READY once in each turn, so a number that was passed need not be checked again. */
bool task_ring_help(struct task_ring *r)
{
    uint64_t head = r->head, oldest = head > r->opt.n_slots ? head - r->opt.n_slots : 0;
    if (r->help < oldest)
        r->help = oldest;
    while (r->help < head)
        if (task_ring_run(r, task_ring_slot(r, r->help++)))
            return true;
    return false;
}

/* ------------------------------------------------------------------ waiting */

void task_pause(unsigned *spins)
{
    /* Some 2 us of spinning and 200 of yielding (a block takes 20 to 500), then naps that are short against the wait so
     * far. Naps leave the core to other programs: the slow part may be the other end of a pipe. */
    enum { SPINS_BEFORE_YIELD = 64, PAUSES_BEFORE_NAP = 512, NAP_NS = 100000 };
    if (++*spins > PAUSES_BEFORE_NAP) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    } else if (*spins > SPINS_BEFORE_YIELD) {
        sched_yield();
    } else {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

void task_wait(task_until_fn *until, task_help_fn *help, void *arg, struct clocks *clocks)
{
    unsigned spins = 0;
    enum stage before = clocks_enter(clocks, STAGE_WAIT);
    while (!until(arg))
        if (!help(arg))
            task_pause(&spins);
    clocks_leave(clocks, before, 0);
}

struct slot_wait {
    struct task_ring *ring;
    uint32_t slot;
    enum task_state state;
    const struct latch *latch;
};

static bool slot_is_there(void *arg)
{
    const struct slot_wait *w = arg;
    return task_ring_state(w->ring, w->slot) == w->state || (w->latch && latch_tripped(w->latch));
}

static bool help_ring(void *arg)
{
    const struct slot_wait *w = arg;
    return task_ring_help(w->ring);
}

void task_ring_wait(struct task_ring *r, uint32_t slot, enum task_state state, const struct latch *latch,
                    struct clocks *clocks)
{
    struct slot_wait w = {.ring = r, .slot = slot, .state = state, .latch = latch};
    if (slot_is_there(&w))
        return;
    task_ring_make_task(r);
    task_batches_submit(r->batches);
    task_wait(slot_is_there, help_ring, &w, clocks);
}

void task_ring_take_all(struct task_ring *r, struct clocks *clocks)
{
    for (; !task_ring_empty(r); task_ring_take(r))
        task_ring_wait(r, task_ring_oldest(r), TASK_DONE, NULL, clocks);
}

/* ------------------------------------------------------------------ the team */

/* OMP_DYNAMIC and OMP_MAX_ACTIVE_LEVELS=0 are for other programs of the job: here, they would reduce the threads that
 * the user has requested and for which memory is planned. */
void task_team(int n_threads, void (*main_thread)(void *), void *arg)
{
    omp_set_dynamic(false);
    if (omp_get_max_active_levels() < 1)
        omp_set_max_active_levels(1);
    #pragma omp parallel num_threads(n_threads)
    if (omp_get_thread_num() == 0)
    main_thread(arg);
}

bool task_in_team(void)
{
    return omp_in_parallel();
}

int task_thread(void)
{
    return omp_get_thread_num();
}
