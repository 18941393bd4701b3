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

/* The options of the steps. */
struct step_texts {
    const char *fixmate, *markdup;
    bool collate;
};

static int take_words(struct engine_args *args, const char *given)
{
    const char **words = args->target;
    if (**words && strcmp(*words, given) != 0)
        message_warning("%s was given twice: only the last one is used, '%s'. Put all words into one", args->option,
                        given);
    *words = given;
    return 0;
}

#define OWN(member) OPTION_IN(OPTION_OWN, struct step_texts, member)

static const struct option_row options[] = {
    OPTION_HEADING("Steps"),
    OPTION_BEYOND(0, "collate", NULL, SETS(OWN(collate)), "records with the same name may be anywhere"),
    OPTION_BEYOND(0, "fixmate-args", "WORDS", TAKES_INTO(take_words, OWN(fixmate)),
                  "options of samtools fixmate: -r, -p, -c, -M, -z"),
    OPTION_BEYOND(0, "markdup-args", "WORDS", TAKES_INTO(take_words, OWN(markdup)),
                  "options of samtools markdup: '-r -s -f stats.txt'; quotes group words"),
    OPTION_HEADING("Output"),
    ENGINE(OUTPUT), ENGINE(FORMAT), ENGINE(FORMAT_OPTION), ENGINE(LEVEL), ENGINE(UNCOMPRESSED), ENGINE(WRITE_INDEX),
    ENGINE_SAYS(NO_PG, "add no @PG lines to the header: by default one for each step"),
    OPTION_HEADING("Input"),
    ENGINE_SAYS(ADD_INPUT, "the records of FILE come after those of in.bam; may be repeated"),
    ENGINE_READING_ROWS,
    OPTION_HEADING("Resources"),
    ENGINE(THREADS), ENGINE(MEMORY), ENGINE(TOTAL_MEMORY), ENGINE(TEMP), ENGINE(VERBOSITY), ENGINE(HELP),
    OPTION_LIST("As in sort (see samtools sort --help):"),
    ENGINE(CHECKSUM), ENGINE_COUNT_ROWS, ENGINE(PLAN), ENGINE(SIZE_HINT), ENGINE(TMPDIR_ENV), ENGINE_REPORT_ROWS,
    OPTION_END,
};

const struct engine_command sormadup_command = {
    .name = "sormadup",
    .options = options,
    .usage = "Usage: samtools sormadup [options...] [in.bam]\n"
             "Does what these do, in one process and in the memory of one sort:\n"
             "  samtools fixmate -m in.bam - | samtools sort - | samtools markdup - out.bam\n"
             "Records with the same name are adjacent, as aligners write them. Otherwise samtools collate -O -u runs\n"
             "first, in the same process: if the header states SO:coordinate, and with --collate.\n\n",
    .level = BGZF_LEVEL_DEFAULT,
};

/* ------------------------------------------------------------------- steps */

/* A step's command line as words, which point into struct words. */
struct step_words {
    char *argv[OPTION_WORDS_MOST + 3];
    int argc;
};

/* The words of both steps and all texts, to which options point, in one allocation. */
struct words {
    struct step_words fixmate, markdup;
    char *run_line;              /* the command that was really run; in texts[] */
    char texts[];
};

static int split_step(struct step_words *step, const char *name, const char *first, const char *text, char **to)
{
    const char *const texts[] = {"samtools", name, first, text};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (option_split(texts[i], step->argv, &step->argc, OPTION_WORDS_MOST, to) < 0)
            return -1;
    return 0;
}

/* Puts a command line, as one line of text, at *to. */
static const char *put_line(char **to, const char *command, const char *args, const char *files)
{
    char *line = *to;
    *to += 1 + sprintf(line, "samtools %s%s%s %s", command, *args ? " " : "", args, files);
    for (char *c = line; *c; c++)
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    return line;
}

/* Puts the command line that joins several inputs, because the steps read only one. NULL: there is one input. */
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

/* Makes the command lines of the steps, as if each had been run separately. */
static int put_lines(struct sormadup_opts *opts, const struct step_texts *steps, struct words *w, char *to)
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
    message_set_command(sormadup_command.name);
    opts->markdup.common = opts->common;
    return result;
}

static enum engine_args_result settle_steps(struct sormadup_opts *opts, const struct step_texts *steps)
{
    enum { NAMES = 256 };        /* characters of commands, options and dashes */
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

/* -------------------------------------------------------- the complete line */

enum engine_args_result sormadup_args_parse(struct sormadup_opts *opts, int argc, char **argv)
{
    struct step_texts steps = {"", "", false};
    struct engine_args args = {.own = &steps};
    *opts = (struct sormadup_opts){.fixmate_line = NULL};
    struct engine_opts *o = &opts->common;
    enum engine_args_result result = engine_args_read(&args, &sormadup_command, o, argc, argv);
    if (result != ENGINE_ARGS_RUN)
        return result;
    int n = argc - optind;
    if (n > 1)
        return message_mistake("only one input is taken (--add-input names more); -o FILE names the output");
    if (n == 0 && isatty(STDIN_FILENO)) {
        engine_args_help(&sormadup_command, stdout);
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
