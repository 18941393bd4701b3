/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <htslib/hts.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "codec/bgzf_block.h"
#include "merge/merge_opts.h"

/* The default of -s. samtools uses the time of day, so no two runs of it give the same IDs. */
enum { SEED = 1 };

/* The options that only merge has, as far as they were read. */
struct merge_words {
    struct merge_opts *opts;
    const char *output;          /* -o, otherwise the first operand */
    bool overwrite;              /* -f */
    bool has_indexes;            /* -X: the second half of the operands */
    const char **lists;          /* -b, n_lists of them */
    int n_lists;
    size_t n_inputs, room;       /* number of inputs, and room in the array of their paths */
    bool has_stdin;              /* "-" was among the inputs */
};

static int take_seed(struct engine_args *args, const char *text)
{
    struct merge_words *own = args->own;
    char *end;
    errno = 0;
    long long seed = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return message_mistake("Invalid random seed: %s", text);
    own->opts->seed = (uint32_t)seed;                 /* the generator uses 32 bits of it */
    return 0;
}

static int take_list(struct engine_args *args, const char *list)
{
    struct merge_words *own = args->own;
    own->lists[own->n_lists++] = list;
    return 0;
}

#define OPTS(member) OPTION_IN(OPTION_OPTS, struct merge_opts, member)
#define OWN(member) OPTION_IN(OPTION_OWN, struct merge_words, member)

static const struct option_row options[] = {
    OPTION_HEADING("Order of the inputs (default: by coordinate)"),
    ENGINE_ORDER_ROWS, ENGINE(BY_TEMPLATE),
    OPTION_HEADING("Input"),
    OPTION('b', NULL, "FILE", TAKES(take_list), "list of inputs, one on each line, which come first; may be repeated"),
    OPTION('R', NULL, "REGION", TEXT(OPTS(region)),
           "only records in the region, such as chr1:1000-2000, by the indexes of the inputs"),
    OPTION('L', NULL, "BED", TEXT(OPTS(bed)),
           "only records in the regions of a BED file, by the indexes of the inputs"),
    OPTION('X', NULL, NULL, SETS(OWN(has_indexes)),
           "the index files are operands, too, after all inputs and in their order"),
    ENGINE_READING_ROWS,
    OPTION_HEADING("Header"),
    OPTION('h', NULL, "FILE", INPUT_FILE(OPTS(header)), "begin with the header of FILE"),
    OPTION('c', NULL, NULL, SETS(OPTS(join_groups)), "read groups (@RG) with the same ID become one"),
    OPTION('p', NULL, NULL, SETS(OPTS(join_programs)), "programs (@PG) with the same ID become one"),
    OPTION('r', NULL, NULL, SETS(OPTS(groups_by_file)), "the read group of each record is the name of its file"),
    OPTION('s', NULL, "INT", TAKES(take_seed), "seed for the suffix that makes equal IDs differ [1]"),
    ENGINE(NO_PG),
    OPTION_HEADING("Output"),
    OPTION('o', NULL, "FILE", OUTPUT_FILE(OWN(output)), "write to FILE; - is standard output"),
    OPTION('f', NULL, NULL, SETS(OWN(overwrite)), "overwrite FILE if it exists"),
    ENGINE(FORMAT), ENGINE(FORMAT_OPTION), ENGINE(LEVEL), ENGINE(UNCOMPRESSED),
    OPTION('1', NULL, NULL, STORES(1, OPTION_IN(OPTION_ARGS, struct engine_args, level)), "fast, as -l 1"),
    ENGINE_SAYS(COPY_BLOCKS, "copy compressed blocks of BAM whose records do not change"),
    ENGINE(WRITE_INDEX),
    OPTION_HEADING("Resources"),
    ENGINE(MORE_THREADS), ENGINE(VERBOSITY), ENGINE(LONG_HELP),
    OPTION_LIST("Beyond samtools (see samtools sort --help):"),
    ENGINE(CHECKSUM), ENGINE_COUNT_ROWS, ENGINE(PLAN), ENGINE(TOTAL_MEMORY), ENGINE_REPORT_ROWS,
    OPTION_END,
};

const struct engine_command merge_command = {
    .name = "merge",
    .options = options,
    .usage = "Usage: samtools merge [options...] -o <out.bam> <in1.bam> ... <inN.bam>\n"
             "   or: samtools merge [options...] <out.bam> <in1.bam> ... <inN.bam>\n"
             "Merges sorted alignments (SAM, BAM, CRAM) on as many threads as -@ gives.\n\n",
    .more = "\nThe output may be one of the inputs, with -f.\n",
    .more_threads = 1,
    .level = BGZF_LEVEL_DEFAULT,
};

/* ------------------------------------------------------------------ inputs */

static int take_stdin(struct merge_words *own, const char *path)
{
    bool again = own->has_stdin && strcmp(path, "-") == 0;
    own->has_stdin |= strcmp(path, "-") == 0;
    return again ? message_mistake("standard input can be read only once") : 0;
}

/* Adds an input, for which there is room. index: from -X, or NULL. */
static int add_input(struct merge_words *own, const char *name, const char *index)
{
    struct input_request *in = &own->opts->common.in;
    const char *named = input_name_index(name, NULL);
    char *path = input_name_file(name);
    index = index ? index : named;
    char *copy = index ? strdup(index) : NULL, **indexes = realloc(in->indexes, (own->n_inputs + 1) * sizeof *indexes);
    if (indexes)
        in->indexes = indexes;
    if (!path || !indexes || (index && !copy)) {
        free(path);
        free(copy);
        return engine_args_no_memory();
    }
    in->paths[own->n_inputs] = path;
    indexes[own->n_inputs] = copy;
    in->n = ++own->n_inputs;
    return take_stdin(own, path);
}

/* Adds the inputs that a list names. It is read as htslib reads it: it may be compressed, empty lines are skipped, and
 * ":A,B" means A and B. */
static int add_list(struct merge_words *own, const char *list)
{
    struct input_request *in = &own->opts->common.in;
    int n = 0, result = -1;
    errno = 0;
    char **names = hts_readlines(list, &n);
    if (!names)
        return message_error("Invalid file list \"%s\"%s%s. Nothing was read.", list, errno ? ": " : "",
                             errno ? strerror(errno) : "");
    char **paths = realloc(in->paths, (own->room + (size_t)n) * sizeof *paths);
    if (!paths) {
        engine_args_no_memory();
        goto out;
    }
    in->paths = paths;
    own->room += (size_t)n;
    result = 0;
    for (int i = 0; i < n && result == 0; i++)
        result = add_input(own, names[i], NULL);
out:
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return result;
}

static int settle_inputs(struct merge_words *own, int n, char **operands)
{
    own->opts->common.in.n = 0;
    if (own->opts->region && own->opts->bed)
        return message_mistake("-R and -L exclude each other: give a region, or a BED file");
    if (own->opts->bed && take_stdin(own, own->opts->bed) < 0)
        return -1;
    if (own->has_indexes && own->n_lists)
        return message_mistake("-b cannot be combined with -X");
    if (own->has_indexes && n % 2)
        return message_mistake("-X needs an index for each input, but there are %d operands after the output, an odd "
                               "number", n);
    if (own->has_indexes)
        n /= 2;
    if (own->opts->header && take_stdin(own, own->opts->header) < 0)
        return -1;
    for (int i = 0; i < own->n_lists; i++)
        if (strcmp(own->lists[i], "-") == 0 && take_stdin(own, own->lists[i]) < 0)
            return -1;
    for (int i = 0; i < own->n_lists; i++)
        if (add_list(own, own->lists[i]) < 0)
            return -1;
    for (int i = 0; i < n; i++)
        if (add_input(own, operands[i], own->has_indexes ? operands[n + i] : NULL) < 0)
            return -1;
    return own->n_inputs ? 0 : message_mistake("no input is named: give at least one file, or - for standard input");
}

/* ---------------------------------------------------------------- together */

/* The name is looked up as given, so FILE##idx##INDEX is accepted although FILE exists, as in samtools. */
static int check_overwriting(const struct merge_words *own)
{
    struct stat st;
    if (own->overwrite || strcmp(own->output, "-") == 0 || stat(own->output, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return message_error("File '%s' exists. Please apply '-f' to overwrite. Abort.", own->output);
}

static int settle_index(const struct engine_args *args)
{
    return args->write_index && args->o->order.by != SORT_COORDINATE
         ? message_mistake("--write-index needs coordinate order: files in another order cannot be indexed")
         : engine_args_settle_index(args);
}

static int settle(struct engine_args *args, struct merge_words *own, int n, char **operands)
{
    if (!own->output && n == 0)
        return message_mistake("no output is named: give -o FILE, or FILE as the first operand");
    if (!own->output) {
        own->output = *operands++;
        n--;
    }
    if (settle_inputs(own, n, operands) < 0 || check_overwriting(own) < 0
        || engine_args_output(args, own->output) < 0 || engine_args_settle_output(args) < 0 || settle_index(args) < 0
        || engine_args_settle_memory_at_once(args) < 0)
        return -1;
    engine_args_settle_report(args->o);
    return 0;
}

enum engine_args_result merge_args_parse(struct merge_opts *opts, int argc, char **argv)
{
    struct merge_words own = {.opts = opts, .room = (size_t)argc, .lists = calloc((size_t)argc, sizeof *own.lists)};
    struct engine_args args = {.own = &own};
    *opts = (struct merge_opts){.seed = SEED};
    enum engine_args_result result = own.lists ? engine_args_read(&args, &merge_command, &opts->common, argc, argv)
                                               : engine_args_no_memory();
    if (result == ENGINE_ARGS_RUN) {
        engine_args_settle_order(&args);
        if (argc == 2) {
            engine_args_help(&merge_command, stdout);
            result = ENGINE_ARGS_DONE;
        } else if (settle(&args, &own, argc - optind, argv + optind) < 0) {
            result = ENGINE_ARGS_ERROR;
        }
    }
    free(own.lists);
    return result;
}
