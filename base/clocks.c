/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clocks.h"

enum {
    CACHE_LINE = 64,
    JOINED_MAX = 8,              /* readers and writers outside the team */
    /* Spans per slot: 256 KiB. Half as many would still be finer than any screen. */
    SPANS_MAX = 1 << 15,
    STAGE_BITS = 8,
};
_Static_assert(N_STAGES <= 1 << STAGE_BITS, "a span holds its stage");

/* Relaxed order: each number is correct by itself, whenever another thread reads it. */
struct stage_counts {
    _Atomic uint64_t ns, blocked_ns, bytes, events, records;
};

/* A thread. Only that thread writes to it, until clocks_stop(). */
struct thread_slot {
    _Alignas(CACHE_LINE) enum stage stage;
    uint64_t since;              /* when the thread entered this stage */
    uint64_t cpu_since;          /* its CPU time then, if the stage may block */
    uint64_t *spans;             /* end << STAGE_BITS | stage; each begins at the end of the one before it */
    size_t n_spans;
    const char *name;            /* set by clocks_join() */
    struct stage_counts counters[N_STAGES];
};

/* The number of threads that are in a stage now, and the time in which there was at least one. The lock of clocks
 * guards it. */
struct presence {
    int threads;
    uint64_t since, ns;          /* since: the latest change */
};

struct clocks {
    int n_threads, room;         /* threads of the team; its slots, which may be more until clocks_stop() */
    atomic_int n_joined;
    uint64_t start;
    uint64_t wall;               /* 0 until stopped; set by the main thread */
    bool cpu_is_counted;         /* since the start */
    struct curve *curve;         /* NULL: not requested */
    /* CPU time of the main thread: at the start; once stopped, the time since the start; set by the main thread */
    uint64_t cpu;
    pthread_mutex_t lock;
    struct presence present[N_STAGES];
    uint64_t phases[N_PHASES];   /* when they began, in ns after the start, plus 1; set by the main thread */
    struct thread_slot slots[];  /* `room` slots, then JOINED_MAX more */
};

#define STAGE_INFO(stage, ...) [stage] = {__VA_ARGS__},
static const struct stage_info stages[N_STAGES] = {STAGES(STAGE_INFO)};

const struct stage_info *clocks_stage(enum stage stage)
{
    return &stages[stage];
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Only the slot's own thread adds, so no locked instruction is needed. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *of)
{
    return atomic_load_explicit(of, memory_order_relaxed);
}

/* -------------------------------------------------------- making and ending */

/* All slots share one allocation. */
static int spans_alloc(struct clocks *s)
{
    size_t n = (size_t)s->room + JOINED_MAX;
    uint64_t *spans = malloc(n * SPANS_MAX * sizeof *spans);
    for (size_t i = 0; spans && i < n; i++)
        s->slots[i].spans = spans + i * SPANS_MAX;
    return spans ? 0 : -1;
}

static size_t slots_size(int n_threads)
{
    return sizeof(struct clocks) + ((size_t)n_threads + JOINED_MAX) * sizeof(struct thread_slot);
}

struct clocks *clocks_new(int n_threads, enum clocks_detail detail)
{
    struct clocks *s = aligned_alloc(CACHE_LINE, slots_size(n_threads));
    if (!s)
        return NULL;
    memset(s, 0, slots_size(n_threads));
    s->n_threads = s->room = n_threads;
    s->cpu_is_counted = detail >= CLOCKS_CPU;
    s->curve = detail >= CLOCKS_CPU ? curve_new() : NULL;
    if ((detail >= CLOCKS_CPU && !s->curve) || (detail >= CLOCKS_SPANS && spans_alloc(s) < 0)) {
        clocks_free(s);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->start = clock_ns(CLOCK_MONOTONIC);
    s->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < n_threads + JOINED_MAX; i++)
        s->slots[i].since = s->start;
    s->slots[0].stage = STAGE_OTHER;             /* the main thread is always in a stage */
    return s;
}

void clocks_free(struct clocks *s)
{
    if (s) {
        curve_free(s->curve);
        free(s->slots[0].spans);
    }
    free(s);
}

size_t clocks_memory(int n_threads, enum clocks_detail detail)
{
    size_t spans = detail >= CLOCKS_SPANS ? SPANS_MAX * sizeof(uint64_t) : 0;
    size_t curve = detail >= CLOCKS_CPU ? sizeof(struct curve) : 0;
    return slots_size(n_threads) + ((size_t)n_threads + JOINED_MAX) * spans + curve;
}

/* ------------------------------------------------------------------- spans */

static enum stage span_stage(uint64_t span)
{
    return (enum stage)(span & ((1u << STAGE_BITS) - 1));
}

static void put_span(struct thread_slot *slot, uint64_t end, enum stage stage)
{
    if (slot->n_spans > 0 && span_stage(slot->spans[slot->n_spans - 1]) == stage)
        slot->n_spans--;                         /* the last span continues */
    slot->spans[slot->n_spans++] = end << STAGE_BITS | stage;
}

static enum stage most_owed(const int64_t owed[N_STAGES])
{
    enum stage most = 0;
    for (enum stage stage = 1; stage < N_STAGES; stage++)
        if (owed[stage] > owed[most])
            most = stage;
    return most;
}

/* Joins the spans into cells. A cell begins at the end of the one before it and ends with the span in which it reaches
 * cell ns. */
static void coarsen(struct thread_slot *slot, uint64_t cell)
{
    int64_t owed[N_STAGES] = {0};
    uint64_t start = 0, from = 0;                /* start of the cell; start of the span */
    size_t n = slot->n_spans;
    slot->n_spans = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t span = slot->spans[i], end = span >> STAGE_BITS;
        owed[span_stage(span)] += (int64_t)(end - from);
        from = end;
        if (end - start < cell && i + 1 < n)
            continue;
        enum stage stage = most_owed(owed);
        owed[stage] -= (int64_t)(end - start);
        put_span(slot, end, stage);              /* never overwrites a span that was not read */
        start = end;
    }
}

static void add_span(struct thread_slot *slot, uint64_t end)
{
    put_span(slot, end, slot->stage);
    if (slot->n_spans == SPANS_MAX)
        coarsen(slot, end / (SPANS_MAX / 2) + 1);   /* leaves half of them free */
}

bool clocks_next_span(const struct clocks *s, int number, size_t *at, struct clocks_span *span)
{
    const struct thread_slot *slot = &s->slots[number];
    if (*at == slot->n_spans)
        return false;
    span->start = *at > 0 ? slot->spans[*at - 1] >> STAGE_BITS : 0;
    span->end = slot->spans[*at] >> STAGE_BITS;
    span->stage = span_stage(slot->spans[*at]);
    ++*at;
    return true;
}

/* ---------------------------------------------------------------- counting */

/* Returns whether the threads in the stage are counted. */
static bool has_presence(const struct clocks *s, enum stage stage)
{
    return s->cpu_is_counted && stages[stage].may_block && stages[stage].kind != STAGE_RESTS;
}

/* Counts `threads` more threads in the stage from now on. */
static void note_presence(struct clocks *s, enum stage stage, int threads, uint64_t now)
{
    struct presence *p = &s->present[stage];
    if (!has_presence(s, stage))
        return;
    p->ns += p->threads > 0 && now > p->since ? now - p->since : 0;
    p->since = now;
    p->threads += threads;
}

/* The time at which a thread changes its stage. It is read under the lock, so that the times of all threads are in
 * order. */
static uint64_t time_of_change(struct clocks *s, enum stage before, enum stage next)
{
    if (!has_presence(s, before) && !has_presence(s, next))
        return clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(&s->lock);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    note_presence(s, before, -1, now);
    note_presence(s, next, 1, now);
    pthread_mutex_unlock(&s->lock);
    return now;
}

/* Bytes that all threads have counted in the two stages. */
static uint64_t bytes_of(const struct clocks *s, enum stage a, enum stage b)
{
    return clocks_total(s, a).bytes + clocks_total(s, b).bytes;
}

static void add_point(struct clocks *s, uint64_t now)
{
    curve_add(s->curve, now - s->start, bytes_of(s, STAGE_READ, STAGE_SPILL_READ),
              bytes_of(s, STAGE_WRITE, STAGE_SPILL_WRITE));
}

/* Ends the slot's stage and begins the next one. */
static void change(struct clocks *s, struct thread_slot *slot, enum stage next)
{
    uint64_t now = time_of_change(s, slot->stage, next), took = now - slot->since;
    struct stage_counts *c = &slot->counters[slot->stage];
    bool blocks = s->cpu_is_counted && stages[slot->stage].may_block;
    uint64_t cpu = blocks || (s->cpu_is_counted && stages[next].may_block) ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
    add(&c->ns, took);
    if (blocks && took > cpu - slot->cpu_since)
        add(&c->blocked_ns, took - (cpu - slot->cpu_since));
    if (slot->spans && next != slot->stage)
        add_span(slot, now - s->start);
    slot->stage = next;
    slot->since = now;
    slot->cpu_since = cpu;
    if (s->curve && curve_due(s->curve, now - s->start))
        add_point(s, now);
}

enum stage clocks_enter_as(struct clocks *s, int number, enum stage stage)
{
    if (!s || number < 0)
        return STAGE_IDLE;
    enum stage before = s->slots[number].stage;
    change(s, &s->slots[number], stage);
    return before;
}

void clocks_leave_as(struct clocks *s, int number, enum stage before, uint64_t bytes)
{
    if (!s || number < 0)
        return;
    struct thread_slot *slot = &s->slots[number];
    add(&slot->counters[slot->stage].bytes, bytes);
    add(&slot->counters[slot->stage].events, 1);
    change(s, slot, before);
}

enum stage clocks_enter(struct clocks *s, enum stage stage)
{
    return clocks_enter_as(s, omp_get_thread_num(), stage);
}

void clocks_leave(struct clocks *s, enum stage before, uint64_t bytes)
{
    clocks_leave_as(s, omp_get_thread_num(), before, bytes);
}

void clocks_records(struct clocks *s, uint64_t n)
{
    struct thread_slot *slot = s ? &s->slots[omp_get_thread_num()] : NULL;
    if (slot)
        add(&slot->counters[slot->stage].records, n);
}

int clocks_join(struct clocks *s, const char *name)
{
    if (!s)
        return -1;
    int joined = atomic_load(&s->n_joined);
    do {
        if (joined == JOINED_MAX)
            return -1;
    } while (!atomic_compare_exchange_weak(&s->n_joined, &joined, joined + 1));
    s->slots[s->room + joined].name = name;
    return s->room + joined;
}

void clocks_phase(struct clocks *s, enum phase phase)
{
    if (s && !s->phases[phase]) {
        s->phases[phase] = clocks_wall(s) + 1;
        s->n_threads = omp_get_level() > 0 ? omp_get_num_threads() : s->n_threads;
    }
}

void clocks_stop(struct clocks *s)
{
    if (!s || s->wall)
        return;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    s->wall = now - s->start;
    s->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->cpu;
    if (s->curve)
        add_point(s, now);
    memmove(&s->slots[s->n_threads], &s->slots[s->room], JOINED_MAX * sizeof s->slots[0]);
    s->room = s->n_threads;
    for (int i = 0; i < clocks_slots(s); i++) {
        struct thread_slot *slot = &s->slots[i];
        if (slot->since < now)
            add(&slot->counters[slot->stage].ns, now - slot->since);
        slot->since = now;
        if (slot->spans)
            add_span(slot, s->wall);
        note_presence(s, slot->stage, 0, now);
    }
}

/* -------------------------------------------------------- what was counted */

int clocks_threads(const struct clocks *s)
{
    return s->n_threads;
}

int clocks_slots(const struct clocks *s)
{
    return s->room + atomic_load(&s->n_joined);
}

const char *clocks_name(const struct clocks *s, int slot, char name[CLOCKS_NAME_SIZE])
{
    if (s->slots[slot].name)
        snprintf(name, CLOCKS_NAME_SIZE, "%s", s->slots[slot].name);
    else
        snprintf(name, CLOCKS_NAME_SIZE, "thread %d", slot);
    return name;
}

struct clocks_count clocks_of(const struct clocks *s, int slot, enum stage stage)
{
    const struct stage_counts *c = &s->slots[slot].counters[stage];
    return (struct clocks_count){load(&c->ns), load(&c->blocked_ns), load(&c->bytes), load(&c->events),
                                load(&c->records)};
}

struct clocks_count clocks_total(const struct clocks *s, enum stage stage)
{
    struct clocks_count sum = {0};
    for (int i = 0; i < clocks_slots(s); i++) {
        struct clocks_count c = clocks_of(s, i, stage);
        sum.ns += c.ns;
        sum.blocked_ns += c.blocked_ns;
        sum.bytes += c.bytes;
        sum.events += c.events;
        sum.records += c.records;
    }
    return sum;
}

uint64_t clocks_any_thread(const struct clocks *s, enum stage stage)
{
    return s->present[stage].ns;
}

size_t clocks_curve(const struct clocks *s, const struct curve_point **points)
{
    *points = s->curve ? s->curve->points : NULL;
    return s->curve ? s->curve->n : 0;
}

uint64_t clocks_wall(const struct clocks *s)
{
    return s->wall ? s->wall : clock_ns(CLOCK_MONOTONIC) - s->start;
}

const char *clocks_phase_name(enum phase phase)
{
    static const char *const names[N_PHASES] = {"open", "read", "write", "finish"};
    return names[phase];
}

double clocks_ran(const struct clocks *s)
{
    double cpu = (double)s->cpu, took = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        struct clocks_count c = clocks_of(s, 0, stage);
        if (stages[stage].may_block)
            cpu -= (double)(c.ns - c.blocked_ns);
        else
            took += (double)c.ns;
    }
    return cpu >= took ? 1 : cpu > 0 ? cpu / took : 0;
}

bool clocks_phase_times(const struct clocks *s, enum phase phase, uint64_t *start, uint64_t *end)
{
    *start = s->phases[phase] - 1;
    *end = clocks_wall(s);
    for (enum phase next = phase + 1; next < N_PHASES && s->phases[next]; next++)
        if (s->phases[next] - 1 < *end)
            *end = s->phases[next] - 1;
    return s->phases[phase] > 0;
}
