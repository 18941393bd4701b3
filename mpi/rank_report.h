/* SPDX-License-Identifier: MIT */
/* --report of all ranks together: what each rank did, and when. */
#ifndef RANK_REPORT_H
#define RANK_REPORT_H

#include <stdint.h>
#include "base/out_file.h"
#include "mpi/mpi_team.h"
#include "report/report_file.h"

struct latch;

/* The steps of a rank, one after the other. Between two steps it waits for the other ranks. */
enum rank_step { RANK_OPEN, RANK_READ, RANK_EXCHANGE, RANK_MEASURE, RANK_BLOCKS, RANK_JOIN, N_RANK_STEPS };

struct rank_interval {
    double begin, end;           /* seconds since all ranks began */
};

/* The numbers of one rank. The struct has no pointers, since ranks send it. */
struct rank_numbers {
    char host[64];
    uint64_t records, bytes;     /* read by the rank; bytes are uncompressed */
    uint64_t sent, received;     /* bytes of records to and from other ranks */
    uint64_t written;            /* bytes of its part of the output */
    uint64_t temporary;          /* bytes in temporary files of both sorts, without the part of the output */
    uint64_t peak_rss;           /* bytes of memory */
    double cpu;                  /* seconds of CPU time */
    int n_threads;
    struct rank_interval steps[N_RANK_STEPS];
};

struct rank_report {
    const struct report_request *request;
    struct mpi_team team;
    struct out_file file;        /* only at rank 0 */
    double start;
    struct rank_numbers mine;    /* each module sets the numbers that it knows */
    struct rank_numbers *all;    /* at rank 0, in the end */
};

/* Every rank calls it. It opens the file that the request names. -1: failed, and the error is recorded in the latch;
 * close it anyway. */
int rank_report_open(struct rank_report *report, const struct report_request *request, const struct mpi_team *team,
                     struct latch *latch);

/* Every rank calls it when all ranks can begin at once. */
void rank_report_start(struct rank_report *report);

/* Note the time at which this rank begins or ends a step. */
void rank_report_begin(struct rank_report *report, enum rank_step step);
void rank_report_end(struct rank_report *report, enum rank_step step);

/* Every rank calls it after the output is complete. Rank 0 gets all numbers, and writes the report if one is requested.
 * -1: failed, and the error is recorded in the latch. */
int rank_report_write(struct rank_report *report, report_file_fn *put, struct latch *latch);

/* Removes the file if it was not written. */
void rank_report_close(struct rank_report *report);

/* ---- for the pages ---- */

struct rank_step_name {
    const char *key, *name;
    int alone;                   /* in this step no rank waits for another */
};

/* Returns a constant. */
const struct rank_step_name *rank_step_name(enum rank_step step);

/* Returns the seconds from the start until the last rank has ended its last step. Call this and the functions below at
 * rank 0, while rank_report_write() writes. */
double rank_report_wall(const struct rank_report *report);

/* Returns the seconds that the rank spent in the step. */
double rank_report_seconds(const struct rank_numbers *rank, enum rank_step step);

/* Returns the sums over all ranks; peak_rss is the greatest of any rank. The host and the steps are empty. */
struct rank_numbers rank_report_sum(const struct rank_report *report);

/* The rank that exceeded the mean of all ranks most in a step in which no rank waits for another. */
struct rank_slowest {
    int rank;
    enum rank_step step;
    double seconds, mean;
};

/* Finds it at rank 0, from the numbers of all ranks. */
struct rank_slowest rank_report_slowest(const struct rank_report *report);

#endif
