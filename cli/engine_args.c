/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hts.h>
#include <htslib/sam.h>
#include "base/ascii.h"
#include "base/input_name.h"
#include "base/memory_shares.h"
#include "base/message.h"
#include "base/out_file.h"
#include "base/runtime_env.h"
#include "cli/count_args.h"
#include "cli/engine_args.h"
#include "cli/memory_size.h"
#include "cli/thread_count.h"
#include "codec/bgzf_block.h"
#include "hts/cram_settings.h"

#define MIB ((uint64_t)1 << 20)

enum { MEMORY_PER_THREAD_MIB = 768 };

/* Settles the number of threads, from the command line or from OMP_NUM_THREADS. */
static int settle_threads(struct engine_args *args)
{
    const char *wrong = thread_count_settle(&args->o->n_threads);
    args->o->report.more_threads = args->command->more_threads;
    return wrong ? message_mistake(THREAD_COUNT_WRONG, wrong) : 0;
}

/* Joins the words of the command in one line: a newline would end @PG, and a tab, which htslib replaces, would end
 * CL. */
static char *join(int argc, char **argv)
{
    char *line = stringify_argv(argc, argv);
    for (char *c = line; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    return line;
}

/* The last level=N of a format, which is the one that counts, or NULL. */
static const hts_opt *last_level(const htsFormat *format)
{
    const hts_opt *level = NULL;
    for (const hts_opt *opt = format->specific; opt; opt = opt->next)
        level = opt->opt == HTS_OPT_COMPRESSION_LEVEL ? opt : level;
    return level;
}

/* -------------------------------------------------------- the complete line */

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
    o->in.paths = calloc((size_t)argc, sizeof *o->in.paths);     /* there are fewer inputs than words */
    o->temp_prefixes = calloc((size_t)argc, sizeof *o->temp_prefixes);
    o->values = calloc((size_t)argc, sizeof *o->values);
    if (!o->out.command_line || !o->out.path || !o->in.paths || !o->temp_prefixes || !o->values)
        return engine_args_no_memory();
    o->in.n = 1;                                 /* the operand comes last */
    enum engine_args_result result = engine_args_options(args, argc, argv);
    if (result == ENGINE_ARGS_ERROR || result == ENGINE_ARGS_DONE)
        return result;
    if (o->out.format.format == sam && last_level(&o->out.format))
        o->out.format.compression = bgzf;        /* as in samtools, if -O names SAM; not if the output's name does */
    if (args->is_step && optind < argc)
        return message_mistake("a step of sormadup takes only options, no files");
    if (result == ENGINE_ARGS_RUN && !args->is_step && settle_threads(args) < 0)
        return ENGINE_ARGS_ERROR;
    return result;
}

void engine_args_settle_order(struct engine_args *args)
{
    struct sort_order *order = &args->o->order;
    if (order->by == SORT_NAME_NATURAL && args->ascii)
        order->by = SORT_NAME_ASCII;
    if (!args->by_tag)
        return;
    if (args->many_tags)                         /* as in samtools; in sort(1), a second -k has another meaning */
        message_warning("-t is given several times: only the last one is used, -t %.2s", order->tag);
    /* samtools accepts it, too */
    if (!ascii_is_letter((unsigned char)order->tag[0]) || !ascii_is_alnum((unsigned char)order->tag[1]))
        message_warning("-t '%.2s' is not a valid tag (a letter, then a letter or digit): no record should have it",
                        order->tag);
    bool named = order->by == SORT_NAME_NATURAL || order->by == SORT_NAME_ASCII || order->by == SORT_NAME_PICARD;
    order->then = named ? order->by : SORT_COORDINATE;
    order->by = SORT_TAG;
}

/* Settles the format and level of the output. Text of any format is compressed if the name has such an ending
 * (.sam.gz). */
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
    const hts_opt *level = last_level(&out->format);
    if (level && level->val.i >= 0)
        out->level = level->val.i;
    if (out->level > BGZF_LEVEL_MAX)
        out->level = BGZF_LEVEL_MAX;
    if (out->level < 0)
        out->level = BGZF_LEVEL_DEFAULT;
}

/* Refuses a URL, because the output is lost if the connection breaks. samtools can write to some URLs. -1: refused,
 * which is reported. */
static int refuse_url(const char *path)
{
    if (!path || !input_name_is_url(path))
        return 0;
    return message_mistake("%s cannot be written: URLs are for input. Use -o FILE, or | and a program that sends it "
                           "there", path);
}

/* Cuts FILE##idx##INDEX in two. Returns the index's name, or NULL. */
static const char *split_index_name(char *path)
{
    size_t n;
    const char *index = input_name_index(path, &n);
    path[n] = 0;
    return index ? input_name_local(index) : NULL;
}

int engine_args_settle_output(struct engine_args *args)
{
    args->index_name = split_index_name(args->o->out.path);
    settle_format(args);
    if (args->o->out.format.format == cram && cram_settings_clash(args->o->out.format.specific))
        return message_mistake("no_ref=1 and embed_ref=1 exclude each other: without references there is none to "
                               "embed");
    return refuse_url(args->o->out.path) < 0 || refuse_url(args->index_name) < 0 ? -1
         : count_args_settle(args);
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
                       : name && option_ends_with(name, ".bai") ? "bai" : "csi";
    if (strcmp(wanted, "bai") != 0 && strcmp(wanted, "csi") != 0)
        return message_mistake("--write-index can be bai or csi, not '%s'", wanted);
    out->index_format = format == cram ? HTS_FMT_CRAI : wanted[0] == 'b' ? HTS_FMT_BAI : HTS_FMT_CSI;
    if (format == cram)
        wanted = "crai";
    if (name ? !(out->index = strdup(name)) : asprintf(&out->index, "%s.%s", out->path, wanted) < 0)
        return engine_args_no_memory();
    return 0;
}

/* ------------------------------------- settings in the environment, so that scripts need no change */

/* Returns the variable's value. NULL: it is not set, or is empty, because scripts clear a variable that way. */
static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* Returns the error if no file can be made in the directory; 0: a file can be made. */
static int fault_of(const char *directory)
{
    struct stat st;
    if (stat(directory, &st) < 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    return access(directory, W_OK | X_OK) < 0 ? errno : 0;
}

/* Reads SAMTOOLS_OMP_TOTAL_MEMORY, like --total-memory; *total is unchanged if it is not set. -1: a mistake, which is
 * reported. */
static int memory_setting(uint64_t *total)
{
    static const char name[] = "SAMTOOLS_OMP_TOTAL_MEMORY";
    const char *text = setting(name);
    return text ? memory_size_total(name, text, total) : 0;
}

static size_t count_colons(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == ':';
    return n;
}

/* Reads SAMTOOLS_OMP_TMPDIR: directories separated by colons, each like one -T. opts has no places yet. -1: one of them
 * is not a directory in which files can be made, which is reported. */
static int temp_setting(struct engine_opts *o)
{
    static const char name[] = "SAMTOOLS_OMP_TMPDIR";
    const char *text = setting(name);
    if (!text)
        return 0;
    const char **places = realloc(o->temp_prefixes, (count_colons(text) + 1) * sizeof *places);
    if (places)
        o->temp_prefixes = places;
    if (!places || !(o->default_prefix = strdup(text)))
        return engine_args_no_memory();
    for (char *rest = o->default_prefix, *place; (place = strsep(&rest, ":"));) {
        int fault = *place ? fault_of(place) : ENOENT;
        if (fault)
            return message_mistake("%s names '%s' as a directory for temporary files: %s. Separate several with ':'",
                                   name, place, strerror(fault));
        o->temp_prefixes[o->n_temp_prefixes++] = place;
    }
    return 0;
}

/* Reads SAMTOOLS_OMP_REPORT: the folder for reports. A sort must not fail because of a report, so a folder that cannot
 * be written causes a warning, and there is no report. */
static void report_setting(struct report_request *report)
{
    static const char name[] = "SAMTOOLS_OMP_REPORT";
    const char *folder = setting(name);
    int fault = folder ? fault_of(folder) : 0;
    if (fault)
        message_warning("%s=%s: %s. There will be no report", name, folder, strerror(fault));
    else if (folder) {
        report->format = REPORT_FOLDER;
        report->folder = folder;
    }
}

/* -------------------------------------------------------- memory, places, reports */

/* Settles the memory: n times `each` bytes by default, and what the program takes in addition. */
static int settle_memory(struct engine_args *args, uint64_t n, uint64_t each)
{
    const uint64_t most = UINT64_MAX - MEMORY_OVERHEAD;
    struct engine_opts *o = args->o;
    if (!args->total && !args->per_thread && memory_setting(&args->total) < 0)
        return -1;
    o->memory_overhead = args->total ? 0 : MEMORY_OVERHEAD;
    o->memory = args->total ? args->total : each > most / n ? most : each * n;
    o->report.memory = o->memory + o->memory_overhead;
    return 0;
}

int engine_args_settle_memory(struct engine_args *args)
{
    uint64_t each = args->per_thread ? args->per_thread : MEMORY_PER_THREAD_MIB * MIB;
    return settle_memory(args, (uint64_t)args->o->n_threads, each);
}

int engine_args_settle_memory_at_once(struct engine_args *args)
{
    static const uint64_t EACH = 4 * MIB;        /* bytes for each input and each thread */
    return settle_memory(args, args->o->in.n + (uint64_t)args->o->n_threads, EACH);
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
    if (temp_setting(o) < 0)
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
        report_setting(report);
    report->inputs = o->in.paths;
    report->n_inputs = o->in.n;
    report->output = o->out.path;
    report->temp_prefix = o->temp_prefixes[0];
    report->command_line = o->out.command_line;
    report->level = o->out.level;
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
