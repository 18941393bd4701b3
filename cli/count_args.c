/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/message.h"
#include "cli/count_args.h"
#include "cli/engine_options.h"
#include "cli/stats_options.h"
#include "stats/stats_counter.h"

struct counter_settings *count_args_open(struct output_request *out, size_t n_words, size_t text)
{
    out->counter_settings = calloc(1, sizeof(struct counter_settings) + n_words * sizeof(char *) + text);
    return out->counter_settings;
}

void count_args_add(struct output_request *out, const char *file, struct counter counter)
{
    out->counted[out->n_counters] = file;
    out->counters[out->n_counters++] = counter;
}

void count_args_free(struct output_request *out)
{
    for (size_t i = 0; i < out->n_counters; i++)
        if (out->counters[i].end)
            out->counters[i].end(out->counters[i].settings);
    free(out->counter_settings);
}

/* Makes getopt_long() forget the positions of the operands that it has found. */
static void forget_operands(int index)
{
    static const struct option no_options[] = {{NULL, 0, NULL, 0}};
    char none[] = "", *words[] = {none, NULL};
    optind = 0;
    getopt_long(1, words, "", no_options, NULL);
    optind = index;
}

static int count_stats(struct engine_args *args, struct counter_settings *s, int n_words)
{
    bool is_sorted = args->o->order.by == SORT_COORDINATE && !args->command->keeps_order;
    struct engine_args words = {.command = &stats_words_command, .o = args->o, .own = &s->stats};
    int operands = optind;                       /* operands of the command, which reads them later */
    s->stats = stats_settings_default();
    s->stats.sorted = is_sorted;
    s->stats.input = args->o->out.path;
    message_set_command("stats");
    enum engine_args_result parsed = engine_args_options(&words, n_words, s->words);
    int n_operands = n_words - optind;
    count_args_add(&args->o->out, args->stats, stats_counter(&s->stats));
    forget_operands(operands);
    if (parsed == ENGINE_ARGS_RUN && stats_options_settle(&s->stats, s->words + 1, n_words - 1, 0) < 0)
        parsed = ENGINE_ARGS_ERROR;
    message_set_command(args->command->name);
    if (parsed != ENGINE_ARGS_RUN)
        return -1;
    if (n_operands != 1)
        return message_mistake("--stats-args: '%s' has words that are not options of samtools stats", args->stats_args);
    return s->stats.targets_path && !is_sorted
         ? message_mistake("--stats-args: -t needs coordinate order. Run samtools stats on the output") : 0;
}

/* Splits the options of samtools stats for the output into words. */
static int split_stats(struct engine_args *args, struct counter_settings *s, char *to)
{
    struct engine_opts *o = args->o;
    const char *path = o->out.path;
    int n = 0;
    s->words[n++] = s->words[1] = strcpy(to, "stats");   /* the program and the command */
    n++;
    to += strlen(to) + 1;
    if (option_split(args->stats_args, s->words, &n, OPTION_WORDS_MOST, &to) < 0)
        return -1;
    const char **values = realloc(o->values, (o->n_values + (size_t)n) * sizeof *values);
    if (!values)
        return engine_args_no_memory();
    o->values = values;
    s->words[n++] = strcpy(to, path);
    return count_stats(args, s, n);
}

/* The results are the same as when the commands read the written file, with its index if there is one. */
int count_args_settle(struct engine_args *args)
{
    struct output_request *out = &args->o->out;
    const char *given = args->stats_args ? args->stats_args : "";
    if (args->stats_args && !args->stats)
        return message_mistake("--stats-args needs --stats FILE");
    if (!args->stats && !args->flagstat && !args->idxstats && !args->coverage)
        return 0;
    if (args->o->check)
        return message_mistake("--stats, --flagstat, --idxstats and --coverage count written records, but "
                               "--check writes nothing");
    size_t text = sizeof "stats" + 2 * strlen(given) + strlen(out->path) + 3;
    struct counter_settings *s = count_args_open(out, OPTION_WORDS_MOST + 2, text);
    if (!s)
        return engine_args_no_memory();
    if (args->coverage && args->o->order.by != SORT_COORDINATE && !args->command->keeps_order)
        return message_mistake("--coverage needs coordinate order");
    args->stats_args = given;
    s->coverage = coverage_settings_default();
    s->coverage.no_quals = out->format.format == cram;
    s->idxstats = (struct idxstats_settings){
        .as_index = out->format.format == bam && args->write_index, .any_order = true, .path = out->path};
    if (args->stats && split_stats(args, s, (char *)(s->words + OPTION_WORDS_MOST + 2)) < 0)
        return -1;
    if (args->flagstat)
        count_args_add(out, args->flagstat, flagstat_counter(&s->flagstat));
    if (args->idxstats)
        count_args_add(out, args->idxstats, idxstats_counter(&s->idxstats));
    if (args->coverage)
        count_args_add(out, args->coverage, coverage_counter(&s->coverage));
    return 0;
}
