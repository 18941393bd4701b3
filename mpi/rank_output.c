/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/engine.h"
#include "hts/bam_index.h"
#include "mpi/index_gather.h"
#include "mpi/output_gather.h"
#include "mpi/rank_output.h"
#include "mpi/rank_parts.h"
#include "sort/merge_ring.h"
#include "write/record_sink.h"

/* Begins a merge of all records that this rank writes. again: it is not the last one. *n_runs: the number of its
 * runs. */
static int begin_merge(struct rank_parts *s, bool again, size_t *n_runs)
{
    struct merge_ring_options how;
    if (sorted_prepare_merge(&s->b, &how, again) < 0)
        return -1;
    if (s->keeps)
        rank_lists_merge(&s->lists, &s->shares, s->team.rank, &s->a.arenas, &s->b.arenas, &how);
    *n_runs = how.runs.n;
    return sorted_begin_merge(&s->b, &how);
}

static uint64_t records_to_write(const struct rank_parts *s)
{
    return s->b.arenas.filled->n_records + (s->keeps ? s->shares.records[s->team.rank] : 0);
}

/* Runs the first merge of B, which finds where blocks begin. If all records are in memory, the order is kept for the
 * output, so that they need not be merged again. It takes less memory than sort A has freed. */
static void measure_records(void *sort)
{
    struct rank_parts *s = sort;
    size_t n_runs;
    struct record_list list;
    latch_hide_signals(false);
    if (begin_merge(s, true, &n_runs) < 0)
        return;
    if (block_boundary_open(&s->boundary, records_to_write(s), n_runs == 0) < 0)
        latch_fail(&s->latch_b, "out of memory for the order of all records");
    while (merge_ring_next(s->b.merge, &list) > 0)
        block_boundary_add(&s->boundary, &list);
}

static int find_boundary(struct rank_parts *s)
{
    rank_report_begin(&s->report, RANK_MEASURE);
    rank_parts_run(s, measure_records);
    rank_report_end(&s->report, RANK_MEASURE);
    merge_ring_close(s->b.merge);
    s->b.merge = NULL;
    if (mpi_team_agree(&s->team, &s->latch_b) < 0)
        return -1;
    block_boundary_settle(&s->boundary, &s->team);
    return 0;
}

/* Removes up to n records from the beginning. Returns how many. */
static size_t skip(struct record_list *list, size_t n)
{
    n = n < list->n ? n : list->n;
    list->records += n;
    list->fit = list->fit ? list->fit + n : NULL;
    list->n -= n;
    return n;
}

static int put_merged(struct rank_parts *s)
{
    struct record_list list;
    size_t n_runs, lead = s->boundary.n_lead;
    int found;
    if (begin_merge(s, false, &n_runs) < 0)
        return -1;
    while ((found = merge_ring_next(s->b.merge, &list)) > 0) {
        lead -= skip(&list, lead);
        if (record_sink_put(s->d.out.sink, &list) < 0)
            return -1;
    }
    return found;
}

static int put_kept(struct rank_parts *s)
{
    struct record_list list = s->boundary.kept;
    skip(&list, s->boundary.n_lead);
    return record_sink_put(s->d.out.sink, &list);
}

static int put_records(struct rank_parts *s)
{
    struct record_ref tail[BLOCK_BOUNDARY_RECORDS];
    if ((s->boundary.sizes ? put_merged(s) : put_kept(s)) < 0)
        return -1;
    struct record_list list = {.records = tail, .n = block_boundary_tail(&s->boundary, tail)};
    return record_sink_put(s->d.out.sink, &list);
}

/* Begins the output with the header, which only the first rank writes. */
static int begin_output(struct rank_parts *s)
{
    if (s->team.rank == 0)
        return written_header(&s->d.out, s->b.sam, &s->opts->order, s->unplaced, false);
    return s->opts->out.index ? written_index(&s->d.out, bam_index_new(s->b.sam, HTS_FMT_CSI, NULL)) : 0;
}

static void write_part(void *sort)
{
    struct rank_parts *s = sort;
    latch_hide_signals(false);
    if (begin_output(s) == 0 && put_records(s) == 0)
        record_sink_finish(s->d.out.sink);
}

/* Compares records in and records out, as the ordinary sort does, but over all ranks. */
static void compare(struct rank_parts *s)
{
    const struct record_sink *sink = s->d.out.sink;
    struct rank_totals mine = {.records = {.n = record_sink_count(sink), .checksum = record_sink_checksum(sink)}};
    struct rank_totals out = rank_parts_add_up(mine);
    tally_compare(s->in.records, out.records, "in the output", s->d.out.input, s->d.out.engine->latch);
}

/* Returns whether a file can be read by its descriptor. The files that out_file makes without a name are not readable.
 * Rank 0 reads nothing. */
static bool can_read_back(int fd)
{
    return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

static void gather(struct rank_parts *s)
{
    struct out_file *data = &s->d.out.data;
    int fd = s->team.rank == 0 || can_read_back(data->fd) ? data->fd : open(out_file_name(data), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        latch_fail(&s->latch_b, "%s cannot be read again: %s", data->path, strerror(errno));
    struct output_part part = {fd, data->path, data->temp, s->n_threads};
    uint64_t *places = calloc((size_t)s->team.size, sizeof *places);
    if (!places)
        latch_fail(&s->latch_b, "out of memory");
    if (fd < 0 || !places || output_gather(&s->team, &part, places, &s->latch_b) < 0
        || (s->opts->out.index && index_gather(&s->team, s->d.out.bam_index, places, &s->latch_b) < 0))
        rank_parts_abort(s);
    if (fd != data->fd)
        close(fd);
    free(places);
}

static void count_output(struct rank_parts *s)
{
    struct stat st;
    if (fstat(s->d.out.data.fd, &st) == 0)
        s->report.mine.written = (uint64_t)st.st_size;
}

int rank_output(struct rank_parts *s)
{
    if (find_boundary(s) < 0)
        return -1;
    rank_report_begin(&s->report, RANK_BLOCKS);
    rank_parts_run(s, write_part);
    rank_report_end(&s->report, RANK_BLOCKS);
    if (mpi_team_agree(&s->team, &s->latch_b) < 0)
        return -1;
    compare(s);
    if (mpi_team_agree(&s->team, &s->latch_b) < 0)
        return -1;
    count_output(s);
    rank_report_begin(&s->report, RANK_JOIN);
    gather(s);
    rank_report_end(&s->report, RANK_JOIN);
    return mpi_team_agree(&s->team, &s->latch_b);
}
