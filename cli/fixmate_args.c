/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "fixmate/sanitize.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "codec/bgzf_block.h"
#include "fixmate/fixmate_opts.h"

static int take_sanitize(struct engine_args *args, const char *list)
{
    struct fixmate_rules *rules = args->own;
    return sanitize_parse(list, &rules->sanitize) < 0
         ? message_mistake("-z (--sanitize): unknown word in '%s'", list) : 0;
}

#define OWN(member) OPTION_IN(OPTION_OWN, struct fixmate_rules, member)

static const struct option_row options[] = {
    OPTION('r', NULL, NULL, SETS(OWN(drops)), "leave unmapped and secondary records out"),
    OPTION('p', NULL, NULL, SETS(OWN(keeps_proper)), "do not check whether pairs are proper"),
    OPTION('c', NULL, NULL, SETS(OWN(template_cigar)), "add the CIGAR of the template (tag ct)"),
    OPTION('m', NULL, NULL, SETS(OWN(mate_score)), "add the score of the mate (tag ms), which markdup needs"),
    OPTION('M', NULL, NULL, SETS(OWN(base_mods)),
           "trim tags of base modifications (MM, ML, MN) to the bases of hard-clipped reads"),
    OPTION_BEYOND('z', "sanitize", "LIST", TAKES(take_sanitize), /* samtools only has -z */
                  "other corrections: all, none, or some of pos, mqual, unmap, cigar, cigdup,\n"
                  "cigarx, aux [all: all of these but cigarx]"),
    ENGINE_SAYS(UNCOMPRESSED, "no compression"),
    ENGINE_SAYS(FORMAT, "sam, sam.gz, bam, cram, fastq, fasta [by the name of the output, else bam]"),
    ENGINE(FORMAT_OPTION), ENGINE(NO_INDEX), ENGINE_READING_ROWS, ENGINE(NO_PG), ENGINE(MORE_THREADS),
    ENGINE(VERBOSITY), ENGINE(LONG_HELP),
    OPTION_LIST("Beyond samtools (see samtools sort --help):"),
    ENGINE(CHECKSUM), ENGINE_COUNT_ROWS, ENGINE(TOTAL_MEMORY), ENGINE_REPORT_ROWS,
    OPTION_END,
};

const struct engine_command fixmate_command = {
    .name = "fixmate",
    .options = options,
    .usage = "Usage: samtools fixmate [options...] <in.bam> <out.bam>\n"
             "Fills in mate information on -@ threads: position, strand, TLEN, flags, MQ, MC. Records\n"
             "must be grouped by name (samtools collate). - is standard input or output.\n\n",
    .more_threads = 1,
    .level = BGZF_LEVEL_DEFAULT,
    .keeps_order = true,
};

enum engine_args_result fixmate_args_parse(struct fixmate_opts *opts, bool is_step, int argc, char **argv)
{
    struct engine_args args = {.own = &opts->rules, .is_step = is_step};
    *opts = (struct fixmate_opts){.rules.sanitize = SANITIZE_ALL};
    enum engine_args_result result = engine_args_read(&args, &fixmate_command, &opts->common, argc, argv);
    if (result != ENGINE_ARGS_RUN || is_step)
        return result;
    if (argc == 2) {
        engine_args_help(&fixmate_command, stdout);
        return ENGINE_ARGS_DONE;
    }
    if (engine_args_settle_files(&args, argc - optind, argv + optind) < 0
        || engine_args_settle_memory_at_once(&args) < 0)
        return ENGINE_ARGS_ERROR;
    engine_args_settle_report(&opts->common);
    return ENGINE_ARGS_RUN;
}
