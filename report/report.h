/* SPDX-License-Identifier: MIT */
/* The costs of a run: the numbers of --report, and the advice derived from them, as text, as JSON and as a page. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/clocks.h"
#include "base/topology.h"
#include "report/report_host.h"
#include "report/report_input.h"
#include "report/report_place.h"
#include "stats/counter.h"

#define REPORT_UNKNOWN UINT64_MAX

enum {
    REPORT_ADVICE_MAX = 2,       /* sentences; more would not be read */
    REPORT_ADVICE_SIZE = 400,
};

/* The kind of a file, for advice. */
enum report_file { REPORT_REGULAR, REPORT_PIPE, REPORT_REMOTE };    /* regular: or a device */

/* The resource that a faster run would need more of. */
enum report_bound {
    REPORT_BOUND_NONE,           /* no single resource, or unknown */
    REPORT_BOUND_CPU, REPORT_BOUND_INPUT, REPORT_BOUND_OUTPUT, REPORT_BOUND_TEMP, REPORT_BOUND_MEMORY,
    REPORT_BOUND_PRODUCER, REPORT_BOUND_CONSUMER,    /* the programs at the other ends of our pipes */
    REPORT_BOUND_ONE_THREAD, REPORT_BOUND_OTHERS,    /* serial work; other programs on our CPUs */
};

/* Facts that the clocks do not give; see command_report.c. */
struct report_facts {
    const char *version, *command_line;
    const char *input, *output;  /* names for messages */
    struct report_host host;
    struct report_place in, out; /* all inputs, with the file system of the first; the output */
    struct report_place temp;    /* the folder for temporary files, the first of them; its size is not used */
    enum report_file input_is, output_is;
    bool by_htslib;              /* htslib decodes input or encodes output; its threads are not counted */
    int cpus;                    /* CPUs that we may use; 0: unknown */
    struct topology topology;    /* layout of these CPUs, including those that a CPU time quota leaves unused */
    bool bound;                  /* threads are bound to places (OMP_PLACES, OMP_PROC_BIND) */
    double user, system;         /* CPU seconds of the process */
    double run_queue;            /* seconds in which threads were ready to run and had no CPU; below 0: unknown */
    uint64_t major_faults;       /* pages that were read from a disk */
    uint64_t memory;             /* bytes that the process may take */
    int more_threads, level;     /* as in report_request.h, for the advice */
    uint64_t machine_memory;
    uint64_t peak_rss, huge;     /* bytes, and the number of bytes in huge pages; or REPORT_UNKNOWN */
    uint64_t records;
    struct report_inputs merged;
    struct report_copied copied;
    struct counter_numbers counted;      /* numbers of the output */
};

/* Seconds are summed over threads. */
struct report_stage {
    double busy;                 /* includes the time in which it was blocked */
    double blocked;              /* time in system calls without a CPU */
    double critical;             /* the part of busy on the critical thread */
    double any_thread;           /* time in which at least one thread was in it; 0: not counted (clocks.h, spans) */
    uint64_t bytes, events, records;
};

struct report {
    struct report_facts facts;
    int n_threads;
    int idle_threads;            /* threads with almost no work */
    double wall;
    double busy;                 /* share of the team's time, including time without a CPU; 0..1 */
    double io;                   /* share of all stages' time in reads and writes; 0..1 */
    uint64_t bytes;              /* bytes of uncompressed input */
    struct report_stage stages[N_STAGES];
    uint64_t mean_rss;           /* mean bytes of memory over time; REPORT_UNKNOWN */
    int critical;                /* the slot with the most serial work: work that only it can do */
    char critical_name[CLOCKS_NAME_SIZE];
    double serial;               /* CPU seconds of that work ... */
    double serial_stages[N_STAGES];   /* ... and of each stage of it */
    double in_turn;              /* CPU seconds of work that any thread may do, but only one thread at a time */
    enum report_bound bound;
    char why[REPORT_ADVICE_SIZE];    /* a sentence that follows "bound by ...:" */
    char advice[REPORT_ADVICE_MAX][REPORT_ADVICE_SIZE];   /* "": none */
};

/* Fills in everything, from the facts and the clocks. The clocks must be stopped. See report_make.c. */
void report_make(struct report *report, const struct report_facts *facts, const struct clocks *clocks);

/* Adds the share of each stage in the slot's spans to each cell. A cell is `ns` nanoseconds of the time. */
void report_add_spans(const struct clocks *clocks, int slot, double ns, double (*share)[N_STAGES], int cells);

/* Fills in the advice, from the other numbers. See report_advice.c. */
void report_advise(struct report *report);

/* Fills in the verdict, from the other numbers. See report_verdict.c. */
void report_judge(struct report *report);

/* The verdict as a key of the JSON file, and as a phrase for readers. */
const char *report_bound_key(enum report_bound bound);
const char *report_bound_name(enum report_bound bound);

/* CPU time used, as a share of the time that the team's threads could have had on the available CPUs; 0..1. */
double report_cpu_share(const struct report *report);

/* The share of the team's time in which threads were busy and did not wait for a CPU; 0..1. */
double report_busy_share(const struct report *report);

/* Approximate CPU seconds of a stage. */
static inline double report_worked(const struct report_stage *stage)
{
    return stage->busy - stage->blocked;
}

/* Approximate CPU seconds of all working stages. */
double report_work(const struct report *report);

/* Returns whether the stage reads or writes files. */
bool report_is_io(enum stage stage);

/* CPU seconds of serial work per 10^9 bytes of uncompressed input: work that only one thread can do. The wall time
 * cannot fall below it for any number of threads. -1: the input is too small for such a number. */
double report_serial_per_gb(const struct report *report);

/* Megabytes of uncompressed input per second of wall time. -1: the input is too small for such a number. */
double report_speed_in_all(const struct report *report);

static inline double report_mb(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

/* Megabytes per second of a thread that is in the stage; 0 if it took no time. */
double report_thread_speed(const struct report_stage *stage);

/* Megabytes per second of all threads together, while at least one was in the stage; 0 if that was not counted. */
double report_speed(const struct report_stage *stage);

/* Writes the number of copied blocks, or why there are none; a long reason is cut. Returns text. */
enum { REPORT_LINE_SIZE = 160 };
const char *report_copied_line(const struct report *report, char text[REPORT_LINE_SIZE]);

/* Writes the main numbers of the counters, such as the percentage of mapped reads. Returns text. */
const char *report_counted_line(const struct report *report, char text[REPORT_LINE_SIZE]);

/* Bytes of the input and of the output as stored in a file or sent through a pipe, or REPORT_UNKNOWN. */
uint64_t report_input_bytes(const struct report *report);
uint64_t report_output_bytes(const struct report *report);

/* The location of a file in a word or two: its file system, or its kind. */
const char *report_where(enum report_file kind, const struct report_place *place);

/* Returns whether any temporary data were written. */
bool report_spilled(const struct report *report);

/* The input of a merge that was waited for longest, or the next one after `last`. NULL: none. */
const struct report_input *report_next_input(const struct report_inputs *inputs, const struct report_input *last);

enum { REPORT_COUNT_SIZE = 32 };

/* Writes the number with separators for thousands, "708,746", or "unknown". Returns text. */
const char *report_count(uint64_t n, char text[REPORT_COUNT_SIZE]);

/* Returns whether the stage did enough work to be listed. */
bool report_lists(const struct report_stage *stage);

/* Write the report as text for people, or as the JSON that samtools-omp-report(5) describes. */
void report_text(const struct report *report, FILE *to);
void report_json(const struct report *report, const struct clocks *clocks, FILE *to);

/* Writes text in quotation marks, as a JSON string (RFC 8259). File names may be any bytes: bytes that are not UTF-8
 * become U+FFFD. */
void report_json_string(FILE *to, const char *text);

/* Writes the stages of each thread over time in the Trace Event Format, which Perfetto and chrome://tracing open: one
 * track per slot, and one for the phases. clocks must have spans. */
void report_trace(const struct clocks *clocks, FILE *to);

/* Writes one page that needs no other file. clocks must have spans. */
void report_html(const struct report *report, const struct clocks *clocks, FILE *to);

#endif
