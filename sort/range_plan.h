/* SPDX-License-Identifier: MIT */
/* Plans the ranges of the last merge (merge_ring.h), one after the other: where the order is cut, and which slices of
 * each run a range needs. Only the main thread uses a plan. */
#ifndef RANGE_PLAN_H
#define RANGE_PLAN_H

#include "bam_arena.h"
#include "sort/merge_runs.h"
#include "sort/run_cut.h"
#include "sort/run_samples.h"

struct engine;

/* A sort has two arenas. Over MPI each of them is divided into two parts, and the two arenas of another sort come
 * between the first parts and the second ones. */
enum { RANGE_ARENAS_MAX = 6 };

struct range_plan_options {
    const struct bam_arena *const *arenas;   /* n_arenas; their sublists are sorted; in the order of the input */
    size_t n_arenas;
    const struct merge_runs *runs;           /* their records come before the arenas' records in the input */
    size_t n_records;            /* records that a range's list holds */
    size_t n_wanted;             /* records that a range should have, if that is less */
    const struct engine *engine;
};

/* The slices of one run that a range needs. */
struct run_slices {
    size_t next;                 /* the next slice to merge */
    size_t end;                  /* one past the last slice */
    size_t needed;               /* the first slice that later ranges need */
};

struct planned_range {
    struct run_cut from, to;
    bool is_first, is_last;      /* the first range has no `from`, the last has no `to` */
    struct run_slices *slices;   /* one per run; the caller's memory */
};

/* Estimates how many records of a run are before a key. The estimate assumes that keys are evenly spread between the
 * first keys of two slices. */
struct run_flow {
    uint64_t first, next;        /* first keys: of the slice taken last, and of the slice after it; or the slice's own
                                  * last key ... */
    bool ends;                   /* ... if there is no slice after it */
    uint64_t last;               /* the last key of the slice taken last */
    double before, n;            /* records in all slices before that slice, and in that slice */
};

struct range_plan {
    struct range_plan_options opt;
    const struct sort_rule *rule;   /* see struct run_merge */
    size_t n_ways;               /* runs, then the arenas' sublists; for cuts, all sublists of an arena are one way */
    size_t sample_records;       /* records of a sublist between two samples */
    size_t range_records;        /* records wanted in a range */
    size_t steps_max;            /* largest number of slices that begin in a range, so that other ranges get some */
    struct run_samples samples[RANGE_ARENAS_MAX];   /* for each arena: where the order may be cut */
    bool planned_all;
    /* The range that is being planned: */
    struct run_cut from;         /* where the range begins, ... */
    bool is_first;               /* ... unless it begins with the first record of all */
    bool is_begun;               /* the slice or sample that begins at `from` is in it */
    size_t *first, *taken;       /* the range's slices of each run: [first, taken) */
    struct run_flow *flows;      /* flow of each run */
    size_t steps;                /* slices that begin in the range */
    double before;               /* estimated number of records before the range */
    bool has_last;               /* the range took the slice or sample that begins at `last`, inside it, after all else,
                                  * ... */
    struct run_cut last;
    struct run_flow last_flow;   /* ... this was the run's flow before that, ... */
    double last_records;         /* ... and about this number of the range's records precede `last` */
};

/* Allocates the plan. -1: out of memory; close it anyway. */
int range_plan_open(struct range_plan *plan, const struct range_plan_options *options);

/* Takes the samples, with tasks that may be late: close the plan after the parallel region. Call it once, before the
 * first range. */
void range_plan_begin(struct range_plan *plan);

void range_plan_close(struct range_plan *plan);

/* Returns the bytes of memory that a plan takes. n_ways: runs and sublists. n_records: as in the options. in_arenas:
 * records in the arenas. */
size_t range_plan_memory(size_t n_ways, size_t n_records, size_t in_arenas);

/* Plans the next range. idle: the main thread has nothing else to do. False: not yet, because slices must come
 * first. */
bool range_plan_next(struct range_plan *plan, bool idle, struct planned_range *range);

/* Returns whether a run was found to be out of order. Then no more ranges can be planned, because the next slice may
 * begin before the end of the slice that was taken last. */
bool range_plan_is_out_of_order(const struct range_plan *plan);

#endif
