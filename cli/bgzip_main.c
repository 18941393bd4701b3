/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts.h>
#include "base/runtime_env.h"
#include "base/version.h"
#include "bgzip/bgzip.h"
#include "bgzip/bgzip_opts.h"
#include "bgzip/bgzip_say.h"
#include "cli/bgzip_main.h"
#include "cli/thread_count.h"
#include "codec/bgzf_block.h"

enum { OPT_BINARY = 256, OPT_VERSION };

/* DONE: help or the version was printed; MISTAKE: a mistake was reported. */
enum bgzip_args_result { BGZIP_ARGS_RUN, BGZIP_ARGS_DONE, BGZIP_ARGS_MISTAKE };

static const char short_options[] = ":b:cdfghiI:kl:o:rs:t@:";
static const struct option long_options[] = {
    {"offset", required_argument, NULL, 'b'},
    {"stdout", no_argument, NULL, 'c'},
    {"decompress", no_argument, NULL, 'd'},
    {"force", no_argument, NULL, 'f'},
    {"rebgzip", no_argument, NULL, 'g'},
    {"help", no_argument, NULL, 'h'},
    {"index", no_argument, NULL, 'i'},
    {"index-name", required_argument, NULL, 'I'},
    {"keep", no_argument, NULL, 'k'},
    {"compress-level", required_argument, NULL, 'l'},
    {"output", required_argument, NULL, 'o'},
    {"reindex", no_argument, NULL, 'r'},
    {"size", required_argument, NULL, 's'},
    {"test", no_argument, NULL, 't'},
    {"threads", required_argument, NULL, '@'},
    {"binary", no_argument, NULL, OPT_BINARY},
    {"version", no_argument, NULL, OPT_VERSION},
    {0},
};

void bgzip_main_words(FILE *to)
{
    for (const struct option *o = long_options; o->name; o++) {
        const char *value = !o->has_arg ? "" : o->val == '@' ? "INT|auto" : strchr("bls", o->val) ? "INT" : "FILE";
        if (o->val < OPT_BINARY)
            fprintf(to, "-%c\t%s\t%s\n", o->val, value, o->name);
        fprintf(to, "--%s\t%s\t\n", o->name, value);
    }
}

/* Scripts look for htslib's "Version:" here, and for the first two lines of print_version(), joined or not. */
static void print_usage(FILE *to)
{
    fputs("\n"
          "Version: " SAMTOOLS_VERSION "\n"
          "Usage:   bgzip-omp [options] [file ...]     (or: samtools-omp bgzip ...)\n"
          "\n"
          "Compresses files to FILE.gz in blocks (BGZF), or decompresses them, on as many threads as -@ gives.\n"
          "Without files, standard input to standard output.\n"
          "\n"
          "  -b, --offset INT           decompress to standard output from this byte of the data on, by the index\n"
          "      --binary               blocks end anywhere; else those of text end with a line, those of BAM\n"
          "                             with a record\n"
          "  -c, --stdout               write to standard output, keep the input\n"
          "  -d, --decompress           decompress\n"
          "  -f, --force                overwrite files, or remove unknown extensions; twice: both\n"
          "  -g, --rebgzip              begin blocks where the index of -I does\n"
          "  -h, --help                 this help\n"
          "  -i, --index                also make an index: FILE.gz.gzi, or the file of -I (with -o: OUT.gzi)\n"
          "  -I, --index-name FILE      name of the index\n"
          "  -k, --keep                 keep the input\n"
          "  -l, --compress-level INT   0 (stored) to 9 (smallest), or -1 [-1]\n"
          "  -o, --output FILE          write to this file, which may exist; keep the input\n"
          "  -r, --reindex              make the index of a compressed file\n"
          "  -s, --size INT             decompress this many bytes to standard output, from -b on\n"
          "  -t, --test                 test compressed files\n"
          "  -@, --threads INT|auto     threads in all; auto: all CPUs of the job [OMP_NUM_THREADS if set, else 1]\n"
          "      --version              versions\n", to);
}

static void print_version(void)
{
    printf("bgzip (htslib) " SAMTOOLS_VERSION "\n"
           "Copyright (C) 2026 the samtools-omp authors\n"
           "This is samtools-omp %s, which takes its place\n"
           "Using htslib %s\n", version_omp(), hts_version());
}

/* A number of digits only, or "-1" if that is the least. */
static int parse_number(const char *option, const char *text, long long least, long long most, long long *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    bool begins = (*text >= '0' && *text <= '9') || *text == '-';
    if (begins && !*end && !errno && *number >= least && *number <= most)
        return 0;
    return bgzip_say("%s needs a number from %lld to %lld, not '%s'. See bgzip-omp --help", option, least, most, text);
}

static int parse_value(struct bgzip_opts *o, int c)
{
    long long n = 0;
    switch (c) {
    case 'b': case 's':
        o->ranged = true;
        if (parse_number(c == 'b' ? "-b (--offset)" : "-s (--size)", optarg, 0, INT64_MAX, &n) < 0)
            return -1;
        *(c == 'b' ? &o->offset : &o->size) = (uint64_t)n;
        return 0;
    case 'l':
        if (parse_number("-l (--compress-level)", optarg, BGZF_LEVEL_DEFAULT, BGZF_LEVEL_MAX, &n) < 0)
            return -1;
        o->level = (int)n;
        return 0;
    default:
        if (strcmp(optarg, "auto") != 0
            && parse_number("-@ (--threads)", optarg, 0, RUNTIME_ENV_THREADS_MAX, &n) < 0)
            return -1;
        return thread_count_parse(optarg, 0, &o->n_threads);
    }
}

static enum bgzip_args_result parse_one(struct bgzip_opts *o, int c)
{
    switch (c) {
    case 'c': o->to_stdout = true; break;
    case 'd':                                    /* with -t or -r it has no effect, in any position */
        if (o->mode == BGZIP_COMPRESS)
            o->mode = BGZIP_DECOMPRESS;
        break;
    case 'f': o->force++; break;
    case 'g': o->rebgzip = true; break;
    case 'i': o->index = true; break;
    case 'I': o->index_name = optarg; break;
    case 'k': o->keep = true; break;
    case 'o': o->output = optarg; break;
    case 'r': o->mode = BGZIP_REINDEX; break;
    case 't': o->mode = BGZIP_TEST; break;
    case OPT_BINARY: o->binary = true; break;
    case 'b': case 's': case 'l': case '@':
        return parse_value(o, c) < 0 ? BGZIP_ARGS_MISTAKE : BGZIP_ARGS_RUN;
    case 'h':
        print_usage(stdout);
        return BGZIP_ARGS_DONE;
    case OPT_VERSION:
        print_version();
        return BGZIP_ARGS_DONE;
    default:
        return BGZIP_ARGS_MISTAKE;
    }
    return BGZIP_ARGS_RUN;
}

/* Several indexes: one for each file, if there are several. */
static bool makes_indexes(const struct bgzip_opts *o, bool compresses)
{
    return o->mode == BGZIP_REINDEX || (compresses && o->index && !o->output);
}

/* "-o -" is -c. -1: a mistake. */
static int settle_output(struct bgzip_opts *o)
{
    if (o->output && o->to_stdout)
        return bgzip_say("-c writes to standard output, and -o to %s: give one of them", o->output);
    if (!o->output || strcmp(o->output, "-") != 0)
        return 0;
    o->output = NULL;
    o->to_stdout = true;
    return 0;
}

/* Checks options that contradict each other, and those that have no effect with the others. -1: a mistake. */
static int settle(struct bgzip_opts *o)
{
    bool compresses = o->mode == BGZIP_COMPRESS && !o->ranged;
    if (settle_output(o) < 0)
        return -1;
    if (o->ranged && (o->mode == BGZIP_TEST || o->mode == BGZIP_REINDEX))
        return bgzip_say("-b and -s decompress; they cannot be combined with -t and -r");
    if (o->rebgzip && !compresses)
        return bgzip_say("-g is for compressing");
    if (o->rebgzip && o->index)
        return bgzip_say("-g follows an index and writes none: it cannot be combined with -i");
    if (makes_indexes(o, compresses) && o->index_name && o->n_files > 1)
        return bgzip_say("-I names one index, but there are %zu files", o->n_files);
    if (o->ranged)
        o->mode = BGZIP_DECOMPRESS;
    if (o->ranged && !o->output)
        o->to_stdout = true;
    bool uses_index = o->mode == BGZIP_REINDEX || o->ranged || (compresses && (o->index || o->rebgzip));
    if ((o->index || o->index_name) && !uses_index)
        bgzip_say("warning: %s has no effect here%s", o->index ? "-i" : "-I", compresses ? " without -i or -g" : "");
    return 0;
}

/* Returns whether BGZF would be read from a terminal, or written to one. */
static bool is_for_nobody(const struct bgzip_opts *o)
{
    bool writes = o->mode == BGZIP_COMPRESS && !o->output;
    return o->n_files == 0 && (isatty(STDIN_FILENO) || (writes && isatty(STDOUT_FILENO)));
}

/* word: the last one that getopt has read. */
static int bad_option(int c, const char *word)
{
    if (c == ':')
        return bgzip_say("option %s needs a value. See bgzip-omp --help", word);
    if (optopt > 0 && optopt < OPT_BINARY && !strchr(short_options, optopt))
        return bgzip_say("there is no option -%c. See bgzip-omp --help", optopt);
    return bgzip_say("there is no option %s, or it takes no value. See bgzip-omp --help", word);
}

static enum bgzip_args_result parse(struct bgzip_opts *o, int argc, char **argv)
{
    int c;
    *o = (struct bgzip_opts){.level = BGZF_LEVEL_DEFAULT, .size = UINT64_MAX, .n_threads = runtime_env_threads()};
    optind = 1;
    opterr = 0;
    while ((c = getopt_long(argc, argv, short_options, long_options, NULL)) >= 0) {
        if (c == ':' || c == '?')
            bad_option(c, argv[optind - 1]);
        enum bgzip_args_result result = parse_one(o, c);
        if (result != BGZIP_ARGS_RUN)
            return result;
    }
    o->files = argv + optind;
    o->n_files = (size_t)(argc - optind);
    const char *wrong = thread_count_settle(&o->n_threads);
    if (wrong)
        bgzip_say(THREAD_COUNT_WRONG, wrong);
    if (wrong || settle(o) < 0)
        return BGZIP_ARGS_MISTAKE;
    if (!is_for_nobody(o))
        return BGZIP_ARGS_RUN;
    print_usage(stderr);
    return BGZIP_ARGS_MISTAKE;
}

bool bgzip_main_is_name(const char *argv0)
{
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL, *name = slash ? slash + 1 : argv0;
    return name && (strcmp(name, "bgzip-omp") == 0 || strcmp(name, "bgzip") == 0);
}

int bgzip_main(int argc, char **argv)
{
    struct bgzip_opts opts;
    signal(SIGXFSZ, SIG_IGN);  /* exceeding a file size limit (ulimit -f) becomes an error like a full disk */
    enum bgzip_args_result parsed = parse(&opts, argc, argv);
    if (parsed == BGZIP_ARGS_RUN && runtime_env_warning())
        bgzip_say("warning: %s", runtime_env_warning());
    if (parsed == BGZIP_ARGS_RUN)
        return bgzip(&opts);
    return parsed == BGZIP_ARGS_DONE && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
