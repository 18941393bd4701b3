/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include "base/message.h"
#include "cli/command_args.h"
#include "codec/bgzf_block.h"
#include "markdup/dup_name.h"
#include "markdup/markdup_opts.h"

enum { WINDOW = 300 };           /* samtools' default for -l */

static struct markdup_opts *opts_of(struct engine_args *args)
{
    return args->own;
}

static int take_window(struct engine_args *args, const char *text)
{
    int window;
    if (engine_args_count("-l", text, -1, INT_MAX, &window) < 0)
        return -1;
    opts_of(args)->window = window < 0 ? WINDOW : window;
    return 0;
}

static int take_mode(struct engine_args *args, const char *text)
{
    if (strcmp(text, "t") != 0 && strcmp(text, "s") != 0)
        return message_mistake("-m (--mode) can be t or s, not '%s'", text);
    opts_of(args)->mode = *text == 's' ? DUP_BY_SEQUENCE : DUP_BY_TEMPLATE;
    return 0;
}

static int take_barcode_tag(struct engine_args *args, const char *text)
{
    struct markdup_opts *opts = opts_of(args);
    if (strlen(text) != sizeof opts->barcode_tag)
        return message_mistake("--barcode-tag needs a tag of two characters, not '%s'", text);
    memcpy(opts->barcode_tag, text, sizeof opts->barcode_tag);
    return 0;
}

/* An expression of the user has priority, before or after --barcode-name. */
static int take_barcode_name(struct engine_args *args, const char *none)
{
    struct markdup_opts *opts = opts_of(args);
    (void)none;
    if (!opts->barcode_regex) {
        opts->barcode_regex = DUP_BARCODE_NAME;
        opts->barcode_group = DUP_BARCODE_NAME_GROUP;
    }
    return 0;
}

static int take_barcode_regex(struct engine_args *args, const char *regex)
{
    opts_of(args)->barcode_regex = regex;
    opts_of(args)->barcode_group = 1;
    return 0;
}

static int take_separator(struct engine_args *args, const char *text)
{
    opts_of(args)->umi_separator = *text;
    return 0;
}

static int take_statistics(struct engine_args *args, const char *file)
{
    args->o->statistics = strcmp(file, "-") == 0 ? "./-" : file;     /* as in samtools */
    return 0;
}

#define OWN(member) OPTION_IN(OPTION_OWN, struct markdup_opts, member)

static const struct option_row options[] = {
    OPTION_HEADING("Which records are duplicates"),
    OPTION('l', NULL, "INT", TAKES(take_window), "length of the window: longest read expected [300]"),
    OPTION('m', "mode", "t|s", TAKES(take_mode),
           "pairs are compared by the ends of the template, or by those of each read [t]"),
    OPTION('S', NULL, NULL, SETS(OWN(others)),
           "unmapped, secondary and supplementary records of a duplicate are duplicates, too"),
    OPTION(0, "include-fails", NULL, SETS(OWN(include_fails)), "records that failed quality control take part"),
    OPTION(0, "use-read-groups", NULL, SETS(OWN(use_read_groups)),
           "only records of one read group are duplicates of each other"),
    OPTION(0, "barcode-tag", "TAG", TAKES(take_barcode_tag), "only records of one barcode, which is in TAG"),
    OPTION(0, "barcode-name", NULL, TAKES(take_barcode_name),
           "only records of one barcode, the eighth field of the name"),
    OPTION(0, "barcode-rgx", "RE", TAKES(take_barcode_regex),
           "only records of one barcode, the first group of RE in the name"),
    OPTION_HEADING("Treatment of duplicates"),
    OPTION('r', NULL, NULL, SETS(OWN(remove)), "leave duplicates out"),
    OPTION('c', NULL, NULL, SETS(OWN(clear)), "clear the flags and tags of an earlier run"),
    OPTION('t', NULL, NULL, SETS(OWN(originals)), "tag do: the name of the original"),
    OPTION(0, "duplicate-count", NULL, SETS(OWN(counts)), "tag dc of an original: the number of records it stands for"),
    OPTION('d', NULL, "INT", NUMBER(OWN(distance), 0, INT_MAX),
           "tag dt: SQ within this many pixels on the flow cell (optical duplicates), else LB"),
    OPTION(0, "read-coords", "RE", TEXT(OWN(read_coords)),
           "the groups of RE in the name are tile, x and y [fields between colons]"),
    OPTION(0, "coords-order", "ORDER", TEXT(OWN(coords_order)),
           "of these groups: txy, tyx, xyt, yxt, xty, ytx, xy or yx [txy]"),
    OPTION(0, "no-multi-dup", NULL, CLEARS(OWN(pass)), "do not follow chains of duplicates for do and dt"),
    OPTION(0, "move-umi-to-tag", NULL, SETS(OWN(move_umi)), "move the barcode from the name to tag RX"),
    OPTION(0, "umi-separator", "C", TAKES(take_separator), "character between the name and the barcode [:]"),
    OPTION_HEADING("Statistics"),
    OPTION('s', NULL, NULL, SETS(OWN(stats)), "to standard error"),
    OPTION('f', NULL, "FILE", WRITES(take_statistics), "to FILE"),
    OPTION(0, "json", NULL, SETS(OWN(json)), "as JSON"),
    OPTION_HEADING("Output"),
    ENGINE_SAYS(UNCOMPRESSED, "no compression"),
    ENGINE_SAYS(FORMAT, "sam, sam.gz, bam, cram, fastq, fasta [by the name of the output, else bam]"),
    ENGINE(FORMAT_OPTION), ENGINE_READING_ROWS, ENGINE(WRITE_INDEX), ENGINE(NO_PG),
    OPTION_HEADING("Resources"),
    ENGINE(MORE_THREADS), ENGINE_SAYS(TEMP, "place for temporary files [next to the output]"), ENGINE(VERBOSITY),
    ENGINE(LONG_HELP),
    OPTION_LIST("Beyond samtools (see samtools sort --help):"),
    ENGINE(CHECKSUM), ENGINE_COUNT_ROWS, ENGINE(PLAN), ENGINE(TOTAL_MEMORY), ENGINE_REPORT_ROWS,
    OPTION_END,
};

const struct engine_command markdup_command = {
    .name = "markdup",
    .options = options,
    .usage = "Usage: samtools markdup [options...] <in.bam> <out.bam>\n"
             "Marks duplicates in an alignment file that is sorted by coordinate, on as many threads as -@ gives.\n"
             "Records need the data of their mates: run samtools fixmate -m before the sort. - is standard input or\n"
             "output.\n\n",
    .more_threads = 1,
    .level = BGZF_LEVEL_DEFAULT,
};

/* Checks the expressions that are matched against read names. */
static int settle_names(struct markdup_opts *opts)
{
    struct dup_coords_rule rule;
    regex_t barcode;
    if (!opts->read_coords)
        opts->coords_order = NULL;               /* has no effect, and samtools does not check it */
    const char *wrong = dup_coords_open(&rule, opts->read_coords, opts->coords_order);
    if (wrong)
        return message_mistake("--read-coords or --coords-order: %s", wrong);
    dup_coords_close(&rule);
    if (!opts->barcode_regex)
        return opts->move_umi ? message_mistake("--move-umi-to-tag needs --barcode-name or --barcode-rgx") : 0;
    if (opts->barcode_tag[0])
        return message_mistake("--barcode-tag excludes --barcode-name and --barcode-rgx: give one of them");
    if (regcomp(&barcode, opts->barcode_regex, REG_EXTENDED) != 0)
        return message_mistake("--barcode-rgx: '%s' cannot be compiled", opts->barcode_regex);
    regfree(&barcode);
    return 0;
}

static int settle(struct engine_args *args, int n, char **operands)
{
    if (engine_args_settle_files(args, n, operands) < 0 || engine_args_settle_index(args) < 0
        || engine_args_settle_memory(args) < 0 || engine_args_settle_temp(args, "samtools-markdup.tmp") < 0)
        return -1;
    engine_args_settle_report(args->o);
    return 0;
}

enum engine_args_result markdup_args_parse(struct markdup_opts *opts, bool is_step, int argc, char **argv)
{
    struct engine_args args = {.own = opts, .is_step = is_step};
    *opts = (struct markdup_opts){.window = WINDOW, .pass = true, .umi_separator = ':'};
    enum engine_args_result result = engine_args_read(&args, &markdup_command, &opts->common, argc, argv);
    opts->stats |= opts->json || opts->common.statistics;
    if (result != ENGINE_ARGS_RUN)
        return result;
    if (settle_names(opts) < 0)
        return ENGINE_ARGS_ERROR;
    if (is_step)
        return ENGINE_ARGS_RUN;
    if (argc == 2) {
        engine_args_help(&markdup_command, stderr);
        return ENGINE_ARGS_ERROR;
    }
    return settle(&args, argc - optind, argv + optind) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}
