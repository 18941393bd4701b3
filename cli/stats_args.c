/* SPDX-License-Identifier: MIT */
/* The command lines of stats, flagstat, idxstats and coverage. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts.h>
#include <htslib/sam.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "cli/count_args.h"
#include "cli/stats_options.h"
#include "stats/flagstat.h"
#include "stats/idxstats.h"
#include "stats/stats_counter.h"
#include "stats/stats_opts.h"
#include "stats/stats_settings.h"

/* Requests that only these fields are decoded from CRAM, which needs no reference. fields: of enum sam_fields. -1: out
 * of memory, which is reported. */
static int want_fields(struct engine_opts *o, int fields)
{
    char text[40];
    snprintf(text, sizeof text, "required_fields=%d", fields);
    return hts_opt_add(&o->in.format_options, text) < 0 ? engine_args_no_memory() : 0;
}

/* Settles the input, and its index: from -X, otherwise from FILE##idx##INDEX, otherwise NULL. */
static int settle_input(struct engine_opts *o, const char *name, const char *index)
{
    const char *named = input_name_index(name, NULL);
    index = index ? index : named;
    o->out.format.format = bam;                  /* nothing is written, so no memory is planned for htslib */
    o->in.indexes = calloc(1, sizeof *o->in.indexes);
    o->in.paths[0] = input_name_file(name);
    return o->in.indexes && o->in.paths[0] && (!index || (o->in.indexes[0] = strdup(index)))
         ? 0 : engine_args_no_memory();
}

/* ------------------------------------------------------ flagstat, idxstats */

/* Other words, "Json" too, mean text, as in samtools. */
static int take_format(struct engine_args *args, const char *text)
{
    bool json = strcmp(text, "json") == 0 || strcmp(text, "JSON") == 0;
    bool tsv = strcmp(text, "tsv") == 0 || strcmp(text, "TSV") == 0;
    struct flagstat_settings *s = args->own;
    s->format = json ? FLAGSTAT_JSON : tsv ? FLAGSTAT_TSV : FLAGSTAT_TEXT;
    return 0;
}

static const struct option_row flagstat_options[] = {
    OPTION('O', "output-fmt", "FMT", TAKES(take_format), "json or tsv [text]"),
    STATS_COMMON_ROWS, ENGINE(LONG_HELP), STATS_BEYOND_ROWS, OPTION_END,
};

static const struct option_row idxstats_options[] = {
    OPTION('X', NULL, NULL, SETS(OPTION_IN(OPTION_OWN, struct idxstats_settings, custom_index)),
           "the index file is an operand, too"),
    STATS_COMMON_ROWS, ENGINE(LONG_HELP), STATS_BEYOND_ROWS, OPTION_END,
};

const struct engine_command flagstat_command = {
    .name = "flagstat",
    .options = flagstat_options,
    .usage = "Usage: samtools flagstat [options...] <in.bam>\n"
             "Counts records (SAM, BAM, CRAM) by their flags, on as many threads as -@ gives. - is standard input.\n\n",
    .more = STATS_MORE("flagstat"),
    .more_threads = 1,
};

const struct engine_command idxstats_command = {
    .name = "idxstats",
    .options = idxstats_options,
    .usage = "Usage: samtools idxstats [options...] <in.bam> [<in.bam.bai>]\n"
             "Prints for each reference its name, its length, and the numbers of mapped and unmapped records:\n"
             "for BAM from its index, otherwise counted on as many threads as -@ gives. - is standard input.\n\n",
    .more = STATS_MORE("idxstats"),
    .more_threads = 1,
};

/* ------------------------------------------------------ the command lines */

/* Settles the only operand, and its index if there is one. n: the number of operands. fields: the fields of a record
 * that are counted. */
static enum engine_args_result settle_operands(struct engine_args *args, bool has_index, int fields, char **operands,
                                               int n)
{
    struct engine_opts *o = args->o;
    if (n != 1 + has_index) {
        engine_args_help(args->command, n ? stderr : stdout);
        return n ? ENGINE_ARGS_ERROR : ENGINE_ARGS_DONE;
    }
    if (settle_input(o, operands[0], has_index ? operands[1] : NULL) < 0 || engine_args_settle_memory_at_once(args) < 0
        || want_fields(o, fields) < 0)
        return ENGINE_ARGS_ERROR;
    engine_args_settle_report(o);
    return ENGINE_ARGS_RUN;
}

enum engine_args_result flagstat_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct engine_args args = {.own = &opts->flagstat};
    *opts = (struct stats_opts){.from_index = false};
    enum engine_args_result result = engine_args_read(&args, &flagstat_command, &opts->common, argc, argv);
    count_args_add(&opts->common.out, NULL, flagstat_counter(&opts->flagstat));
    int fields = SAM_FLAG | SAM_MAPQ | SAM_RNAME | SAM_RNEXT;
    return result == ENGINE_ARGS_RUN ? settle_operands(&args, false, fields, argv + optind, argc - optind) : result;
}

enum engine_args_result idxstats_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct engine_args args = {.own = &opts->idxstats};
    struct idxstats_settings *s = &opts->idxstats;
    *opts = (struct stats_opts){.from_index = true};
    enum engine_args_result result = engine_args_read(&args, &idxstats_command, &opts->common, argc, argv);
    count_args_add(&opts->common.out, NULL, idxstats_counter(s));
    if (result == ENGINE_ARGS_RUN)
        result = settle_operands(&args, s->custom_index, SAM_FLAG | SAM_RNAME, argv + optind, argc - optind);
    if (result == ENGINE_ARGS_RUN)
        s->path = engine_opts_input(&opts->common);
    return result;
}

enum engine_args_result coverage_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct engine_args args = {.own = &opts->coverage};
    struct coverage_settings *s = &opts->coverage;
    *opts = (struct stats_opts){.coverage = coverage_settings_default()};
    enum engine_args_result result = engine_args_read(&args, &coverage_command, &opts->common, argc, argv);
    count_args_add(&opts->common.out, NULL, coverage_counter(s));
    if (result != ENGINE_ARGS_RUN)
        return result;
    if (argc - optind > 1)
        return ENGINE_ARGS_HAND_ON;
    int fields = SAM_FLAG | SAM_RNAME | SAM_POS | SAM_MAPQ | SAM_CIGAR | SAM_SEQ;    /* as samtools: QUAL only for -Q */
    fields |= s->min_quality > 0 ? SAM_QUAL : 0;
    return settle_operands(&args, false, fields, argv + optind, argc - optind);
}

/* ------------------------------------------------------------------- stats */

/* Returns whether only htslib understands one of the regions. Then upstream samtools must run. */
static bool is_theirs(int n, char *const *regions)
{
    for (int i = 0; i < n; i++)
        if (strcmp(regions[i], "*") == 0 || strcmp(regions[i], ".") == 0)
            return true;
    return false;
}

static enum engine_args_result settle_stats(struct stats_opts *opts, struct engine_args *args, int argc, char **argv)
{
    struct engine_opts *o = args->o;
    struct stats_settings *s = &opts->stats;
    char **operands = argv + optind;
    int n = argc - optind;
    bool has_index = s->custom_index;
    if (n == 0 && isatty(STDIN_FILENO)) {
        engine_args_help(&stats_command, stdout);
        return ENGINE_ARGS_ERROR;
    }
    if (has_index && n < 2)
        return message_mistake("-X needs the name of the index after the input");
    opts->n_regions = n > 1 + has_index ? n - 1 - has_index : 0;
    opts->regions = operands + 1 + has_index;
    s->input = n ? operands[0] : "-";
    if (stats_options_settle(s, argv + 1, argc - 1, opts->n_regions) < 0)
        return ENGINE_ARGS_ERROR;
    if (is_theirs(opts->n_regions, opts->regions))
        return ENGINE_ARGS_HAND_ON;
    if (settle_input(o, s->input, has_index ? operands[1] : NULL) < 0 || engine_args_settle_memory_at_once(args) < 0)
        return ENGINE_ARGS_ERROR;
    engine_args_settle_report(o);
    return ENGINE_ARGS_RUN;
}

enum engine_args_result stats_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct engine_args args = {.own = &opts->stats};
    *opts = (struct stats_opts){.stats = stats_settings_default()};
    enum engine_args_result result = engine_args_read(&args, &stats_command, &opts->common, argc, argv);
    count_args_add(&opts->common.out, NULL, stats_counter(&opts->stats));
    if (result == ENGINE_ARGS_RUN)
        return settle_stats(opts, &args, argc, argv);
    return result == ENGINE_ARGS_DONE ? ENGINE_ARGS_ERROR : result;      /* -h fails, as in samtools */
}
