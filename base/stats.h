/* SPDX-License-Identifier: MIT */
/* What every thread does with its time: clocks and counters by stage, kept at
 * block granularity, and on demand a record of who did what when.
 *
 *     enum stage before = stats_enter(stats, STAGE_INFLATE);
 *     ...
 *     stats_leave(stats, before, size);
 *
 * Stages nest; a clock runs for the innermost one only, so the times of a slot
 * add up to the wall time. A slot is a thread of the team, by
 * omp_get_thread_num(), or one that has joined. Each is written by its thread
 * only; all may be read at any time. A NULL stats counts nothing. */
#ifndef STATS_H
#define STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stage {
    STAGE_IDLE,                  /* no task */
    STAGE_WAIT,                  /* for the work of other threads */
    STAGE_READ,
    STAGE_DEAL,                  /* scan, hand out, take back blocks of input */
    STAGE_INFLATE,
    STAGE_PARSE,                 /* lines of SAM */
    STAGE_FIND,                  /* records in a block: their keys and checksum */
    STAGE_SORT,
    STAGE_PLAN,                  /* cut the merge into ranges */
    STAGE_MERGE,
    STAGE_FILL,                  /* output blocks with lists of records */
    STAGE_GATHER,
    STAGE_DEFLATE,
    STAGE_VERIFY,                /* --verify: what was deflated */
    STAGE_WRITE,
    STAGE_PACK,                  /* slices of runs that leave memory */
    STAGE_SPILL_WRITE,
    STAGE_SPILL_READ,
    STAGE_UNPACK,
    STAGE_CONVERT,               /* to SAM; from and to CRAM and others: by htslib */
    STAGE_INDEX,
    STAGE_OTHER,                 /* what thread 0 does outside of all these */
    N_STAGES
};

enum stage_kind {
    STAGE_RESTS,                 /* no work */
    STAGE_PARALLEL,              /* any number of threads at a time */
    STAGE_SERIAL,                /* always on the same thread */
    STAGE_IN_TURN,               /* on any thread, one at a time */
};

struct stage_info {
    const char *name;            /* a key of the report: lower case */
    const char *what;            /* for people */
    enum stage_kind kind;
    bool may_block;              /* in a system call, mostly: its CPU time is taken too */
};

const struct stage_info *stats_stage(enum stage stage);

/* Time in nanoseconds. */
struct stats_count {
    uint64_t ns;
    uint64_t blocked_ns;         /* of it without a CPU; only where the stage may block */
    uint64_t bytes, events, records;
};

enum phase { PHASE_OPEN, PHASE_READ, PHASE_WRITE, PHASE_FINISH, N_PHASES };

struct stats;

enum stats_detail {
    STATS_TIMES,                 /* the clock is read at every change of stage: some 20 ns */
    STATS_CPU,                   /* and the thread's CPU time where a stage may block: a system call each */
    STATS_SPANS,                 /* and who did what when is kept */
};

/* One per sort, and per process: times are counted from here on. NULL: no memory. */
struct stats *stats_new(int n_threads, enum stats_detail detail);
void stats_free(struct stats *stats);

/* Bytes of memory that this takes. */
size_t stats_memory(int n_threads, enum stats_detail detail);

/* The calling thread of the team does this from now on; returns what it did before. */
enum stage stats_enter(struct stats *stats, enum stage stage);

/* Back to what it did before; counts bytes, and one event, for the stage that is left. */
void stats_leave(struct stats *stats, enum stage before, uint64_t bytes);

/* Counts n records more for the stage that the calling thread of the team is in. */
void stats_records(struct stats *stats, uint64_t n);

/* A slot for a thread that is not of the team, which all are named after; name
 * must stay. -1: there is none left, and that thread is not counted. */
int stats_join(struct stats *stats, const char *name);

/* The same for that thread, and its slot. */
enum stage stats_enter_as(struct stats *stats, int slot, enum stage stage);
void stats_leave_as(struct stats *stats, int slot, enum stage before, uint64_t bytes);

/* A phase begins; the master says so. */
void stats_phase(struct stats *stats, enum phase phase);

/* Stops all clocks, once no other thread works any more. */
void stats_stop(struct stats *stats);

/* ---- what was counted ---- */

int stats_threads(const struct stats *stats);            /* of the team */
int stats_slots(const struct stats *stats);              /* these, and those that joined */
struct stats_count stats_of(const struct stats *stats, int slot, enum stage stage);
struct stats_count stats_total(const struct stats *stats, enum stage stage);

/* Nanoseconds since stats_new(), or between the two once stopped. */
uint64_t stats_wall(const struct stats *stats);

enum { STATS_NAME_SIZE = 32 };

/* What the slot's thread is called, in name: "thread 0", or as it joined. */
const char *stats_name(const struct stats *stats, int slot, char name[STATS_NAME_SIZE]);

const char *stats_phase_name(enum phase phase);

/* After stats_stop(). Of the time in which thread 0 wanted to work, outside of what may
 * block, the share in which it had a CPU: less than 1 if others had it too. */
double stats_ran(const struct stats *stats);

/* From when to when the phase was, or is; false: it did not begin. */
bool stats_phase_times(const struct stats *stats, enum phase phase, uint64_t *start, uint64_t *end);

/* Part of a slot's time, in nanoseconds since stats_new(). */
struct stats_span {
    uint64_t start, end;
    enum stage stage;
};

/* The slot's spans in order, without gaps, after stats_stop(); *at is 0 at first. False:
 * there are no more. The memory for them is bounded: when it is full, the time so far is cut into
 * cells, and each becomes the stage that is owed most of it, so that the
 * shares of the stages stay what they were. */
bool stats_next_span(const struct stats *stats, int slot, size_t *at, struct stats_span *span);

#endif
