/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts.h>
#include "base/input_name.h"
#include "base/message.h"
#include "cli/command_args.h"
#include "cli/order_args.h"
#include "cli/sort_settings.h"
#include "codec/bgzf_block.h"

enum {
    KMER_DEFAULT = 20, KMER_MAX = 31, WINDOW_DEFAULT = 100,
    OPT_PICARD = OPT_OWN, OPT_CHECK,
};

static const struct option long_options[] = {
    {"write-index", optional_argument, NULL, OPT_WRITE_INDEX},
    {"template-coordinate", no_argument, NULL, OPT_TEMPLATE},
    ENGINE_ARGS_LONG_OPTIONS
};

static const struct option beyond[] = {
    {"picard", no_argument, NULL, OPT_PICARD},
    {"add-input", required_argument, NULL, OPT_ADD_INPUT},
    {"check", no_argument, NULL, OPT_CHECK},
    {"copy-blocks", no_argument, NULL, OPT_COPY_BLOCKS},
    {"size-hint", required_argument, NULL, OPT_SIZE_HINT},
    {"tmpdir-env", no_argument, NULL, OPT_TMPDIR_ENV},
    {"plan", optional_argument, NULL, OPT_PLAN},
    ENGINE_ARGS_BEYOND
};

const char sort_args_usage[] =
    "Usage: samtools sort [options...] [in.bam]\n"
    "Sorts alignments (SAM, BAM, CRAM) on as many threads as -@ gives.\n"
    "\n"
    "Order (default: by coordinate)\n"
    HELP_ORDERS
    "  -M                      reads without a reference by minimiser\n"
    "  -I FILE                 as -M, by the minimisers' positions in the FASTA FILE\n"
    "  -K INT, -w INT          length of the k-mer [20]; window of -I [100]\n"
    "  -R, -H                  -M without the reverse strand; -M on squashed homopolymers\n"
    HELP_TEMPLATE
    "Output\n"
    "  -o FILE                 write to FILE instead of standard output\n"
    HELP_OUTPUT_FMT("FILE") HELP_LEVEL HELP_AS_LEVEL_0 HELP_WRITE_INDEX HELP_NO_PG
    "Input\n"
    HELP_REFERENCE HELP_INPUT_OPTION
    "Resources\n"
    HELP_THREADS HELP_MEMORY
    "  -T PREFIX               place for temporary files [beside the output]; may be repeated\n"
    HELP_VERBOSITY HELP_HELP
    "\n"
    "Beyond samtools\n"
    "      --add-input FILE    sort the records of FILE with those of in.bam; may be repeated\n"
    "      --check             only look whether the input is in order; the first offence is an error\n"
    "      --checksum=FILE     write the number of records and a checksum that is the same in any order; - too\n"
    "      --checksum=samtools:FILE\n"
    "                          write what `samtools checksum` (1.24) prints of the output\n"
    "      --stats=FILE, --flagstat=FILE, --idxstats=FILE\n"
    "                          write what `samtools stats` and so on print of the output; - too\n"
    "      --stats-args WORDS  options of samtools stats: '-p -F 0x400'; quotes group words\n"
    "      --copy-blocks       BAM that is in the order already is not deflated again\n"
    "      --picard            by read name, in Picard's order\n"
    "      --plan[=json]       only tell memory, temporary space, time and threads that the sort would take\n"
    "      --progress, --no-progress\n"
    "                          tell how far it is [on a terminal only]\n"
    "      --report[=FILE]     where the time went, and advice; FILE.json and FILE.html too\n"
    "      --size-hint SIZE    about how many bytes of uncompressed records will come by a pipe\n"
    "      --tmpdir-env        temporary files in TMPDIR, without -T\n"
    HELP_TOTAL_MEMORY
    "      --trace=FILE        what each thread did when, for ui.perfetto.dev\n"
    "      --verify            inflate every block of output again, compare it, and look at its order\n"
    "      --write-index=bai|csi\n"
    "\n"
    "The input is replaced safely by -o in.bam in.bam.\n"
    "Defaults from the environment: SAMTOOLS_OMP_TOTAL_MEMORY, SAMTOOLS_OMP_TMPDIR (DIR:DIR...) and\n"
    "SAMTOOLS_OMP_REPORT (a folder, in which each sort leaves a report).\n";

static enum engine_option take_order(struct engine_args *args, int c)
{
    struct sort_order *order = &args->o->order;
    int result = 0;
    switch (c) {
    case OPT_PICARD: order->by = SORT_NAME_PICARD; break;
    case 'I': order->index_fasta = input_name_local(optarg); /* fall through */
    case 'M': order->by = SORT_MINHASH; break;
    case 'K': result = engine_args_count("-K", optarg, 1, KMER_MAX, &order->kmer); break;
    case 'w': result = engine_args_count("-w", optarg, 1, INT_MAX, &order->window); break;
    case 'R': order->no_reverse = true; break;
    case 'H': order->squash = true; break;
    default: return order_args_take(args->own, order, c);
    }
    return result < 0 ? ENGINE_OPTION_MISTAKE : ENGINE_OPTION_TAKEN;
}

static enum engine_option take_sort_option(struct engine_args *args, int c)
{
    struct engine_opts *o = args->o;
    switch (c) {
    case OPT_CHECK: o->check = true; return ENGINE_OPTION_TAKEN;
    case OPT_COPY_BLOCKS: o->out.copies = true; return ENGINE_OPTION_TAKEN;
    default: return take_order(args, c);
    }
}

static void settle_order(struct engine_args *args)
{
    order_args_settle(args->own, &args->o->order);
    if (!args->write_index || args->o->order.by == SORT_COORDINATE || args->o->order.by == SORT_MINHASH)
        return;
    message_warning("Ignoring --write-index as it only works for position sorted files.");
    args->write_index = false;
}

static enum engine_args_result check_operands(struct engine_opts *o, int n, char **operands)
{
    if (n > 1)
        return message_mistake("Use -T PREFIX / -o FILE to specify temporary and final output files. Only one input is "
                               "taken: to write to %s, say -o %s; to sort it, too, say --add-input=%s", operands[1],
                               operands[1], operands[1]);
    if (o->check && o->in.n > 1)
        return message_mistake("--check looks at one file: --add-input does not go with it");
    if (o->check && (o->report.format || o->report.trace_file))
        return message_mistake("--check writes no --report and no --trace");
    if (o->check && o->plan)
        return message_mistake("--check and --plan do not go together");
    if (n == 0 && isatty(STDIN_FILENO)) {
        fputs(sort_args_usage, stdout);
        return ENGINE_ARGS_DONE;
    }
    o->in.paths[0] = input_name_file(n ? operands[0] : "-");
    return o->in.paths[0] ? ENGINE_ARGS_RUN : engine_args_no_memory();
}

static const struct engine_command sort = {
    .name = "sort",
    .short_options = ":l:um:@:o:O:T:hnNt:MI:K:w:RH",
    .long_options = long_options,
    .beyond = beyond,
    .take = take_sort_option,
    .usage = sort_args_usage,
    .level = BGZF_LEVEL_DEFAULT,
    .order = {.kmer = KMER_DEFAULT, .window = WINDOW_DEFAULT},
};

enum engine_args_result sort_args_parse(struct engine_opts *o, int argc, char **argv)
{
    struct order_args own = {0};
    struct engine_args args = {.own = &own};
    enum engine_args_result result = engine_args_read(&args, &sort, o, argc, argv);
    if (result != ENGINE_ARGS_RUN)
        return result;
    settle_order(&args);
    if (engine_args_settle_memory(&args) < 0 || engine_args_settle_output(&args) < 0
        || engine_args_settle_index(&args) < 0 || engine_args_settle_temp(&args, "samtools-sort.tmp") < 0)
        return ENGINE_ARGS_ERROR;
    engine_args_settle_report(o);
    return check_operands(o, argc - optind, argv + optind);
}
