/* SPDX-License-Identifier: MIT */
/* What a sort took: the numbers of --report, the advice that follows from them,
 * and both as a screen of text, as JSON and as a page. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/stats.h"

#define REPORT_UNKNOWN UINT64_MAX

enum {
    REPORT_ADVICE_MAX = 2,       /* sentences; who reads more? */
    REPORT_ADVICE_SIZE = 400,
};

/* What a file is, for advice. */
enum report_file { REPORT_REGULAR, REPORT_PIPE, REPORT_REMOTE };

/* What is known beside the clocks; by the driver. */
struct report_facts {
    const char *version, *command_line;
    const char *input, *output;  /* names for messages */
    enum report_file input_is, output_is;
    bool by_htslib;              /* input or output is: it has threads that are not counted */
    int cpus;                    /* that we may use */
    int numa_nodes;              /* 0: not known */
    bool bound;                  /* threads have their places (OMP_PLACES, OMP_PROC_BIND) */
    double user, system;         /* CPU seconds of the process */
    uint64_t memory;             /* -m x -@ */
    uint64_t machine_memory;
    uint64_t peak_rss, huge;     /* bytes, huge pages among them; REPORT_UNKNOWN */
    uint64_t records;
};

/* Seconds, summed over threads. */
struct report_stage {
    double busy;                 /* blocked or not */
    double blocked;              /* in a system call, without the CPU */
    double critical;             /* of busy: on the critical thread */
    uint64_t bytes, events, records;
};

struct report {
    struct report_facts facts;
    int n_threads;
    int idle_threads;            /* with next to no work */
    double wall;
    double busy;                 /* of the team's time; 0..1 */
    double io;                   /* of the time of all stages, those that read and write; 0..1 */
    uint64_t bytes;              /* uncompressed input */
    struct report_stage stages[N_STAGES];
    int critical;                /* the slot with most to do that it must do alone */
    char critical_name[STATS_NAME_SIZE];
    double serial;               /* CPU seconds of that ... */
    double serial_stages[N_STAGES];   /* ... and what it is made of */
    double in_turn;              /* CPU seconds of what any thread does, but one at a time */
    char advice[REPORT_ADVICE_MAX][REPORT_ADVICE_SIZE];   /* "": none */
};

/* Fills in everything from the stats, which are stopped, and the facts. */
void report_make(struct report *report, const struct report_facts *facts, const struct stats *stats);

/* The advice, from the other numbers. See report_advice.c. */
void report_advise(struct report *report);

/* Whether the stage reads or writes files. */
bool report_is_io(enum stage stage);

/* CPU seconds per 10^9 bytes of uncompressed input that a single thread must work
 * alone: S. The wall time cannot fall below it, however many threads there are. */
double report_serial_per_gb(const struct report *report);

void report_text(const struct report *report, FILE *to);
void report_json(const struct report *report, const struct stats *stats, FILE *to);

/* One page that needs nothing else; stats with spans. -1: no memory. */
int report_html(const struct report *report, const struct stats *stats, FILE *to);

#endif
