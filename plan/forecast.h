/* SPDX-License-Identifier: MIT */
/* What a sort, a merge, a markdup or a sormadup will take, told before it begins: from the plan of memory that it makes
 * itself, and a sample of the input. Reads some MB, and makes no file. */
#ifndef FORECAST_H
#define FORECAST_H

#include <stdbool.h>
#include <stdint.h>
#include "base/latch.h"
#include "plan/sample_ratios.h"

struct markdup_opts;
struct merge_opts;
struct sormadup_opts;
struct engine_opts;

/* The command that the forecast is for. A merge keeps and spills nothing: those fields are 0. markdup keeps records
 * for an unknown time. sormadup is a sort with fixmate and markdup at its ends. */
enum forecast_of { FORECAST_SORT, FORECAST_MERGE, FORECAST_MARKDUP, FORECAST_SORMADUP };

/* Sizes are bytes. What a sample tells is 0 without one: of a pipe, a URL, or a format other than BAM. */
struct forecast {
    struct latch latch;          /* of the error if it failed: an input that could not be read in earnest either */
    enum forecast_of of;
    bool looked;                 /* the inputs are files, and their headers were read */
    bool sampled;                /* and all are BAM, with records: what follows is estimated */
    bool keeps;                  /* a markdup: all records wait until the end */
    bool collates;               /* a sormadup: another sort comes first, of as many records. What is told is of both */
    size_t n_bam, n_sam;         /* inputs of these formats ... */
    size_t n_references;         /* ... and @SQ lines of the output, both of a merge, if they were looked at */
    double records, record_bytes;
    double with_keys;            /* the records and what the sort needs to know of each */
    uint64_t file_bytes;         /* of the inputs; 0: not known */
    int n_threads;               /* of -@ */
    uint64_t memory;             /* that the sort will take, at its peak; without a sample at most */
    uint64_t memory_most;        /* that it may take whatever the records are, unless one is larger than `large` */
    uint64_t large;              /* the largest record seen, if it takes more than its part of the memory ... */
    uint64_t memory_of_large;    /* ... and what that may be, beside the plan; in `memory` and `memory_most` */
    uint64_t fits;               /* records with their keys that fit into memory; of markdup, those that wait */
    uint64_t memory_to_fit;      /* --total-memory with which nothing leaves memory; 0: it all fits, or not known */
    bool spills;
    double runs;                 /* runs that leave memory, about ... */
    uint64_t merged_at_once;     /* ... and as many as one merge takes */
    double packed;               /* bytes of them, packed ... */
    double temporary;            /* ... and what goes to disk of that */
    double output;               /* of the output file; 0: not known */
    struct sample_ratios ratios;
    bool copies;                 /* --copy-blocks ... */
    const char *copies_none;     /* ... copies none, as this says; a constant string. NULL: some, or not known */
};

struct forecast forecast_sort(const struct engine_opts *opts);
struct forecast forecast_merge(const struct merge_opts *opts);
struct forecast forecast_markdup(const struct markdup_opts *opts);
struct forecast forecast_sormadup(const struct sormadup_opts *opts);

#endif
