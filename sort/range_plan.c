/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "sort/range_plan.h"

enum {
    /* The sublists may be cut once per RECORDS_PER_SAMPLE records. With n sublists, the size of a range differs from
     * the wanted size by 0.4 sqrt(n) times RECORDS_PER_SAMPLE: by 700 records if n is 100. If the records outgrow the
     * list, all threads wait for the second pass: with 512 instead of 128, the efficiency of 64 threads that write 0.94
     * GB is 75 %, not 90 % (slow motion). SAMPLES_MAX bounds the cuts to 64 Ki, which are sorted in 1 to 2 ms. */
    RECORDS_PER_SAMPLE = 128, SAMPLES_MAX = 1 << 16,
    RECORDS_PER_WAY = 8,         /* least number in a range, because each way is searched for both cuts */
    RANGES_PER_THREAD = 4,       /* if there is little data, so that all threads get ranges */
};

static size_t n_records_of(const struct bam_arena *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_sublists; i++)
        n += a->sublists[i].n;
    return n;
}

static int open_samples(struct range_plan *p)
{
    for (size_t i = 0; i < p->opt.n_arenas; i++)
        if (run_samples_open(&p->samples[i], p->opt.arenas[i], p->sample_records, p->opt.engine) < 0)
            return -1;
    return 0;
}

static void begin_flows(struct range_plan *p)
{
    const struct merge_runs *runs = p->opt.runs;
    for (size_t i = 0; i < runs->n; i++)
        p->flows[i].ends = !runs->first_key(runs->reader, i, 0, &p->flows[i].next);
}

/* Returns the number of records between two samples. range_records: records wanted in a range. */
static size_t distance_of_samples(size_t in_memory, size_t range_records)
{
    size_t distance = in_memory / SAMPLES_MAX + RECORDS_PER_SAMPLE, most = range_records / 2 + 1;
    return distance < most ? distance : most;
}

/* Returns the number of records that a range has if there is no reason for less. Even the next cut is then rarely
 * beyond the end of its list. */
static size_t usual_range(size_t n_records)
{
    return n_records / 4 * 3;
}

/* Chooses the sizes of ranges and samples. */
static void choose_sizes(struct range_plan *p)
{
    const struct range_plan_options *o = &p->opt;
    size_t threads = (size_t)o->engine->n_threads, in_memory = 0;
    for (size_t i = 0; i < o->n_arenas; i++)
        in_memory += n_records_of(o->arenas[i]);
    size_t least = RECORDS_PER_WAY * p->n_ways, share = in_memory / (RANGES_PER_THREAD * threads) + 1;
    p->range_records = usual_range(o->n_records);
    if (o->runs->n == 0 && share < p->range_records)
        p->range_records = share;
    if (o->n_wanted < p->range_records)
        p->range_records = o->n_wanted;
    if (p->range_records < least)
        p->range_records = least;
    p->sample_records = distance_of_samples(in_memory, p->range_records);
    p->steps_max = 1;
    if (o->runs->n)                               /* ranges for half of the threads may take slices read ahead */
        p->steps_max += (o->runs->n * (o->runs->n_buffers - 1) + o->runs->n_shared / 2) / (threads / 2 + 1);
}

int range_plan_open(struct range_plan *p, const struct range_plan_options *options)
{
    size_t n = options->runs->n;
    *p = (struct range_plan){.opt = *options, .n_ways = n, .is_first = true, .is_begun = true};
    p->rule = bam_arena_order(options->arenas[0]).rule;
    for (size_t i = 0; i < options->n_arenas; i++)
        p->n_ways += options->arenas[i]->n_sublists;
    choose_sizes(p);
    p->first = calloc(n + 1, sizeof *p->first);
    p->taken = calloc(n + 1, sizeof *p->taken);
    p->flows = calloc(n + 1, sizeof *p->flows);
    if (!p->first || !p->taken || !p->flows || open_samples(p) < 0)
        return -1;
    begin_flows(p);
    return 0;
}

void range_plan_begin(struct range_plan *p)
{
    for (size_t i = 0; i < p->opt.n_arenas; i++)
        run_samples_take(&p->samples[i]);
}

void range_plan_close(struct range_plan *p)
{
    for (size_t i = 0; i < p->opt.n_arenas; i++)
        run_samples_free(&p->samples[i]);
    free(p->first);
    free(p->taken);
    free(p->flows);
}

/* A plan of smaller ranges has more samples: one for half a range of records. */
size_t range_plan_memory(size_t n_ways, size_t n_records, size_t in_arenas)
{
    /* The numbers are `first` of the plan and of the samples, and `taken`. A part of a distance has a sample, too. */
    size_t way = sizeof(struct run_flow) + 3 * sizeof(size_t) + task_ring_memory(1) + sizeof(struct bam_key);
    return n_ways * way + in_arenas / distance_of_samples(in_arenas, usual_range(n_records)) * sizeof(struct bam_key);
}

/* ---------------------------------------------------------- planning ranges */

/* An example. Two runs have slices of 100 records each. Their first keys are known:
 *
 *   run A:  A0 10   A1 50   A2 90, and its last key 130       a list takes 200 records (n_records)
 *   run B:  B0 30   B1 70, and its last key 110               a range should have 150 (range_records)
 *
 * Each step finds the first slice that is not taken yet, and estimates how many records are before it. If its key lies
 * inside a slice of another run, the part of that slice that counts is the key's share of the distance to the next
 * slice (run_flow). The records before the range are subtracted.
 *
 *   found    before it:  of A   of B   in range   what is done
 *   A0 10                   0      0          0   range 0 begins; A0 is taken into it
 *   B0 30                  50      0         50   B0 is taken
 *   A1 50                 100     50        150   enough (ends_at): range 0 ends there, range 1 begins with A1
 *   B1 70                 150    100        100   B1 is taken
 *   A2 90                 200    150        200   too much for a list (ends_before): B1 is taken back, and range 1 ends
 *                                                 there, with 100 records; range 2 begins with B1
 *   A2 90                 200    150        100   A2 is taken
 *   none                                          range 2 ends with the last record; its 250 records take two passes
 *
 * Range 0 needs A0 and B0, range 1 A1 and again B0 (first_slice), range 2 A1, A2 and B1. A sample of sublists is taken
 * like a slice, but need not be loaded. A range that is not large enough ends anyway when it has steps_max slices, or
 * when another slice would fill the run's last buffer. */

/* Returns where the next slice of a run begins. If keys decide, the slice need not be ready. */
static struct run_cut slice_cut(const struct range_plan *p, size_t run, uint64_t first_key)
{
    if (!p->rule)
        return (struct run_cut){{first_key, 0}, NULL, run};
    struct merge_way slice = p->opt.runs->slice(p->opt.runs->reader, run, p->taken[run]);
    return (struct run_cut){slice.next[0], slice.base, run};
}

/* Finds where the first slice that is not yet taken begins. 1: it begins at *cut; 0: all slices are taken; -1: not
 * known yet, because the records that must be compared are not ready. */
static int next_slice_cut(struct range_plan *p, bool idle, struct run_cut *cut)
{
    const struct merge_runs *runs = p->opt.runs;
    uint64_t least = UINT64_MAX;
    bool any = false, found = false;
    for (size_t i = 0; i < runs->n; i++)
        if (!p->flows[i].ends) {
            any = true;
            least = p->flows[i].next < least ? p->flows[i].next : least;
        }
    for (size_t i = 0; i < runs->n && any; i++) {
        if (p->flows[i].ends || p->flows[i].next != least)
            continue;
        if (p->rule && !runs->ready(runs->reader, i, p->taken[i], idle))
            return -1;
        struct run_cut other = slice_cut(p, i, least);
        if (!found || run_cut_before(&other, cut, p->rule))
            *cut = other;
        found = true;
    }
    return found;
}

/* Makes the next sample of a sublist the cut if it is before *cut, or if no cut was found yet. Returns whether there is
 * a cut. */
static bool next_sample_cut(const struct range_plan *p, bool found, struct run_cut *cut)
{
    for (size_t i = 0; i < p->opt.n_arenas; i++) {
        const struct run_samples *s = &p->samples[i];
        if (s->next == s->n)
            continue;
        struct run_cut other = {s->keys[s->next], p->opt.arenas[i]->base, p->opt.runs->n + i};
        if (!found || run_cut_before(&other, cut, p->rule)) {
            *cut = other;
            found = true;
        }
    }
    return found;
}

static void note_flow(struct range_plan *p, size_t run, struct merge_way slice)
{
    const struct merge_runs *runs = p->opt.runs;
    struct run_flow *flow = &p->flows[run];
    flow->before += flow->n;
    flow->n = (double)(slice.end - slice.next);
    flow->first = slice.next->sort;
    flow->ends = !runs->first_key(runs->reader, run, p->taken[run], &flow->next);
    flow->last = slice.end[-1].sort;
    if (flow->ends)
        flow->next = flow->last;
}

/* Estimates the number of records of all ways before the cut. All slices that begin before the cut must be taken. */
static double records_before(const struct range_plan *p, const struct run_cut *cut)
{
    uint64_t key = cut->key.sort;
    double records = 0;
    for (size_t i = 0; i < p->opt.n_arenas; i++)
        records += (double)(p->samples[i].next * p->sample_records);
    for (const struct run_flow *flow = p->flows; flow < p->flows + p->opt.runs->n; flow++) {
        double share = key <= flow->first ? 0 : key >= flow->next ? 1
                     : (double)(key - flow->first) / (double)(flow->next - flow->first);
        records += flow->before + flow->n * share;
    }
    return records;
}

/* Takes the last slice or sample out of the range again. */
static void take_back(struct range_plan *p)
{
    size_t run = p->last.way;
    if (run >= p->opt.runs->n) {
        p->samples[run - p->opt.runs->n].next--;
        return;
    }
    p->taken[run]--;
    p->flows[run] = p->last_flow;
}

/* Takes the slice or sample that begins at the cut into the range. 0: it is not ready. */
static int take(struct range_plan *p, bool idle, const struct run_cut *cut)
{
    const struct merge_runs *runs = p->opt.runs;
    size_t run = cut->way;
    if (run >= runs->n) {
        p->samples[run - runs->n].next++;
        return 1;
    }
    if (!runs->ready(runs->reader, run, p->taken[run], idle))
        return 0;
    note_flow(p, run, runs->slice(runs->reader, run, p->taken[run]++));
    bool partial = runs->is_partial && runs->is_partial(runs->reader, run, p->taken[run] - 1);
    p->steps += partial ? p->steps_max : 1;      /* a range has at most one partial slice */
    return 1;
}

/* Takes the slice or sample that begins at the cut, inside the range, into the range. records: the estimated number of
 * the range's records before the cut. 0: it is not ready. */
static int take_inside(struct range_plan *p, bool idle, const struct run_cut *cut, double records)
{
    struct run_flow flow = p->flows[cut->way < p->opt.runs->n ? cut->way : p->opt.runs->n];
    if (!take(p, idle, cut))
        return 0;
    p->has_last = true;
    p->last = *cut;
    p->last_flow = flow;
    p->last_records = records;
    return 1;
}

/* Returns whether the range should end at the cut. It should if it is large enough. It must if, with this slice, its
 * slices of the run would leave no buffer for the next slice, which may be needed to find a cut. All shared buffers may
 * be full of this range's slices until the next range is put. So the next range must have the slice that it begins
 * with, and the slices that are needed to find its end. */
static bool ends_at(const struct range_plan *p, const struct run_cut *cut, double records)
{
    if (records >= (double)p->range_records || p->steps >= p->steps_max)
        return true;
    if (cut->way >= p->opt.runs->n)
        return false;
    const struct merge_runs *runs = p->opt.runs;
    size_t taken = p->taken[cut->way], slices = taken + 1 - p->first[cut->way], to_find_cut = p->rule != NULL;
    return slices + to_find_cut > runs->n_buffers
        && !(runs->n_shared && runs->ready(runs->reader, cut->way, taken + 1 + to_find_cut, false));
}

/* Returns whether a range of this number of records would outgrow its list, so that it should end at the last cut.
 * Without this rule, with 26 runs and slices of a third of a list, 28 % of the ranges take a second pass, for which all
 * threads wait; with it 4 % do. */
static bool ends_before(const struct range_plan *p, double records)
{
    double most = (double)p->opt.n_records * 15 / 16, least = (double)p->range_records / 4;
    return p->has_last && records > most && p->last_records >= least && (double)p->range_records < most;
}

/* Returns the first slice of a run that can have keys of the next range. The next range begins at the cut, where the
 * planned range ends. */
static size_t first_slice_after(const struct range_plan *p, const struct run_cut *cut, size_t run)
{
    const struct merge_runs *runs = p->opt.runs;
    size_t taken = p->taken[run];
    if (p->planned_all || run == cut->way || p->first[run] == taken)
        return taken;
    if (p->flows[run].last != cut->key.sort)
        return p->flows[run].last < cut->key.sort ? taken : taken - 1;
    struct merge_way last = runs->slice(runs->reader, run, taken - 1);
    struct run_cut end = {last.end[-1], last.base, run};
    return run_cut_before(&end, cut, p->rule) ? taken : taken - 1;
}

/* Ends the range at the cut `to`, and begins the next range there. */
static void end_range(struct range_plan *p, const struct run_cut *to, struct planned_range *range)
{
    range->from = p->from;
    range->to = *to;
    range->is_first = p->is_first;
    range->is_last = p->planned_all;
    for (size_t i = 0; i < p->opt.runs->n; i++) {
        size_t needed = first_slice_after(p, to, i);
        range->slices[i] = (struct run_slices){p->first[i], p->taken[i], needed};
        p->first[i] = needed;
    }
    p->before = records_before(p, to);
    p->from = *to;
    p->is_first = p->is_begun = p->has_last = false;
    p->steps = 0;
}

bool range_plan_is_out_of_order(const struct range_plan *p)
{
    const struct merge_runs *runs = p->opt.runs;
    return runs->n && runs->out_of_order && *runs->out_of_order;
}

/* Does not wait for a second slice if one slice is enough. */
bool range_plan_next(struct range_plan *p, bool idle, struct planned_range *range)
{
    struct run_cut cut = {0};
    for (;;) {
        bool must = idle && (!p->opt.runs->one_is_enough || (p->is_first && p->steps == 0));
        if (!p->is_begun && !(p->is_begun = take(p, idle, &p->from)))
            return false;
        if (range_plan_is_out_of_order(p))
            return false;
        int found = next_slice_cut(p, idle, &cut);
        if (found < 0)
            return false;
        found = next_sample_cut(p, found, &cut);
        p->planned_all = !found;
        double records = found ? records_before(p, &cut) - p->before : 0;
        if (ends_before(p, records)) {
            take_back(p);
            end_range(p, &p->last, range);
            return true;
        }
        if (!found || ends_at(p, &cut, records)) {
            end_range(p, &cut, range);
            return true;
        }
        if (take_inside(p, must, &cut, records))
            continue;
        if (idle && !must)
            end_range(p, &cut, range);
        return idle && !must;
    }
}
