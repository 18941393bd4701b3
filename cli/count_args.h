/* SPDX-License-Identifier: MIT */
/* What a command line wants counted: of the input (stats, flagstat, idxstats), or of the output in the same pass. */
#ifndef COUNT_ARGS_H
#define COUNT_ARGS_H

#include <stdbool.h>
#include "stats/flagstat.h"
#include "stats/idxstats.h"
#include "stats/stats_settings.h"

struct engine_opts;
struct output_request;

/* Settings of all counters of a command line, and the words that those of stats refer to. */
struct counter_settings {
    struct flagstat_settings flagstat;
    struct idxstats_settings idxstats;
    struct stats_settings stats;
    char *words[];
};

/* With room for so many words, and for their text behind them. NULL: no memory. */
struct counter_settings *count_args_open(struct output_request *out, size_t n_words, size_t text);

/* file: NULL: standard output, of a command that writes nothing else. */
void count_args_add(struct output_request *out, const char *file, struct counter counter);

/* Gives the settings back. */
void count_args_free(struct output_request *out);

/* Of a command that writes records. */
struct count_words {
    const char *stats, *flagstat, *idxstats;     /* files for what is counted; NULL: not wanted */
    const char *stats_args;      /* --stats-args; NULL: not given */
    bool writes_index;
    bool keeps_order;            /* records come in that of the input, whatever it is */
};

/* The output's name and format, and the order, are settled. -1: a mistake, told. */
int count_args_settle(struct engine_opts *o, const struct count_words *words);

#endif
