/* SPDX-License-Identifier: MIT */
/* The progress of the command: on a terminal, one line on standard error that is painted over; on demand, a plain line
 * from time to time. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum progress_when { PROGRESS_ON_TERMINAL, PROGRESS_ALWAYS, PROGRESS_NEVER };

/* Used by the main thread only. */
struct progress {
    const struct clocks *clocks; /* counts of the work so far */
    double file_bytes;           /* size of all input files; 0: unknown */
    double data_bytes;           /* if that is unknown: expected uncompressed bytes; 0: unknown, too */
    uint64_t taken;              /* records that were read, by a command whose main thread deals none */
    double write_cost;           /* time to write a byte, divided by the time to inflate a byte */
    bool on;
    int cpus;
    bool painted;                /* one line that is painted over; otherwise plain lines */
    uint64_t every, next;        /* time between lines; when the next one is due, by clocks_wall(); ns */
    double shown;                /* share of the work in the last line; it never falls */
};

/* Begins to count time. clocks must live longer. */
void progress_start(struct progress *progress, enum progress_when when, const struct clocks *clocks);

/* Shows the progress if it is due. Call it about once a block: it reads the clock, or does nothing if no progress is
 * shown. progress may be NULL. */
void progress_tick(struct progress *progress);

/* Removes a painted line; otherwise prints a last plain line, with the number of records, if the command succeeded. */
void progress_end(struct progress *progress, bool succeeded, uint64_t records);

/* The state of the complete sort at some moment. */
struct progress_work {
    double read_seconds;         /* so far */
    double read_share;           /* share of the input; below 0: unknown */
    double write_guess;          /* seconds that writing will take, estimated while reading */
    bool writing;
    double write_seconds, write_share;   /* seconds so far; share of the records, below 0: unknown */
};

/* Seconds until the sort is done; below 0: unknown. While it reads, the rest is assumed to be read at the speed so far,
 * and writing to take as long as estimated. Once it writes, the estimate weighs less the more is written. */
double progress_left(const struct progress_work *work);

/* The contents of a line. */
struct progress_now {
    const char *doing;           /* "reading" */
    uint64_t records;            /* so far, in this phase */
    double bytes;                /* uncompressed, in this phase */
    double seconds;              /* since the start */
    double share;                /* share of the sort that is done, in time; below 0: unknown */
    double left;                 /* seconds until the sort is done; below 0: unknown */
};

/* Writes the text of a line of progress, without a newline, to line[size]; it is cut if it does not fit. */
void progress_line(char *line, size_t size, const struct progress_now *now);

#endif
