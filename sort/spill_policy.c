/* SPDX-License-Identifier: MIT */
#include "base/engine.h"
#include "base/latch.h"
#include "base/memory_shares.h"
#include "base/message.h"
#include "sort/run_reader.h"
#include "sort/spill_policy.h"

static const double PACKED = 0.5;                /* packed size of a record per byte of its size in BAM, about */

int spill_policy_open(struct spill_policy *p, const struct spill_policy_options *options)
{
    uint64_t room;
    *p = (struct spill_policy){.opt = *options};
    p->store = spill_store_open(&options->store);
    struct spill_options spill = {p->store, options->merge_memory, options->store.engine};
    if (!p->store || !(p->spill = spill_open(&spill)))
        return -1;
    return options->at_least > 2 * options->arena_size ? spill_store_prepare(p->store, &room) : 0;
}

void spill_policy_close(struct spill_policy *p)
{
    run_reader_close(p->reader);
    spill_close(p->spill);
}

void spill_policy_close_store(struct spill_policy *p)
{
    spill_store_close(p->store);
}

/* ---------------------------------------------------------------- deciding */

/* Returns the size of a store that keeps all runs packed in memory, in addition to the last arenas; 0: no store can. */
static size_t store_size(size_t arenas, double expected)
{
    static const double MOST = 0.7, MARGIN = 1.1;
    double all = (double)arenas, needed = (expected * MARGIN - all / 2) / (1 / PACKED - 0.5);
    return needed > 0 && needed <= MOST * all ? (size_t)needed : 0;
}

/* Smaller slices are better than a second merge, unless they become tiny. */
static size_t slice_size_for(size_t arena_size, size_t planned, double expected)
{
    static const size_t LEAST = 768 << 10;
    double runs = expected / (double)arena_size * 1.2 + 1;
    size_t fitting = whole_pages((size_t)((double)arena_size / 2 / runs));
    return fitting >= LEAST && fitting < planned ? fitting : planned;
}

struct spill_sizes spill_policy_sizes(size_t arena_size, size_t slice_size, double expected, bool late)
{
    struct spill_sizes s = {.store = late ? 0 : store_size(2 * arena_size, expected)};
    s.arena_size = whole_pages((2 * arena_size - s.store) / 2);
    s.slice_size = slice_size_for(s.arena_size, slice_size, expected);
    s.fan_in = s.arena_size / (2 * s.slice_size);
    return s;
}

/* Begins to spill: from now on it is known that not all records fit into memory. */
static int start(struct spill_policy *p, const struct spill_outlook *o)
{
    uint64_t room;
    double packed = o->records * PACKED;
    p->spilling = true;
    if (spill_store_prepare(p->store, &room) < 0)
        return -1;
    p->sizes = spill_policy_sizes(p->opt.arena_size, p->opt.slice_size, o->records, !o->other_is_empty);
    spill_store_use_memory(p->store, p->sizes.store);
    spill_set_sizes(p->spill, p->sizes.slice_size, p->sizes.fan_in);
    if (packed > (double)room)
        message_warning("about %.0f MB of temporary data are expected, but only %.0f MB are free there. "
                        "-T names another place", packed / 1e6, (double)room / 1e6);
    return 0;
}

int spill_policy_will_fit(const struct spill_outlook *o)
{
    return o->with_keys > 0 ? o->with_keys <= 2 * (double)o->arena_size : -1;
}

int spill_policy_hurry(struct spill_policy *p, const struct spill_outlook *o)
{
    if (p->fits || o->arena_free >= o->arena_size / 4 || spill_policy_will_fit(o) > 0)
        return 0;
    return start(p, o) < 0 ? -1 : 1;
}

int spill_policy_decide(struct spill_policy *p, const struct spill_outlook *o)
{
    if (p->fits && !o->other_is_empty)
        return latch_fail(p->opt.store.engine->latch, "records do not fit into memory as planned. This is our bug: "
                          "please report it");
    return !p->fits && !p->spilling && (spill_policy_will_fit(o) == 0 || !o->other_is_empty) ? start(p, o) : 0;
}

/* ------------------------------------------------------- leaving memory */

void spill_policy_arena_is_sorted(void *policy)
{
    struct spill_policy *p = policy;
    spill_arena_is_sorted(p->spill);
}

static bool has_left(void *policy)
{
    const struct spill_policy *p = policy;
    return spill_is_done(p->spill);
}

static bool help(void *policy)
{
    struct spill_policy *p = policy;
    return spill_help(p->spill) || p->opt.help(p->opt.arg);
}

int spill_policy_await(struct spill_policy *p)
{
    if (!spill_arena(p->spill))
        return 0;
    task_wait(has_left, help, p, p->opt.store.engine->clocks);
    return spill_end(p->spill);
}

/* ------------------------------------------------------------ coming back */

int spill_policy_read_back(struct spill_policy *p, uint8_t *memory, size_t size, struct record_sink *sink,
                           bool again, struct merge_runs *runs)
{
    struct run_reader_options how = {
        .store = p->store,
        .sink = sink,
        .memory = memory,
        .memory_size = size,
        .keeps = again,
        .compares = spill_compares(p->spill),
        .engine = p->opt.store.engine,
    };
    *runs = (struct merge_runs){0};
    run_reader_close(p->reader);                 /* the reader of an earlier merge */
    p->reader = NULL;
    if (!p->spilling)                            /* else there is a run, because an arena with records has left */
        return 0;
    if (spill_settle(p->spill, memory, size, &how.slice_size) < 0)
        return -1;
    how.runs = spill_runs(p->spill, &how.n_runs);
    if (!(p->reader = run_reader_open(&how)))
        return -1;
    *runs = run_reader_runs(p->reader);
    return 0;
}
