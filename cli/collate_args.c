/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/sam.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "cli/sort_settings.h"
#include "codec/bgzf_block.h"
#include "order/collate_key.h"

enum { LEVEL = 1 };              /* of samtools, where the command line names none that there is */

static const struct option long_options[] = {
    {"write-index", no_argument, NULL, OPT_WRITE_INDEX},
    ENGINE_ARGS_LONG_OPTIONS
};

static const struct option beyond[] = { ENGINE_ARGS_BEYOND };

/* What collate alone can be told, as far as it was read. */
struct collate_words {
    bool to_stdout;              /* -O */
    bool to_file;                /* -o */
    bool uncompressed;           /* -u: wins over -l */
    const char *prefix;          /* -T, or the second operand; NULL: none */
};

const char collate_args_usage[] =
    "Usage: samtools collate [options...] <in.bam> [<prefix>]\n"
    "Puts records of one name together, and names in an order that says nothing of the genome, on as many\n"
    "threads as -@ gives.\n"
    "\n"
    "  -o FILE                 write to FILE\n"
    "  -O                      write to standard output\n"
    "  -T PREFIX               place for temporary files, as <prefix> [beside FILE; else TMPDIR, or /tmp]\n"
    "  -n INT                  number of bins that names are put into [64]; another one gives another order\n"
    "  -l INT                  compression level, 0 (none) to 9 (smallest) [1]\n"
    HELP_AS_LEVEL_0
    "      --output-fmt FMT[,OPT[=VAL]...]\n"
    "                          sam, sam.gz, bam, cram, fastq, fasta [by the name of FILE, else sam; bam of -O]\n"
    HELP_OUTPUT_OPTION HELP_INPUT_OPTION HELP_REFERENCE HELP_NO_PG HELP_MORE_THREADS HELP_VERBOSITY HELP_HELP
    "\n"
    "Without -o and -O the output is <prefix>.bam. Records of one name that neither READ1 nor READ2 tells apart\n"
    "keep their order. -f and -r INT (primary reads only) are left to the other samtools on PATH.\n"
    "\n"
    "Beyond samtools, as in sort: --checksum, --stats, --flagstat, --idxstats, --progress, --no-progress,\n"
    "--report, --total-memory, --trace, --verify. See samtools sort --help.\n";

static int parse_bins(struct sort_order *order, const char *text)
{
    int n;
    if (engine_args_count("-n", text, INT_MIN, INT_MAX, &n) < 0)
        return -1;
    if (n < 1)
        return message_mistake("-n needs a number of bins, at least 1, not '%s'", text);
    order->n_bins = (uint32_t)n;
    return 0;
}

static enum engine_option take_collate_option(struct engine_args *args, int c)
{
    struct collate_words *own = args->own;
    switch (c) {
    case 'O': own->to_stdout = true; return ENGINE_OPTION_TAKEN;
    case 'o': own->to_file = true; return ENGINE_OPTION_COMMON;
    case 'u': own->uncompressed = true; return ENGINE_OPTION_TAKEN;
    case 'T': own->prefix = optarg; return ENGINE_OPTION_TAKEN;
    case 'n': return parse_bins(&args->o->order, optarg) < 0 ? ENGINE_OPTION_MISTAKE : ENGINE_OPTION_TAKEN;
    case OPT_WRITE_INDEX: return engine_args_no_index(args);
    case 'f':
    case 'r': return ENGINE_OPTION_HANDED_ON;
    default:  return ENGINE_OPTION_COMMON;
    }
}

/* The name that a prefix gives the output: PREFIX.bam, or with the extension of the format asked for. */
static int name_output(struct engine_args *args, const char *prefix)
{
    const htsFormat *format = &args->o->out.format;
    free(args->o->out.path);
    return asprintf(&args->o->out.path, "%s.%s", prefix, args->format_given ? hts_format_file_extension(format)
                                                                            : "bam") < 0
         ? (args->o->out.path = NULL, engine_args_no_memory()) : 0;
}

/* Where the output goes: -o FILE, -O, or the prefix. */
static int settle_output(struct engine_args *args, const struct collate_words *own)
{
    if (own->to_file && own->to_stdout)
        return message_mistake("-o and -O are two outputs: give one of them");
    if (!own->to_file && !own->to_stdout && !own->prefix)
        return message_mistake("no output is named: give -o FILE, -O for standard output, or a prefix");
    return own->to_file || own->to_stdout ? 0 : name_output(args, own->prefix);
}

/* The name of -o has no ending that tells a format: samtools takes SAM here, and BAM in all other commands. */
static void settle_unknown_name(struct engine_args *args, const struct collate_words *own)
{
    char mode[16];
    if (!own->to_file || args->format_given || sam_open_mode(mode, args->o->out.path, NULL) == 0)
        return;
    args->o->out.format.category = sequence_data;
    args->o->out.format.format = sam;
    args->format_given = true;
}

static int settle_temp(struct engine_args *args, const struct collate_words *own)
{
    struct engine_opts *o = args->o;
    const char *folder = getenv("TMPDIR");
    char *elsewhere = NULL;
    if (own->prefix) {
        o->temp_prefixes[o->n_temp_prefixes++] = own->prefix;
        return 0;
    }
    if (asprintf(&elsewhere, "%s/collate", folder && *folder ? folder : "/tmp") < 0)
        return engine_args_no_memory();
    int result = engine_args_settle_temp(args, elsewhere);
    free(elsewhere);
    return result;
}

static const struct engine_command collate = {
    .name = "collate",
    .short_options = ":l:uo:OT:n:fr:@:h",
    .long_options = long_options,
    .beyond = beyond,
    .take = take_collate_option,
    .usage = collate_args_usage,
    .more_threads = 1,
    .level = LEVEL,
    .order = {.by = SORT_COLLATE, .n_bins = COLLATE_BINS},
};

static int settle(struct engine_args *args, const struct collate_words *own)
{
    struct engine_opts *o = args->o;
    args->level = own->uncompressed ? 0 : args->level < 0 || args->level > BGZF_LEVEL_MAX ? LEVEL : args->level;
    if (settle_output(args, own) < 0)
        return -1;
    settle_unknown_name(args, own);
    if (engine_args_settle_memory(args) < 0 || engine_args_settle_output(args) < 0 || settle_temp(args, own) < 0)
        return -1;
    engine_args_settle_report(o);
    return 0;
}

enum engine_args_result collate_args_parse(struct engine_opts *o, int argc, char **argv)
{
    struct collate_words own = {0};
    struct engine_args args = {.own = &own};
    enum engine_args_result result = engine_args_read(&args, &collate, o, argc, argv);
    if (result != ENGINE_ARGS_RUN)
        return result;
    int n = argc - optind;
    if (n < 1) {
        message_error("no input filename specified.");
        fputs(collate_args_usage, stderr);
        return ENGINE_ARGS_ERROR;
    }
    if (n > 1)
        own.prefix = argv[optind + 1];           /* further operands mean nothing, as in samtools */
    if (!(o->in.paths[0] = input_name_file(argv[optind])))
        return engine_args_no_memory();
    return settle(&args, &own) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}
