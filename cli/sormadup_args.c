/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "codec/bgzf_block.h"
#include "fixmate/fixmate_opts.h"
#include "sormadup/sormadup_opts.h"

enum { OPT_COLLATE = OPT_OWN, OPT_FIXMATE_ARGS, OPT_MARKDUP_ARGS };

/* As those of the commands that it stands for. */
static const struct option long_options[] = {
    {"write-index", optional_argument, NULL, OPT_WRITE_INDEX},
    ENGINE_ARGS_LONG_OPTIONS
};

static const struct option beyond[] = {
    {"add-input", required_argument, NULL, OPT_ADD_INPUT},
    {"collate", no_argument, NULL, OPT_COLLATE},
    {"fixmate-args", required_argument, NULL, OPT_FIXMATE_ARGS},
    {"markdup-args", required_argument, NULL, OPT_MARKDUP_ARGS},
    {"plan", optional_argument, NULL, OPT_PLAN},
    {"size-hint", required_argument, NULL, OPT_SIZE_HINT},
    {"tmpdir-env", no_argument, NULL, OPT_TMPDIR_ENV},
    ENGINE_ARGS_BEYOND
};

const char sormadup_args_usage[] =
    "Usage: samtools sormadup [options...] [in.bam]\n"
    "Does what these do, in one process and in the memory of one sort:\n"
    "  samtools fixmate -m in.bam - | samtools sort - | samtools markdup - out.bam\n"
    "Records of one name follow one another, as aligners write them. Else samtools collate -O -u comes first,\n"
    "in the same process: where the header says SO:coordinate, and with --collate.\n"
    "\n"
    "Steps\n"
    "      --collate               records of one name may be anywhere\n"
    "      --fixmate-args WORDS    options of samtools fixmate: -r, -p, -c, -M, -z\n"
    "      --markdup-args WORDS    options of samtools markdup: '-r -s -f stats.txt'; quotes group words\n"
    "Output\n"
    "  -o FILE                 write to FILE instead of standard output\n"
    HELP_OUTPUT_FMT("FILE") HELP_LEVEL HELP_AS_LEVEL_0
    "      --write-index[=bai|csi]\n"
    "                          write an index too (CSI; CRAI for CRAM; FILE##idx##NAME.bai for BAI)\n"
    "      --no-PG             add no @PG lines to the header: else one for each step\n"
    "Input\n"
    "      --add-input FILE    the records of FILE come behind those of in.bam; may be repeated\n"
    HELP_REFERENCE HELP_INPUT_OPTION
    "Resources\n"
    HELP_THREADS HELP_MEMORY HELP_TOTAL_MEMORY
    "  -T PREFIX               place for temporary files [beside the output]; may be repeated\n"
    HELP_VERBOSITY HELP_HELP
    "\n"
    "As in sort: --checksum, --stats, --flagstat, --idxstats, --plan, --progress, --no-progress,\n"
    "--report, --size-hint, --tmpdir-env, --trace, --verify. See samtools sort --help.\n";

/* What the command line says of the steps. */
struct steps {
    const char *fixmate, *markdup;
    bool collate;
};

static void take_words(const char **words, const char *option, const char *given)
{
    if (**words && strcmp(*words, given) != 0)
        message_warning("%s was given twice: only the last one counts, '%s'. Put all words into one", option, given);
    *words = given;
}

static enum engine_option take_sormadup_option(struct engine_args *args, int c)
{
    struct steps *steps = args->own;
    switch (c) {
    case OPT_COLLATE: steps->collate = true; return ENGINE_OPTION_TAKEN;
    case OPT_FIXMATE_ARGS: take_words(&steps->fixmate, "--fixmate-args", optarg); return ENGINE_OPTION_TAKEN;
    case OPT_MARKDUP_ARGS: take_words(&steps->markdup, "--markdup-args", optarg); return ENGINE_OPTION_TAKEN;
    default: return ENGINE_OPTION_COMMON;
    }
}

static const struct engine_command sormadup = {
    .name = "sormadup",
    .short_options = ":l:um:@:o:O:T:h",
    .long_options = long_options,
    .beyond = beyond,
    .take = take_sormadup_option,
    .usage = sormadup_args_usage,
    .level = BGZF_LEVEL_DEFAULT,
};

/* ------------------------------------------------------------------- steps */

/* A step's command line as words, and what they lie in: options point to them. */
struct step {
    char *argv[OPTION_WORDS_MOST + 3];
    int argc;
};

/* In one piece, with the texts behind it. */
struct words {
    struct step fixmate, markdup;
    char *run_line;              /* what was really run; in the same piece */
    char texts[];
};

static int split_step(struct step *step, const char *name, const char *first, const char *text, char **to)
{
    const char *const texts[] = {"samtools", name, first, text};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (option_words_split(texts[i], step->argv, &step->argc, OPTION_WORDS_MOST, to) < 0)
            return -1;
    return 0;
}

/* A command line on one line of text, at *to. */
static const char *put_line(char **to, const char *command, const char *args, const char *files)
{
    char *line = *to;
    *to += 1 + sprintf(line, "samtools %s%s%s %s", command, *args ? " " : "", args, files);
    for (char *c = line; *c; c++)
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    return line;
}

/* Inputs that are several are joined first, for those steps that read one. */
static const char *put_cat(char **to, const struct input_request *in)
{
    const char *names = *to;
    if (in->n == 1)
        return NULL;
    for (size_t i = 0; i < in->n; i++)
        *to += sprintf(*to, i ? " %s" : "%s", in->paths[i]);
    ++*to;
    return put_line(to, "cat", "", names);
}

/* The lines of the steps, as if each had been run alone. */
static int put_lines(struct sormadup_opts *opts, const struct steps *steps, struct words *w, char *to)
{
    struct output_request *out = &opts->common.out;
    opts->cat_line = put_cat(&to, &opts->common.in);
    const char *first = opts->cat_line ? "-" : opts->common.in.paths[0];
    char *files = to;
    to += 1 + sprintf(files, "%s -", first);
    opts->fixmate_line = put_line(&to, "fixmate -m", steps->fixmate, files);
    opts->collated_line = put_line(&to, "fixmate -m", steps->fixmate, "- -");
    opts->collate_line = put_line(&to, "collate -O -u", "", first);
    opts->collate = steps->collate;
    opts->sort_line = put_line(&to, "sort", "", "-");
    files = to;
    to += 1 + sprintf(files, "- %s", out->path);
    char *last = strdup(put_line(&to, "markdup", steps->markdup, files));
    if (!last)
        return engine_args_no_memory();
    w->run_line = strcpy(to, out->command_line);
    opts->common.report.command_line = w->run_line;
    free(out->command_line);
    out->command_line = last;
    return 0;
}

static enum engine_args_result read_steps(struct sormadup_opts *opts, struct words *w)
{
    struct fixmate_opts fixmate;
    enum engine_args_result result = fixmate_args_parse(&fixmate, true, w->fixmate.argc, w->fixmate.argv);
    opts->fixmate = fixmate.rules;
    engine_args_free(&fixmate.common);
    if (result == ENGINE_ARGS_RUN) {
        result = markdup_args_parse(&opts->markdup, true, w->markdup.argc, w->markdup.argv);
        opts->common.statistics = opts->markdup.common.statistics;
        engine_args_free(&opts->markdup.common);
    }
    message_set_command(sormadup.name);
    opts->markdup.common = opts->common;
    return result;
}

static enum engine_args_result settle_steps(struct sormadup_opts *opts, const struct steps *steps)
{
    enum { NAMES = 256 };        /* of commands, options and dashes */
    const struct engine_opts *o = &opts->common;
    size_t names = 0;
    for (size_t i = 0; i < o->in.n; i++)
        names += 1 + strlen(o->in.paths[i]);
    size_t texts = 3 * (strlen(steps->fixmate) + strlen(steps->markdup) + names + strlen(o->out.path))
                 + strlen(o->out.command_line) + NAMES;
    struct words *w = opts->common.words = calloc(1, sizeof *w + 2 * texts);
    if (!w)
        return engine_args_no_memory();
    char *to = w->texts;
    return split_step(&w->fixmate, "fixmate", "-m", steps->fixmate, &to) < 0
        || split_step(&w->markdup, "markdup", "", steps->markdup, &to) < 0
        || put_lines(opts, steps, w, to) < 0 ? ENGINE_ARGS_ERROR : read_steps(opts, w);
}

/* ----------------------------------------------------------- the whole line */

enum engine_args_result sormadup_args_parse(struct sormadup_opts *opts, int argc, char **argv)
{
    struct steps steps = {"", "", false};
    struct engine_args args = {.own = &steps};
    *opts = (struct sormadup_opts){.fixmate_line = NULL};
    struct engine_opts *o = &opts->common;
    enum engine_args_result result = engine_args_read(&args, &sormadup, o, argc, argv);
    if (result != ENGINE_ARGS_RUN)
        return result;
    int n = argc - optind;
    if (n > 1)
        return message_mistake("only one input is taken (--add-input names more); -o FILE names the output");
    if (n == 0 && isatty(STDIN_FILENO)) {
        fputs(sormadup_args_usage, stdout);
        return ENGINE_ARGS_DONE;
    }
    if (!(o->in.paths[0] = input_name_file(n ? argv[optind] : "-")))
        return engine_args_no_memory();
    if (engine_args_settle_memory(&args) < 0 || engine_args_settle_output(&args) < 0
        || engine_args_settle_index(&args) < 0
        || engine_args_settle_temp(&args, "samtools-sormadup.tmp") < 0)
        return ENGINE_ARGS_ERROR;
    engine_args_settle_report(o);
    return settle_steps(opts, &steps);
}
