/* SPDX-License-Identifier: MIT */
/* A forecast of the resources of a sort, a merge, a markdup or a sormadup, made from its own memory plan and a sample
 * of the input. It reads some MB, and makes no file. */
#ifndef FORECAST_H
#define FORECAST_H

#include <stdbool.h>
#include <stdint.h>
#include "base/latch.h"
#include "cli/sample_ratios.h"

struct markdup_opts;
struct merge_opts;
struct sormadup_opts;
struct engine_opts;

/* The command of the forecast. A merge keeps and spills nothing: those fields are 0. markdup keeps records for an
 * unknown time. sormadup is a sort with fixmate before and markdup after it. */
enum forecast_of { FORECAST_SORT, FORECAST_MERGE, FORECAST_MARKDUP, FORECAST_SORMADUP };

/* Sizes are in bytes. Values that need a sample are 0 without one: for a pipe, a URL, or a format other than BAM. */
struct forecast {
    struct latch latch;          /* holds the error if it failed: then the command could not read the input either */
    enum forecast_of of;
    bool looked;                 /* the inputs are files, and their headers were read */
    bool sampled;                /* and all are BAM, with records: the fields below are estimated */
    bool keeps;                  /* a markdup: all records wait until the end */
    bool collates;  /* for sormadup: another sort of as many records comes first; the forecast includes both */
    size_t n_bam, n_sam;         /* number of inputs of these formats ... */
    size_t n_references;         /* ... and of @SQ lines of the output, both for a merge, if they were read */
    double records, record_bytes;
    double with_keys;            /* the records and their keys */
    uint64_t file_bytes;         /* bytes of the inputs; 0: unknown */
    int n_threads;               /* number of threads of -@ */
    uint64_t memory;             /* peak memory of the sort; without a sample, an upper limit */
    uint64_t memory_most;        /* upper limit on the memory for any records, unless one is larger than `large` */
    uint64_t large;              /* the largest record seen, if it exceeds its part of the memory ... */
    uint64_t memory_of_large;  /* ... and the memory for it, in addition to the plan; included in `memory` and
                                * `memory_most` */
    uint64_t fits;               /* records with their keys that fit into memory; for markdup, those that wait */
    uint64_t memory_to_fit;      /* --total-memory with which nothing is spilled; 0: everything fits, or unknown */
    bool spills;
    double runs;                 /* approximate number of runs that are spilled ... */
    uint64_t merged_at_once;     /* ... and the number that one merge takes */
    double packed;               /* their size, packed ... */
    double temporary;            /* ... and the part of it that goes to disk */
    double output;               /* size of the output file; 0: unknown */
    struct sample_ratios ratios;
    bool copies;                 /* --copy-blocks ... */
    const char *copies_none;     /* ... copies none, for this reason; a constant string. NULL: some, or unknown */
};

/* Returns the forecast of each command. If an input could not be read, `latch` holds the error. */
struct forecast forecast_sort(const struct engine_opts *opts);
struct forecast forecast_merge(const struct merge_opts *opts);
struct forecast forecast_markdup(const struct markdup_opts *opts);
struct forecast forecast_sormadup(const struct sormadup_opts *opts);

#endif
