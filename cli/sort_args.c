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
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "codec/bgzf_block.h"
#include "base/input_name.h"
#include "base/memory_shares.h"
#include "base/message.h"
#include "base/out_file.h"
#include "cli/memory_size.h"
#include "cli/sort_args.h"
#include "cli/sort_settings.h"

#define MIB ((uint64_t)1 << 20)

enum {
    MEMORY_PER_THREAD_MIB = 768,
    THREADS_MAX = 4096,
    KMER_DEFAULT = 20, KMER_MAX = 31, WINDOW_DEFAULT = 100,
    /* Long options without a letter. */
    OPT_NO_PG = 256, OPT_VERBOSITY, OPT_TEMPLATE, OPT_PICARD, OPT_WRITE_INDEX, OPT_REFERENCE,
    OPT_INPUT_FMT, OPT_OUTPUT_FMT, OPT_TOTAL_MEMORY, OPT_CHECK, OPT_ADD_INPUT, OPT_VERIFY, OPT_CHECKSUM,
    OPT_SIZE_HINT, OPT_TMPDIR_ENV, OPT_REPORT, OPT_TRACE, OPT_PROGRESS, OPT_NO_PROGRESS, OPT_PLAN,
};

static const char short_options[] = ":l:um:@:o:O:T:hnNt:MI:K:w:RH";

static const struct option long_options[] = {
    {"threads", required_argument, NULL, '@'},
    {"output-fmt", required_argument, NULL, 'O'},
    {"output-fmt-option", required_argument, NULL, OPT_OUTPUT_FMT},
    {"input-fmt-option", required_argument, NULL, OPT_INPUT_FMT},
    {"reference", required_argument, NULL, OPT_REFERENCE},
    {"write-index", optional_argument, NULL, OPT_WRITE_INDEX},
    {"template-coordinate", no_argument, NULL, OPT_TEMPLATE},
    {"picard", no_argument, NULL, OPT_PICARD},
    {"total-memory", required_argument, NULL, OPT_TOTAL_MEMORY},
    {"add-input", required_argument, NULL, OPT_ADD_INPUT},
    {"check", no_argument, NULL, OPT_CHECK},
    {"checksum", required_argument, NULL, OPT_CHECKSUM},
    {"verify", no_argument, NULL, OPT_VERIFY},
    {"size-hint", required_argument, NULL, OPT_SIZE_HINT},
    {"tmpdir-env", no_argument, NULL, OPT_TMPDIR_ENV},
    {"report", optional_argument, NULL, OPT_REPORT},
    {"plan", optional_argument, NULL, OPT_PLAN},
    {"trace", required_argument, NULL, OPT_TRACE},
    {"progress", no_argument, NULL, OPT_PROGRESS},
    {"no-progress", no_argument, NULL, OPT_NO_PROGRESS},
    {"no-PG", no_argument, NULL, OPT_NO_PG},
    {"verbosity", required_argument, NULL, OPT_VERBOSITY},
    {"help", no_argument, NULL, 'h'},
    /* Abbreviations that samtools knows; options of ours begin like that, too. */
    {"n", no_argument, NULL, OPT_NO_PG},
    {"no", no_argument, NULL, OPT_NO_PG},
    {"no-", no_argument, NULL, OPT_NO_PG},
    {"v", required_argument, NULL, OPT_VERBOSITY},
    {"ve", required_argument, NULL, OPT_VERBOSITY},
    {"ver", required_argument, NULL, OPT_VERBOSITY},
    {"r", required_argument, NULL, OPT_REFERENCE},
    {"re", required_argument, NULL, OPT_REFERENCE},
    {NULL, 0, NULL, 0},
};

/* The command line as far as it was read; what it means together is settled at its end. */
struct parsed {
    struct sort_opts *o;
    int format_given;            /* by -O */
    int level;                   /* of -l, -u */
    uint64_t per_thread;         /* of -m; 0: not given */
    uint64_t total;              /* of --total-memory; 0: not given */
    int ascii;                   /* -N was given: names stay ASCII */
    int by_tag;                  /* -t was given */
    bool many_tags;              /* and so was another tag */
    int tmpdir_env;
    int write_index;
    const char *index_format;    /* of --write-index=...; NULL: by the name */
};

void sort_args_usage(FILE *to)
{
    fputs("Usage: samtools sort [options...] [in.bam]\n"
          "Sorts alignments (SAM, BAM, CRAM) on as many threads as -@ gives.\n"
          "\n"
          "Order (default: by coordinate)\n"
          "  -n                      by read name, numbers in it by value\n"
          "  -N                      by read name, as ASCII text\n"
          "  -t TAG                  by the value of TAG, then by coordinate (or by name, with -n or -N)\n"
          "  -M                      reads without a reference by minimiser\n"
          "  -I FILE                 as -M, by the minimisers' positions in the FASTA FILE\n"
          "  -K INT, -w INT          length of the k-mer [20]; window of -I [100]\n"
          "  -R, -H                  -M without the reverse strand; -M on squashed homopolymers\n"
          "      --template-coordinate\n"
          "                          by the coordinates of both ends of the template\n"
          "Output\n"
          "  -o FILE                 write to FILE instead of standard output\n"
          "  -O, --output-fmt FMT[,OPT[=VAL]...]\n"
          "                          sam, sam.gz, bam, cram, fastq, fasta [by the name of FILE, else bam]\n"
          "      --output-fmt-option OPT[=VAL]\n"
          "  -l INT                  compression level, 0 (none) to 9 (smallest)\n"
          "  -u                      no compression, as -l 0\n"
          "      --write-index       write an index too (CSI; CRAI for CRAM; FILE##idx##NAME.bai for BAI)\n"
          "      --no-PG             add no @PG line to the header\n"
          "Input\n"
          "      --reference FILE    FASTA of the references, for CRAM\n"
          "      --input-fmt-option OPT[=VAL]\n"
          "Resources\n"
          "  -@, --threads INT       threads in all [OMP_NUM_THREADS if set, else 1]\n"
          "  -m SIZE                 memory per thread; suffixes K M G T, decimals allowed [768M]\n"
          "  -T PREFIX               place for temporary files [beside the output]; may be repeated\n"
          "      --verbosity INT     below 3: no warnings\n"
          "  -h, --help              print this text\n"
          "\n"
          "Beyond samtools\n"
          "      --add-input FILE    sort the records of FILE with those of in.bam; may be repeated\n"
          "      --check             only look whether the input is in order; the first offence is an error\n"
          "      --checksum FILE     write the number of records and a checksum that is the same in any order; - too\n"
          "      --checksum samtools:FILE\n"
          "                          write what `samtools checksum` (1.24) prints of the output\n"
          "      --picard            by read name, in Picard's order\n"
          "      --plan[=json]       only tell memory, temporary space, time and threads that the sort would take\n"
          "      --progress, --no-progress\n"
          "                          tell how far it is [on a terminal only]\n"
          "      --report[=FILE]     where the time went, and advice; FILE.json and FILE.html too\n"
          "      --size-hint SIZE    about how many bytes of uncompressed records will come by a pipe\n"
          "      --tmpdir-env        temporary files in TMPDIR, without -T\n"
          "      --total-memory SIZE|N%\n"
          "                          memory in all, or as a share of what the machine or its cgroup has\n"
          "      --trace FILE        what each thread did when, for ui.perfetto.dev\n"
          "      --verify            inflate every block of output again, compare it, and look at its order\n"
          "      --write-index=bai|csi\n"
          "\n"
          "The input is replaced safely by -o in.bam in.bam.\n"
          "Defaults from the environment: SAMTOOLS_OMP_TOTAL_MEMORY, SAMTOOLS_OMP_TMPDIR (DIR:DIR...) and\n"
          "SAMTOOLS_OMP_REPORT (a folder, in which each sort leaves a report).\n", to);
}

static int out_of_memory(void)
{
    return message_error("out of memory");
}

static int has_suffix(const char *text, const char *suffix)
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

static int set_tag(struct parsed *p, const char *text)
{
    struct sort_order *order = &p->o->order;
    char tag[sizeof order->tag] = {0};
    memcpy(tag, text, strnlen(text, sizeof tag));
    p->many_tags |= p->by_tag && memcmp(order->tag, tag, sizeof tag) != 0;
    memcpy(order->tag, tag, sizeof tag);
    p->by_tag = 1;
    return 0;
}

static int parse_count(const char *option, const char *text, int low, int high, int *value)
{
    if (parse_int(text, value) < 0)
        return message_mistake("%s needs a number, not '%s'", option, text);
    *value = *value < low ? low : *value > high ? high : *value;
    return 0;
}

static int parse_order(struct parsed *p, int c)
{
    struct sort_order *order = &p->o->order;
    switch (c) {
    case 'n': order->by = SORT_NAME_NATURAL; return 0;
    case 'N': order->by = SORT_NAME_NATURAL; p->ascii = 1; return 0;
    case OPT_PICARD: order->by = SORT_NAME_PICARD; return 0;
    case OPT_TEMPLATE: order->by = SORT_TEMPLATE; return 0;
    case 'I': order->index_fasta = input_name_local(optarg); /* fall through */
    case 'M': order->by = SORT_MINHASH; return 0;
    case 't': return set_tag(p, optarg);
    case 'K': return parse_count("-K", optarg, 1, KMER_MAX, &order->kmer);
    case 'w': return parse_count("-w", optarg, 1, INT_MAX, &order->window);
    case 'R': order->no_reverse = true; return 0;
    case 'H': order->squash = true; return 0;
    default:  return -1;
    }
}

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

static int parse_format(struct parsed *p, const char *text)
{
    htsFormat *format = &p->o->out.format;
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
    p->format_given = 1;
    return 0;
}

static int add_input(struct sort_opts *o, const char *name)
{
    char *path = o->more[o->n_more++] = input_name_file(name);
    if (!path)
        return out_of_memory();
    return strcmp(path, "-") == 0 ? message_mistake("--add-input needs a file, not standard input") : 0;
}

static int parse_checksum(struct sort_opts *o, const char *text)
{
    static const char samtools[] = "samtools:";
    o->checksum_samtools = strncmp(text, samtools, sizeof samtools - 1) == 0;
    o->checksum = o->checksum_samtools ? text + sizeof samtools - 1 : text;
    return *o->checksum ? 0 : message_mistake("--checksum needs a file");
}

static int parse_plan(struct sort_opts *o, const char *text)
{
    o->plan = text ? PLAN_JSON : PLAN_TEXT;
    return !text || strcmp(text, "json") == 0 ? 0 : message_mistake("--plan can be json, not '%s'", text);
}

static int parse_one(struct parsed *p, int c)
{
    struct sort_opts *o = p->o;
    switch (c) {
    case 'u': p->level = 0; return 0;
    case 'o':
        free(o->out.path);
        o->out.path = strdup(input_name_local(optarg));
        return o->out.path ? 0 : out_of_memory();
    case 'O': return parse_format(p, optarg);
    case 'T': o->temp_prefixes[o->n_temp_prefixes++] = optarg; return 0;
    case 'm': return memory_size_per_thread(optarg, &p->per_thread);
    case 'l':
        if (parse_int(optarg, &p->level) < 0)
            return message_mistake("Invalid compression level: %s", optarg);
        return 0;
    case '@': return parse_count("-@ (--threads)", optarg, 1, THREADS_MAX, &o->n_threads);
    case OPT_TOTAL_MEMORY: return memory_size_total("--total-memory", optarg, &p->total);
    case OPT_NO_PG: o->no_pg = true; return 0;
    case OPT_CHECK: o->check = true; return 0;
    case OPT_VERIFY: o->verify = true; return 0;
    case OPT_CHECKSUM: return parse_checksum(o, optarg);
    case OPT_ADD_INPUT: return add_input(o, optarg);
    case OPT_TMPDIR_ENV: p->tmpdir_env = 1; return 0;
    case OPT_SIZE_HINT:
        return memory_size_parse(optarg, &o->size_hint) < 0
             ? message_mistake("--size-hint needs a size such as 300G, not '%s'", optarg) : 0;
    case OPT_REPORT:
        o->report_file = optarg;
        o->report = optarg && has_suffix(optarg, ".json") ? REPORT_JSON
                  : optarg && has_suffix(optarg, ".html") ? REPORT_HTML : REPORT_TEXT;
        return 0;
    case OPT_PLAN: return parse_plan(o, optarg);
    case OPT_TRACE: o->trace_file = optarg; return 0;
    case OPT_PROGRESS: o->progress = PROGRESS_ALWAYS; return 0;
    case OPT_NO_PROGRESS: o->progress = PROGRESS_NEVER; return 0;
    case OPT_REFERENCE: o->reference = input_name_local(optarg); return 0;
    case OPT_WRITE_INDEX: p->write_index = 1; p->index_format = optarg; return 0;
    case OPT_INPUT_FMT:
        return hts_opt_add((hts_opt **)&o->in_format.specific, optarg) < 0
             ? message_mistake("unknown --input-fmt-option: '%s'", optarg) : 0;
    case OPT_OUTPUT_FMT:
        return hts_opt_add((hts_opt **)&o->out.format.specific, optarg) < 0
             ? message_mistake("unknown --output-fmt-option: '%s'", optarg) : 0;
    case OPT_VERBOSITY:
        return parse_count("--verbosity", optarg, 0, INT_MAX, &hts_verbose);
    default:
        return parse_order(p, c);
    }
}

/* What getopt_long() could not take: c is what it returned, word the last it has looked at. */
static int refuse_option(int c, const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0, starts_one = false;
    size_t n = strcspn(word, "=");
    for (const struct option *o = long_options; is_long && o->name; o++)
        starts_one |= strncmp(o->name, word + 2, n - 2) == 0;
    if (c == ':' && !is_long)
        return message_mistake("option -%c requires an argument", optopt);
    if (c == ':')
        return message_mistake("option %s requires an argument", word);
    if (optopt == 0)
        return message_mistake(starts_one ? "option %s may mean several" : "there is no option %s", word);
    if (optopt >= OPT_NO_PG || strchr(short_options, optopt))
        return message_mistake("option %.*s takes no value", (int)n, word);
    return message_mistake("there is no option -%c", optopt);
}

static int default_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    int n = text ? atoi(text) : 1;               /* a list "4,2": its first number */
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

/* The words of the command on one line: a newline would end @PG, as a tab, which htslib replaces, would end CL. */
static char *join(int argc, char **argv)
{
    char *line = stringify_argv(argc, argv);
    for (char *c = line; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    return line;
}

/* The format by -O, else by the extension of -o, else BAM, as in samtools. */
static void settle_format(struct parsed *p)
{
    struct sort_output *out = &p->o->out;
    char mode[16] = "";
    if (!p->format_given) {
        out->format.category = sequence_data;
        out->format.format = bam;
        if (sam_open_mode(mode, out->path, NULL) == 0 && !strchr(mode, 'b')) {
            out->format.format = strchr(mode, 'c') ? cram : strchr(mode, 'f') ? fastq_format
                               : strchr(mode, 'F') ? fasta_format : sam;
            out->format.compression = strchr(mode, 'z') ? bgzf : no_compression;
        }
    }
    out->level = p->level;
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

static void settle_order(struct parsed *p)
{
    struct sort_order *order = &p->o->order;
    if (order->by == SORT_NAME_NATURAL && p->ascii)
        order->by = SORT_NAME_ASCII;
    if (!p->by_tag)
        return;
    if (p->many_tags)                            /* as in samtools; of sort(1), -k -k means more */
        message_warning("-t is given several times: only the last one counts, -t %.2s", order->tag);
    /* samtools takes it, too. */
    if (!isalpha((unsigned char)order->tag[0]) || !isalnum((unsigned char)order->tag[1]))
        message_warning("-t '%.2s' is no tag, which is a letter and another or a digit: no record should have it",
                        order->tag);
    int named = order->by == SORT_NAME_NATURAL || order->by == SORT_NAME_ASCII || order->by == SORT_NAME_PICARD;
    order->then = named ? order->by : SORT_COORDINATE;
    order->by = SORT_TAG;
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

/* samtools can write to some; what it writes to one that breaks is lost. */
static int refuse_url(const char *path)
{
    if (!path || !input_name_is_url(path))
        return 0;
    return message_mistake("%s cannot be written: URLs are for input. Use -o FILE, or | and a program that sends it "
                           "there", path);
}

static int settle_index(struct parsed *p, const char *name)
{
    struct sort_output *out = &p->o->out;
    enum htsExactFormat format = out->format.format;
    if (!p->write_index)
        return 0;
    if (p->o->order.by != SORT_COORDINATE && p->o->order.by != SORT_MINHASH) {
        message_warning("Ignoring --write-index as it only works for position sorted files.");
        return 0;
    }
    if (strcmp(out->path, "-") == 0 && !name)
        return message_mistake("--write-index needs an output file (-o), to name the index after");
    if (format != bam && format != cram && !(format == sam && out->format.compression == bgzf))
        return message_mistake("--write-index needs BAM, CRAM or SAM.gz output: other files cannot be indexed");
    const char *wanted = p->index_format ? p->index_format : name && has_suffix(name, ".bai") ? "bai" : "csi";
    if (strcmp(wanted, "bai") != 0 && strcmp(wanted, "csi") != 0)
        return message_mistake("--write-index can be bai or csi, not '%s'", wanted);
    out->index_format = format == cram ? HTS_FMT_CRAI : wanted[0] == 'b' ? HTS_FMT_BAI : HTS_FMT_CSI;
    if (format == cram)
        wanted = "crai";
    if (name ? !(out->index = strdup(name)) : asprintf(&out->index, "%s.%s", out->path, wanted) < 0)
        return out_of_memory();
    return 0;
}

/* --total-memory, else -m for each thread, else what the environment says. */
static int settle_memory(struct parsed *p)
{
    uint64_t n = (uint64_t)p->o->n_threads, each = p->per_thread;
    if (!p->total && !each && sort_settings_memory(&p->total) < 0)
        return -1;
    if (!each)
        each = MEMORY_PER_THREAD_MIB * MIB;
    p->o->memory = p->total ? p->total : each > UINT64_MAX / n ? UINT64_MAX : each * n;
    p->o->memory_beside = p->total ? 0 : MEMORY_BESIDE;
    return 0;
}

/* Where temporary files go: -T, else TMPDIR with --tmpdir-env, else where the environment says, else beside the output.
 * They go to the current directory where no file can be made beside the output, or where that is standard output or
 * what somebody has open: /dev/null, /dev/stdout, a shell's >(command). */
static int settle_temp(struct parsed *p)
{
    struct sort_opts *o = p->o;
    const char *tmpdir = getenv("TMPDIR"), *path = o->out.path;
    if (o->n_temp_prefixes)
        return 0;
    if (p->tmpdir_env && (!tmpdir || !*tmpdir))
        return message_mistake("--tmpdir-env: TMPDIR is not set");
    if (!p->tmpdir_env && sort_settings_temp(o) < 0)
        return -1;
    if (o->n_temp_prefixes)
        return 0;
    bool here = strcmp(path, "-") == 0 || (strncmp(path, "/dev/", 5) == 0 && !out_file_replaces(path))
             || !out_file_can_add_beside(path);
    int made = p->tmpdir_env ? asprintf(&o->default_prefix, "%s/samtools-sort", tmpdir)
             : asprintf(&o->default_prefix, "%s.tmp", here ? "samtools-sort" : path);
    if (made < 0)
        return out_of_memory();
    o->temp_prefixes[o->n_temp_prefixes++] = o->default_prefix;
    return 0;
}

static enum sort_args_result check_operands(struct sort_opts *o, int n, char **operands)
{
    if (n > 1)
        return message_mistake("Use -T PREFIX / -o FILE to specify temporary and final output files. Only one input is "
                               "taken (--add-input names more)");
    if (o->check && o->n_more)
        return message_mistake("--check looks at one file: --add-input does not go with it");
    if (o->check && (o->report || o->trace_file))
        return message_mistake("--check writes no --report and no --trace");
    if (o->check && o->plan)
        return message_mistake("--check and --plan do not go together");
    if (n == 0 && isatty(STDIN_FILENO)) {
        sort_args_usage(stdout);
        return SORT_ARGS_DONE;
    }
    o->in = input_name_file(n ? operands[0] : "-");
    return o->in ? SORT_ARGS_RUN : out_of_memory();
}

enum sort_args_result sort_args_parse(struct sort_opts *o, int argc, char **argv)
{
    struct parsed p = {.o = o, .level = BGZF_LEVEL_DEFAULT};
    *o = (struct sort_opts){.n_threads = default_threads(),
                            .order = {.kmer = KMER_DEFAULT, .window = WINDOW_DEFAULT}};
    o->command_line = join(argc, argv);
    o->out.path = strdup("-");
    o->more = calloc((size_t)argc, sizeof *o->more);     /* fewer options than words */
    o->temp_prefixes = calloc((size_t)argc, sizeof *o->temp_prefixes);
    if (!o->command_line || !o->out.path || !o->more || !o->temp_prefixes)
        return out_of_memory();
    optind = 2;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, short_options, long_options, NULL)) >= 0;) {
        if (c == 'h') {
            sort_args_usage(stdout);
            return SORT_ARGS_DONE;
        }
        if (c == '?' || c == ':' ? refuse_option(c, argv[optind - 1]) < 0 : parse_one(&p, c) < 0)
            return SORT_ARGS_ERROR;
    }
    const char *index_name = split_index_name(o->out.path);
    settle_format(&p);
    settle_order(&p);
    if (settle_memory(&p) < 0 || refuse_url(o->out.path) < 0 || refuse_url(index_name) < 0
        || settle_index(&p, index_name) < 0 || settle_temp(&p) < 0)
        return SORT_ARGS_ERROR;
    if (!o->check && !o->plan && !o->report)
        sort_settings_report(o);
    return check_operands(o, argc - optind, argv + optind);
}

void sort_args_free(struct sort_opts *o)
{
    hts_opt_free(o->in_format.specific);
    hts_opt_free(o->out.format.specific);
    for (size_t i = 0; i < o->n_more; i++)
        free(o->more[i]);
    free(o->more);
    free(o->in);
    free(o->temp_prefixes);
    free(o->default_prefix);
    free(o->out.path);
    free(o->out.index);
    free(o->command_line);
}
