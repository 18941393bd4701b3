/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/machine.h"
#include "mpi/mpi_wait.h"
#include "mpi/rank_report.h"

const struct rank_step_name *rank_step_name(enum rank_step step)
{
    static const struct rank_step_name names[N_RANK_STEPS] = {
        [RANK_OPEN] = {"open", "open the input", 0},
        [RANK_READ] = {"read", "read and sort", 1},
        [RANK_EXCHANGE] = {"exchange", "exchange records", 0},
        [RANK_MEASURE] = {"measure", "find where blocks begin", 1},
        [RANK_BLOCKS] = {"blocks", "write blocks", 1},
        [RANK_JOIN] = {"join", "put blocks into one file", 0},
    };
    return &names[step];
}

int rank_report_open(struct rank_report *r, const struct report_request *request, const struct mpi_team *team,
                     struct latch *latch)
{
    *r = (struct rank_report){.request = request, .team = *team, .file.fd = -1};
    gethostname(r->mine.host, sizeof r->mine.host - 1);
    if (team->rank > 0 || !request->format)
        return 0;
    if (!(r->all = calloc((size_t)team->size, sizeof *r->all)))
        return latch_fail(latch, "out of memory");
    return request->file ? out_file_open(&r->file, request->file, latch) : 0;
}

void rank_report_start(struct rank_report *r)
{
    r->start = MPI_Wtime();
}

void rank_report_begin(struct rank_report *r, enum rank_step step)
{
    r->mine.steps[step].begin = MPI_Wtime() - r->start;
}

void rank_report_end(struct rank_report *r, enum rank_step step)
{
    r->mine.steps[step].end = MPI_Wtime() - r->start;
}

int rank_report_write(struct rank_report *r, report_file_fn *put, struct latch *latch)
{
    int wanted = r->request->format != REPORT_NONE;
    mpi_wait_bcast(&wanted, 1, MPI_INT, 0);   /* a launcher may pass the environment to some ranks only */
    if (!wanted)
        return 0;
    struct machine_usage usage = machine_usage();
    r->mine.cpu = usage.user + usage.system;
    r->mine.peak_rss = usage.peak_rss;
    mpi_wait_gather(&r->mine, sizeof r->mine, MPI_BYTE, r->all);
    return r->team.rank == 0 ? report_file_put(&r->file, r->request, put, r, latch) : 0;
}

void rank_report_close(struct rank_report *r)
{
    if (r->request)
        out_file_abandon(&r->file);
    free(r->all);
}

double rank_report_seconds(const struct rank_numbers *rank, enum rank_step step)
{
    return rank->steps[step].end - rank->steps[step].begin;
}

double rank_report_wall(const struct rank_report *r)
{
    double wall = 0;
    for (int i = 0; i < r->team.size; i++)
        for (enum rank_step step = 0; step < N_RANK_STEPS; step++)
            if (r->all[i].steps[step].end > wall)
                wall = r->all[i].steps[step].end;
    return wall;
}

struct rank_numbers rank_report_sum(const struct rank_report *r)
{
    struct rank_numbers sum = {.host = ""};
    for (int i = 0; i < r->team.size; i++) {
        const struct rank_numbers *rank = &r->all[i];
        sum.records += rank->records;
        sum.bytes += rank->bytes;
        sum.sent += rank->sent;
        sum.received += rank->received;
        sum.written += rank->written;
        sum.temporary += rank->temporary;
        sum.cpu += rank->cpu;
        sum.n_threads += rank->n_threads;
        if (rank->peak_rss > sum.peak_rss)
            sum.peak_rss = rank->peak_rss;
    }
    return sum;
}

static struct rank_slowest slowest_in(const struct rank_report *r, enum rank_step step)
{
    struct rank_slowest found = {.step = step};
    for (int i = 0; i < r->team.size; i++) {
        double seconds = rank_report_seconds(&r->all[i], step);
        found.mean += seconds / r->team.size;
        if (seconds > found.seconds) {
            found.seconds = seconds;
            found.rank = i;
        }
    }
    return found;
}

struct rank_slowest rank_report_slowest(const struct rank_report *r)
{
    struct rank_slowest most = slowest_in(r, RANK_READ);
    for (enum rank_step step = 0; step < N_RANK_STEPS; step++) {
        struct rank_slowest here = slowest_in(r, step);
        if (rank_step_name(step)->alone && here.seconds - here.mean > most.seconds - most.mean)
            most = here;
    }
    return most;
}
