/* SPDX-License-Identifier: MIT */
/* The options of `samtools stats`: those of the command, and those in --stats-args of other commands. They are read
 * into struct stats_settings (args.own). */
#ifndef STATS_OPTIONS_H
#define STATS_OPTIONS_H

#include "cli/engine_options.h"

struct stats_settings;

/* The options that stats, flagstat, idxstats and coverage have after their own. */
#define STATS_COMMON_ROWS \
    ENGINE(INPUT_OPTION), ENGINE(MORE_THREADS), ENGINE(VERBOSITY), \
    OPTION(0, "write-index", NULL, HANDED_ON, "")    /* samtools accepts it, and it has no effect here */
#define STATS_BEYOND_ROWS \
    OPTION_LIST("Beyond samtools, as in sort:"), ENGINE(PROGRESS), ENGINE(NO_PROGRESS), ENGINE(REPORT), \
    ENGINE(TOTAL_MEMORY), ENGINE(TRACE)
#define STATS_MORE(name) \
    "Commands that write records count them in the same pass: samtools sort --" name "=FILE.\n"

extern const struct engine_command stats_command;
extern const struct engine_command coverage_command;     /* into struct coverage_settings */
extern const struct engine_command stats_words_command;  /* --stats-args: options that change how records are counted */

/* Settles the combination of options. words[n]: the command line as samtools would print it, from the command's name
 * on. n_regions: number of operands that are regions. -1: a mistake, which is reported. */
int stats_options_settle(struct stats_settings *settings, char *const *words, int n, int n_regions);

#endif
