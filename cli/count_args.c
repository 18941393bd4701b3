/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/message.h"
#include "cli/count_args.h"
#include "cli/engine_options.h"
#include "cli/stats_options.h"
#include "stats/coverage.h"
#include "stats/flagstat.h"
#include "stats/idxstats.h"
#include "stats/stats_counter.h"
#include "stats/stats_settings.h"

/* Settings of the counters of a command that writes records, and the words that the settings of stats refer to. */
struct counter_settings {
    struct flagstat_settings flagstat;
    struct idxstats_settings idxstats;
    struct coverage_settings coverage;
    struct stats_settings stats;
    char *words[OPTION_WORDS_MOST + 2];
    char text[];                 /* text of the words */
};

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

/* Reads the options of stats: n_words, after which the name of the output stands, as on the command line of stats. */
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
    bool has_operands = optind < n_words;
    count_args_add(&args->o->out, args->counted[COUNTER_stats], stats_counter(&s->stats));
    forget_operands(operands);
    if (parsed == ENGINE_ARGS_RUN && stats_options_settle(&s->stats, s->words + 1, n_words, 0) < 0)
        parsed = ENGINE_ARGS_ERROR;
    message_set_command(args->command->name);
    if (parsed != ENGINE_ARGS_RUN)
        return -1;
    if (has_operands)
        return message_mistake("--stats-args: '%s' has words that are not options of samtools stats", args->stats_args);
    return s->stats.targets_path && !is_sorted
         ? message_mistake("--stats-args: -t needs coordinate order. Run samtools stats on the output") : 0;
}

/* Adds the counter of stats, whose options are split into words. */
static int add_stats(struct engine_args *args, struct counter_settings *s)
{
    struct engine_opts *o = args->o;
    const char *path = o->out.path;
    char *to = s->text;
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
    s->words[n] = strcpy(to, path);
    return count_stats(args, s, n);
}

static int add(struct engine_args *args, enum counter_number number, struct counter counter)
{
    count_args_add(&args->o->out, args->counted[number], counter);
    return 0;
}

static int add_flagstat(struct engine_args *args, struct counter_settings *s)
{
    return add(args, COUNTER_flagstat, flagstat_counter(&s->flagstat));
}

static int add_idxstats(struct engine_args *args, struct counter_settings *s)
{
    const struct output_request *out = &args->o->out;
    bool as_index = out->format.format == bam && args->write_index;
    s->idxstats = (struct idxstats_settings){.as_index = as_index, .any_order = true, .path = out->path};
    return add(args, COUNTER_idxstats, idxstats_counter(&s->idxstats));
}

static int add_coverage(struct engine_args *args, struct counter_settings *s)
{
    if (args->o->order.by != SORT_COORDINATE && !args->command->keeps_order)
        return message_mistake("--coverage needs coordinate order");
    s->coverage = coverage_settings_default();
    s->coverage.no_quals = args->o->out.format.format == cram;
    return add(args, COUNTER_coverage, coverage_counter(&s->coverage));
}

/* The functions that add the counters of the output, with settings that fit to it. -1: a mistake, which is reported. */
#define ADDS(name) [COUNTER_##name] = add_##name,
static int (*const adds[COUNTERS])(struct engine_args *, struct counter_settings *) = {COUNTER_LIST(ADDS)};

/* The results are the same as when the commands read the written file, with its index if there is one. */
int count_args_settle(struct engine_args *args)
{
    struct output_request *out = &args->o->out;
    struct counter_settings *s = NULL;
    if (args->stats_args && !args->counted[COUNTER_stats])
        return message_mistake("--stats-args needs --stats FILE");
    if (!args->stats_args)
        args->stats_args = "";
    size_t text = sizeof "stats" + 2 * strlen(args->stats_args) + strlen(out->path) + 3;
    for (int i = 0; i < COUNTERS; i++) {
        if (!args->counted[i])
            continue;
        if (args->o->check)
            return message_mistake("--check writes nothing, so there are no written records to count");
        if (!s && !(s = out->counter_settings = calloc(1, sizeof *s + text)))
            return engine_args_no_memory();
        if (adds[i](args, s) < 0)
            return -1;
    }
    return 0;
}
