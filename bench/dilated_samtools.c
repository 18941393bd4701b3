/* SPDX-License-Identifier: MIT */
/* The program in slow motion: many threads on few cores. After each stage a thread sleeps until that stage has taken
 * SAMTOOLS_DILATION times its CPU time. Threads that sleep need no core, so 64 threads at a factor of 64 keep one core
 * busy, and wall time divided by the factor is the time on 64 cores, with the exceptions in doc/dev/scaling.md. The
 * program's objects are linked unchanged: -Wl,--wrap puts each __wrap_X between X and its callers.
 *
 * Idle and waiting threads are not slowed down: their naps of 0.1 ms (task_pause) are short against slow stages. No
 * clock that the program's decisions depend on runs while a thread sleeps here: memory_watch and spill_policy use
 * sizes, and bam_arena times one page fault. Progress lines come more often. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include "bam_arena.h"
#include "base/machine.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "report/command_report.h"
#include "stats/counts.h"

/* A debt is carried on until it is worth a sleep: this many ns of simulated time, less than a block takes. With less,
 * the main thread would find its caches cold after every few blocks. 100 and 300 us left them as cold. */
static const double GRAIN = 20000;

/* The time that a thread still has to sleep, and since when it has not been added up. */
struct debt {
    enum stage stage;
    bool started;
    double cpu, wall, owed;                      /* ns */
};

static _Thread_local struct debt mine;
/* Written before main(). */
static double factor = 1, clock_cost;

static double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Reading the CPU clock is a system call, which the program would not make: its time is subtracted. */
static __attribute__((constructor)) void set_up(void)
{
    enum { TRIALS = 1000 };
    const char *text = getenv("SAMTOOLS_DILATION");
    factor = text && atof(text) > 1 ? atof(text) : 1;
    double start = clock_ns(CLOCK_THREAD_CPUTIME_ID), end = start;
    for (int i = 0; i < TRIALS; i++)
        end = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    clock_cost = (end - start) / TRIALS;
}

static void sleep_ns(double ns)
{
    if (!mine.started)
        prctl(PR_SET_TIMERSLACK, 1);             /* otherwise it wakes 50 us late */
    mine.started = true;
    nanosleep(&(struct timespec){(time_t)(ns / 1e9), (long)(ns - 1e9 * (double)(time_t)(ns / 1e9))}, NULL);
}

static bool rests(enum stage stage)
{
    return clocks_stage(stage)->kind == STAGE_RESTS;
}

/* Ends the time up to now, which must have taken factor times its CPU time. Time in which the thread waited for a CPU,
 * or woke late, is subtracted from that; but not a long time in which it was blocked, as by a disk. While the debt is
 * too small for a sleep, the CPU clock is not read: when cold, it takes up to 1 us, as long as the main thread has for
 * a block. */
static void pay_before(enum stage next)
{
    double wall = clock_ns(CLOCK_MONOTONIC), most = factor * GRAIN;
    bool rested = rests(mine.stage);
    if (rested == rests(next) && (rested || mine.owed + factor * (wall - mine.wall) <= most))
        return;
    double cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (!rested)
        mine.owed += factor * (cpu - mine.cpu - clock_cost) - (wall - mine.wall);
    if (mine.owed > most) {
        sleep_ns(mine.owed);
        mine.owed += wall;
        wall = clock_ns(CLOCK_MONOTONIC);
        mine.owed -= wall;
        cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    mine.owed = mine.owed < -most ? -most : mine.owed;
    mine.cpu = cpu;
    mine.wall = wall;
}

static void pay(void)
{
    pay_before(mine.stage);
}

/* Ignores the time since the last payment. */
static void forget(void)
{
    mine.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    mine.wall = clock_ns(CLOCK_MONOTONIC);
}

/* --------------------------------------------------------- memory at hand */

/* A virtual machine may take milliseconds to touch 2 MiB for the first time. In slow motion the thread that does so
 * delays all others. So SAMTOOLS_DILATION_TOUCH bytes are touched before main(), and moved to where the arenas are. All
 * other memory should be recently freed memory: without that, buffers cost main() up to 40 ms before it had read a
 * block. */
enum { HUGE_PAGE = 2 << 20, PART_OF_KEYS = 16 };

static uint8_t *pool;
static size_t pool_size;

static size_t huge_pages(size_t size)
{
    return size / HUGE_PAGE * HUGE_PAGE;
}

static void touch_and_give_back(void)
{
    static const size_t OTHERS = (size_t)512 << 20;
    void *p = mmap(NULL, OTHERS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return;
    for (size_t at = 0; at < OTHERS; at += 4096)
        ((volatile uint8_t *)p)[at] = 0;
    munmap(p, OTHERS);
}

static __attribute__((constructor)) void touch_pool(void)
{
    const char *text = getenv("SAMTOOLS_DILATION_TOUCH");
    size_t size = huge_pages(text ? strtoull(text, NULL, 10) : 0);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)                         /* it also fails if the size is 0 */
        return;
    madvise(p, size, MADV_HUGEPAGE);
    for (size_t at = 0; at < size; at += 4096)
        ((volatile uint8_t *)p)[at] = 0;
    pool = p;
    pool_size = size;
    touch_and_give_back();
}

static void move_pool(uint8_t *to, size_t size)
{
    if (size == 0 || mremap(pool, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
        return;
    pool += size;
    pool_size -= size;
}

int __real_bam_arena_init(struct bam_arena *arena, size_t size);
int __wrap_bam_arena_init(struct bam_arena *arena, size_t size)
{
    int result = __real_bam_arena_init(arena, size);
    size_t all = result < 0 ? 0 : arena->size < pool_size ? arena->size : pool_size;
    size_t keys = huge_pages(all / PART_OF_KEYS), records = huge_pages(all - keys);
    if (records + keys + HUGE_PAGE > arena->size)
        records -= records < HUGE_PAGE ? records : HUGE_PAGE;
    pay();
    move_pool(arena->base, records);
    move_pool(arena->base + huge_pages(arena->size - keys), keys);
    forget();                                    /* that was not the program's work */
    return result;
}

/* ------------------------------------------------------- changes of stage */

struct clocks *__real_clocks_new(int n_threads, enum clocks_detail detail);
struct clocks *__wrap_clocks_new(int n_threads, enum clocks_detail detail)
{
    struct clocks *clocks = __real_clocks_new(n_threads, detail);
    pay();                                       /* the time before is not counted either */
    mine.stage = STAGE_OTHER;
    return clocks;
}

/* A command without clocks (--check) has stages, too. */
static enum stage change_to(enum stage stage)
{
    enum stage before = mine.stage;
    pay_before(stage);
    mine.stage = stage;
    return before;
}

enum stage __real_clocks_enter(struct clocks *clocks, enum stage stage);
enum stage __wrap_clocks_enter(struct clocks *clocks, enum stage stage)
{
    enum stage before = change_to(stage), known = __real_clocks_enter(clocks, stage);
    return clocks ? known : before;
}

void __real_clocks_leave(struct clocks *clocks, enum stage before, uint64_t bytes);
void __wrap_clocks_leave(struct clocks *clocks, enum stage before, uint64_t bytes)
{
    change_to(before);
    __real_clocks_leave(clocks, before, bytes);
}

enum stage __real_clocks_enter_as(struct clocks *clocks, int slot, enum stage stage);
enum stage __wrap_clocks_enter_as(struct clocks *clocks, int slot, enum stage stage)
{
    enum stage before = change_to(stage), known = __real_clocks_enter_as(clocks, slot, stage);
    return clocks ? known : before;
}

void __real_clocks_leave_as(struct clocks *clocks, int slot, enum stage before, uint64_t bytes);
void __wrap_clocks_leave_as(struct clocks *clocks, int slot, enum stage before, uint64_t bytes)
{
    change_to(before);
    __real_clocks_leave_as(clocks, slot, before, bytes);
}

void __real_clocks_phase(struct clocks *clocks, enum phase phase);
void __wrap_clocks_phase(struct clocks *clocks, enum phase phase)
{
    pay();
    __real_clocks_phase(clocks, phase);
}

void __real_clocks_stop(struct clocks *clocks);
void __wrap_clocks_stop(struct clocks *clocks)
{
    pay();
    __real_clocks_stop(clocks);
}

/* Only the report needs it, and it takes up to 14 ms per GiB. */
void __wrap_command_report_measure_memory(struct command_report *report);
void __wrap_command_report_measure_memory(struct command_report *report)
{
    (void)report;
}

/* A thread that waited for a CPU sleeps less for it (pay_before): the report need not subtract it from the work. */
uint64_t __wrap_machine_run_queue(const char *root);
uint64_t __wrap_machine_run_queue(const char *root)
{
    (void)root;
    return UINT64_MAX;
}

/* ------------------------------- what the main thread makes while in a stage */

/* It hands out many blocks in one stage: none may exist before the work for it is paid for. */
void __real_task_ring_hand_out(struct task_ring *ring);
void __wrap_task_ring_hand_out(struct task_ring *ring)
{
    pay();
    __real_task_ring_hand_out(ring);
}

void __real_task_ring_submit(struct task_ring *ring, uint32_t slot);
void __wrap_task_ring_submit(struct task_ring *ring, uint32_t slot)
{
    pay();
    __real_task_ring_submit(ring, slot);
}

void __real_task_ring_add(struct task_ring *ring, struct task_batch *group, uint32_t slot);
void __wrap_task_ring_add(struct task_ring *ring, struct task_batch *group, uint32_t slot)
{
    pay();
    __real_task_ring_add(ring, group, slot);
}

void __real_task_ring_take(struct task_ring *ring);
void __wrap_task_ring_take(struct task_ring *ring)
{
    pay();
    __real_task_ring_take(ring);
}

/* ------------------------------------------- joins of counts within a stage */

int __real_counts_join(struct counts *counts, uint32_t slot);
int __wrap_counts_join(struct counts *counts, uint32_t slot)
{
    int result = __real_counts_join(counts, slot);
    pay();
    return result;
}

bool __real_counts_pair(struct counts *counts, uint32_t left, uint32_t last, uint32_t right);
bool __wrap_counts_pair(struct counts *counts, uint32_t left, uint32_t last, uint32_t right)
{
    bool result = __real_counts_pair(counts, left, last, right);
    pay();
    return result;
}
