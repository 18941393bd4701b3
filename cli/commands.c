/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts.h>
#include "fixmate/bam_fixmate.h"
#include "markdup/bam_markdup.h"
#include "merge/bam_merge.h"
#include "sormadup/bam_sormadup.h"
#include "stats/bam_stats.h"
#include "bam_sort.h"
#include "base/affinity.h"
#include "hts/htslib_version.h"
#include "base/message.h"
#include "base/runtime_env.h"
#include "base/version.h"
#include "cli/command_args.h"
#include "cli/commands.h"
#include "cli/sort_check.h"
#include "cli/paths.h"
#include "cli/sort_plan.h"
#include "cli/typo.h"
#include "cli/upstream.h"
#include "fixmate/fixmate_opts.h"
#include "markdup/markdup_opts.h"
#include "merge/merge_opts.h"
#include "sormadup/sormadup_opts.h"
#include "stats/stats_opts.h"
#include "hts/cram_settings.h"

/* ------------------------------------------------------------ the commands */

/* The options of any command. All begin with the common ones. */
union command_opts {
    struct engine_opts common;
    struct merge_opts merge;
    struct fixmate_opts fixmate;
    struct markdup_opts markdup;
    struct sormadup_opts sormadup;
    struct stats_opts stats;
};

/* Each row: name, summary, and the functions that read the command line, forecast the resources (--plan) and run the
 * command. o: its options. */
#define COMMANDS(X) \
    X(sort, "sort alignment file", \
      sort_args_parse(&o->common, argc, argv), forecast_sort(&o->common), bam_sort(&o->common)) \
    X(collate, "shuffle and group alignments by name", /* a sort by the hash of names */ \
      collate_args_parse(&o->common, argc, argv), forecast_sort(&o->common), bam_sort(&o->common)) \
    X(merge, "merge sorted alignments", \
      merge_args_parse(&o->merge, argc, argv), forecast_merge(&o->merge), bam_merge(&o->merge)) \
    X(fixmate, "fix mate information", /* without --plan */ \
      fixmate_args_parse(&o->fixmate, false, argc, argv), forecast_sort(&o->common), bam_fixmate(&o->fixmate)) \
    X(markdup, "mark duplicates", \
      markdup_args_parse(&o->markdup, false, argc, argv), forecast_markdup(&o->markdup), bam_markdup(&o->markdup)) \
    X(sormadup, "fix mates, sort and mark duplicates at once", \
      sormadup_args_parse(&o->sormadup, argc, argv), forecast_sormadup(&o->sormadup), bam_sormadup(&o->sormadup)) \
    X(stats, "generate stats (former bamcheck)", \
      stats_args_parse(&o->stats, argc, argv), forecast_sort(&o->common), bam_stats(&o->stats)) \
    X(flagstat, "simple stats", \
      flagstat_args_parse(&o->stats, argc, argv), forecast_sort(&o->common), bam_stats(&o->stats)) \
    X(idxstats, "BAM index stats", \
      idxstats_args_parse(&o->stats, argc, argv), forecast_sort(&o->common), bam_stats(&o->stats)) \
    X(coverage, "alignment depth and percent coverage", \
      coverage_args_parse(&o->stats, argc, argv), forecast_sort(&o->common), bam_stats(&o->stats))

#define FUNCTIONS(name, summary, parses, foretells, runs) \
    static enum engine_args_result name##_parse(union command_opts *o, int argc, char **argv) { return parses; } \
    static struct forecast name##_foretell(const union command_opts *o) { return foretells; } \
    static int name##_run(const union command_opts *o) { return runs; }
COMMANDS(FUNCTIONS)

struct command {
    const char *name, *summary;
    const struct engine_command *args;
    enum engine_args_result (*parse)(union command_opts *opts, int argc, char **argv);
    struct forecast (*foretell)(const union command_opts *opts);
    int (*run)(const union command_opts *opts);  /* returns the exit status */
};

#define ROW(name, summary, ...) {#name, summary, &name##_command, name##_parse, name##_foretell, name##_run},
static const struct command commands[] = {COMMANDS(ROW)};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

const struct command *commands_find(const char *name)
{
    for (size_t i = 0; name && i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

const char *commands_meant(const char *word)
{
    static const char *const others[] = {"bgzip", "report", "help", "version"};
    const size_t n = strlen(word);
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (typo_is_of(word, n, commands[i].name))
            return commands[i].name;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (typo_is_of(word, n, others[i]))
            return others[i];
    return NULL;
}

void commands_usage(const struct command *command, FILE *to)
{
    engine_args_help(command->args, to);
}

void commands_words(const char *name, FILE *to)
{
    const struct command *command = commands_find(name);
    if (command)
        option_table_words(command->args->options, to);
    for (size_t i = 0; !name && i < N_COMMANDS; i++)
        fprintf(to, "%s\t\t%s\n", commands[i].name, commands[i].summary);
}

static int run(const struct command *command, const union command_opts *opts)
{
    const struct engine_opts *o = &opts->common;
    return o->check ? sort_check(o) : o->plan ? sort_plan(o, command->foretell(opts)) : command->run(opts);
}

/* Runs upstream samtools. getopt_long() reorders the words of the command line, so `words` has them in their original
 * order. */
static int hand_on(char **words)
{
    struct affinity bound;
    affinity_unbind(&bound);
    return upstream_exec(words);
}

int commands_run(const struct command *command, int argc, char **argv)
{
    union command_opts opts;
    int status = EXIT_FAILURE;
    char **words = calloc((size_t)argc + 1, sizeof *words);
    if (words)
        memcpy(words, argv, (size_t)argc * sizeof *words);
    signal(SIGXFSZ, SIG_IGN);  /* exceeding a file size limit (ulimit -f) becomes an error like a full disk */
    enum engine_args_result parsed = command->parse(&opts, argc, argv);
    if (parsed == ENGINE_ARGS_RUN && runtime_env_warning())
        message_warning("%s", runtime_env_warning());
    if (parsed == ENGINE_ARGS_DONE)
        status = EXIT_SUCCESS;
    else if (parsed == ENGINE_ARGS_HAND_ON && words)
        status = hand_on(words);
    else if (parsed == ENGINE_ARGS_RUN && paths_check(&opts.common) == 0)
        status = run(command, &opts);
    engine_args_free(&opts.common);
    free(words);
    return status;
}

/* -------------------------------------------------------- help and versions */

/* The commands that samtools also has. */
#define AS_SAMTOOLS "`sort`, `collate`, `merge`, `fixmate`, `markdup`, `stats`, `flagstat`, `idxstats` and `coverage`"

/* The first lines have the form of samtools' own, because pipelines look for the line with "Version". There must be
 * only one such line, so the version of the next samtools on PATH is not shown. */
static void print_head(FILE *to)
{
    fprintf(to,
            "\n"
            "Program: samtools (Tools for alignments in the SAM format)\n"
            "Version: " SAMTOOLS_VERSION " (using htslib %s)\n"
            "\n"
            "Usage:   samtools <command> [options]\n"
            "\n"
            "This is samtools-omp %s. It runs " AS_SAMTOOLS ", as samtools "
            SAMTOOLS_VERSION " does,\n"
            "on every core: see `samtools sort --help`. `samtools sormadup` does fixmate, sort and markdup at once.\n"
            "`samtools-omp --env` puts it first on PATH.\n", hts_version(), version_omp());
}

/* The rows of commands that are in no table; mark: five characters before each name. */
#define BGZIP_AND_REPORT(mark) \
    mark "bgzip          compress files in blocks, or decompress them\n" \
    mark "report         compare two reports\n"

static void print_ours(FILE *to)
{
    fputs("\nCommands:\n", to);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(to, "     %-14s %s\n", commands[i].name, commands[i].summary);
    fputs(BGZIP_AND_REPORT("     ")
          "     help [cmd]     display this help message or help for [cmd]\n"
          "     version        detailed version information\n"
          "\n", to);
}

static void print_how_to_get_one(FILE *to)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM");
    fputs("All other commands (view, index, depth ...) need upstream samtools. ", to);
    if (chosen && *chosen)
        fprintf(to, "SAMTOOLS_UPSTREAM\nnames it, but %s cannot be run. Correct or unset it.\n", chosen);
    else
        fputs("There is none on PATH.\n"
              "Install one (apt install samtools; conda install -c bioconda samtools) in a folder that comes after\n"
              "this program's on PATH, or set SAMTOOLS_UPSTREAM to its path.\n", to);
}

struct listing {
    FILE *to;
    const char *path;            /* path of the program that prints its commands */
};

/* Returns whether a line of the list describes one of our commands. */
static bool describes_our_command(const char *line)
{
    char name[32];
    return strncmp(line, "    ", 4) == 0 && sscanf(line, "%31s", name) == 1 && commands_find(name);
}

/* Copies the list of commands; its title names the program that runs them, and a star precedes those that we run. */
static bool copy_commands(void *arg, FILE *from)
{
    const struct listing *l = arg;
    char *line = NULL, version[32] = "";
    size_t size = 0;
    bool found = false;
    while (getline(&line, &size, from) >= 0) {
        if (found && describes_our_command(line)) {
            fprintf(l->to, "   *%s", line + 4);
        } else if (found) {
            fputs(line, l->to);
        } else if (strncmp(line, "Commands:", strlen("Commands:")) == 0) {
            fprintf(l->to, "\nCommands (* run by samtools-omp, all others run by %s%s%s):\n",
                    l->path, *version ? ", version " : "", version);
            found = true;
        } else {
            sscanf(line, "Version: %31s", version);
        }
    }
    free(line);
    return found;
}

static void print_theirs(FILE *to, char *path)
{
    char help[] = "help", *argv[] = {path, help, NULL};
    struct listing listing = {to, path};
    if (upstream_read(path, argv, copy_commands, &listing)) {
        fputs("  -- Only in samtools-omp\n"
              "   * sormadup       fix mates, sort and mark duplicates at once\n" BGZIP_AND_REPORT("   * ") "\n", to);
        return;
    }
    print_ours(to);
    fprintf(to, "All other commands are run by %s: see its own help.\n", path);
}

void commands_print(FILE *to)
{
    char *path = upstream_find();
    print_head(to);
    if (path) {
        print_theirs(to, path);
    } else {
        print_ours(to);
        print_how_to_get_one(to);
    }
    free(path);
}

/* Prints the program that runs all other commands, and its version. The word "samtools" may be in the first line only,
 * so the folder is printed instead of the path; if the folder contains the word, --help names the program. */
static void print_other(FILE *to)
{
    static const char name[] = "/samtools";
    char *path = upstream_find(), *version = path ? upstream_version(path) : NULL;
    size_t n = path ? strlen(path) : 0, m = sizeof name - 1;
    if (n > m && strcmp(path + n - m, name) == 0)
        path[n - m] = 0;
    if (!path)
        fputs("Other commands: none, --help says what to do\n", to);
    else if (strstr(path, name + 1))
        fprintf(to, "Other commands: %s, --help names their program\n", version ? version : "version unknown");
    else
        fprintf(to, "Other commands: %s %s\n", path, version ? version : "(version unknown)");
    free(version);
    free(path);
}

/* Pipelines extract the version from this text with sed, grep, head and awk (test_version.py has their lines). Some
 * join all lines and keep the text after the last "samtools "; others keep each line with "samtools" in it. So the
 * word, in lower case, is in the first line only. */
void commands_version(FILE *to)
{
    fprintf(to,
            "samtools " SAMTOOLS_VERSION "\n"
            "Using htslib %s\n"
            "Samtools-omp %s runs " AS_SAMTOOLS " in place of that version.\n",
            hts_version(), version_omp());
    print_other(to);
    if (!cram_settings_version(htslib_version()))
        fputs("CRAM is written as version 3.0: 3.1, the default of " SAMTOOLS_VERSION ", takes htslib 1.18 or later.\n",
              to);
}

void commands_version_only(FILE *to)
{
    fprintf(to, SAMTOOLS_VERSION "+htslib-%s\n", hts_version());
}
