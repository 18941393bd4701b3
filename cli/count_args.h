/* SPDX-License-Identifier: MIT */
/* The counters of a command line: those of stats, flagstat, idxstats and coverage, and those that other commands run in
 * the same pass (--stats, --flagstat, ...). */
#ifndef COUNT_ARGS_H
#define COUNT_ARGS_H

#include "stats/coverage.h"
#include "stats/flagstat.h"
#include "stats/idxstats.h"
#include "stats/stats_settings.h"
#include "write/output_request.h"

struct engine_args;

/* Settings of all counters of a command line, and the words that the settings of stats refer to. */
struct counter_settings {
    struct flagstat_settings flagstat;
    struct idxstats_settings idxstats;
    struct coverage_settings coverage;
    struct stats_settings stats;
    char *words[];
};

/* Makes settings with room for n_words words and, after them, `text` bytes of text. NULL: out of memory. */
struct counter_settings *count_args_open(struct output_request *out, size_t n_words, size_t text);

/* Adds a counter that writes to the file. NULL: standard output, for a command that writes nothing else. */
void count_args_add(struct output_request *out, const char *file, struct counter counter);

/* Settles the counters of a command that writes records. The output's name and format must be settled. -1: a mistake,
 * which is reported. */
int count_args_settle(struct engine_args *args);

void count_args_free(struct output_request *out);

#endif
