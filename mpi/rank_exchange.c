/* SPDX-License-Identifier: MIT */
#include "bam_sort.h"
#include "base/clocks.h"
#include "mpi/mpi_wait.h"
#include "mpi/rank_exchange.h"
#include "mpi/rank_parts.h"
#include "engine/engine_memory.h"
#include "engine/limits.h"

/* Approximate bytes for each record of a rank that keeps a log for the index. */
enum { INDEX_MEMORY = 32 };

/* Returns the rule that compares records of equal keys. NULL: keys decide. */
static const struct sort_rule *deciding_rule(const struct rank_parts *s)
{
    return s->a.arenas.filled->rule;
}

/* Makes the two inputs of sort B, see exchange.h. */
static int open_arrivals(struct rank_parts *s, struct inputs *in, const struct inputs_options *how)
{
    if (inputs_new(in, how) < 0)
        return -1;
    while (in->n < how->request->n) {
        struct input *each = &in->each[in->n++];
        sam_hdr_t *sam = sam_hdr_dup(s->split.sam);
        if (!sam)
            return latch_fail(&s->latch_b, "out of memory");
        if (input_of_window(each, how->request->paths[0], exchange_window(s->exchange), sam, &s->d.engine) < 0)
            return -1;
    }
    inputs_complete(in, how);
    return 0;
}

static int open_sort(struct rank_parts *s)
{
    char *names[] = {s->opts->in.paths[0], s->opts->in.paths[0]};
    struct input_request request = {.paths = names, .n = 2};
    struct memory_rings rings = engine_memory_rings(&s->each, &request, MEMORY_PARTS, true);
    struct inputs_options how = engine_memory_inputs(&s->each, &request, &rings, &s->d.engine);
    struct inputs in;
    /* The number of bytes is that of the last input only. */
    uint64_t expected = s->opts->in.n > 1 ? 0 : s->in.bytes / (uint64_t)s->team.size;
    struct sorted_options sort = {.opts = &s->each, .opened = &in, .turn = SORT_SECOND, .size_hint = expected,
                                  .rings = &rings, .to = &s->d.out, .output.overhead = RANK_PARTS_OVERHEAD,
                                  .engine = &s->d.engine};
    s->b.engine = &s->d.engine;
    if (driver_begin(&s->d, &s->each) < 0 || driver_open(&s->d, &s->each, &rings) < 0)
        return -1;
    int status = open_arrivals(s, &in, &how) < 0 ? -1 : sorted_open(&s->b, &sort);
    inputs_close(&in);                           /* unless the sort has taken them over */
    if (status < 0)
        return -1;
    rank_parts_teach(s, &s->b);
    return 0;
}

static int open_b(struct rank_parts *s)
{
    struct exchange_options how = {
        .team = s->team,
        .n_threads = s->n_threads,
        .sender = &s->latch_a,
        .latch = &s->latch_b,
    };
    if (!(s->exchange = exchange_open(&how)) || open_sort(s) < 0)
        return latch_fail(&s->latch, "%s", s->latch_b.message);
    if (s->team.rank > 0)
        out_file_drop_name(&s->d.out.data);
    return 0;
}

/* Reports the merge that all records of the input go through. The two merges of sort B are internal. */
static void report_merge(const struct rank_parts *s, size_t n_runs)
{
    uint64_t mine[] = {n_runs, s->a.arenas.filled->n_sublists}, all[2];
    mpi_wait_allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM);
    if (s->team.rank == 0)
        sorted_say_merge(&s->a, all[0], all[1]);
}

/* Returns whether B's arenas can hold all records that arrive, and whether the memory limit covers everything that is
 * there until records are written. A record may be cut where one arena ends, and is then in both. */
static bool has_room(const struct rank_parts *s)
{
    const uint64_t MARGIN = (uint64_t)1 << 20;
    const struct record_shares *shares = &s->shares;
    uint64_t come = shares->bytes_come + shares->records_come * sizeof(struct bam_key);
    uint64_t written = shares->records[s->team.rank] + shares->records_come;
    uint64_t all = limits_memory(s->opts->memory, s->opts->memory_overhead, s->opts->n_threads);
    uint64_t lists = written * (record_list_memory(1) + (s->opts->out.index ? INDEX_MEMORY : 0));
    return come + 2 * shares->largest + MARGIN <= 2 * (uint64_t)s->b.arenas.filled->size
        && arenas_taken(&s->a.arenas) + come + lists <= all;
}

static int share_out(struct rank_parts *s, const struct records_read *how)
{
    if (record_shares_make(&s->shares, &s->splitters, how) < 0)
        return latch_fail(&s->latch_b, "out of memory for the ranks' shares");
    record_shares_report(&s->shares, &s->team);
    s->keeps = mpi_team_all(has_room(s));
    s->b.spill.fits = s->keeps;
    return 0;
}

/* Cuts the order. If all ranks have all of their records in memory, and room for those that arrive, they keep their
 * own. */
static int divide(struct rank_parts *s, struct merge_ring_options *merge)
{
    bool in_memory = mpi_team_all(!s->a.spill.spilling);
    struct records_read how = {
        .team = &s->team,
        .rule = deciding_rule(s),
        .runs = &merge->runs,
        .slice_size = s->a.spill.sizes.slice_size,
        .latch = &s->latch_b,
    };
    if (rank_lists_make(&s->lists, &s->a.arenas) < 0)
        return latch_fail(&s->latch_b, "out of memory for the list of sublists");
    if (!in_memory && sorted_prepare_merge(&s->a, merge, false) < 0)
        return latch_fail(&s->latch_b, "%s", s->latch_a.message);
    report_merge(s, merge->runs.n);
    how.lists = s->lists.all;
    how.n_lists = s->lists.n;
    how.bytes = s->a.arenas.each[0].walked + s->a.arenas.each[1].walked;
    how.n_threads = s->n_threads;
    if (splitters_make(&s->splitters, &how) < 0 || (in_memory && share_out(s, &how) < 0))
        return -1;
    if (in_memory && !s->keeps)
        return sorted_prepare_merge(&s->a, merge, false);
    return 0;
}

static int begin_exchange(struct rank_parts *s)
{
    struct merge_ring_options merge = {.n_arenas = 0};
    if (divide(s, &merge) < 0)
        return -1;
    if (!s->keeps && sorted_begin_merge(&s->a, &merge) < 0)
        return latch_fail(&s->latch_b, "%s", s->latch_a.message);
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

/* Sorts the records that arrive. Records from ranks after this one are in sublists of their own, since the merge puts
 * them last. */
static void exchange_records(void *sort)
{
    struct rank_parts *s = sort;
    latch_hide_signals(false);
    if (begin_exchange(s) < 0)
        return;
    if (bam_sort_read_some(&s->b, 0, 1) < 0)
        return;
    rank_lists_note_behind(&s->lists, &s->b.arenas);
    bam_sort_read_some(&s->b, 1, 2);
}

static void count_exchange(struct rank_parts *s)
{
    struct rank_numbers *mine = &s->report.mine;
    mine->bytes = exchange_bytes(s->exchange, EXCHANGE_LISTED) + (s->keeps ? s->shares.bytes[s->team.rank] : 0);
    mine->sent = exchange_bytes(s->exchange, EXCHANGE_SENT);
    mine->received = exchange_bytes(s->exchange, EXCHANGE_RECEIVED);
    mine->records = s->a.arenas.filled->n_records;
    mine->n_threads = s->n_threads;
}

int rank_exchange(struct rank_parts *s)
{
    open_b(s);
    if (mpi_team_agree(&s->team, &s->latch) < 0)
        return -1;
    rank_report_begin(&s->report, RANK_EXCHANGE);
    rank_parts_run(s, exchange_records);
    rank_report_end(&s->report, RANK_EXCHANGE);
    if (latch_tripped(&s->latch_b))
        rank_parts_abort(s);
    count_exchange(s);
    return 0;
}
