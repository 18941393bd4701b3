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

enum { WINDOW = 300 };           /* of samtools, where -l names none */

enum {
    OPT_INCLUDE_FAILS = OPT_OWN, OPT_NO_MULTI_DUP, OPT_READ_COORDS, OPT_COORDS_ORDER, OPT_BARCODE_TAG, OPT_BARCODE_NAME,
    OPT_BARCODE_RGX, OPT_MOVE_UMI, OPT_UMI_SEPARATOR, OPT_USE_READ_GROUPS, OPT_JSON, OPT_DUPLICATE_COUNT,
};

static const struct option long_options[] = {
    {"include-fails", no_argument, NULL, OPT_INCLUDE_FAILS},
    {"no-multi-dup", no_argument, NULL, OPT_NO_MULTI_DUP},
    {"read-coords", required_argument, NULL, OPT_READ_COORDS},
    {"coords-order", required_argument, NULL, OPT_COORDS_ORDER},
    {"barcode-tag", required_argument, NULL, OPT_BARCODE_TAG},
    {"barcode-name", no_argument, NULL, OPT_BARCODE_NAME},
    {"barcode-rgx", required_argument, NULL, OPT_BARCODE_RGX},
    {"move-umi-to-tag", no_argument, NULL, OPT_MOVE_UMI},
    {"umi-separator", required_argument, NULL, OPT_UMI_SEPARATOR},
    {"use-read-groups", no_argument, NULL, OPT_USE_READ_GROUPS},
    {"json", no_argument, NULL, OPT_JSON},
    {"duplicate-count", no_argument, NULL, OPT_DUPLICATE_COUNT},
    {"mode", required_argument, NULL, 'm'},
    {"write-index", optional_argument, NULL, OPT_WRITE_INDEX},
    ENGINE_ARGS_LONG_OPTIONS
};

static const struct option beyond[] = {
    {"plan", optional_argument, NULL, OPT_PLAN},
    ENGINE_ARGS_BEYOND
};

const char markdup_args_usage[] =
    "Usage: samtools markdup [options...] <in.bam> <out.bam>\n"
    "Marks duplicates in an alignment file that is sorted by coordinate, on as many threads as -@ gives. Mates\n"
    "must know of each other: run samtools fixmate -m before the sort. - is standard input or output.\n"
    "\n"
    "Which records are duplicates\n"
    "  -l INT                  length of the window: longest read that is expected [300]\n"
    "  -m, --mode t|s          pairs are compared by the ends of the template, or by those of each read [t]\n"
    "  -S                      unmapped, secondary and supplementary records of a duplicate are duplicates, too\n"
    "      --include-fails     records that failed quality control take part\n"
    "      --use-read-groups   only records of one read group are duplicates of each other\n"
    "      --barcode-tag TAG   only records of one barcode, which is in TAG\n"
    "      --barcode-name      likewise; the barcode is the eighth field of the name\n"
    "      --barcode-rgx RE    likewise; the barcode is the first group of RE in the name\n"
    "What becomes of them\n"
    "  -r                      leave duplicates out\n"
    "  -c                      clear the flags and tags of an earlier run\n"
    "  -t                      tag do: the name of the original\n"
    "      --duplicate-count   tag dc of an original: how many records it stands for\n"
    "  -d INT                  tag dt: SQ within so many pixels on the flow cell (optical duplicates), else LB\n"
    "      --read-coords RE    the groups of RE in the name are tile, x and y [fields between colons]\n"
    "      --coords-order ORDER\n"
    "                          of these groups: txy, tyx, xyt, yxt, xty, ytx, xy or yx [txy]\n"
    "      --no-multi-dup      do not follow chains of duplicates for do and dt\n"
    "      --move-umi-to-tag   the barcode of the name goes to tag RX\n"
    "      --umi-separator C   what parts it from the name [:]\n"
    "Statistics\n"
    "  -s                      to standard error\n"
    "  -f FILE                 to FILE\n"
    "      --json              as JSON\n"
    "Output\n"
    "  -u                      no compression\n"
    HELP_OUTPUT_FMT("the output") HELP_INPUT_OPTION HELP_REFERENCE HELP_WRITE_INDEX HELP_NO_PG
    "Resources\n"
    HELP_MORE_THREADS
    "  -T PREFIX               place for temporary files [beside the output]\n"
    HELP_VERBOSITY HELP_LONG_HELP
    "\n"
    "Beyond samtools, as in sort: --checksum, --stats, --flagstat, --idxstats, --plan, --progress,\n"
    "--no-progress, --report, --total-memory, --trace, --verify, --write-index=bai|csi. See samtools sort\n"
    "--help.\n";

static int parse_window(struct markdup_opts *opts, const char *text)
{
    int window;
    if (engine_args_count("-l", text, -1, INT_MAX, &window) < 0)
        return -1;
    opts->window = window < 0 ? WINDOW : window;
    return 0;
}

static int parse_mode(struct markdup_opts *opts, const char *text)
{
    if (strcmp(text, "t") != 0 && strcmp(text, "s") != 0)
        return message_mistake("-m (--mode) can be t or s, not '%s'", text);
    opts->mode = *text == 's' ? DUP_BY_SEQUENCE : DUP_BY_TEMPLATE;
    return 0;
}

static int parse_barcode_tag(struct markdup_opts *opts, const char *text)
{
    if (strlen(text) != sizeof opts->barcode_tag)
        return message_mistake("--barcode-tag needs a tag of two characters, not '%s'", text);
    memcpy(opts->barcode_tag, text, sizeof opts->barcode_tag);
    return 0;
}

/* An expression of the user counts, whether --barcode-name stands before or behind it. */
static int set_barcode_name(struct markdup_opts *opts)
{
    if (!opts->barcode_regex) {
        opts->barcode_regex = DUP_BARCODE_NAME;
        opts->barcode_group = DUP_BARCODE_NAME_GROUP;
    }
    return 0;
}

static int set_barcode_regex(struct markdup_opts *opts, const char *regex)
{
    opts->barcode_regex = regex;
    opts->barcode_group = 1;
    return 0;
}

static enum engine_option take_markdup_option(struct engine_args *args, int c)
{
    struct markdup_opts *opts = args->own;
    int result = 0;
    switch (c) {
    case 'S': opts->others = true; break;
    case 'c': opts->clear = true; break;
    case 'd': result = engine_args_count("-d", optarg, 0, INT_MAX, &opts->distance); break;
    case 'f': args->o->statistics = strcmp(optarg, "-") == 0 ? "./-" : optarg; break;     /* as in samtools */
    case 'l': result = parse_window(opts, optarg); break;
    case 'm': result = parse_mode(opts, optarg); break;
    case 'r': opts->remove = true; break;
    case 's': opts->stats = true; break;
    case 't': opts->originals = true; break;
    case OPT_INCLUDE_FAILS: opts->include_fails = true; break;
    case OPT_NO_MULTI_DUP: opts->pass = false; break;
    case OPT_READ_COORDS: opts->read_coords = optarg; break;
    case OPT_COORDS_ORDER: opts->coords_order = optarg; break;
    case OPT_BARCODE_TAG: result = parse_barcode_tag(opts, optarg); break;
    case OPT_BARCODE_NAME: result = set_barcode_name(opts); break;
    case OPT_BARCODE_RGX: result = set_barcode_regex(opts, optarg); break;
    case OPT_MOVE_UMI: opts->move_umi = true; break;
    case OPT_UMI_SEPARATOR: opts->umi_separator = *optarg; break;
    case OPT_USE_READ_GROUPS: opts->use_read_groups = true; break;
    case OPT_JSON: opts->json = true; break;
    case OPT_DUPLICATE_COUNT: opts->counts = true; break;
    default: return ENGINE_OPTION_COMMON;
    }
    return result < 0 ? ENGINE_OPTION_MISTAKE : ENGINE_OPTION_TAKEN;
}

static const struct engine_command markdup = {
    .name = "markdup",
    .short_options = ":rl:StT:O:@:f:d:cm:us",
    .long_options = long_options,
    .beyond = beyond,
    .take = take_markdup_option,
    .usage = markdup_args_usage,
    .more_threads = 1,
    .level = BGZF_LEVEL_DEFAULT,
};

/* What is read in names. */
static int settle_names(struct markdup_opts *opts)
{
    struct dup_spots spots;
    regex_t barcode;
    if (!opts->read_coords)
        opts->coords_order = NULL;               /* without meaning, and samtools does not look at it */
    const char *wrong = dup_spots_open(&spots, opts->read_coords, opts->coords_order);
    if (wrong)
        return message_mistake("--read-coords or --coords-order: %s", wrong);
    dup_spots_close(&spots);
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
    enum engine_args_result result = engine_args_read(&args, &markdup, &opts->common, argc, argv);
    opts->stats |= opts->json || opts->common.statistics;
    if (result != ENGINE_ARGS_RUN)
        return result;
    if (settle_names(opts) < 0)
        return ENGINE_ARGS_ERROR;
    if (is_step)
        return ENGINE_ARGS_RUN;
    if (argc == 2) {
        fputs(markdup_args_usage, stderr);
        return ENGINE_ARGS_ERROR;
    }
    return settle(&args, argc - optind, argv + optind) < 0 ? ENGINE_ARGS_ERROR : ENGINE_ARGS_RUN;
}
