/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>
#include "base/message.h"
#include "cli/stats_options.h"
#include "stats/coverage.h"
#include "stats/stats_settings.h"

/* ------------------------------------------------------------------ values */

/* Reads an integer as samtools does: characters after a number are ignored. */
static int take_int(struct engine_args *args, const char *text)
{
    *(int *)args->target = atoi(text);
    return 0;
}

static int take_float(struct engine_args *args, const char *text)
{
    *(float *)args->target = (float)atof(text);
    return 0;
}

static int take_whole(struct engine_args *args, const char *text)
{
    *(int *)args->target = (int)atof(text);
    return 0;
}

static int add_flags(uint32_t *flags, const char *text)
{
    int value = bam_str2flag(text);
    if (value < 0)
        return message_error("Unknown flag '%s'", text);
    *flags |= (uint32_t)value;
    return 0;
}

static int take_flags(struct engine_args *args, const char *text)
{
    *(uint32_t *)args->target = 0;               /* the last one is used */
    return add_flags(args->target, text);
}

static int take_more_flags(struct engine_args *args, const char *text)
{
    return add_flags(args->target, text);
}

static int take_no_duplicates(struct engine_args *args, const char *none)
{
    (void)none;
    *(uint32_t *)args->target |= BAM_FDUP;
    return 0;
}

static int take_depths(struct engine_args *args, const char *text)
{
    struct stats_settings *s = args->own;
    if (sscanf(text, "%d,%d,%d", &s->depth_min, &s->depth_max, &s->depth_step) != 3)
        return message_error("cannot read -c %s: it takes three numbers, MIN,MAX,STEP", text);
    return s->depth_step == 0 ? message_error("-c %s: STEP is 0", text) : 0;
}

/* Accepts an option that has no effect. -s: the format is detected from the file. --ref-stats-chunk: the amount of a
 * reference that samtools keeps in memory has no visible effect. */
static int take_nothing(struct engine_args *args, const char *text)
{
    (void)args, (void)text;
    return 0;
}

/* ----------------------------------------------------------------- options */

#define OWN(member) OPTION_IN(OPTION_OWN, struct stats_settings, member)

#define COUNT_ROWS \
    OPTION_HEADING("Which records"), \
    OPTION('f', "required-flag", "FLAGS", TAKES_INTO(take_flags, OWN(required)), \
           "only those that have all of these flags"), \
    OPTION('F', "filtering-flag", "FLAGS", TAKES_INTO(take_more_flags, OWN(filtered)), "none that have one of these"), \
    OPTION('d', "remove-dups", NULL, TAKES_INTO(take_no_duplicates, OWN(filtered)), "no duplicates, as -F DUP"), \
    OPTION('l', "read-length", "INT", TAKES_INTO(take_int, OWN(read_length)), "only those of this many bases"), \
    OPTION('I', "id", "ID", TEXT(OWN(id)), "only those of the read group or sample ID"), \
    OPTION('t', "target-regions", "FILE", TEXT(OWN(targets_path)), \
           "only those in the regions of FILE: name, first and last base on each line"), \
    OPTION_HEADING("What is counted"), \
    OPTION('c', "coverage", "MIN,MAX,STEP", TAKES(take_depths), "distribution of coverage [1,1000,1]"), \
    OPTION('g', "cov-threshold", "INT", TAKES_INTO(take_int, OWN(threshold)), \
           "coverage above which a base of the target is covered [0]"), \
    OPTION(0, "GC-depth", "FLOAT", TAKES_INTO(take_whole, OWN(gc_bin)), \
           "bases of a bin of GC content and depth [20000]"), \
    OPTION('i', "insert-size", "INT", TAKES_INTO(take_int, OWN(max_insert)), "largest insert size [8000]"), \
    OPTION('m', "most-inserts", "FLOAT", TAKES_INTO(take_float, OWN(most_inserts)), \
           "share of inserts to report [0.99]"), \
    OPTION('p', "remove-overlaps", NULL, SETS(OWN(overlaps)), "count bases that both ends of a pair cover once"), \
    OPTION('q', "trim-quality", "INT", TAKES_INTO(take_int, OWN(trim_quality)), \
           "quality below which the ends of reads would be trimmed [0]"), \
    OPTION('r', "ref-seq", "FILE", TEXT(OWN(fasta_path)), \
           "FASTA of the references, for mismatches by cycle and GC content"), \
    OPTION(0, "ref-stats", NULL, SETS(OWN(ref_stats)), "statistics of the references"), \
    OPTION(0, "ref-stats-chunk", "INT", TAKES(take_nothing), ""), \
    OPTION('x', "sparse", NULL, SETS(OWN(sparse)), "no rows of insert sizes without pairs"), \
    OPTION('S', "split", "TAG", TEXT(OWN(split_tag)), "one more file for each value of TAG: PREFIX_VALUE.bamstat"), \
    OPTION('P', "split-prefix", "PREFIX", TEXT(OWN(split_prefix)), "the start of their names [the input's name]"), \
    OPTION('s', "sam", NULL, TAKES(take_nothing), "")

static const struct option_row options[] = {
    COUNT_ROWS,
    OPTION_HEADING("Other"),
    OPTION('X', "customized-index", NULL, SETS(OWN(custom_index)),
           "the index file is an operand, too, after the input"),
    ENGINE(REFERENCE), STATS_COMMON_ROWS, OPTION('h', "help", NULL, .kind = OPTION_HELP, "print this text"),
    STATS_BEYOND_ROWS, OPTION_END,
};

static const struct option_row words_options[] = {COUNT_ROWS, OPTION_END};

const struct engine_command stats_command = {
    .name = "stats",
    .options = options,
    .usage =
        "Usage: samtools stats [options...] <in.bam> [<region>...]\n"
        "Statistics of reads and their places (SAM, BAM, CRAM), on as many threads as -@ gives. - is standard input.\n"
        "\n",
    .more = STATS_MORE("stats"),
    .more_threads = 1,
};

const struct engine_command stats_words_command = {.name = "stats", .options = words_options};

/* ---------------------------------------------------------------- coverage */

#undef OWN
#define OWN(member) OPTION_IN(OPTION_OWN, struct coverage_settings, member)
#define FLAGS_ROW(name, member, help) OPTION(0, name, "FLAGS", TAKES_INTO(take_flags, OWN(member)), help)
#define LEAST_ROW(letter, name, member, help) OPTION(letter, name, "INT", NUMBER(OWN(member), 0, INT_MAX), help)

static const struct option_row coverage_options[] = {
    OPTION_HEADING("Which records"),
    LEAST_ROW('l', "min-read-len", min_length, "only reads of this many bases [0]"),
    LEAST_ROW('q', "min-MQ", min_mapq, "only those of this MAPQ [0]"),
    LEAST_ROW(0, "min-mq", min_mapq, ""),
    LEAST_ROW('Q', "min-BQ", min_quality, "only bases of this quality [0]"),
    LEAST_ROW(0, "min-bq", min_quality, ""),
    FLAGS_ROW("rf", required, "only those that have one of these flags"),
    FLAGS_ROW("incl-flags", required, ""),
    FLAGS_ROW("ff", filtered, "none that have one of these [UNMAP,SECONDARY,QCFAIL,DUP]"),
    FLAGS_ROW("excl-flags", filtered, ""),
    LEAST_ROW('d', "depth", depth, "reads at a time; 0: all [1000000]"),
    OPTION_HEADING("Output"),
    OPTION('o', "output", "FILE", WRITES(engine_args_output), "write to FILE instead of standard output"),
    OPTION('H', "no-header", NULL, SETS(OWN(no_header)), "no line with the names of the columns"),
    OPTION_HEADING("Other"),
    ENGINE(REFERENCE), STATS_COMMON_ROWS, OPTION('h', "help", NULL, .kind = OPTION_HELP, "print this text"),
    OPTION('b', "bam-list", "FILE", HANDED_ON, ""), OPTION(0, "min-depth", "INT", HANDED_ON, ""),
    OPTION('m', "histogram", NULL, HANDED_ON, ""), OPTION('D', "plot-depth", NULL, HANDED_ON, ""),
    OPTION('A', "ascii", NULL, HANDED_ON, ""), OPTION('w', "n-bins", "INT", HANDED_ON, ""),
    OPTION('r', "region", "REG", HANDED_ON, ""),
    STATS_BEYOND_ROWS, OPTION_END,
};

const struct engine_command coverage_command = {
    .name = "coverage",
    .options = coverage_options,
    .usage = "Usage: samtools coverage [options...] <in.bam>\n"
             "Prints for each reference how many reads it has, how much of it they cover, and how well, on as many\n"
             "threads as -@ gives. The records must be sorted by coordinate. - is standard input.\n\n",
    .more = "Histograms, regions (-r), -b, --min-depth and several inputs are run by upstream samtools.\n"
            STATS_MORE("coverage"),
    .more_threads = 1,
};

/* ---------------------------------------------------------------- together */

static char *join_words(char *const *words, int n)
{
    size_t size = 1;
    for (int i = 0; i < n; i++)
        size += strlen(words[i]) + 1;
    char *text = malloc(size), *at = text;
    for (int i = 0; text && i < n; i++)
        at += sprintf(at, i ? " %s" : "%s", words[i]);
    return text;
}

int stats_options_settle(struct stats_settings *s, char *const *words, int n, int n_regions)
{
    if (!(s->command_line = join_words(words, n)))
        return engine_args_no_memory();
    if (s->threshold < 0 || (s->threshold > 0 && !s->targets_path && n_regions == 0))
        return message_error("-g %d: a coverage threshold needs -t or a region, and must not be negative",
                             s->threshold);
    if (s->split_tag && strlen(s->split_tag) < 2)
        return message_error("-S %s: a tag has two letters", s->split_tag);
    return 0;
}
