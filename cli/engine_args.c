/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <htslib/hts.h>
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "base/input_name.h"
#include "base/memory_shares.h"
#include "base/message.h"
#include "base/out_file.h"
#include "base/runtime_env.h"
#include "cli/count_args.h"
#include "cli/engine_args.h"
#include "cli/memory_size.h"
#include "cli/option_words.h"
#include "cli/sort_settings.h"
#include "cli/thread_count.h"
#include "codec/bgzf_block.h"
#include "write/cram_settings.h"

#define MIB ((uint64_t)1 << 20)

enum { MEMORY_PER_THREAD_MIB = 768 };

int engine_args_no_memory(void)
{
    return message_error("out of memory");
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcasecmp(text + n - m, suffix) == 0;
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
        message_warning("%s: %d is too much, %d is taken", name, *value, high);
    *value = *value < low ? low : *value > high ? high : *value;
    return 0;
}

/* ------------------------------------------------------- options, one by one */

/* htslib before 1.17 does not know these by name. Returns the format's name without ".gz". */
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

static int parse_format(struct engine_args *args, const char *text)
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

int engine_args_output(struct engine_args *args, const char *name)
{
    char **path = &args->o->out.path;
    free(*path);
    return (*path = strdup(input_name_local(name))) ? 0 : engine_args_no_memory();
}

static int parse_checksum(struct engine_args *args, const char *text)
{
    static const char samtools[] = "samtools:";
    struct output_request *out = &args->o->out;
    if (strcmp(text, "samtools") == 0)
        return message_mistake("--checksum=samtools needs a file: --checksum=samtools:FILE");
    out->checksum_samtools = strncmp(text, samtools, sizeof samtools - 1) == 0;
    out->checksum = out->checksum_samtools ? text + sizeof samtools - 1 : text;
    return option_words_check_file("--checksum", out->checksum, args->apart);
}

static int parse_trace(struct engine_args *args, const char *file)
{
    args->o->report.trace_file = file;
    return option_words_check_file("--trace", file, args->apart);
}

static int parse_report(struct engine_args *args, const char *file)
{
    struct report_request *report = &args->o->report;
    report->file = file;
    report->format = file && has_suffix(file, ".json") ? REPORT_JSON
                   : file && has_suffix(file, ".html") ? REPORT_HTML : REPORT_TEXT;
    return file ? 0 : option_words_check_next("--report", args->next);
}

static int parse_plan(struct engine_args *args, const char *text)
{
    args->o->plan = text ? PLAN_JSON : PLAN_TEXT;
    if (!text)
        return option_words_check_next("--plan", args->next);
    return strcmp(text, "json") == 0 ? 0 : message_mistake("--plan can be json, not '%s'", text);
}

static int add_input(struct engine_opts *o, const char *name)
{
    char *path = o->in.paths[o->in.n++] = input_name_file(name);
    if (!path)
        return engine_args_no_memory();
    return strcmp(path, "-") == 0 ? message_mistake("--add-input needs a file, not standard input") : 0;
}

enum engine_option engine_args_no_index(const struct engine_args *args)
{
    if (!args->is_step)
        message_warning("--write-index makes no index, as in samtools: the output is not sorted by coordinate");
    return args->is_step ? ENGINE_OPTION_COMMON : ENGINE_OPTION_TAKEN;
}

static int parse_threads(struct engine_args *args, const char *text)
{
    enum thread_count_result result = thread_count_parse(text, args->command->more_threads, &args->o->n_threads);
    if (result == THREAD_COUNT_TOO_MANY)
        message_warning("-@ (--threads): %s is too much, %d is taken", text, RUNTIME_ENV_THREADS_MAX);
    return result < 0 ? message_mistake("-@ (--threads) needs a number, or auto, not '%s'", text) : 0;
}

/* Of those of the command line, or of OMP_NUM_THREADS. */
static int settle_threads(struct engine_args *args)
{
    const char *wrong = thread_count_settle(&args->o->n_threads);
    args->o->report.more_threads = args->command->more_threads;
    return wrong ? message_mistake(THREAD_COUNT_WRONG, wrong) : 0;
}

static int take_common(struct engine_args *args, int c)
{
    struct engine_opts *o = args->o;
    switch (c) {
    case 'o': return engine_args_output(args, optarg);
    case 'u': args->level = 0; return 0;
    case 'l':
        if (parse_int(optarg, &args->level) < 0)
            return message_mistake("Invalid compression level: %s", optarg);
        return 0;
    case 'T': o->temp_prefixes[o->n_temp_prefixes++] = optarg; return 0;
    case 'm': return memory_size_per_thread(optarg, &args->per_thread);
    case '@': return parse_threads(args, optarg);
    case OPT_TOTAL_MEMORY: return memory_size_total("--total-memory", optarg, &args->total);
    case OPT_SIZE_HINT:
        return memory_size_parse(optarg, &o->size_hint) < 0
             ? message_mistake("--size-hint needs a size such as 300G, not '%s'", optarg) : 0;
    case OPT_ADD_INPUT: return add_input(o, optarg);
    case OPT_TMPDIR_ENV: args->tmpdir_env = true; return 0;
    case OPT_NO_PG: o->out.no_pg = true; return 0;
    case OPT_WRITE_INDEX:
        args->write_index = true;
        args->index_format = optarg;
        return optarg ? 0 : option_words_check_next("--write-index", args->next);
    case OPT_VERIFY: o->out.verify = true; return 0;
    case OPT_CHECKSUM: return parse_checksum(args, optarg);
    case OPT_PLAN: return parse_plan(args, optarg);
    case OPT_REPORT: return parse_report(args, optarg);
    case OPT_TRACE: return parse_trace(args, optarg);
    case OPT_STATS:
        args->counts.stats = optarg;
        return option_words_check_file("--stats", optarg, args->apart);
    case OPT_STATS_ARGS: args->counts.stats_args = optarg; return 0;
    case OPT_FLAGSTAT:
        args->counts.flagstat = optarg;
        return option_words_check_file("--flagstat", optarg, args->apart);
    case OPT_IDXSTATS:
        args->counts.idxstats = optarg;
        return option_words_check_file("--idxstats", optarg, args->apart);
    case OPT_PROGRESS: o->progress = PROGRESS_ALWAYS; return 0;
    case OPT_NO_PROGRESS: o->progress = PROGRESS_NEVER; return 0;
    case OPT_REFERENCE: o->in.reference = o->out.reference = input_name_local(optarg); return 0;
    case OPT_INPUT_OPTION:
        return hts_opt_add(&o->in.format_options, optarg) < 0
             ? message_mistake("unknown --input-fmt-option: '%s'", optarg) : 0;
    case 'O':
    case OPT_OUTPUT_FMT: return parse_format(args, optarg);
    case OPT_OUTPUT_OPTION:
        return hts_opt_add((hts_opt **)&o->out.format.specific, optarg) < 0
             ? message_mistake("unknown --output-fmt-option: '%s'", optarg) : 0;
    default:                     /* OPT_VERBOSITY */
        return engine_args_count("--verbosity", optarg, 0, INT_MAX, &hts_verbose);
    }
}

/* The words of the command on one line: a newline would end @PG, as a tab, which htslib replaces, would end CL. */
static char *join(int argc, char **argv)
{
    char *line = stringify_argv(argc, argv);
    for (char *c = line; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    return line;
}

/* ----------------------------------------------------------- the whole line */

enum { OPTION_MISTAKE = -2 };

/* Options whose value is a file that is written, or a place for files. */
static bool writes(int c)
{
    return c == 'o' || c == 'T' || c == 'f' || c == OPT_CHECKSUM || c == OPT_REPORT || c == OPT_TRACE
        || c == OPT_STATS || c == OPT_FLAGSTAT || c == OPT_IDXSTATS;
}

static struct option_words words_of(const struct engine_command *command)
{
    return (struct option_words){command->name, command->short_options, command->long_options, command->beyond};
}

/* As getopt_long(), of the whole line. OPTION_MISTAKE: told. */
static int next_option(struct engine_args *args, int argc, char **argv)
{
    const struct option_words known = words_of(args->command);
    struct engine_opts *o = args->o;
    if (option_words_check_dash(&known, argc - optind, argv + optind) < 0)
        return OPTION_MISTAKE;
    int c = getopt_long(argc, argv, known.short_options,
                        option_words_list(&known, argc - optind, argv + optind), NULL);
    if (c < 0)
        return c;
    if (c == '?' || c == ':') {
        option_words_refuse(&known, c, argv[optind - 1]);
        return OPTION_MISTAKE;
    }
    args->apart = optarg && optarg == argv[optind - 1];
    args->next = optind < argc ? argv[optind] : NULL;
    if (optarg && !writes(c))
        o->values[o->n_values++] = optarg;
    return c;
}

static enum engine_args_result refuse_in_step(const struct engine_command *command, int c)
{
    const struct option_words known = words_of(command);
    return option_words_refuse_in_step(&known, c);
}

enum engine_args_result engine_args_read(struct engine_args *args, const struct engine_command *command,
                                         struct engine_opts *o, int argc, char **argv)
{
    void *own = args->own;
    *args = (struct engine_args){.command = command, .o = o, .own = own, .is_step = args->is_step,
                                 .level = command->level};
    *o = (struct engine_opts){.n_threads = runtime_env_threads(), .order = command->order};
    message_set_command(command->name);
    o->out.command_line = join(argc, argv);
    o->out.path = strdup("-");
    o->in.paths = calloc((size_t)argc, sizeof *o->in.paths);     /* fewer inputs than words */
    o->temp_prefixes = calloc((size_t)argc, sizeof *o->temp_prefixes);
    o->values = calloc((size_t)argc, sizeof *o->values);
    if (!o->out.command_line || !o->out.path || !o->in.paths || !o->temp_prefixes || !o->values)
        return engine_args_no_memory();
    o->in.n = 1;                                 /* the operand, which comes last */
    bool hand_on = false;
    optind = 2;
    opterr = 0;
    for (int c; (c = next_option(args, argc, argv)) != -1;) {
        if (c == OPTION_MISTAKE)
            return ENGINE_ARGS_ERROR;
        enum engine_option taken = command->take(args, c);
        if (taken == ENGINE_OPTION_COMMON && args->is_step)
            return refuse_in_step(command, c);
        if (taken == ENGINE_OPTION_COMMON && (c == 'h' || c == OPT_HELP)) {
            fputs(command->usage, stdout);
            return ENGINE_ARGS_DONE;
        }
        if (taken == ENGINE_OPTION_MISTAKE || (taken == ENGINE_OPTION_COMMON && take_common(args, c) < 0))
            return ENGINE_ARGS_ERROR;
        hand_on = hand_on || taken == ENGINE_OPTION_HANDED_ON;
    }
    if (args->is_step && optind < argc)
        return message_mistake("a step of sormadup takes options only, no files");
    if (hand_on)
        return ENGINE_ARGS_HAND_ON;
    return !args->is_step && settle_threads(args) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}

/* Text is compressed if the name says so, whatever the format. */
static void settle_format(struct engine_args *args)
{
    struct output_request *out = &args->o->out;
    char mode[16] = "";
    bool named = sam_open_mode(mode, out->path, NULL) == 0;
    if (!args->format_given) {
        out->format.category = sequence_data;
        out->format.format = !named || strchr(mode, 'b') ? bam : strchr(mode, 'c') ? cram
                           : strchr(mode, 'f') ? fastq_format : strchr(mode, 'F') ? fasta_format : sam;
    }
    if (named && strchr(mode, 'z') && out->format.format != bam && out->format.format != cram)
        out->format.compression = bgzf;
    out->level = args->level;
    int level = -1;
    for (const hts_opt *opt = out->format.specific; opt; opt = opt->next)
        if (opt->opt == HTS_OPT_COMPRESSION_LEVEL)
            level = opt->val.i;
    if (level >= 0) {
        out->level = level;
        if (out->format.format == sam)
            out->format.compression = bgzf;
    }
    if (out->level > BGZF_LEVEL_MAX)
        out->level = BGZF_LEVEL_MAX;
    if (out->level < 0)
        out->level = BGZF_LEVEL_DEFAULT;
}

/* samtools can write to some; what it writes to one that breaks is lost. */
static int refuse_url(const char *path)
{
    if (!path || !input_name_is_url(path))
        return 0;
    return message_mistake("%s cannot be written: URLs are for input. Use -o FILE, or | and a program that sends it "
                           "there", path);
}

/* Cuts FILE##idx##INDEX in two; the index's name, or NULL. */
static const char *split_index_name(char *path)
{
    char *mark = strstr(path, HTS_IDX_DELIM);
    if (!mark)
        return NULL;
    *mark = 0;
    return input_name_local(mark + strlen(HTS_IDX_DELIM));
}

int engine_args_settle_output(struct engine_args *args)
{
    args->index_name = split_index_name(args->o->out.path);
    settle_format(args);
    if (args->o->out.format.format == cram && cram_settings_clash(args->o->out.format.specific))
        return message_mistake("no_ref=1 and embed_ref=1 exclude each other: without references there is none to "
                               "embed");
    args->counts.writes_index = args->write_index;
    args->counts.keeps_order = args->command->keeps_order;
    return refuse_url(args->o->out.path) < 0 || refuse_url(args->index_name) < 0 ? -1
         : count_args_settle(args->o, &args->counts);
}

int engine_args_settle_files(struct engine_args *args, int n, char **operands)
{
    if (n < 2)
        return message_mistake("two files are needed: input and output; - is standard input or output");
    if (n > 2)
        return message_mistake("only two files are taken, input and output; options come before them");
    if (!(args->o->in.paths[0] = input_name_file(operands[0])))
        return engine_args_no_memory();
    return engine_args_output(args, operands[1]) < 0 ? -1 : engine_args_settle_output(args);
}

int engine_args_settle_index(const struct engine_args *args)
{
    struct output_request *out = &args->o->out;
    enum htsExactFormat format = out->format.format;
    const char *name = args->index_name;
    if (!args->write_index)
        return 0;
    if (strcmp(out->path, "-") == 0 && !name)
        return message_mistake("--write-index needs an output file (-o), to name the index after");
    if (format != bam && format != cram && !(format == sam && out->format.compression == bgzf))
        return message_mistake("--write-index needs BAM, CRAM or SAM.gz output: other files cannot be indexed");
    const char *wanted = args->index_format ? args->index_format
                       : name && has_suffix(name, ".bai") ? "bai" : "csi";
    if (strcmp(wanted, "bai") != 0 && strcmp(wanted, "csi") != 0)
        return message_mistake("--write-index can be bai or csi, not '%s'", wanted);
    out->index_format = format == cram ? HTS_FMT_CRAI : wanted[0] == 'b' ? HTS_FMT_BAI : HTS_FMT_CSI;
    if (format == cram)
        wanted = "crai";
    if (name ? !(out->index = strdup(name)) : asprintf(&out->index, "%s.%s", out->path, wanted) < 0)
        return engine_args_no_memory();
    return 0;
}

/* n times `each` bytes, if nothing else is said. */
static int settle_memory(struct engine_args *args, uint64_t n, uint64_t each)
{
    struct engine_opts *o = args->o;
    if (!args->total && !args->per_thread && sort_settings_memory(&args->total) < 0)
        return -1;
    o->memory_beside = args->total ? 0 : MEMORY_BESIDE;
    o->memory = args->total ? args->total : each > UINT64_MAX / n ? UINT64_MAX : each * n;
    return 0;
}

int engine_args_settle_memory(struct engine_args *args)
{
    struct engine_opts *o = args->o;
    uint64_t each = args->per_thread ? args->per_thread : MEMORY_PER_THREAD_MIB * MIB;
    int result = settle_memory(args, (uint64_t)o->n_threads, each);
    o->report.memory = o->memory;
    return result;
}

int engine_args_settle_memory_at_once(struct engine_args *args)
{
    static const uint64_t EACH = 4 * MIB;        /* for each input and each thread */
    struct engine_opts *o = args->o;
    int result = settle_memory(args, o->in.n + (uint64_t)o->n_threads, EACH);
    o->report.memory = o->memory + o->memory_beside;
    return result;
}

static int add_temp(struct engine_opts *o, const char *begin, const char *middle, const char *end)
{
    if (asprintf(&o->default_prefix, "%s%s%s", begin, middle, end) < 0)
        return engine_args_no_memory();
    o->temp_prefixes[o->n_temp_prefixes++] = o->default_prefix;
    return 0;
}

int engine_args_settle_temp(struct engine_args *args, const char *elsewhere)
{
    struct engine_opts *o = args->o;
    const char *path = o->out.path, *tmpdir = getenv("TMPDIR");
    if (o->n_temp_prefixes)
        return 0;
    if (args->tmpdir_env)
        return !tmpdir || !*tmpdir ? message_mistake("--tmpdir-env: TMPDIR is not set")
             : add_temp(o, tmpdir, "/samtools-", args->command->name);
    if (sort_settings_temp(o) < 0)
        return -1;
    if (o->n_temp_prefixes)
        return 0;
    bool beside = strcmp(path, "-") != 0 && (strncmp(path, "/dev/", 5) != 0 || out_file_replaces(path))
               && out_file_can_add_beside(path);
    return add_temp(o, beside ? path : elsewhere, beside ? ".tmp" : "", "");
}

void engine_args_settle_report(struct engine_opts *o)
{
    struct report_request *report = &o->report;
    if (!o->check && !o->plan && !report->format)
        sort_settings_report(report);
    report->inputs = o->in.paths;
    report->n_inputs = o->in.n;
    report->output = o->out.path;
    report->temp_prefix = o->temp_prefixes[0];
    report->command_line = o->out.command_line;
}

void engine_args_free(struct engine_opts *o)
{
    hts_opt_free(o->in.format_options);
    hts_opt_free(o->out.format.specific);
    for (size_t i = 0; i < o->in.n; i++)
        free(o->in.paths[i]);
    for (size_t i = 0; o->in.indexes && i < o->in.n; i++)
        free(o->in.indexes[i]);
    free(o->in.indexes);
    free(o->in.paths);
    free(o->temp_prefixes);
    free(o->values);
    free(o->default_prefix);
    free(o->words);
    free(o->out.path);
    free(o->out.index);
    count_args_free(&o->out);
    free(o->out.command_line);
}
