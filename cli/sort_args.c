/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <unistd.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "codec/bgzf_block.h"

enum { KMER_DEFAULT = 20, KMER_MAX = 31, WINDOW_DEFAULT = 100 };

static int take_index_fasta(struct engine_args *args, const char *name)
{
    args->o->order.index_fasta = input_name_local(name);
    args->o->order.by = SORT_MINHASH;
    return 0;
}

#define OPTS(member) OPTION_IN(OPTION_OPTS, struct engine_opts, member)

static const struct option_row options[] = {
    OPTION_HEADING("Order (default: by coordinate)"),
    ENGINE_ORDER_ROWS,
    OPTION('M', NULL, NULL, STORES(SORT_MINHASH, OPTS(order.by)), "reads without a reference by minimiser"),
    OPTION('I', NULL, "FILE", TAKES(take_index_fasta), "as -M, by the minimisers' positions in the FASTA FILE"),
    OPTION('K', NULL, "INT", NUMBER(OPTS(order.kmer), 1, KMER_MAX), "length of the k-mer of -M and -I [20]"),
    OPTION('w', NULL, "INT", NUMBER(OPTS(order.window), 1, INT_MAX), "window of -I [100]"),
    OPTION('R', NULL, NULL, SETS(OPTS(order.no_reverse)), "-M without the reverse strand"),
    OPTION('H', NULL, NULL, SETS(OPTS(order.squash)), "-M on squashed homopolymers"),
    ENGINE(BY_TEMPLATE),
    OPTION_BEYOND(0, "picard", NULL, STORES(SORT_NAME_PICARD, OPTS(order.by)), "by read name, in Picard's order"),
    OPTION_HEADING("Output"),
    ENGINE(OUTPUT), ENGINE(FORMAT), ENGINE(FORMAT_OPTION), ENGINE(LEVEL), ENGINE(UNCOMPRESSED), ENGINE(WRITE_INDEX),
    ENGINE(NO_PG),
    OPTION_HEADING("Input"),
    ENGINE_READING_ROWS,
    OPTION_HEADING("Resources"),
    ENGINE(THREADS), ENGINE(MEMORY), ENGINE(TEMP), ENGINE(VERBOSITY), ENGINE(HELP),
    OPTION_HEADING("\nBeyond samtools"),
    ENGINE(ADD_INPUT),
    OPTION_BEYOND(0, "check", NULL, SETS(OPTS(check)),
                  "only check whether the input is in order; exit with an error at the first problem"),
    ENGINE(CHECKSUM), ENGINE_COUNT_ROWS, ENGINE(COPY_BLOCKS), ENGINE(PLAN), ENGINE(SIZE_HINT), ENGINE(TMPDIR_ENV),
    ENGINE(TOTAL_MEMORY), ENGINE_REPORT_ROWS,
    OPTION_END,
};

const struct engine_command sort_command = {
    .name = "sort",
    .options = options,
    .usage = "Usage: samtools sort [options...] [in.bam]\n"
             "Sorts alignments (SAM, BAM, CRAM) on as many threads as -@ gives.\n\n",
    .more = "\nThe input is replaced safely by -o in.bam in.bam.\n"
            "Defaults from the environment: SAMTOOLS_OMP_TOTAL_MEMORY, SAMTOOLS_OMP_TMPDIR (DIR:DIR...) and\n"
            "SAMTOOLS_OMP_REPORT (a folder, in which each sort leaves a report).\n",
    .level = BGZF_LEVEL_DEFAULT,
    .order = {.kmer = KMER_DEFAULT, .window = WINDOW_DEFAULT},
};

static void settle_order(struct engine_args *args)
{
    engine_args_settle_order(args);
    if (!args->write_index || args->o->order.by == SORT_COORDINATE || args->o->order.by == SORT_MINHASH)
        return;
    message_warning("Ignoring --write-index as it only works for position sorted files.");
    args->write_index = false;
}

static enum engine_args_result check_operands(struct engine_opts *o, int n, char **operands)
{
    if (n > 1)
        return message_mistake("Use -T PREFIX / -o FILE to specify temporary and final output files. Only one input is "
                               "taken: to write to %s, use -o %s; to sort it, too, use --add-input=%s", operands[1],
                               operands[1], operands[1]);
    if (o->check && o->in.n > 1)
        return message_mistake("--check checks one file: it cannot be combined with --add-input");
    if (o->check && (o->report.format || o->report.trace_file))
        return message_mistake("--check writes no --report and no --trace");
    if (o->check && o->plan)
        return message_mistake("--check and --plan cannot be combined");
    if (n == 0 && isatty(STDIN_FILENO)) {
        engine_args_help(&sort_command, stdout);
        return ENGINE_ARGS_DONE;
    }
    o->in.paths[0] = input_name_file(n ? operands[0] : "-");
    return o->in.paths[0] ? ENGINE_ARGS_RUN : engine_args_no_memory();
}

enum engine_args_result sort_args_parse(struct engine_opts *o, int argc, char **argv)
{
    struct engine_args args = {.own = NULL};
    enum engine_args_result result = engine_args_read(&args, &sort_command, o, argc, argv);
    if (result != ENGINE_ARGS_RUN)
        return result;
    settle_order(&args);
    if (engine_args_settle_memory(&args) < 0 || engine_args_settle_output(&args) < 0
        || engine_args_settle_index(&args) < 0 || engine_args_settle_temp(&args, "samtools-sort.tmp") < 0)
        return ENGINE_ARGS_ERROR;
    engine_args_settle_report(o);
    return check_operands(o, argc - optind, argv + optind);
}
