/* SPDX-License-Identifier: MIT */
/* How far the sort is: on a terminal one line on standard error that is painted
 * over, or, on demand, a plain line now and then. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stats;

enum progress_when { PROGRESS_ON_TERMINAL, PROGRESS_ALWAYS, PROGRESS_NEVER };

/* The master's. */
struct progress {
    const struct stats *stats;
    bool on;
    bool painted;                /* one line, painted over; else plain ones */
    uint64_t next;               /* when it is due, on the clock of stats */
};

/* The clock starts. stats must live longer. */
void progress_start(struct progress *progress, enum progress_when when, const struct stats *stats);

/* Whether it is time to show something. To be asked once a block: without progress
 * it costs nothing, with it a look at the clock. */
bool progress_due(struct progress *progress);

/* What is known then. */
struct progress_now {
    const char *doing;           /* "reading" */
    uint64_t records;            /* so far */
    double share;                /* of this phase that is done; below 0: nobody knows */
    double bytes;                /* uncompressed, in this phase */
    double seconds;              /* since it began */
};

void progress_show(const struct progress *progress, const struct progress_now *now);

/* A painted line goes away; of plain ones the last tells of success. */
void progress_end(struct progress *progress, bool succeeded, uint64_t records, double bytes);

/* The line of text. */
void progress_line(char *line, size_t size, const struct progress_now *now);

#endif
