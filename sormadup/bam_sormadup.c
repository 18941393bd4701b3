/* SPDX-License-Identifier: MIT */
/* The driver of `sormadup`: fixmate, sort and markdup as one.
 *
 *   in.bam --> chunks -----> arenas --> sublists, runs --> ranges ----> slices --> out.bam
 *              templates     keys       sorted             merged and   marked     renamed
 *              are fixed                                   copied                  when whole
 *
 * A sort (bam_sort.c) whose input is fixed where it is read (read/fixed_records.h), and whose merge goes through
 * markdup's hands (sormadup/sorted_source.h, markdup/marking.h). Where records of a name are apart, a sort in
 * front of it
 * collates them (sormadup/collated.h). */
#include "sormadup/bam_sormadup.h"
#include "bam_sort.h"
#include "base/machine.h"
#include "base/stats.h"
#include "base/version.h"
#include "sormadup/collated.h"
#include "engine/driver.h"
#include "sormadup/orphans.h"
#include "markdup/marking.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_opts.h"
#include "sort/sorted.h"
#include "sormadup/sorted_source.h"
#include "read/fixed_records.h"

struct sormadup {
    const struct sormadup_opts *opts;
    struct driver *d;
    struct sormadup_use use;     /* from when the inputs are open */
    struct collated collated;    /* if the input is not grouped by name */
    struct sorted sorted;
    struct sorted_source source;
    struct marking marking;
    struct orphans *lone;
};

/* Each record of the input is in an arena, as it was fixed, or was left out. */
static int compare_fixed(struct sormadup *c)
{
    struct sorted *s = &c->sorted;
    struct chunk_counts fixed = {.seen = 0};
    const char *path = engine_opts_input(s->opts);
    for (size_t i = 0; i < s->in.n; i++) {
        const struct chunk_reader *chunks = fixed_records_chunks(s->in.each[i].fixed);
        if (chunk_reader_compare(chunks) < 0)
            return -1;
        chunk_counts_add(&fixed, chunk_reader_counts(chunks));
    }
    struct tally collated = {.n = c->collated.source.taken.n}, seen = {.n = fixed.seen};
    if (c->collated.behind && tally_compare(collated, seen, "fixmate", path, &s->latch) < 0)
        return -1;
    return tally_compare(fixed.made, bam_arena_tally(s->arenas.filled), "sort", path, &s->latch);
}

static int cannot_change_header(struct sorted *s)
{
    return latch_fail(&s->latch, "%s: the header could not be changed", engine_opts_input(s->opts));
}

/* One @PG line for each step. */
static int put_header(struct sormadup *c)
{
    struct sorted *s = &c->sorted;
    bool none = s->opts->out.no_pg;
    const char *fixmate_line = c->collated.behind ? c->opts->collated_line : c->opts->fixmate_line;
    if (!none && (bam_header_mark_sorted(s->sam, NULL, false, version_of_both(), fixmate_line) < 0
                  || bam_header_mark_sorted(s->sam, NULL, false, version_of_both(), c->opts->sort_line) < 0))
        return cannot_change_header(s);
    return written_header(s->to, s->sam, &s->opts->order, arenas_unplaced(&s->arenas), arenas_beyond(&s->arenas));
}

static int begin_marking(struct sormadup *c)
{
    struct sorted *s = &c->sorted;
    if (sorted_source_begin(&c->source, s) < 0)
        return -1;
    struct marking_options marking = {
        .opts = &c->opts->markdup,
        .source = sorted_source_stream(&c->source),
        .sam = s->sam,
        .n_threads = s->opts->n_threads,
        .slice_size = SORTED_SLICE,
        .left = sormadup_marking(&s->rings) - sormadup_marking_least(s->opts->n_threads),
        .d = c->d,
    };
    return marking_open(&c->marking, &marking);
}

static int mark_and_write(struct sormadup *c)
{
    struct sorted *s = &c->sorted;
    if (compare_fixed(c) < 0)
        return -1;
    stats_phase(s->stats, PHASE_WRITE);
    if (put_header(c) < 0 || begin_marking(c) < 0)
        return -1;
    struct list_stream stream = marking_stream(&c->marking);
    return written_all(s->to, &stream);
}

static int group(void *sormadup, struct sorted *s)
{
    struct sormadup *c = sormadup;
    int collates = sormadup_collates(c->opts, &s->in, &s->latch);
    if (!s->opts->out.no_pg && c->opts->cat_line && collates >= 0
        && bam_header_mark_sorted(s->sam, NULL, false, version_of_both(), c->opts->cat_line) < 0)
        return cannot_change_header(s);
    c->use = (struct sormadup_use){s->opts, s->in, sorted_output(s), collates > 0};
    const char *line = s->opts->out.no_pg ? NULL : c->opts->collate_line;
    return collates <= 0 ? collates : collated_open(&c->collated, s, sormadup_marking(&s->rings), line);
}

static size_t count_beside(const void *sormadup, const struct memory_rings *rings)
{
    return sormadup_beside(&((const struct sormadup *)sormadup)->use, rings);
}

/* Afterwards the collated records can be read. */
static int collate(struct sormadup *c)
{
    struct sorted *s = &c->collated.sort;
    if (!c->collated.behind)
        return 0;
    return bam_sort_read(s) < 0 || sorted_source_begin(&c->collated.source, s) < 0 ? collated_stop(&c->collated) : 0;
}

static void work(void *sormadup)
{
    struct sormadup *c = sormadup;
    if (collate(c) == 0 && bam_sort_read(&c->sorted) == 0 && orphans_end(c->lone) == 0)
        mark_and_write(c);
}

/* It takes the memory that marking gets later. */
static int look_for_orphans(struct sormadup *c)
{
    struct sorted *s = &c->sorted;
    struct orphans_options how = {
        .store = engine_opts_store(s->opts, &s->latch, s->stats),
        .memory = sormadup_marking(&s->rings),
        .path = engine_opts_input(s->opts),
    };
    s->fixes.lone = orphans_put;
    s->fixes.lone_arg = c->lone = orphans_open(&how);
    return c->lone ? 0 : -1;
}

int bam_sormadup(const struct sormadup_opts *opts)
{
    struct sormadup c = {.opts = opts};
    struct sorted *s = &c.sorted;
    struct driver d = {.latch = &s->latch};
    struct sorted_between between = {.fixes = &opts->fixmate, .group = group, .beside = count_beside, .arg = &c};
    struct sorted_options how = {
        .opts = &opts->common,
        .in = &opts->common.in,
        .size_hint = opts->common.size_hint,
        .between = &between,
        .progress = &d.progress,
    };
    int n_threads = 1;
    c.d = &d;
    machine_share_heaps();
    if (command_report_open(&d.report, &opts->common.report, d.latch) == 0
        && (how.stats = driver_begin(&d, &opts->common)) && sorted_open(s, &how, &d.out) == 0
        && look_for_orphans(&c) == 0) {
        n_threads = driver_run(&d, &opts->common, &s->in, work, &c);
        if (!latch_tripped(&s->latch))
            command_report_measure_memory(&d.report);
    }
    uint64_t records = s->arenas.filled ? s->arenas.filled->n_records : 0;
    collated_finish(&c.collated, n_threads);
    sorted_finish(s, n_threads);
    collated_close(&c.collated);
    marking_close(&c.marking);
    sorted_source_close(&c.source);
    orphans_close(c.lone);
    return driver_end(&d, records);
}
