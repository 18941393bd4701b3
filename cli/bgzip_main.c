/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts.h>
#include "base/ascii.h"
#include "base/message.h"
#include "base/runtime_env.h"
#include "base/version.h"
#include "bgzip/bgzip.h"
#include "bgzip/bgzip_opts.h"
#include "cli/bgzip_main.h"
#include "cli/engine_options.h"
#include "cli/thread_count.h"
#include "codec/bgzf_block.h"

/* The command line: the options of bgzip(), and the words that only this file needs. */
struct bgzip_args {
    struct bgzip_opts opts;
    bool version;                /* --version */
};

static struct bgzip_opts *opts_of(struct engine_args *args)
{
    return &((struct bgzip_args *)args->own)->opts;
}

/* Parses a decimal number, which begins with a digit or a minus sign. -1: not a number from least to most, which is
 * reported. */
static int parse_number(const char *option, const char *text, long long least, long long most, long long *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    bool begins = ascii_is_digit(*text) || *text == '-';
    if (begins && !*end && !errno && *number >= least && *number <= most)
        return 0;
    return message_mistake("%s needs a number from %lld to %lld, not '%s'", option, least, most, text);
}

/* -b, -s */
static int take_bytes(struct engine_args *args, const char *text)
{
    long long n;
    opts_of(args)->ranged = true;
    if (parse_number(args->option, text, 0, INT64_MAX, &n) < 0)
        return -1;
    *(uint64_t *)args->target = (uint64_t)n;
    return 0;
}

static int take_level(struct engine_args *args, const char *text)
{
    long long n;
    if (parse_number("-l (--compress-level)", text, BGZF_LEVEL_DEFAULT, BGZF_LEVEL_MAX, &n) < 0)
        return -1;
    opts_of(args)->level = (int)n;
    return 0;
}

static int take_threads(struct engine_args *args, const char *text)
{
    long long n;
    if (strcmp(text, "auto") != 0 && parse_number("-@ (--threads)", text, 0, RUNTIME_ENV_THREADS_MAX, &n) < 0)
        return -1;
    return thread_count_parse(text, 0, &opts_of(args)->n_threads);
}

/* With -t or -r this option has no further effect, wherever it stands. */
static int take_decompress(struct engine_args *args, const char *none)
{
    (void)none;
    if (opts_of(args)->mode == BGZIP_COMPRESS)
        opts_of(args)->mode = BGZIP_DECOMPRESS;
    return 0;
}

static int take_force(struct engine_args *args, const char *none)
{
    (void)none;
    opts_of(args)->force++;
    return 0;
}

#define OWN(member) OPTION_IN(OPTION_OWN, struct bgzip_args, member)

static const struct option_row options[] = {
    OPTION('b', "offset", "INT", TAKES_INTO(take_bytes, OWN(opts.offset)),
           "decompress to standard output from this byte of the data on, by the index"),
    OPTION(0, "binary", NULL, SETS(OWN(opts.binary)),
           "end blocks anywhere; without this, text is cut after a line, and BAM after\na record"),
    OPTION('c', "stdout", NULL, SETS(OWN(opts.to_stdout)), "write to standard output, keep the input"),
    OPTION('d', "decompress", NULL, TAKES(take_decompress), "decompress"),
    OPTION('f', "force", NULL, TAKES(take_force), "overwrite files, or remove unknown extensions; twice: both"),
    OPTION('g', "rebgzip", NULL, SETS(OWN(opts.rebgzip)), "begin blocks where the index of -I does"),
    OPTION('h', "help", NULL, .kind = OPTION_HELP, "this help"),
    OPTION('i', "index", NULL, SETS(OWN(opts.index)),
           "also make an index: FILE.gz.gzi, or the file of -I (with -o: OUT.gzi)"),
    OPTION('I', "index-name", "FILE", TEXT(OWN(opts.index_name)), "name of the index"),
    OPTION('k', "keep", NULL, SETS(OWN(opts.keep)), "keep the input"),
    OPTION('l', "compress-level", "INT", TAKES(take_level), "0 (stored) to 9 (smallest), or -1 [-1]"),
    OPTION('o', "output", "FILE", TEXT(OWN(opts.output)), "write to this file, which may exist; keep the input"),
    OPTION('r', "reindex", NULL, STORES(BGZIP_REINDEX, OWN(opts.mode)), "make the index of a compressed file"),
    OPTION('s', "size", "INT", TAKES_INTO(take_bytes, OWN(opts.size)),
           "decompress this many bytes to standard output, from -b on"),
    OPTION('t', "test", NULL, STORES(BGZIP_TEST, OWN(opts.mode)), "test compressed files"),
    OPTION('@', "threads", "INT|auto", TAKES(take_threads),
           "threads in all; auto: all CPUs of the job [OMP_NUM_THREADS if set, else 1]"),
    OPTION(0, "version", NULL, SETS(OWN(version)), "versions"),
    OPTION_END,
};

/* Scripts look for htslib's "Version:" here, and for the first two lines of print_version(), joined or not. */
static const struct engine_command bgzip_command = {
    .name = "bgzip",
    .options = options,
    .usage = "\n"
             "Version: " SAMTOOLS_VERSION "\n"
             "Usage:   bgzip-omp [options] [file ...]     (or: samtools-omp bgzip ...)\n"
             "\n"
             "Compresses files to FILE.gz in blocks (BGZF), or decompresses them, on as many threads as -@ gives.\n"
             "Without files, standard input to standard output.\n"
             "\n",
};

void bgzip_main_words(FILE *to)
{
    option_table_words(options, to);
}

static void print_version(void)
{
    printf("bgzip (htslib) " SAMTOOLS_VERSION "\n"
           "Copyright (C) 2026 the samtools-omp authors\n"
           "This is samtools-omp %s, which takes its place\n"
           "Using htslib %s\n", version_omp(), hts_version());
}

/* Returns whether an index is made for each file. */
static bool makes_indexes(const struct bgzip_opts *o, bool compresses)
{
    return o->mode == BGZIP_REINDEX || (compresses && o->index && !o->output);
}

/* Treats "-o -" as -c. -1: -o and -c are both given, which is reported. */
static int settle_output(struct bgzip_opts *o)
{
    if (o->output && o->to_stdout)
        return message_error("-c writes to standard output, and -o to %s: give one of them", o->output);
    if (!o->output || strcmp(o->output, "-") != 0)
        return 0;
    o->output = NULL;
    o->to_stdout = true;
    return 0;
}

/* Checks options that contradict each other, and warns of those that have no effect with the others. -1: a mistake,
 * which is reported. */
static int settle(struct bgzip_opts *o)
{
    bool compresses = o->mode == BGZIP_COMPRESS && !o->ranged;
    if (settle_output(o) < 0)
        return -1;
    if (o->ranged && (o->mode == BGZIP_TEST || o->mode == BGZIP_REINDEX))
        return message_error("-b and -s decompress; they cannot be combined with -t and -r");
    if (o->rebgzip && !compresses)
        return message_error("-g is for compressing");
    if (o->rebgzip && o->index)
        return message_error("-g follows an index and writes none: it cannot be combined with -i");
    if (makes_indexes(o, compresses) && o->index_name && o->n_files > 1)
        return message_error("-I names one index, but there are %zu files", o->n_files);
    if (o->ranged)
        o->mode = BGZIP_DECOMPRESS;
    if (o->ranged && !o->output)
        o->to_stdout = true;
    bool uses_index = o->mode == BGZIP_REINDEX || o->ranged || (compresses && (o->index || o->rebgzip));
    if ((o->index || o->index_name) && !uses_index)
        message_warning("%s has no effect here%s", o->index ? "-i" : "-I", compresses ? " without -i or -g" : "");
    return 0;
}

/* Returns whether no file is named, and a terminal would be read or would get BGZF. */
static bool is_for_nobody(const struct bgzip_opts *o)
{
    bool writes = o->mode == BGZIP_COMPRESS && !o->output;
    return o->n_files == 0 && (isatty(STDIN_FILENO) || (writes && isatty(STDOUT_FILENO)));
}

static enum engine_args_result parse(struct bgzip_args *own, int argc, char **argv)
{
    struct engine_args args = {.command = &bgzip_command, .own = own, .is_program = true};
    struct bgzip_opts *o = &own->opts;
    *o = (struct bgzip_opts){.level = BGZF_LEVEL_DEFAULT, .size = UINT64_MAX, .n_threads = runtime_env_threads()};
    enum engine_args_result result = engine_args_options(&args, argc, argv);
    if (result != ENGINE_ARGS_RUN)
        return result;
    if (own->version) {
        print_version();
        return ENGINE_ARGS_DONE;
    }
    o->files = argv + optind;
    o->n_files = (size_t)(argc - optind);
    const char *wrong = thread_count_settle(&o->n_threads);
    if (wrong)
        message_error(THREAD_COUNT_WRONG, wrong);
    if (wrong || settle(o) < 0)
        return ENGINE_ARGS_ERROR;
    if (!is_for_nobody(o))
        return ENGINE_ARGS_RUN;
    engine_args_help(&bgzip_command, stderr);
    return ENGINE_ARGS_ERROR;
}

bool bgzip_main_is_name(const char *argv0)
{
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL, *name = slash ? slash + 1 : argv0;
    return name && (strcmp(name, "bgzip-omp") == 0 || strcmp(name, "bgzip") == 0);
}

int bgzip_main(int argc, char **argv)
{
    struct bgzip_args args = {.version = false};
    message_set_program(bgzip_command.name);
    signal(SIGXFSZ, SIG_IGN);  /* exceeding a file size limit (ulimit -f) becomes an error like a full disk */
    enum engine_args_result parsed = parse(&args, argc, argv);
    if (parsed == ENGINE_ARGS_RUN && runtime_env_warning())
        message_warning("%s", runtime_env_warning());
    if (parsed == ENGINE_ARGS_RUN)
        return bgzip(&args.opts);
    return parsed == ENGINE_ARGS_DONE && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
