/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/sam.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "codec/bgzf_block.h"
#include "order/collate_key.h"

enum { LEVEL = 1 };              /* samtools' level if the command line gives no valid one */

/* The options that only collate has, as far as they were read. */
struct collate_words {
    bool to_stdout;              /* -O */
    bool to_file;                /* -o */
    bool uncompressed;           /* -u: takes precedence over -l */
    const char *prefix;          /* -T, or the second operand; NULL: none */
};

static int take_bins(struct engine_args *args, const char *text)
{
    int n;
    if (engine_args_count("-n", text, INT_MIN, INT_MAX, &n) < 0)
        return -1;
    if (n < 1)
        return message_mistake("-n needs a number of bins, at least 1, not '%s'", text);
    args->o->order.n_bins = (uint32_t)n;
    return 0;
}

static int take_output(struct engine_args *args, const char *name)
{
    struct collate_words *own = args->own;
    own->to_file = true;
    return engine_args_output(args, name);
}

#define OWN(member) OPTION_IN(OPTION_OWN, struct collate_words, member)

static const struct option_row options[] = {
    OPTION('o', NULL, "FILE", WRITES(take_output), "write to FILE"),
    OPTION('O', NULL, NULL, SETS(OWN(to_stdout)), "write to standard output"),
    OPTION('T', NULL, "PREFIX", OUTPUT_FILE(OWN(prefix)),
           "place for temporary files, as <prefix> [beside FILE; else TMPDIR, or /tmp]"),
    OPTION('n', NULL, "INT", TAKES(take_bins),
           "number of bins that names are put into [64]; a different number gives a different order"),
    OPTION('f', NULL, NULL, HANDED_ON, "primary reads only; run by the samtools on PATH"),
    OPTION('r', NULL, "INT", HANDED_ON, "reads to keep in memory with -f; run by the samtools on PATH"),
    ENGINE_SAYS(LEVEL, "compression level, 0 (none) to 9 (smallest) [1]"),
    OPTION('u', NULL, NULL, SETS(OWN(uncompressed)), "no compression, as -l 0"),
    ENGINE(LONG_FORMAT), ENGINE(FORMAT_OPTION), ENGINE(NO_INDEX), ENGINE_READING_ROWS, ENGINE(NO_PG),
    ENGINE(MORE_THREADS), ENGINE(VERBOSITY), ENGINE(HELP),
    OPTION_LIST("Beyond samtools (see samtools sort --help):"),
    ENGINE(CHECKSUM), ENGINE_COUNT_ROWS, ENGINE(TOTAL_MEMORY), ENGINE_REPORT_ROWS,
    OPTION_END,
};

const struct engine_command collate_command = {
    .name = "collate",
    .options = options,
    .usage = "Usage: samtools collate [options...] <in.bam> [<prefix>]\n"
             "Groups records by name, with the names in an order that does not depend on the genome, on as many\n"
             "threads as -@ gives.\n\n",
    .more = "\nWithout -o and -O the output is <prefix>.bam. Records with the same name and the same READ1 and READ2\n"
            "flags keep their order.\n",
    .more_threads = 1,
    .level = LEVEL,
    .order = {.by = SORT_COLLATE, .n_bins = COLLATE_BINS},
};

/* Makes the output's name from a prefix: PREFIX.bam, or with the extension of the requested format. */
static int name_output(struct engine_args *args, const char *prefix)
{
    const htsFormat *format = &args->o->out.format;
    free(args->o->out.path);
    return asprintf(&args->o->out.path, "%s.%s", prefix, args->format_given ? hts_format_file_extension(format)
                                                                            : "bam") < 0
         ? (args->o->out.path = NULL, engine_args_no_memory()) : 0;
}

/* Settles the destination of the output: -o FILE, -O, or the prefix. */
static int settle_output(struct engine_args *args, const struct collate_words *own)
{
    if (own->to_file && own->to_stdout)
        return message_mistake("-o and -O both name an output: give one of them");
    if (!own->to_file && !own->to_stdout && !own->prefix)
        return message_mistake("no output is named: give -o FILE, -O for standard output, or a prefix");
    return own->to_file || own->to_stdout ? 0 : name_output(args, own->prefix);
}

/* The extension of -o's name is not that of a format: samtools then chooses SAM here, and BAM in all other commands. */
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
    enum engine_args_result result = engine_args_read(&args, &collate_command, o, argc, argv);
    if (result != ENGINE_ARGS_RUN)
        return result;
    int n = argc - optind;
    if (n < 1) {
        message_error("no input filename specified.");
        engine_args_help(&collate_command, stderr);
        return ENGINE_ARGS_ERROR;
    }
    if (n > 1)
        own.prefix = argv[optind + 1];           /* further operands are ignored, as in samtools */
    if (!(o->in.paths[0] = input_name_file(argv[optind])))
        return engine_args_no_memory();
    return settle(&args, &own) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}
