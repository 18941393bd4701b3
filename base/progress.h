/* SPDX-License-Identifier: MIT */
/* How far the sort is: on a terminal, one line on standard error that is painted over; on demand, a plain line now and
 * then. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum progress_when { PROGRESS_ON_TERMINAL, PROGRESS_ALWAYS, PROGRESS_NEVER };

/* Used by the main thread only. */
struct progress {
    const struct clocks *clocks; /* what was done so far */
    double file_bytes;           /* size of all input files; 0: not known */
    double data_bytes;           /* if that is not known: expected uncompressed bytes; 0: not known either */
    double write_cost;           /* time for a byte of output, divided by the time to inflate a byte */
    bool on;
    int cpus;
    bool painted;                /* one line, painted over; else plain ones */
    uint64_t every, next;        /* time between lines; when the next one is due, on their clock; ns */
    double shown;                /* share of the sort that the last line showed: no line shows less */
};

/* Begins to count time. clocks must live longer. */
void progress_start(struct progress *progress, enum progress_when when, const struct clocks *clocks);

/* Shows the progress if it is time to. Call it about once a block: it reads the clock, or does nothing where no
 * progress is shown. progress may be NULL. */
void progress_tick(struct progress *progress);

/* Removes a painted line. Otherwise a last plain line says that the sort succeeded. */
void progress_end(struct progress *progress, bool succeeded);

/* How far the whole sort is at some moment. */
struct progress_work {
    double read_seconds;         /* so far */
    double read_share;           /* of the input; below 0: nobody knows */
    double write_guess;          /* seconds that writing will take, as far as reading can tell */
    bool writing;
    double write_seconds, write_share;   /* so far; of the records */
};

/* Seconds until the sort is done; below 0: nobody knows. While it reads, what is left to be read comes as fast as what
 * was, and writing takes as long as is guessed. Once it writes, the guess counts for less the more is written. */
double progress_left(const struct progress_work *work);

/* The contents of a line. */
struct progress_now {
    const char *doing;           /* "reading" */
    uint64_t records;            /* so far, in this phase */
    double bytes;                /* uncompressed, in this phase */
    double seconds;              /* since it began */
    double share;                /* of the whole sort that is done, in time; below 0: nobody knows */
    double left;                 /* seconds until the sort is done; below 0: nobody knows */
};

void progress_line(char *line, size_t size, const struct progress_now *now);

#endif
