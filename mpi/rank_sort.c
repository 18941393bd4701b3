/* SPDX-License-Identifier: MIT */
/* The driver of a rank. It runs the ordinary driver's steps twice: for sort A of the records that the rank reads, and
 * for sort B of those that it writes.
 *
 *   rank 0   in.bam [0/3, 1/3) --> sort A --\    /--> sort B --> blocks --> out.bam
 *   rank 1   in.bam [1/3, 2/3) --> sort A ---\--/---> sort B --> blocks ----^
 *   rank 2   in.bam [2/3, end) --> sort A ----\/----> sort B --> blocks ----^
 *            input_split           splitters  exchange    block_boundary  output_gather
 *
 * Split: each rank finds the first record in its part of the bytes; its part ends where the next one begins. Sort A is
 * an ordinary sort of the part with half of the memory. Splitters: rank 0 gets samples of all keys and cuts the order
 * so that all ranks get the same number of bytes. It cuts ties, too, by rank. Exchange: each rank sends its records to
 * the others. Boundary: where a block begins depends on the sizes of all records before it, so each rank follows the
 * blocks from every possible start until the chains meet; then one number goes from rank to rank. Gather: each rank
 * writes its blocks into the file, or sends them to rank 0, which makes the index and compares the records of all.
 *
 * Both sorts are stable, and cuts are places in the order of (key, rank, place in its part). So the outputs of the
 * ranks, one after the other, are the stable sort of the input. A rank that waits sleeps. A rank that fails stops the
 * others by a message (mpi/mpi_alarm.h), or by MPI_Abort if they do not answer within 5 seconds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts_log.h>
#include "bam_sort.h"
#include "base/engine.h"
#include "base/input_name.h"
#include "base/machine.h"
#include "base/clocks.h"
#include "base/temp_prefix.h"
#include "mpi/rank_exchange.h"
#include "mpi/rank_output.h"
#include "mpi/rank_pages.h"
#include "mpi/rank_parts.h"
#include "mpi/rank_sort.h"
#include "order/minhash.h"
#include "engine/limits.h"
#include "engine/engine_memory.h"
#include "write/record_sink.h"

static const uint64_t MEMORY_LEAST = (uint64_t)2 << 20;      /* -m 1M for each of the two sorts */

/* ---- options that are refused ---- */

static bool names_stdin(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
}

static bool reads_stdin(const struct engine_opts *o)
{
    bool reads = false;
    for (size_t i = 0; i < o->in.n; i++)
        reads = reads || names_stdin(o->in.paths[i]);
    return reads;
}

/* Returns the memory for records: --total-memory minus the memory that a program takes in addition to -m. */
static uint64_t memory_for_records(const struct engine_opts *o)
{
    uint64_t overhead = MEMORY_OVERHEAD - o->memory_overhead;
    return o->memory > overhead ? o->memory - overhead : 0;
}

#define AS_OPTION(name) "--" #name ", "

/* PRTE_LAUNCHED: mpirun of Open MPI 5 has started the rank (openpmix/prrte issue 2220). */
const char *rank_sort_refuses(const struct engine_opts *o)
{
    if (reads_stdin(o) && getenv("PRTE_LAUNCHED"))
        return "mpirun of Open MPI 5 may hand on parts of standard input twice: name a file or a named pipe";
    if (record_sink_form(&o->out) != SINK_BAM || input_name_is_stream(o->out.path))
        return "the output must be BAM in a regular file (-o FILE)";
    if (o->out.verify || o->out.checksum || o->check || o->plan || o->out.copies || o->out.n_counters)
        return "--verify, --checksum, " COUNTER_LIST(AS_OPTION)
               "--check, --copy-blocks and --plan are not supported yet";
    if (o->progress == PROGRESS_ALWAYS)
        return "--progress is not supported yet";
    if (o->report.trace_file)
        return "--trace is not supported yet";
    if (memory_for_records(o) < MEMORY_LEAST)
        return o->memory_overhead > 0 ? "-m times -@ is for a rank and must be at least 2M"
                                    : "--total-memory is for a rank and needs at least 66M";
    return NULL;
}

/* ---- sort A ---- */

/* Names the rank's part of the output, which goes to the first of the places for temporary files. */
static void name_part(struct rank_parts *s)
{
    const char *place = s->opts->temp_prefixes[0], *ending = temp_prefix_ending(place);
    int n = snprintf(s->part_path, sizeof s->part_path, "%s%s.rank%d", place, ending, s->team.rank);
    if (n < 0 || (size_t)n >= sizeof s->part_path)
        latch_fail(&s->latch, "-T %.300s: %s. Nothing was read", place, strerror(ENAMETOOLONG));
}

static void share_options(struct rank_parts *s)
{
    s->each = *s->opts;
    /* Each of the two sorts plans with the memory that a program takes in addition to -m. */
    s->each.memory = memory_for_records(s->opts) / 2;
    s->each.memory_overhead = MEMORY_OVERHEAD;
    s->each.report = (struct report_request){.format = REPORT_NONE};     /* there is one report of all ranks */
    s->each.progress = PROGRESS_NEVER;
    if (s->team.rank > 0) {
        s->each.out.path = s->part_path;
        s->each.out.index = NULL;
    }
}

static void read_own_part(void *sort)
{
    struct rank_parts *s = sort;
    latch_hide_signals(false);
    bam_sort_read(&s->a);
}

static void count_input(struct rank_parts *s)
{
    const struct arenas *arenas = &s->a.arenas;
    const struct bam_arena *last = arenas->filled;
    struct rank_totals mine = {sorted_tally(&s->a), last->origin + last->walked};
    s->in = rank_parts_add_up(mine);
    s->unplaced = mpi_team_all(arenas_unplaced(arenas));
}

static int sort_part(struct rank_parts *s, const struct memory_rings *rings)
{
    /* One rank may have to read the complete input. */
    uint64_t expected = s->opts->size_hint / (s->split.has_whole ? 1 : (uint64_t)s->team.size);
    struct sorted_options how = {.opts = &s->each, .opened = &s->split.in, .turn = SORT_FIRST, .size_hint = expected,
                                 .rings = rings, .output.overhead = RANK_PARTS_OVERHEAD, .engine = &s->engine_a};
    if (sorted_open(&s->a, &how) == 0)
        rank_parts_teach(s, &s->a);
    rank_report_end(&s->report, RANK_OPEN);
    if (mpi_team_agree(&s->team, &s->latch_a) < 0)
        return -1;
    s->n_threads = limits_threads(s->opts->n_threads, s->a.in.n_threads);
    rank_report_begin(&s->report, RANK_READ);
    rank_parts_run(s, read_own_part);
    rank_report_end(&s->report, RANK_READ);
    inputs_end(&s->a.in);                   /* the decoder of CRAM takes memory that sort B needs */
    if (s->a.minhash)
        minhash_drop_index(s->a.minhash);        /* so does the index of -I */
    machine_give_back_heaps();
    if (mpi_team_agree(&s->team, &s->latch_a) < 0)
        return -1;
    count_input(s);
    return 0;
}

/* ---- from beginning to end ---- */

static int open_split(struct rank_parts *s, const struct memory_rings *rings)
{
    rank_report_start(&s->report);
    rank_report_begin(&s->report, RANK_OPEN);
    s->engine_a.clocks = clocks_new(s->each.n_threads, CLOCKS_TIMES);   /* the inputs take them over */
    struct inputs_options how = engine_memory_inputs(&s->each, &s->each.in, rings, &s->engine_a);
    return input_split_open(&s->split, &s->team, &how);
}

static int sort_all(struct rank_parts *s)
{
    struct memory_rings rings = engine_memory_rings(&s->each, &s->each.in, MEMORY_PARTS, false);
    if (open_split(s, &rings) < 0 || sort_part(s, &rings) < 0 || rank_exchange(s) < 0)
        return -1;
    if (!s->keeps)
        rank_parts_close(s, &s->a);
    return rank_output(s);
}

/* Closes everything. Only rank 0's output gets a name, and only if all ranks succeeded. */
static int close_all(struct rank_parts *s, int result)
{
    if (s->a.engine)
        rank_parts_close(s, &s->a);
    if (s->b.engine) {
        if (result < 0 || s->team.rank > 0)
            written_abandon(&s->d.out);
        rank_parts_close(s, &s->b);
        if (result == 0)
            result = mpi_team_agree(&s->team, &s->latch_b);
    }
    exchange_close(s->exchange);
    block_boundary_close(&s->boundary);
    input_split_close(&s->split);
    record_shares_free(&s->shares);
    rank_lists_free(&s->lists);
    splitters_free(&s->splitters);
    clocks_free(s->engine_a.clocks);
    clocks_free(s->d.engine.clocks);
    return result;
}

int rank_sort(const struct engine_opts *opts, const struct mpi_team *team)
{
    struct rank_parts *s = calloc(1, sizeof *s);
    struct latch latch = {0};
    if (!s)
        latch_fail(&latch, "out of memory");
    if (mpi_team_agree(team, &latch) < 0) {
        free(s);
        return EXIT_FAILURE;
    }
    machine_share_heaps();
    if (team->rank > 0)
        hts_verbose = HTS_LOG_ERROR;             /* what all ranks would print appears once */
    s->opts = opts;
    s->team = *team;
    s->n_threads = 1;
    written_begin(&s->d.out, &s->each.out, &s->d.engine);
    name_part(s);
    share_options(s);
    s->engine_a = (struct engine){.latch = &s->latch_a, .n_threads = s->each.n_threads};
    s->d.engine.latch = &s->latch_b;
    rank_report_open(&s->report, &opts->report, team, &s->latch);
    int result = mpi_team_agree(&s->team, &s->latch) == 0 ? close_all(s, sort_all(s)) : -1;
    if (result == 0) {
        rank_report_write(&s->report, rank_pages_put, &s->latch);
        result = mpi_team_agree(&s->team, &s->latch);
    }
    rank_report_close(&s->report);
    free(s);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
