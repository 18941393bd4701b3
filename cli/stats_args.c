/* SPDX-License-Identifier: MIT */
/* The command lines of stats, flagstat and idxstats. */
#include <stdlib.h>
#include <string.h>
#include <htslib/hts.h>
#include <htslib/sam.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "cli/stats_args.h"
#include "stats/stats_opts.h"

#define HELP_BEYOND(more) \
    "\n" \
    "Beyond samtools, as in sort: --progress, --no-progress, --total-memory. " more

const char flagstat_args_usage[] =
    "Usage: samtools flagstat [options...] <in.bam>\n"
    "Counts records (SAM, BAM, CRAM) by their flags, on as many threads as -@ gives. - is standard input.\n"
    "\n"
    "  -O, --output-fmt FMT    json or tsv [text]\n"
    HELP_INPUT_OPTION HELP_MORE_THREADS HELP_VERBOSITY HELP_LONG_HELP
    HELP_BEYOND("sort --flagstat FILE counts in the\nsame pass.\n");

const char idxstats_args_usage[] =
    "Usage: samtools idxstats [options...] <in.bam> [<in.bam.bai>]\n"
    "Prints for each reference its name, its length, and how many records are mapped and unmapped there: of BAM\n"
    "as its index says, else counted on as many threads as -@ gives. - is standard input.\n"
    "\n"
    "  -X                      the index file is an operand, too\n"
    HELP_INPUT_OPTION HELP_MORE_THREADS HELP_VERBOSITY HELP_LONG_HELP
    HELP_BEYOND("sort --idxstats FILE counts in the\nsame pass.\n");

/* What a command line says beside what all have in common. */
struct stats_words {
    struct stats_opts *opts;
    bool has_index;              /* -X: the index is the second operand */
};

static const struct option beyond[] = {
    {"total-memory", required_argument, NULL, OPT_TOTAL_MEMORY},
    {"progress", no_argument, NULL, OPT_PROGRESS},
    {"no-progress", no_argument, NULL, OPT_NO_PROGRESS},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0}
};

/* --write-index says nothing here, and samtools takes it. */
#define LONG_OPTIONS \
    {"threads", required_argument, NULL, '@'}, \
    {"input-fmt-option", required_argument, NULL, OPT_INPUT_OPTION}, \
    {"verbosity", required_argument, NULL, OPT_VERBOSITY}, \
    {"write-index", no_argument, NULL, OPT_WRITE_INDEX}, \
    {NULL, 0, NULL, 0}

static const struct option flagstat_options[] = {{"output-fmt", required_argument, NULL, 'O'}, LONG_OPTIONS};
static const struct option idxstats_options[] = {LONG_OPTIONS};

static enum engine_option take_option(struct engine_args *args, int c)
{
    struct stats_words *own = args->own;
    switch (c) {
    case 'X': own->has_index = true; return ENGINE_OPTION_TAKEN;
    case 'O':                                    /* other words mean text, as in samtools */
        own->opts->flagstat.format = strcmp(optarg, "json") == 0 ? FLAGSTAT_JSON
                                   : strcmp(optarg, "tsv") == 0 ? FLAGSTAT_TSV : FLAGSTAT_TEXT;
        return ENGINE_OPTION_TAKEN;
    case OPT_WRITE_INDEX: return ENGINE_OPTION_HANDED_ON;
    default: return ENGINE_OPTION_COMMON;
    }
}

static const struct engine_command flagstat = {
    .name = "flagstat",
    .short_options = ":@:O:",
    .long_options = flagstat_options,
    .beyond = beyond,
    .take = take_option,
    .usage = flagstat_args_usage,
    .more_threads = 1,
};

static const struct engine_command idxstats = {
    .name = "idxstats",
    .short_options = ":@:X",
    .long_options = idxstats_options,
    .beyond = beyond,
    .take = take_option,
    .usage = idxstats_args_usage,
    .more_threads = 1,
};

/* Of CRAM only these fields are decoded, which takes no reference. fields: of enum sam_fields. -1: no memory, told. */
static int want_fields(struct engine_opts *o, int fields)
{
    char text[40];
    snprintf(text, sizeof text, "required_fields=%d", fields);
    return hts_opt_add(&o->in.format_options, text) < 0 ? engine_args_no_memory() : 0;
}

/* The input is the first operand, and the index of FILE##idx##INDEX its own. */
static int settle_input(struct engine_opts *o, const char *name, const char *index)
{
    const char *named = strstr(name, HTS_IDX_DELIM);
    if (!index && named)
        index = named + strlen(HTS_IDX_DELIM);
    o->in.indexes = calloc(1, sizeof *o->in.indexes);
    o->in.paths[0] = input_name_file(name);
    return o->in.indexes && o->in.paths[0] && (!index || (o->in.indexes[0] = strdup(index)))
         ? 0 : engine_args_no_memory();
}

static enum engine_args_result settle(struct stats_words *own, struct engine_args *args, int n, char **operands)
{
    struct engine_opts *o = args->o;
    int wanted = 1 + own->has_index;
    if (n == 0 || n != wanted) {
        fputs(args->command->usage, n ? stderr : stdout);
        return n ? ENGINE_ARGS_ERROR : ENGINE_ARGS_DONE;
    }
    o->out.format.format = bam;                  /* nothing is written, so nothing is counted for htslib */
    return settle_input(o, operands[0], own->has_index ? operands[1] : NULL) < 0
        || engine_args_settle_memory_at_once(args) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}

enum engine_args_result flagstat_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct stats_words own = {opts, false};
    struct engine_args args = {.own = &own};
    *opts = (struct stats_opts){.counter = flagstat_counter(&opts->flagstat)};
    enum engine_args_result result = engine_args_read(&args, &flagstat, &opts->common, argc, argv);
    if (result == ENGINE_ARGS_RUN)
        result = settle(&own, &args, argc - optind, argv + optind);
    return result != ENGINE_ARGS_RUN ? result
         : want_fields(&opts->common, SAM_FLAG | SAM_MAPQ | SAM_RNAME | SAM_RNEXT) < 0 ? ENGINE_ARGS_ERROR : result;
}

enum engine_args_result idxstats_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct stats_words own = {opts, false};
    struct engine_args args = {.own = &own};
    *opts = (struct stats_opts){.counter = idxstats_counter(&opts->idxstats), .from_index = true};
    enum engine_args_result result = engine_args_read(&args, &idxstats, &opts->common, argc, argv);
    if (result == ENGINE_ARGS_RUN)
        result = settle(&own, &args, argc - optind, argv + optind);
    if (result != ENGINE_ARGS_RUN)
        return result;
    opts->idxstats.path = engine_opts_input(&opts->common);
    return want_fields(&opts->common, SAM_FLAG | SAM_RNAME) < 0 ? ENGINE_ARGS_ERROR : result;
}

/* ------------------------------------------------------- in the same pass */

struct counter_settings {
    struct flagstat_settings flagstat;
    struct idxstats_settings idxstats;
};

static void count_for(struct output_request *out, const char *file, struct counter counter)
{
    out->counted[out->n_counters] = file;
    out->counters[out->n_counters++] = counter;
}

/* As the commands would count what was written, by its index where there is one. */
int stats_args_settle_counters(struct engine_args *args)
{
    struct output_request *out = &args->o->out;
    if (!args->flagstat && !args->idxstats)
        return 0;
    if (args->o->check)
        return message_mistake("--flagstat and --idxstats count what is written, and --check writes nothing");
    struct counter_settings *s = out->counter_settings = calloc(1, sizeof *s);
    if (!s)
        return engine_args_no_memory();
    s->idxstats = (struct idxstats_settings){
        .as_index = out->format.format == bam && args->write_index, .any_order = true, .path = out->path};
    if (args->flagstat)
        count_for(out, args->flagstat, flagstat_counter(&s->flagstat));
    if (args->idxstats)
        count_for(out, args->idxstats, idxstats_counter(&s->idxstats));
    return 0;
}
