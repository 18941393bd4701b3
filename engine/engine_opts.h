/* SPDX-License-Identifier: MIT */
/* The options of `samtools sort`, and those that other commands share with it. cli/ fills them in; nothing changes them
 * afterwards. Readers, sinks and reports get the request that is theirs, and do not know this. */
#ifndef ENGINE_OPTS_H
#define ENGINE_OPTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/input_name.h"
#include "base/progress.h"
#include "base/sort_order.h"
#include "read/input_request.h"
#include "report/report_request.h"
#include "sort/spill_store.h"
#include "write/output_request.h"

enum plan_format { PLAN_NONE, PLAN_TEXT, PLAN_JSON };

struct engine_opts {
    struct input_request in;
    struct output_request out;
    struct report_request report;
    struct sort_order order;
    const char **temp_prefixes;  /* -T, or what stands for it: places for temporary files; owned ... */
    size_t n_temp_prefixes;      /* ... at least one, but of a merge none */
    const char **values;         /* of options that name no file to write: they may name files that are read; owned */
    size_t n_values;
    void *words;                 /* what the command made of its words, in one piece; owned; NULL: nothing */
    char *default_prefix;        /* the one made up, or the text that those of the environment lie in; owned */
    uint64_t size_hint;          /* --size-hint: bytes of uncompressed records; 0: not given */
    int n_threads;               /* at least 1 */
    uint64_t memory;             /* -m for all threads together, or --total-memory; bytes ... */
    uint64_t memory_overhead;    /* ... and what the program may take beside it; 0: nothing, and that is refused */
    const char *statistics;      /* -f of markdup: the file they go to; NULL: none */
    bool check;                  /* see sort_check(): nothing is sorted or written */
    enum plan_format plan;       /* see sort_plan(): likewise */
    enum progress_when progress;
};

/* Where temporary files go. */
static inline struct spill_store_options engine_opts_store(const struct engine_opts *opts, struct latch *latch,
                                                         struct clocks *clocks)
{
    return (struct spill_store_options){opts->temp_prefixes, opts->n_temp_prefixes, latch, clocks};
}

/* The first input as messages name it. */
static inline const char *engine_opts_input(const struct engine_opts *opts)
{
    return input_name_shown(opts->in.paths[0]);
}

#endif
