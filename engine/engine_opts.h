/* SPDX-License-Identifier: MIT */
/* The options of `samtools sort`, and the options that other commands share with it. cli/ sets them; no code changes
 * them afterwards. Readers, sinks and reports each get their own request, and do not know this struct. */
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
    const char **temp_prefixes;  /* -T, or its default: places for temporary files; owned ... */
    size_t n_temp_prefixes;      /* ... at least one; `merge` has none */
    const char **values;         /* values of options that do not name a file to write: they may name files to read;
                                  * owned */
    size_t n_values;
    void *words;                 /* data that the command made from its arguments, in one allocation; owned; NULL:
                                  * none */
    char *default_prefix;        /* a generated prefix, or the text that contains the prefixes from the environment;
                                  * owned */
    uint64_t size_hint;          /* --size-hint: bytes of uncompressed records; 0: not given */
    int n_threads;               /* at least 1 */
    uint64_t memory;             /* -m for all threads together, or --total-memory; bytes ... */
    uint64_t memory_overhead;    /* ... and what the program may take in addition; 0: nothing, and a plan that takes
                                  * more is refused */
    const char *statistics;      /* -f of markdup: the file for its statistics; NULL: none */
    bool check;                  /* see sort_check(): nothing is sorted or written */
    enum plan_format plan;       /* see sort_plan(): nothing is sorted or written */
    enum progress_when progress;
};

/* Returns the places for temporary files. */
static inline struct spill_store_options engine_opts_store(const struct engine_opts *opts, const struct engine *engine)
{
    return (struct spill_store_options){opts->temp_prefixes, opts->n_temp_prefixes, engine};
}

/* Returns the first input's name for messages. */
static inline const char *engine_opts_input(const struct engine_opts *opts)
{
    return input_name_shown(opts->in.paths[0]);
}

#endif
