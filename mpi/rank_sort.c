/* SPDX-License-Identifier: MIT */
/* The driver of a rank. It runs the ordinary driver's steps twice: sort A of what the rank reads of the input, and
 * sort B of what it writes of the output. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hts_log.h>
#include "bam_sort.h"
#include "base/machine.h"
#include "merge/merge_ring.h"
#include "mpi/block_seam.h"
#include "mpi/exchange.h"
#include "mpi/index_gather.h"
#include "mpi/input_split.h"
#include "mpi/output_gather.h"
#include "mpi/rank_lists.h"
#include "mpi/rank_pages.h"
#include "mpi/rank_report.h"
#include "mpi/rank_sort.h"
#include "order/minhash.h"
#include "plan/sort_limits.h"
#include "plan/sort_memory.h"
#include "plan/sort_parts.h"
#include "write/record_sink.h"

/* Memory that a sort leaves to the other one. Both are there while records are exchanged, and each plans with 64 MiB
 * beside -m; but neither has a full sink then, and the program, 14 MiB, is there once. Measured, with a margin. */
static const size_t BESIDE = (size_t)8 << 20;

/* Bytes for each record of a rank that keeps a log for the index, about. */
enum { INDEX_MEMORY = 32 };

/* Sums over all ranks, modulo 2^64. */
struct totals {
    uint64_t records, checksum, bytes;
};

struct rank_sort {
    const struct sort_opts *opts;
    struct mpi_team team;
    struct input_split split;
    struct sort_opts opts_a, opts_b;
    struct sort_parts a, b;
    char *arrivals_name;         /* of B's inputs: */
    struct input_part arrivals[2];   /* see exchange.h */
    struct splitters splitters;
    struct rank_lists lists;     /* of A */
    struct record_shares shares;
    bool keeps;                  /* all ranks keep their own records in A, until they are written */
    struct exchange *exchange;
    struct block_seam seam;
    struct rank_report report;
    struct totals in;            /* of all ranks */
    bool unplaced;               /* no rank has a record with a reference */
    char part_path[4096];        /* of B's output, but at rank 0: it never gets the name */
    char nowhere[16];            /* of A's output: nothing is put there */
    int n_threads;
    struct latch latch;          /* of what is neither A's nor B's */
};

/* ---- what is refused ---- */

static bool is_other_than_file(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
}

static bool reads_stdin(const struct sort_opts *o)
{
    bool reads = is_stdin(o->in);
    for (size_t i = 0; i < o->n_more; i++)
        reads = reads || is_stdin(o->more[i]);
    return reads;
}

/* PRTE_LAUNCHED: mpirun of Open MPI 5 has started the rank (openpmix/prrte issue 2220). */
const char *rank_sort_refuses(const struct sort_opts *o)
{
    if (reads_stdin(o) && getenv("PRTE_LAUNCHED"))
        return "mpirun of Open MPI 5 may hand on parts of standard input twice: name a file or a named pipe";
    if (record_sink_form(o) != SINK_BAM || is_other_than_file(o->out.path))
        return "the output must be BAM in a regular file (-o FILE)";
    if (o->verify || o->checksum || o->check || o->plan)
        return "--verify, --checksum, --check and --plan are not there yet";
    if (o->progress == PROGRESS_ALWAYS)
        return "--progress is not there yet";
    if (o->trace_file)
        return "--trace is not there yet";
    return NULL;
}

/* ---- sums ---- */

static struct totals add_up(struct totals mine)
{
    struct totals all;
    uint64_t from[] = {mine.records, mine.checksum, mine.bytes}, to[3];
    MPI_Allreduce(from, to, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    all = (struct totals){to[0], to[1], to[2]};
    return all;
}

/* ---- sort A ---- */

static void share_options(struct rank_sort *s)
{
    s->opts_a = s->opts_b = *s->opts;
    s->opts_a.memory = s->opts_b.memory = s->opts->memory / 2;
    s->opts_a.progress = s->opts_b.progress = PROGRESS_NEVER;
    s->opts_a.report = s->opts_b.report = REPORT_NONE;   /* there is one of all */
    s->opts_a.report_file = s->opts_b.report_file = NULL;
    s->opts_a.out.path = s->nowhere;
    s->opts_a.out.level = 0;
    s->opts_a.size_hint = s->opts->size_hint / (uint64_t)s->team.size;
    strcpy(s->nowhere, "/dev/null");
    snprintf(s->part_path, sizeof s->part_path, "%s.rank%d", s->opts->temp_prefixes[0], s->team.rank);
    s->opts_a.out.index = NULL;
    s->opts_b.more = &s->arrivals_name;
    s->opts_b.n_more = 1;
    s->arrivals_name = s->opts->in;
    if (s->team.rank > 0) {
        s->opts_b.out.path = s->part_path;
        s->opts_b.out.index = NULL;
    }
}

static int agree(const struct rank_sort *s, const struct latch *latch)
{
    return mpi_team_agree(&s->team, latch);
}

static void read_part(void *sort)
{
    struct rank_sort *s = sort;
    latch_hide_signals(false);
    bam_sort_read(&s->a);
}

static void run_team(struct rank_sort *s, void (*main_thread)(void *))
{
    latch_hide_signals(true);
    task_team(s->n_threads, main_thread, s);
}

/* What is read by one rank may be all there is. */
static void expect_all(struct rank_sort *s)
{
    if (s->split.has_whole)
        s->opts_a.size_hint = s->opts->size_hint;
}

static int sort_part(struct rank_sort *s)
{
    s->split.parts[0].beside = BESIDE;
    s->split.parts[0].silent = s->team.rank > 0;
    expect_all(s);
    sort_parts_open_part(&s->a, &s->opts_a, s->split.parts);
    rank_report_end(&s->report, RANK_OPEN);
    if (agree(s, &s->a.latch) < 0)
        return -1;
    s->n_threads = sort_limits_threads(s->opts, s->a.in.n_threads);
    rank_report_begin(&s->report, RANK_READ);
    run_team(s, read_part);
    rank_report_end(&s->report, RANK_READ);
    sort_inputs_end(&s->a.in);                   /* what decodes CRAM takes memory that sort B needs */
    if (s->a.minhash)
        minhash_drop_index(s->a.minhash);        /* as does the index of -I */
    machine_give_back_heaps();
    if (agree(s, &s->a.latch) < 0)
        return -1;
    const struct arenas *arenas = &s->a.arenas;
    uint64_t n = arenas->filled->n_records;
    const struct bam_arena *last = s->a.reader.arena;
    uint64_t checksum = arenas->filled->checksum + s->a.sorts.turned;
    s->in = add_up((struct totals){n, checksum, last->origin + last->walked});
    s->unplaced = mpi_team_all(arenas_unplaced(arenas));
    return 0;
}

/* ---- exchange, and sort B ---- */

/* NULL: keys decide. */
static const struct sort_rule *deciding_rule(const struct rank_sort *s)
{
    return s->a.arenas.filled->rule;
}

static int open_b(struct rank_sort *s)
{
    struct exchange_options how = {
        .team = s->team,
        .n_threads = s->n_threads,
        .sender = &s->a.latch,
        .latch = &s->b.latch,
    };
    if (!(s->exchange = exchange_open(&how)))
        return latch_fail(&s->latch, "%s", s->b.latch.message);
    for (int i = 0; i < 2; i++)
        s->arrivals[i] = (struct input_part){
            .sam = s->split.sam,
            .window = exchange_window(s->exchange),
            .sample = s->split.parts[0].sample,
            .sample_size = s->split.parts[0].sample_size,
            .prepared = true,
            .beside = BESIDE,
        };
    /* The bytes are those of the last input alone. */
    s->opts_b.size_hint = s->opts->n_more ? 0 : s->in.bytes / (uint64_t)s->team.size;
    if (sort_parts_open_part(&s->b, &s->opts_b, s->arrivals) < 0)
        return latch_fail(&s->latch, "%s", s->b.latch.message);
    return 0;
}

/* Of the merge that all records of the input go through. The two of sort B are nobody's business. */
static void tell_merge(const struct rank_sort *s, size_t n_runs)
{
    uint64_t mine[] = {n_runs, s->a.arenas.filled->n_sublists}, all[2];
    MPI_Reduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (s->team.rank == 0)
        bam_sort_tell_merge(all[0], all[1]);
}

/* Whether B's arenas hold all that comes, and all memory does what is there until records are written. A record may be
 * cut where one arena ends, and then lies in both. */
static bool has_room(const struct rank_sort *s)
{
    const uint64_t MARGIN = (uint64_t)1 << 20;
    const struct record_shares *shares = &s->shares;
    uint64_t come = shares->bytes_come + shares->records_come * sizeof(struct bam_key);
    uint64_t written = shares->records[s->team.rank] + shares->records_come;
    uint64_t lists = written * (record_list_memory(1) + (s->opts->out.index ? INDEX_MEMORY : 0));
    return come + 2 * shares->largest + MARGIN <= 2 * (uint64_t)s->b.arenas.filled->size
        && arenas_taken(&s->a.arenas) + come + lists <= sort_limits_memory(s->opts);
}

static int share_out(struct rank_sort *s, const struct records_read *how)
{
    if (record_shares_make(&s->shares, &s->splitters, how) < 0)
        return latch_fail(&s->b.latch, "out of memory for the ranks' shares");
    record_shares_tell(&s->shares, &s->team);
    s->keeps = mpi_team_all(has_room(s));
    s->b.spill.fits = s->keeps;
    return 0;
}

/* Cuts the order. If all ranks have all of their records in memory, and room for what comes, they keep their own. */
static int divide(struct rank_sort *s, struct merge_ring_options *merge)
{
    bool in_memory = mpi_team_all(!s->a.spill.spilling);
    struct records_read how = {
        .team = &s->team,
        .rule = deciding_rule(s),
        .runs = &merge->runs,
        .slice_size = s->a.spill.sizes.slice_size,
        .latch = &s->b.latch,
    };
    if (rank_lists_make(&s->lists, &s->a.arenas) < 0)
        return latch_fail(&s->b.latch, "out of memory for the list of sublists");
    if (!in_memory && bam_sort_prepare_merge(&s->a, merge) < 0)
        return latch_fail(&s->b.latch, "%s", s->a.latch.message);
    tell_merge(s, merge->runs.n);
    how.lists = s->lists.all;
    how.n_lists = s->lists.n;
    how.bytes = s->a.arenas.each[0].walked + s->a.arenas.each[1].walked;
    how.n_threads = s->n_threads;
    if (splitters_make(&s->splitters, &how) < 0 || (in_memory && share_out(s, &how) < 0))
        return -1;
    if (in_memory && !s->keeps)
        return bam_sort_prepare_merge(&s->a, merge);
    return 0;
}

static int begin_exchange(struct rank_sort *s)
{
    struct merge_ring_options merge = {.n_arenas = 0};
    if (divide(s, &merge) < 0)
        return -1;
    if (!s->keeps && bam_sort_begin_merge(&s->a, &merge) < 0)
        return latch_fail(&s->b.latch, "%s", s->a.latch.message);
    struct exchange_records records = {
        .shares = s->keeps ? &s->shares : NULL,
        .merge = s->a.merge,
        .splitters = &s->splitters,
        .rule = s->a.rule,
        .minhash = s->a.minhash,
        .keys_decide = !deciding_rule(s),
    };
    exchange_start(s->exchange, &records);
    return 0;
}

/* Sorts what comes. What ranks behind this one send is in sublists of its own, since the merge puts it last. */
static void exchange_records(void *sort)
{
    struct rank_sort *s = sort;
    latch_hide_signals(false);
    if (begin_exchange(s) < 0)
        return;
    bam_sort_begin_reading(&s->b);
    if (bam_sort_read_input(&s->b, 0) < 0 || sort_tasks_close_rest(&s->b.sorts) < 0)
        return;
    rank_lists_note_behind(&s->lists, &s->b.arenas);
    if (bam_sort_read_input(&s->b, 1) == 0)
        bam_sort_end_reading(&s->b);
}

static void close_parts(struct rank_sort *s, struct sort_parts *p)
{
    sort_parts_finish(p, s->n_threads);
    if (p->stats) {
        s->report.mine.temporary += stats_total(p->stats, STAGE_SPILL_WRITE).bytes;
        stats_stop(p->stats);
        progress_end(&p->progress, false);
    }
    sort_report_close(&p->report);
    stats_free(p->stats);
    p->stats = NULL;
}

/* ---- blocks ---- */

/* All that this rank writes. */
static int begin_merge(struct rank_sort *s, size_t *n_runs)
{
    struct merge_ring_options how;
    if (bam_sort_prepare_merge(&s->b, &how) < 0)
        return -1;
    if (s->keeps)
        rank_lists_merge(&s->lists, &s->shares, s->team.rank, &s->a.arenas, &s->b.arenas, &how);
    *n_runs = how.runs.n;
    return bam_sort_begin_merge(&s->b, &how);
}

static uint64_t records_to_write(const struct rank_sort *s)
{
    return s->b.arenas.filled->n_records + (s->keeps ? s->shares.records[s->team.rank] : 0);
}

/* The first merge of B: where the blocks lie. If all records are in memory, their order is kept, and nothing is merged
 * again: sort A has given back more memory than that takes. */
static void measure_records(void *sort)
{
    struct rank_sort *s = sort;
    size_t n_runs;
    struct record_list list;
    latch_hide_signals(false);
    s->b.spill.keeps_runs = true;
    if (begin_merge(s, &n_runs) < 0)
        return;
    if (block_seam_open(&s->seam, records_to_write(s), n_runs == 0) < 0)
        latch_fail(&s->b.latch, "out of memory for the order of all records");
    while (merge_ring_next(s->b.merge, &list) > 0)
        block_seam_add(&s->seam, &list);
}

static int find_seam(struct rank_sort *s)
{
    rank_report_begin(&s->report, RANK_MEASURE);
    run_team(s, measure_records);
    rank_report_end(&s->report, RANK_MEASURE);
    merge_ring_close(s->b.merge);
    s->b.merge = NULL;
    if (agree(s, &s->b.latch) < 0)
        return -1;
    block_seam_settle(&s->seam, &s->team);
    return 0;
}

/* Takes up to n records off the beginning. Returns how many. */
static size_t skip(struct record_list *list, size_t n)
{
    n = n < list->n ? n : list->n;
    list->records += n;
    list->fit = list->fit ? list->fit + n : NULL;
    list->n -= n;
    return n;
}

static int put_merged(struct rank_sort *s)
{
    struct record_list list;
    size_t n_runs, lead = s->seam.n_lead;
    int merged;
    s->b.spill.keeps_runs = false;
    if (begin_merge(s, &n_runs) < 0)
        return -1;
    while ((merged = merge_ring_next(s->b.merge, &list)) > 0) {
        lead -= skip(&list, lead);
        if (record_sink_put(s->b.out.sink, &list) < 0)
            return -1;
    }
    return merged;
}

static int put_kept(struct rank_sort *s)
{
    struct record_list list = s->seam.kept;
    skip(&list, s->seam.n_lead);
    return record_sink_put(s->b.out.sink, &list);
}

static int put_records(struct rank_sort *s)
{
    struct record_ref tail[BLOCK_SEAM_RECORDS];
    if ((s->seam.sizes ? put_merged(s) : put_kept(s)) < 0)
        return -1;
    struct record_list list = {.records = tail, .n = block_seam_tail(&s->seam, tail)};
    return record_sink_put(s->b.out.sink, &list);
}

/* The header, which only the first rank writes. */
static int begin_output(struct rank_sort *s)
{
    struct record_sink *sink = s->b.out.sink;
    if (s->team.rank > 0)
        return s->opts->out.index ? record_sink_log_index(sink, s->b.sam) : 0;
    if (sort_files_header(&s->b.out, s->b.sam, s->unplaced) < 0)
        return -1;
    record_sink_hold_index(sink);
    return 0;
}

static void write_part(void *sort)
{
    struct rank_sort *s = sort;
    latch_hide_signals(false);
    if (begin_output(s) == 0 && put_records(s) == 0)
        record_sink_finish(s->b.out.sink);
}

/* Records in == records out, as in the ordinary sort, but over all ranks. */
static void compare(struct rank_sort *s)
{
    const struct record_sink *sink = s->b.out.sink;
    struct totals out = add_up((struct totals){record_sink_count(sink), record_sink_checksum(sink), 0});
    if (out.records == s->in.records && out.checksum == s->in.checksum)
        return;
    latch_fail(&s->b.latch, "%s: %llu records with checksum %016llx were read, but %llu with %016llx went to the "
               "output. Memory may be faulty, or this is our bug: please report it", s->opts->in,
               (unsigned long long)s->in.records, (unsigned long long)s->in.checksum,
               (unsigned long long)out.records, (unsigned long long)out.checksum);
}

/* MPI ends a process without what exit() does: its output may have a temporary name. */
static _Noreturn void abort_all(struct rank_sort *s)
{
    sort_files_abandon(&s->b.out);
    mpi_team_abort(&s->team, &s->b.latch);
}

static void gather(struct rank_sort *s)
{
    struct out_file *data = &s->b.out.data;
    int fd = s->team.rank == 0 ? data->fd : open(out_file_name(data), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        latch_fail(&s->b.latch, "%s cannot be read again: %s", data->path, strerror(errno));
    struct output_part part = {fd, data->path, data->temp, s->n_threads};
    uint64_t *places = calloc((size_t)s->team.size, sizeof *places);
    if (!places)
        latch_fail(&s->b.latch, "out of memory");
    if (fd < 0 || !places || output_gather(&s->team, &part, places, &s->b.latch) < 0
        || (s->opts->out.index && index_gather(&s->team, record_sink_index(s->b.out.sink), places, &s->b.latch) < 0))
        abort_all(s);
    if (fd != data->fd)
        close(fd);
    free(places);
}

static void count_output(struct rank_sort *s)
{
    struct stat st;
    if (fstat(s->b.out.data.fd, &st) == 0)
        s->report.mine.written = (uint64_t)st.st_size;
}

static int write_output(struct rank_sort *s)
{
    if (find_seam(s) < 0)
        return -1;
    rank_report_begin(&s->report, RANK_BLOCKS);
    run_team(s, write_part);
    rank_report_end(&s->report, RANK_BLOCKS);
    if (agree(s, &s->b.latch) < 0)
        return -1;
    compare(s);
    if (agree(s, &s->b.latch) < 0)
        return -1;
    count_output(s);
    rank_report_begin(&s->report, RANK_JOIN);
    gather(s);
    rank_report_end(&s->report, RANK_JOIN);
    return agree(s, &s->b.latch);
}

/* ---- from beginning to end ---- */

static void count_exchange(struct rank_sort *s)
{
    struct rank_numbers *mine = &s->report.mine;
    mine->bytes = exchange_bytes(s->exchange, EXCHANGE_LISTED) + (s->keeps ? s->shares.bytes[s->team.rank] : 0);
    mine->sent = exchange_bytes(s->exchange, EXCHANGE_SENT);
    mine->received = exchange_bytes(s->exchange, EXCHANGE_RECEIVED);
    mine->records = s->a.arenas.filled->n_records;
    mine->n_threads = s->n_threads;
}

static int open_split(struct rank_sort *s)
{
    rank_report_start(&s->report);
    rank_report_begin(&s->report, RANK_OPEN);
    struct memory_rings rings = sort_memory_rings(&s->opts_a);
    struct sort_inputs_options how = sort_memory_inputs(&s->opts_a, &rings, &s->a.latch, NULL);
    return input_split_open(&s->split, &s->team, &how);
}

static int sort_all(struct rank_sort *s)
{
    if (open_split(s) < 0 || sort_part(s) < 0)
        return -1;
    open_b(s);
    if (agree(s, &s->latch) < 0)
        return -1;
    rank_report_begin(&s->report, RANK_EXCHANGE);
    run_team(s, exchange_records);
    rank_report_end(&s->report, RANK_EXCHANGE);
    if (latch_tripped(&s->b.latch))
        abort_all(s);
    count_exchange(s);
    if (!s->keeps)
        close_parts(s, &s->a);
    return write_output(s);
}

/* Only rank 0's output gets a name, and only if all went well. */
static int close_all(struct rank_sort *s, int result)
{
    if (s->a.stats) {
        sort_files_abandon(&s->a.out);
        close_parts(s, &s->a);
    }
    if (s->b.stats) {
        if (result < 0 || s->team.rank > 0)
            sort_files_abandon(&s->b.out);
        close_parts(s, &s->b);
        if (result == 0)
            result = agree(s, &s->b.latch);
    }
    exchange_close(s->exchange);
    block_seam_close(&s->seam);
    input_split_close(&s->split);
    record_shares_free(&s->shares);
    rank_lists_free(&s->lists);
    splitters_free(&s->splitters);
    return result;
}

int rank_sort(const struct sort_opts *opts, const struct mpi_team *team)
{
    struct rank_sort *s = calloc(1, sizeof *s);
    struct latch latch = {0};
    if (!s)
        latch_fail(&latch, "out of memory");
    if (mpi_team_agree(team, &latch) < 0) {
        free(s);
        return EXIT_FAILURE;
    }
    machine_share_heaps();
    if (team->rank > 0)
        hts_verbose = HTS_LOG_ERROR;             /* what all would say is told once */
    s->opts = opts;
    s->team = *team;
    s->n_threads = 1;
    share_options(s);
    rank_report_open(&s->report, opts, team, &s->latch);
    int result = agree(s, &s->latch) == 0 ? close_all(s, sort_all(s)) : -1;
    if (result == 0) {
        rank_report_write(&s->report, rank_pages_put, &s->latch);
        result = agree(s, &s->latch);
    }
    rank_report_close(&s->report);
    free(s);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
