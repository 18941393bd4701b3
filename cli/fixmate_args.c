/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "fixmate/sanitize.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "codec/bgzf_block.h"
#include "fixmate/fixmate_opts.h"

static const struct option long_options[] = {
    {"write-index", no_argument, NULL, OPT_WRITE_INDEX},
    ENGINE_ARGS_LONG_OPTIONS
};

static const struct option beyond[] = {
    {"sanitize", required_argument, NULL, 'z'},  /* samtools has -z only */
    ENGINE_ARGS_BEYOND
};

const char fixmate_args_usage[] =
    "Usage: samtools fixmate [options...] <in.bam> <out.bam>\n"
    "Tells mates of each other, on as many threads as -@ gives: place, strand, TLEN, flags, MQ, MC. Records\n"
    "of one name must follow one another: see samtools collate. - is standard input or output.\n"
    "\n"
    "  -r                      leave unmapped and secondary records out\n"
    "  -p                      do not look whether pairs are proper\n"
    "  -c                      add the CIGAR of the template (tag ct)\n"
    "  -m                      add the score of the mate (tag ms), which markdup needs\n"
    "  -M                      make tags of base modifications (MM, ML, MN) fit to what is left of the bases\n"
    "  -z, --sanitize LIST     what else is mended: all, none, or some of pos, mqual, unmap, cigar, cigdup,\n"
    "                          cigarx, aux [all: all of these but cigarx]\n"
    "  -u                      no compression\n"
    HELP_OUTPUT_FMT("the output") HELP_INPUT_OPTION HELP_REFERENCE HELP_NO_PG HELP_MORE_THREADS HELP_VERBOSITY
    HELP_LONG_HELP
    "\n"
    "Beyond samtools, as in sort: --checksum, --stats, --flagstat, --idxstats, --progress, --no-progress,\n"
    "--report, --total-memory, --trace, --verify. See samtools sort --help.\n";

static enum engine_option take_fixmate_option(struct engine_args *args, int c)
{
    struct fixmate_rules *rules = args->own;
    int result = 0;
    switch (c) {
    case 'r': rules->drops = true; break;
    case 'p': rules->keeps_proper = true; break;
    case 'c': rules->template_cigar = true; break;
    case 'm': rules->mate_score = true; break;
    case 'M': rules->base_mods = true; break;
    case 'z':
        if (sanitize_parse(optarg, &rules->sanitize) < 0)
            result = message_mistake("-z (--sanitize): there is a word in '%s' that it does not know", optarg);
        break;
    case OPT_WRITE_INDEX: return engine_args_no_index(args);
    default: return ENGINE_OPTION_COMMON;
    }
    return result < 0 ? ENGINE_OPTION_MISTAKE : ENGINE_OPTION_TAKEN;
}

static const struct engine_command fixmate = {
    .name = "fixmate",
    .short_options = ":rpcmMuz:O:@:",
    .long_options = long_options,
    .beyond = beyond,
    .take = take_fixmate_option,
    .usage = fixmate_args_usage,
    .more_threads = 1,
    .level = BGZF_LEVEL_DEFAULT,
    .keeps_order = true,
};

enum engine_args_result fixmate_args_parse(struct fixmate_opts *opts, bool is_step, int argc, char **argv)
{
    struct engine_args args = {.own = &opts->rules, .is_step = is_step};
    *opts = (struct fixmate_opts){.rules.sanitize = SANITIZE_ALL};
    enum engine_args_result result = engine_args_read(&args, &fixmate, &opts->common, argc, argv);
    if (result != ENGINE_ARGS_RUN || is_step)
        return result;
    if (argc == 2) {
        fputs(fixmate_args_usage, stdout);
        return ENGINE_ARGS_DONE;
    }
    if (engine_args_settle_files(&args, argc - optind, argv + optind) < 0
        || engine_args_settle_memory_at_once(&args) < 0)
        return ENGINE_ARGS_ERROR;
    engine_args_settle_report(&opts->common);
    return ENGINE_ARGS_RUN;
}
