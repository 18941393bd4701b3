/* SPDX-License-Identifier: MIT */
/* The command lines of stats, flagstat and idxstats. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts.h>
#include <htslib/sam.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "cli/count_args.h"
#include "stats/flagstat.h"
#include "stats/idxstats.h"
#include "stats/stats_counter.h"
#include "stats/stats_opts.h"
#include "stats/stats_settings.h"

/* The options that all three have behind their own. */
#define COMMON_ROWS \
    ENGINE(INPUT_OPTION), ENGINE(MORE_THREADS), ENGINE(VERBOSITY), \
    OPTION(0, "write-index", NULL, HANDED_ON, "")    /* it does nothing here, and samtools takes it */
#define BEYOND_ROWS \
    OPTION_LIST("Beyond samtools, as in sort:"), ENGINE(PROGRESS), ENGINE(NO_PROGRESS), ENGINE(TOTAL_MEMORY)
#define MORE(name) \
    "Commands that write records count them in the same pass: samtools sort --" name "=FILE.\n"

/* Of CRAM only these fields are decoded, which takes no reference. fields: of enum sam_fields. -1: no memory, told. */
static int want_fields(struct engine_opts *o, int fields)
{
    char text[40];
    snprintf(text, sizeof text, "required_fields=%d", fields);
    return hts_opt_add(&o->in.format_options, text) < 0 ? engine_args_no_memory() : 0;
}

/* The input, and its index: of -X, else of FILE##idx##INDEX, else NULL. */
static int settle_input(struct engine_opts *o, const char *name, const char *index)
{
    const char *named = strstr(name, HTS_IDX_DELIM);
    if (!index && named)
        index = named + strlen(HTS_IDX_DELIM);
    o->out.format.format = bam;                  /* nothing is written, so nothing is counted for htslib */
    o->in.indexes = calloc(1, sizeof *o->in.indexes);
    o->in.paths[0] = input_name_file(name);
    return o->in.indexes && o->in.paths[0] && (!index || (o->in.indexes[0] = strdup(index)))
         ? 0 : engine_args_no_memory();
}

/* ------------------------------------------------------ flagstat, idxstats */

/* What a command line of flagstat or idxstats says. */
struct stats_words {
    enum flagstat_format format; /* -O */
    bool has_index;              /* -X: the index is the second operand */
};

/* Other words mean text, as in samtools. */
static int take_format(struct engine_args *args, const char *text)
{
    struct stats_words *own = args->own;
    own->format = strcmp(text, "json") == 0 ? FLAGSTAT_JSON : strcmp(text, "tsv") == 0 ? FLAGSTAT_TSV : FLAGSTAT_TEXT;
    return 0;
}

static const struct option_row flagstat_options[] = {
    OPTION('O', "output-fmt", "FMT", TAKES(take_format), "json or tsv [text]"),
    COMMON_ROWS, ENGINE(LONG_HELP), BEYOND_ROWS, OPTION_END,
};

static const struct option_row idxstats_options[] = {
    OPTION('X', NULL, NULL, SETS(OPTION_IN(OPTION_OWN, struct stats_words, has_index)),
           "the index file is an operand, too"),
    COMMON_ROWS, ENGINE(LONG_HELP), BEYOND_ROWS, OPTION_END,
};

const struct engine_command flagstat_command = {
    .name = "flagstat",
    .options = flagstat_options,
    .usage = "Usage: samtools flagstat [options...] <in.bam>\n"
             "Counts records (SAM, BAM, CRAM) by their flags, on as many threads as -@ gives. - is standard input.\n\n",
    .more = MORE("flagstat"),
    .more_threads = 1,
};

const struct engine_command idxstats_command = {
    .name = "idxstats",
    .options = idxstats_options,
    .usage = "Usage: samtools idxstats [options...] <in.bam> [<in.bam.bai>]\n"
             "Prints for each reference its name, its length, and how many records are mapped and unmapped there:\n"
             "of BAM as its index says, else counted on as many threads as -@ gives. - is standard input.\n\n",
    .more = MORE("idxstats"),
    .more_threads = 1,
};

static enum engine_args_result settle(struct stats_words *own, struct engine_args *args, int n, char **operands)
{
    struct engine_opts *o = args->o;
    int wanted = 1 + own->has_index;
    if (n == 0 || n != wanted) {
        engine_args_help(args->command, n ? stderr : stdout);
        return n ? ENGINE_ARGS_ERROR : ENGINE_ARGS_DONE;
    }
    return settle_input(o, operands[0], own->has_index ? operands[1] : NULL) < 0
        || engine_args_settle_memory_at_once(args) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}

enum engine_args_result flagstat_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct stats_words own = {FLAGSTAT_TEXT, false};
    struct engine_args args = {.own = &own};
    struct engine_opts *o = &opts->common;
    *opts = (struct stats_opts){.from_index = false};
    enum engine_args_result result = engine_args_read(&args, &flagstat_command, o, argc, argv);
    if (result == ENGINE_ARGS_RUN)
        result = settle(&own, &args, argc - optind, argv + optind);
    if (result != ENGINE_ARGS_RUN)
        return result;
    struct counter_settings *s = count_args_open(&o->out, 0, 0);
    if (!s || want_fields(o, SAM_FLAG | SAM_MAPQ | SAM_RNAME | SAM_RNEXT) < 0)
        return engine_args_no_memory();
    s->flagstat.format = own.format;
    count_args_add(&o->out, NULL, flagstat_counter(&s->flagstat));
    return result;
}

enum engine_args_result idxstats_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    struct stats_words own = {FLAGSTAT_TEXT, false};
    struct engine_args args = {.own = &own};
    struct engine_opts *o = &opts->common;
    *opts = (struct stats_opts){.from_index = true};
    enum engine_args_result result = engine_args_read(&args, &idxstats_command, o, argc, argv);
    if (result == ENGINE_ARGS_RUN)
        result = settle(&own, &args, argc - optind, argv + optind);
    if (result != ENGINE_ARGS_RUN)
        return result;
    struct counter_settings *s = count_args_open(&o->out, 0, 0);
    if (!s || want_fields(o, SAM_FLAG | SAM_RNAME) < 0)
        return engine_args_no_memory();
    s->idxstats.path = engine_opts_input(o);
    count_args_add(&o->out, NULL, idxstats_counter(&s->idxstats));
    return result;
}

/* ------------------------------------------------------------------- stats */

/* stats_settings_parse() reads the options that samtools has. These are the ones that all commands have. */
static const struct option_row stats_options[] = {
    ENGINE(REFERENCE), COMMON_ROWS, ENGINE(LONG_HELP), BEYOND_ROWS, OPTION_END,
};

const struct engine_command stats_command = {
    .name = "stats",
    .options = stats_options,
    .usage =
        "Usage: samtools stats [options...] <in.bam> [<region>...]\n"
        "Statistics of reads and their places (SAM, BAM, CRAM), on as many threads as -@ gives. - is standard input.\n"
        "\n"
        "Which records\n"
        "  -f, --required-flag FLAGS   only those that have all of these flags\n"
        "  -F, --filtering-flag FLAGS  none that has one of these\n"
        "  -d, --remove-dups           no duplicates, as -F DUP\n"
        "  -l, --read-length INT       only those of so many bases\n"
        "  -I, --id ID                 only those of the read group or sample ID\n"
        "  -t, --target-regions FILE   only those in the regions of FILE: name, first and last base on each line\n"
        "  -X, --customized-index      the index file is an operand, too, behind the input\n"
        "What is counted\n"
        "  -c, --coverage MIN,MAX,STEP distribution of coverage [1,1000,1]\n"
        "  -g, --cov-threshold INT     coverage above which a base of the target is covered [0]\n"
        "      --GC-depth FLOAT        bases of a bin of GC content and depth [20000]\n"
        "  -i, --insert-size INT       largest insert size [8000]\n"
        "  -m, --most-inserts FLOAT    report the most of inserts [0.99]\n"
        "  -p, --remove-overlaps       bases where both ends of a pair lie count once\n"
        "  -q, --trim-quality INT      quality below which the ends of reads would be trimmed [0]\n"
        "  -r, --ref-seq FILE          FASTA of the references, for mismatches by cycle and GC content\n"
        "      --ref-stats             statistics of the references\n"
        "  -x, --sparse                no rows of insert sizes without pairs\n"
        "Other\n",
    .more = "-S and -P (one file for each value of a tag) are run by the samtools behind this one.\n" MORE("stats"),
    .more_threads = 1,
};

/* How many words this one and those behind it make an option that samtools does not have; 0: it is none. */
static int beyond_words(const char *word)
{
    static const char memory[] = "--total-memory";
    if (strcmp(word, "--progress") == 0 || strcmp(word, "--no-progress") == 0)
        return 1;
    return strcmp(word, memory) == 0 ? 2
         : strncmp(word, memory, sizeof memory - 1) == 0 && word[sizeof memory - 1] == '=';
}

/* Deals the words of a command line out: those that samtools has to theirs, the others behind the command to ours. */
static void deal_words(int argc, char **argv, char **theirs, int *n_theirs, char **ours, int *n_ours)
{
    bool operands = false;
    for (int i = 1; i < argc; i++) {
        int n = i > 1 && !operands ? beyond_words(argv[i]) : 0;
        operands = operands || strcmp(argv[i], "--") == 0;
        if (n == 0)
            theirs[(*n_theirs)++] = argv[i];
        for (; n > 0 && i < argc; n--, i += n > 0)
            ours[(*n_ours)++] = argv[i];
    }
}

/* Puts the values that all commands have in common to ours. */
static void put_common(const struct stats_settings *s, char **ours, int *n_ours)
{
    static char threads[] = "-@", reference[] = "--reference", verbosity[] = "--verbosity";
    const struct {
        char *option, *value;
    } common[] = {{threads, s->threads}, {reference, s->reference}, {verbosity, s->verbosity}};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i].value) {
            ours[(*n_ours)++] = common[i].option;
            ours[(*n_ours)++] = common[i].value;
        }
}

/* What is left to the other samtools: files for each value of a tag, and regions that htslib alone knows. */
static bool is_theirs(const struct stats_settings *s, int n, char *const *regions)
{
    for (int i = 0; i < n; i++)
        if (strcmp(regions[i], "*") == 0 || strcmp(regions[i], ".") == 0)
            return true;
    return s->split_tag || s->split_prefix;
}

static enum engine_args_result settle_stats(struct stats_opts *opts, struct engine_args *args, struct stats_settings *s,
                                            int n, char **operands)
{
    struct engine_opts *o = args->o;
    bool has_index = s->custom_index && n > 1;
    if (n == 0 && isatty(STDIN_FILENO)) {
        engine_args_help(&stats_command, stdout);
        return ENGINE_ARGS_ERROR;
    }
    opts->stats = s;
    opts->n_regions = n > 1 + has_index ? n - 1 - has_index : 0;
    opts->regions = operands + 1 + has_index;
    if (is_theirs(s, opts->n_regions, opts->regions))
        return ENGINE_ARGS_HAND_ON;
    o->in.format_options = s->input_options;
    s->input_options = NULL;
    return settle_input(o, n ? operands[0] : "-", has_index ? operands[1] : NULL) < 0
        || engine_args_settle_memory_at_once(args) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}

enum engine_args_result stats_args_parse(struct stats_opts *opts, int argc, char **argv)
{
    enum { COMMON = 6 };         /* words of put_common() */
    struct engine_args args = {.own = NULL};
    struct engine_opts *o = &opts->common;
    struct output_request none = {0};
    int n_theirs = 0, n_ours = 2;
    *opts = (struct stats_opts){.from_index = false};
    message_set_command("stats");
    struct counter_settings *s = count_args_open(&none, 2 * (size_t)argc + COMMON + 2, 0);
    if (!s)
        return engine_args_no_memory();
    char **theirs = s->words, **ours = s->words + argc;
    ours[0] = argv[0];
    ours[1] = argv[1];
    deal_words(argc, argv, theirs, &n_theirs, ours, &n_ours);
    enum stats_parse parsed = stats_settings_parse(&s->stats, n_theirs, theirs);
    put_common(&s->stats, ours, &n_ours);
    enum engine_args_result result = engine_args_read(&args, &stats_command, o, n_ours, ours);
    o->out.counter_settings = s;
    count_args_add(&o->out, NULL, stats_counter(&s->stats));
    if (parsed == STATS_HELP || parsed == STATS_USAGE)
        engine_args_help(&stats_command, stdout);
    return parsed != STATS_PARSED ? ENGINE_ARGS_ERROR : result != ENGINE_ARGS_RUN ? result
         : settle_stats(opts, &args, &s->stats, n_theirs - s->stats.first_operand, theirs + s->stats.first_operand);
}
