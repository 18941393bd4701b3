/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <htslib/hts.h>
#include "bgzf_block.h"
#include "sort_opts.h"

#define MIB ((uint64_t)1 << 20)

enum {
    MEMORY_PER_THREAD_MIB = 768,
    THREADS_MAX = 4096,
    /* Long options without a letter. */
    OPT_NO_PG = 256, OPT_VERBOSITY, OPT_HELP, OPT_LATER,
};

static const char short_options[] = "l:um:@:o:O:T:hnNt:MI:K:w:RHf";

static const struct option long_options[] = {
    {"threads", required_argument, NULL, '@'},
    {"output-fmt", required_argument, NULL, 'O'},
    {"no-PG", no_argument, NULL, OPT_NO_PG},
    {"verbosity", required_argument, NULL, OPT_VERBOSITY},
    {"help", no_argument, NULL, OPT_HELP},
    {"template-coordinate", no_argument, NULL, OPT_LATER},
    {"write-index", no_argument, NULL, OPT_LATER},
    {"reference", required_argument, NULL, OPT_LATER},
    {"input-fmt", required_argument, NULL, OPT_LATER},
    {"input-fmt-option", required_argument, NULL, OPT_LATER},
    {"output-fmt-option", required_argument, NULL, OPT_LATER},
    {NULL, 0, NULL, 0},
};

void sort_opts_usage(FILE *to)
{
    fputs("Usage: samtools sort [options...] [in.bam]\n"
          "Sorts a BAM file by coordinate, on as many threads as -@ gives.\n"
          "\n"
          "  -@, --threads INT       threads in all [OMP_NUM_THREADS if set, else 1]\n"
          "  -m SIZE                 memory per thread; suffixes K M G T, decimals allowed [768M]\n"
          "  -l INT                  compression level, 0 (none) to 9 (smallest)\n"
          "  -u                      no compression, as -l 0\n"
          "  -o FILE                 write to FILE instead of standard output\n"
          "  -O, --output-fmt bam    output format\n"
          "  -T PREFIX               place for temporary files [beside the output]\n"
          "      --no-PG             add no @PG line to the header\n"
          "      --verbosity INT     below 3: no warnings; below 1: no errors\n"
          "  -h, --help              print this text\n"
          "\n"
          "The data must fit into SIZE x threads. The input is replaced safely by -o in.bam in.bam.\n", to);
}

static int fail_usage(const char *message, const char *what)
{
    fprintf(stderr, "[bam_sort] %s%s\n", message, what ? what : "");
    sort_opts_usage(stderr);
    return -1;
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

static uint64_t suffix_factor(char suffix)
{
    switch (tolower((unsigned char)suffix)) {
    case 'k': return (uint64_t)1 << 10;
    case 'm': return (uint64_t)1 << 20;
    case 'g': return (uint64_t)1 << 30;
    case 't': return (uint64_t)1 << 40;
    default:  return 1;
    }
}

/* A size as samtools reads it (any base strtol knows, one suffix, the rest
 * ignored), and decimals. */
static int parse_size(const char *text, uint64_t *size)
{
    char *end;
    errno = 0;
    double value = (double)strtoull(text, &end, 0);
    if (*end == '.')
        value = strtod(text, &end);
    if (end == text || errno || strchr(text, '-'))
        return -1;
    value *= (double)suffix_factor(*end);
    if (value >= (double)((uint64_t)1 << 62))
        return -1;
    *size = (uint64_t)value;
    return 0;
}

static int parse_memory(const char *text, uint64_t *per_thread)
{
    if (parse_size(text, per_thread) < 0)
        return fail_usage("-m needs a size such as 768M or 1.5G, not ", text);
    if (*per_thread >= MIB)
        return 0;
    fprintf(stderr, "[bam_sort] -m %s is less than the minimum of 1M per thread.\n"
            "Sizes without a suffix are bytes: say -m %sM for megabytes or -m %sG for gigabytes.\n",
            text, text, text);
    return -1;
}

static int not_yet(const char *what)
{
    fprintf(stderr, "[bam_sort] %s is not supported yet by samtools-omp " SAMTOOLS_OMP_VERSION
            "; set SAMTOOLS_UPSTREAM aside and call upstream samtools for it\n", what);
    return -1;
}

static int check_format(const char *format)
{
    size_t n = strcspn(format, ",");
    if (n == 3 && strncasecmp(format, "bam", n) == 0 && !format[n])
        return 0;
    return not_yet(format);
}

/* Without -O the extension of -o chooses the format, as in samtools. */
static int check_extension(const char *path)
{
    static const char *const later[] = {".sam", ".sam.gz", ".cram", ".fq", ".fastq", ".fa", ".fasta"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        size_t m = strlen(later[i]);
        if (n > m && strcasecmp(path + n - m, later[i]) == 0)
            return not_yet(later[i] + 1);
    }
    return strstr(path, "##idx##") ? not_yet("##idx##") : 0;
}

static int parse_one(struct sort_opts *o, int c, const char **format, uint64_t *per_thread, char **argv)
{
    int value;
    switch (c) {
    case 'u': o->level = 0; return 0;
    case 'o': o->out = optarg; return 0;
    case 'O': *format = optarg; return 0;
    case 'T': o->temp_prefix = optarg; return 0;
    case 'm': return parse_memory(optarg, per_thread);
    case 'l':
        if (parse_int(optarg, &o->level) < 0)
            return fail_usage("Invalid compression level: ", optarg);
        if (o->level < 0)
            o->level = BGZF_LEVEL_DEFAULT;
        return 0;
    case '@':
        if (parse_int(optarg, &value) < 0 || value > THREADS_MAX)
            return fail_usage("-@ needs a number of threads, not ", optarg);
        o->n_threads = value < 1 ? 1 : value;
        return 0;
    case OPT_NO_PG: o->no_pg = true; return 0;
    case OPT_VERBOSITY:
        if (parse_int(optarg, &value) < 0)
            return fail_usage("--verbosity needs a number, not ", optarg);
        hts_verbose = value;
        return 0;
    case '?': sort_opts_usage(stderr); return -1;
    case 'f': return fail_usage("-f is no option of samtools sort any more; use -o", NULL);
    default:  return not_yet(argv[optind - 1]);
    }
}

static int default_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    int n = text ? atoi(text) : 1;               /* a list "4,2": its first number */
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

/* The words of the command, tabs made blanks: a tab would end the CL field. */
static char *join(int argc, char **argv)
{
    size_t size = 1;
    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *line = malloc(size), *p = line;
    for (int i = 0; line && i < argc; i++) {
        if (i > 0)
            *p++ = ' ';
        for (const char *c = argv[i]; *c; c++)
            *p++ = *c == '\t' || *c == '\n' ? ' ' : *c;
    }
    if (line)
        *p = 0;
    return line;
}

static enum sort_opts_result check_operands(struct sort_opts *o, int n, char **operands)
{
    if (n > 1) {
        fail_usage("Use -T PREFIX / -o FILE to specify temporary and final output files", NULL);
        return SORT_OPTS_ERROR;
    }
    if (n == 0 && isatty(STDIN_FILENO)) {
        sort_opts_usage(stdout);
        return SORT_OPTS_DONE;
    }
    o->in = n ? operands[0] : "-";
    return SORT_OPTS_RUN;
}

enum sort_opts_result sort_opts_parse(struct sort_opts *o, int argc, char **argv)
{
    const char *format = NULL;
    uint64_t per_thread = MEMORY_PER_THREAD_MIB * MIB;
    *o = (struct sort_opts){.out = "-", .level = BGZF_LEVEL_DEFAULT, .n_threads = default_threads()};
    o->command_line = join(argc, argv);
    if (!o->command_line)
        return SORT_OPTS_ERROR;
    optind = 2;
    for (int c; (c = getopt_long(argc, argv, short_options, long_options, NULL)) >= 0;) {
        if (c == 'h' || c == OPT_HELP) {
            sort_opts_usage(stdout);
            return SORT_OPTS_DONE;
        }
        if (parse_one(o, c, &format, &per_thread, argv) < 0)
            return SORT_OPTS_ERROR;
    }
    if ((format ? check_format(format) : check_extension(o->out)) < 0)
        return SORT_OPTS_ERROR;
    if (o->level > BGZF_LEVEL_MAX)
        o->level = BGZF_LEVEL_MAX;
    o->memory = per_thread > UINT64_MAX / (uint64_t)o->n_threads ? UINT64_MAX
              : per_thread * (uint64_t)o->n_threads;
    return check_operands(o, argc - optind, argv + optind);
}

void sort_opts_free(struct sort_opts *o)
{
    free(o->command_line);
}
