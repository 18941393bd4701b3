/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <htslib/hts.h>
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "base/input_name.h"
#include "base/message.h"
#include "base/runtime_env.h"
#include "cli/engine_options.h"
#include "cli/memory_size.h"
#include "cli/thread_count.h"

int engine_args_no_memory(void)
{
    return message_error("out of memory");
}

static int parse_int(const char *text, int *value)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end || errno || v < INT_MIN || v > INT_MAX)
        return -1;
    *value = (int)v;
    return 0;
}

int engine_args_count(const char *name, const char *text, int low, int high, int *value)
{
    if (parse_int(text, value) < 0)
        return message_mistake("%s needs a number, not '%s'", name, text);
    if (*value > high)
        message_warning("%s: %d is too large; using %d", name, *value, high);
    *value = *value < low ? low : *value > high ? high : *value;
    return 0;
}

/* ------------------------------------------------------------------ output */

/* htslib before 1.17 does not know these formats by name. Returns the format's name without ".gz". */
static const char *zipped_reads(const char *text)
{
    static const char *const name[] = {"fastq", "fasta", "fq", "fa"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        size_t n = strlen(name[i]);
        if (strncasecmp(text, name[i], n) == 0 && strncasecmp(text + n, ".gz", 3) == 0
            && (!text[n + 3] || text[n + 3] == ','))
            return name[i];
    }
    return NULL;
}

static int take_format(struct engine_args *args, const char *text)
{
    htsFormat *format = &args->o->out.format;
    const char *zipped = zipped_reads(text), *options = strchr(text, ',');
    int parsed = hts_parse_format(format, zipped ? zipped : text);
    if (parsed == 0 && zipped && options)
        parsed = hts_parse_opt_list(format, options + 1);
    if (parsed == 0 && zipped)
        format->compression = bgzf;
    bool can_write = format->format == bam || format->format == cram || format->format == sam
                  || format->format == fastq_format || format->format == fasta_format;
    if (parsed < 0 || !can_write)
        return message_mistake("unknown output format: '%s'. Known are bam, cram, sam, sam.gz, fastq and fasta", text);
    args->format_given = true;
    return 0;
}

static int take_hts_option(struct engine_args *args, const char *text)
{
    return hts_opt_add(args->target, text) < 0 ? message_mistake("unknown %s: '%s'", args->option, text) : 0;
}

int engine_args_output(struct engine_args *args, const char *name)
{
    char **path = &args->o->out.path;
    free(*path);
    return (*path = strdup(input_name_local(name))) ? 0 : engine_args_no_memory();
}

static int take_level(struct engine_args *args, const char *text)
{
    return parse_int(text, &args->level) < 0 ? message_mistake("Invalid compression level: %s", text) : 0;
}

static int take_index(struct engine_args *args, const char *format)
{
    args->write_index = true;
    args->index_format = format;
    return 0;
}

static int take_no_index(struct engine_args *args, const char *none)
{
    (void)args, (void)none;
    message_warning("--write-index makes no index, as in samtools: the output is not sorted by coordinate");
    return 0;
}

static int take_checksum(struct engine_args *args, const char *text)
{
    static const char samtools[] = "samtools:";
    struct output_request *out = &args->o->out;
    if (strcmp(text, "samtools") == 0)
        return message_mistake("--checksum=samtools needs a file: --checksum=samtools:FILE");
    out->checksum_samtools = strncmp(text, samtools, sizeof samtools - 1) == 0;
    out->checksum = out->checksum_samtools ? text + sizeof samtools - 1 : text;
    return option_check_file("--checksum", out->checksum, args->apart);
}

/* --stats and the options of other counters */
static int take_counts(struct engine_args *args, const char *file)
{
    *(const char **)args->target = file;
    return option_check_file(args->option, file, args->apart);
}

/* ------------------------------------------------------------------- input */

static int take_reference(struct engine_args *args, const char *name)
{
    args->o->in.reference = args->o->out.reference = input_name_local(name);
    return 0;
}

static int take_input(struct engine_args *args, const char *name)
{
    struct input_request *in = &args->o->in;
    char *path = in->paths[in->n++] = input_name_file(name);
    if (!path)
        return engine_args_no_memory();
    return strcmp(path, "-") == 0 ? message_mistake("--add-input needs a file, not standard input") : 0;
}

static int take_size_hint(struct engine_args *args, const char *text)
{
    return memory_size_parse(text, &args->o->size_hint) < 0
         ? message_mistake("--size-hint needs a size such as 300G, not '%s'", text) : 0;
}

/* ------------------------------------------------------------------- order */

static int take_by_ascii(struct engine_args *args, const char *none)
{
    (void)none;
    args->ascii = true;
    args->o->order.by = SORT_NAME_NATURAL;
    return 0;
}

static int take_by_tag(struct engine_args *args, const char *text)
{
    struct sort_order *order = &args->o->order;
    char tag[sizeof order->tag] = {0};
    if (strlen(text) > sizeof tag)
        message_warning("-t %s: a tag has two characters, so this is -t %.2s, as in samtools", text, text);
    memcpy(tag, text, strnlen(text, sizeof tag));
    args->many_tags |= args->by_tag && memcmp(order->tag, tag, sizeof tag) != 0;
    memcpy(order->tag, tag, sizeof tag);
    args->by_tag = true;
    return 0;
}

/* --------------------------------------------------------------- resources */

static int take_threads(struct engine_args *args, const char *text)
{
    enum thread_count_result result = thread_count_parse(text, args->command->more_threads, &args->o->n_threads);
    if (result == THREAD_COUNT_TOO_MANY)
        message_warning("-@ (--threads): %s is too large; using %d", text, RUNTIME_ENV_THREADS_MAX);
    return result < 0 ? message_mistake("-@ (--threads) needs a number, or auto, not '%s'", text) : 0;
}

static int take_memory(struct engine_args *args, const char *text)
{
    return memory_size_per_thread(text, &args->per_thread);
}

static int take_total_memory(struct engine_args *args, const char *text)
{
    return memory_size_total("--total-memory", text, &args->total);
}

static int take_temp(struct engine_args *args, const char *prefix)
{
    args->o->temp_prefixes[args->o->n_temp_prefixes++] = prefix;
    return 0;
}

static int take_verbosity(struct engine_args *args, const char *text)
{
    (void)args;
    return engine_args_count("--verbosity", text, 0, INT_MAX, &hts_verbose);
}

/* ----------------------------------------------------------------- reports */

static int take_plan(struct engine_args *args, const char *text)
{
    args->o->plan = text ? PLAN_JSON : PLAN_TEXT;
    return !text || strcmp(text, "json") == 0 ? 0 : message_mistake("--plan can be json, not '%s'", text);
}

static int take_report(struct engine_args *args, const char *file)
{
    struct report_request *report = &args->o->report;
    report->file = file;
    report->format = file && option_ends_with(file, ".json") ? REPORT_JSON
                   : file && option_ends_with(file, ".html") ? REPORT_HTML : REPORT_TEXT;
    return 0;
}

static int take_trace(struct engine_args *args, const char *file)
{
    args->o->report.trace_file = file;
    return option_check_file("--trace", file, args->apart);
}

/* ------------------------------------------------------------------- table */

#define OPTS(member) OPTION_IN(OPTION_OPTS, struct engine_opts, member)
#define ARGS(member) OPTION_IN(OPTION_ARGS, struct engine_args, member)
#define COUNTER_ROW(command) \
    [ENGINE_##command] = OPTION_BEYOND(0, #command, "=FILE", \
                                       WRITES_INTO(take_counts, ARGS(counted[COUNTER_##command])), \
                                       "write what `samtools " #command "` prints of the output; - is standard output"),
#define FORMATS "sam, sam.gz, bam, cram, fastq, fasta "

const struct option_row engine_options[] = {
    [ENGINE_OUTPUT] = OPTION('o', NULL, "FILE", WRITES(engine_args_output), "write to FILE instead of standard output"),
    [ENGINE_FORMAT] = OPTION('O', "output-fmt", "FMT[,OPT[=VAL]...]", TAKES(take_format),
                             FORMATS "[by the name of FILE, else bam]"),
    [ENGINE_LONG_FORMAT] = OPTION(0, "output-fmt", "FMT[,OPT[=VAL]...]", TAKES(take_format),
                                  FORMATS "[by the name of FILE, else sam; bam of -O]"),
    [ENGINE_FORMAT_OPTION] = OPTION(0, "output-fmt-option", "OPT[=VAL]",
                                    TAKES_INTO(take_hts_option, OPTS(out.format.specific)), NULL),
    [ENGINE_LEVEL] = OPTION('l', NULL, "INT", TAKES(take_level), "compression level, 0 (none) to 9 (smallest)"),
    [ENGINE_UNCOMPRESSED] = OPTION('u', NULL, NULL, STORES(0, ARGS(level)), "no compression, as -l 0"),
    [ENGINE_WRITE_INDEX] = OPTION(0, "write-index", "[=bai|csi]", TAKES(take_index),
                                  "write an index too (CSI; CRAI for CRAM; FILE##idx##NAME.bai for BAI)"),
    [ENGINE_NO_INDEX] = OPTION(0, "write-index", NULL, TAKES(take_no_index), ""),
    [ENGINE_NO_PG] = OPTION(0, "no-PG", NULL, SETS(OPTS(out.no_pg)), "add no @PG line to the header"),
    [ENGINE_REFERENCE] = OPTION(0, "reference", "FILE", TAKES(take_reference), "FASTA of the references, for CRAM"),
    [ENGINE_INPUT_OPTION] = OPTION(0, "input-fmt-option", "OPT[=VAL]",
                                   TAKES_INTO(take_hts_option, OPTS(in.format_options)), NULL),
    [ENGINE_BY_NAME] = OPTION('n', NULL, NULL, STORES(SORT_NAME_NATURAL, OPTS(order.by)),
                              "by read name, numbers in it by value"),
    [ENGINE_BY_ASCII] = OPTION('N', NULL, NULL, TAKES(take_by_ascii), "by read name, as ASCII text"),
    [ENGINE_BY_TAG] = OPTION('t', NULL, "TAG", TAKES(take_by_tag),
                             "by the value of TAG, then by coordinate (or by name, with -n or -N)"),
    [ENGINE_BY_TEMPLATE] = OPTION(0, "template-coordinate", NULL, STORES(SORT_TEMPLATE, OPTS(order.by)),
                                  "by the coordinates of both ends of the template"),
    [ENGINE_THREADS] = OPTION('@', "threads", "INT|auto", TAKES(take_threads),
                              "threads in all; auto: all CPUs of the job [OMP_NUM_THREADS if set, else 1]"),
    [ENGINE_MORE_THREADS] = OPTION('@', "threads", "INT|auto", TAKES(take_threads),
                                   "threads besides the first one, as in samtools, if it has a CPU; auto:\n"
                                   "all CPUs of the job [OMP_NUM_THREADS in all if set, else 0]"),
    [ENGINE_MEMORY] = OPTION('m', NULL, "SIZE", TAKES(take_memory),
                             "memory per thread; suffixes K M G T, decimals allowed [768M]"),
    [ENGINE_TEMP] = OPTION('T', NULL, "PREFIX", WRITES(take_temp),
                           "place for temporary files [next to the output]; may be repeated"),
    [ENGINE_VERBOSITY] = OPTION(0, "verbosity", "INT", TAKES(take_verbosity), "below 3: no warnings"),
    [ENGINE_HELP] = OPTION_BEYOND('h', "help", NULL, .kind = OPTION_HELP, "print this text"),
    [ENGINE_LONG_HELP] = OPTION_BEYOND(0, "help", NULL, .kind = OPTION_HELP, "print this text"),

    [ENGINE_ADD_INPUT] = OPTION_BEYOND(0, "add-input", "FILE", TAKES(take_input),
                                       "sort the records of FILE with those of in.bam; may be repeated"),
    [ENGINE_CHECKSUM] = OPTION_BEYOND(0, "checksum", "=[samtools:]FILE", WRITES(take_checksum),
                                      "write the number of records and a checksum that is the same in any order;\n"
                                      "samtools:FILE: what `samtools checksum` (1.24) prints of the output;\n"
                                      "- is standard output"),
    COUNTER_LIST(COUNTER_ROW)
    [ENGINE_STATS_ARGS] = OPTION_BEYOND(0, "stats-args", "WORDS", TEXT(ARGS(stats_args)),
                                        "options of samtools stats: '-p -F 0x400'; quotes group words"),
    [ENGINE_COPY_BLOCKS] = OPTION_BEYOND(0, "copy-blocks", NULL, SETS(OPTS(out.copies)),
                                         "BAM that is already in this order is not compressed again"),
    [ENGINE_PLAN] = OPTION_BEYOND(0, "plan", "[=json]", TAKES(take_plan),
                                  "only print the memory and temporary space that this would take"),
    [ENGINE_PROGRESS] = OPTION_BEYOND(0, "progress", NULL, STORES(PROGRESS_ALWAYS, OPTS(progress)),
                                      "log progress [on a terminal only]"),
    [ENGINE_NO_PROGRESS] = OPTION_BEYOND(0, "no-progress", NULL, STORES(PROGRESS_NEVER, OPTS(progress)),
                                         "turn it off"),
    [ENGINE_REPORT] = OPTION_BEYOND(0, "report", "[=FILE]", WRITES(take_report),
                                    "write where the time went, and advice; as JSON or HTML by the name of FILE"),
    [ENGINE_SIZE_HINT] = OPTION_BEYOND(0, "size-hint", "SIZE", TAKES(take_size_hint),
                                       "expected bytes of uncompressed records, if the input is a pipe"),
    [ENGINE_TMPDIR_ENV] = OPTION_BEYOND(0, "tmpdir-env", NULL, SETS(ARGS(tmpdir_env)),
                                        "temporary files in TMPDIR, without -T"),
    [ENGINE_TOTAL_MEMORY] = OPTION_BEYOND(0, "total-memory", "SIZE|N%", TAKES(take_total_memory),
                                          "memory in all, or as a share of what the machine or its cgroup has"),
    [ENGINE_TRACE] = OPTION_BEYOND(0, "trace", "=FILE", WRITES(take_trace),
                                   "the work of each thread over time, for ui.perfetto.dev"),
    [ENGINE_VERIFY] = OPTION_BEYOND(0, "verify", NULL, SETS(OPTS(out.verify)),
                                    "inflate every block of output again, compare it, and check its order"),
};

/* -------------------------------------------------------------- the options */

/* Stores the value of an option in its target. */
static int apply(struct engine_args *args, const struct option_row *row)
{
    switch (row->kind) {
    case OPTION_SETS: *(bool *)args->target = true; return 0;
    case OPTION_CLEARS: *(bool *)args->target = false; return 0;
    case OPTION_TEXT: *(const char **)args->target = optarg; return 0;
    case OPTION_FILE: *(const char **)args->target = input_name_local(optarg); return 0;
    case OPTION_NUMBER:
        return engine_args_count(args->option, optarg ? optarg : "", row->least, row->most, args->target);
    case OPTION_STORES: *(int *)args->target = row->least; return 0;
    default: return row->take(args, optarg);
    }
}

/* Applies one option of the table. by_name: it was given by its long name. RUN: there may be more options. */
static enum engine_args_result take(struct engine_args *args, const struct option_row *of_table, bool by_name)
{
    const struct option_row *row = option_resolved(of_table);
    struct engine_opts *o = args->o;
    char *bases[] = {[OPTION_OPTS] = (char *)o, [OPTION_ARGS] = (char *)args, [OPTION_OWN] = args->own};
    snprintf(args->option, sizeof args->option, "%s%.*s", by_name ? "--" : "-", by_name ? 40 : 1,
             by_name ? row->name : &row->letter);
    args->target = bases[row->base] ? bases[row->base] + row->offset : NULL;
    if (args->is_step && of_table->as)
        return message_mistake("%s is not an option of this step: give it to sormadup itself", args->option);
    if (row->kind == OPTION_HELP) {
        engine_args_help(args->command, stdout);
        return ENGINE_ARGS_DONE;
    }
    if (row->kind == OPTION_HANDED_ON)
        return ENGINE_ARGS_HAND_ON;
    if (optarg && !row->writes && o)
        o->values[o->n_values++] = optarg;
    return apply(args, row) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}

enum engine_args_result engine_args_options(struct engine_args *args, int argc, char **argv)
{
    enum engine_args_result result = ENGINE_ARGS_RUN;
    struct option_table table;
    const struct option_row *row;
    bool by_name;
    int next;
    option_table_open(&table, args->command->name, args->command->options);
    optind = args->is_program ? 1 : 2;
    opterr = 0;
    while ((next = option_table_next(&table, argc, argv, &row, &by_name)) > 0) {
        args->apart = optarg && optarg == argv[optind - 1];
        enum engine_args_result taken = take(args, row, by_name);
        if (taken == ENGINE_ARGS_ERROR || taken == ENGINE_ARGS_DONE)
            return taken;
        if (!optarg && option_check_next(row, optind < argc ? argv[optind] : NULL) < 0)
            return ENGINE_ARGS_ERROR;
        result = taken == ENGINE_ARGS_HAND_ON ? taken : result;
    }
    return next < 0 ? ENGINE_ARGS_ERROR : result;
}

void engine_args_help(const struct engine_command *command, FILE *to)
{
    fputs(command->usage, to);
    option_table_print(command->options, to);
    fputs(command->more ? command->more : "", to);
}
