/* SPDX-License-Identifier: MIT */
/* The time of every thread: clocks and counters for each stage, updated once a block, and on demand a record of the
 * stages of each thread over time.
 *
 *     enum stage before = stats_enter(stats, STAGE_INFLATE);
 *     ...
 *     stats_leave(stats, before, size);
 *
 * Stages nest. Only the clock of the innermost stage runs, so the times of a slot add up to the wall
 * time. A slot is a thread of the team, by omp_get_thread_num(), or a thread that has joined. Each slot
 * is written only by its thread, until stats_stop(); the counts may be read at any time. If stats is
 * NULL, nothing is counted. */
#ifndef STATS_H
#define STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/curve.h"

enum stage_kind {
    STAGE_RESTS,                 /* no work */
    STAGE_PARALLEL,              /* any number of threads at once */
    STAGE_SERIAL,                /* always on the same thread */
    STAGE_IN_TURN,               /* on any thread, one at a time */
};

/* Each stage: its name, which is a key of the report; its description; its kind; and whether it may block, mostly in a
 * system call: then its CPU time is measured, too. */
#define STAGES(X) \
    X(STAGE_IDLE, "idle", "no work", STAGE_RESTS, false) \
    X(STAGE_WAIT, "wait", "wait for other threads", STAGE_RESTS, true) \
    X(STAGE_READ, "read", "read the input", STAGE_PARALLEL, true) \
    X(STAGE_DEAL, "deal", "hand blocks out and take them back", STAGE_SERIAL, false) \
    X(STAGE_INFLATE, "inflate", "decompress blocks of input", STAGE_PARALLEL, false) \
    X(STAGE_PARSE, "parse", "make SAM and CRAM into records", STAGE_PARALLEL, false) \
    X(STAGE_FIND, "find", "find records and keys", STAGE_PARALLEL, false) \
    X(STAGE_SORT, "sort", "sort sublists", STAGE_PARALLEL, false) \
    X(STAGE_PLAN, "plan", "cut the merge into ranges", STAGE_SERIAL, false) \
    X(STAGE_MERGE, "merge", "merge sorted lists of records", STAGE_PARALLEL, false) \
    X(STAGE_FILL, "fill", "list the records of output blocks", STAGE_SERIAL, false) \
    X(STAGE_GATHER, "gather", "copy a block's records together, or make them SAM", STAGE_PARALLEL, false) \
    X(STAGE_DEFLATE, "deflate", "compress blocks of output", STAGE_PARALLEL, false) \
    X(STAGE_VERIFY, "verify", "check blocks of output", STAGE_PARALLEL, false) \
    X(STAGE_WRITE, "write", "write the output", STAGE_PARALLEL, true) \
    X(STAGE_PACK, "pack", "pack temporary data", STAGE_PARALLEL, false) \
    X(STAGE_SPILL_WRITE, "spill_write", "write temporary data", STAGE_PARALLEL, true) \
    X(STAGE_SPILL_READ, "spill_read", "read temporary data", STAGE_PARALLEL, true) \
    X(STAGE_UNPACK, "unpack", "unpack temporary data", STAGE_PARALLEL, false) \
    X(STAGE_CONVERT, "convert", "CRAM and others, by htslib", STAGE_SERIAL, true) \
    X(STAGE_FREE, "free", "give memory back to the system", STAGE_PARALLEL, false) \
    X(STAGE_INDEX, "index", "enter records into the index", STAGE_IN_TURN, false) \
    X(STAGE_OTHER, "other", "all else on thread 0", STAGE_SERIAL, false)

#define STAGE_NUMBER(stage, ...) stage,
enum stage { STAGES(STAGE_NUMBER) N_STAGES };

struct stage_info {
    const char *name, *what;
    enum stage_kind kind;
    bool may_block;
};

/* The constant facts of a stage. */
const struct stage_info *stats_stage(enum stage stage);

/* The counts. Times are in nanoseconds. */
struct stats_count {
    uint64_t ns;
    uint64_t blocked_ns;         /* the part of ns without a CPU; only for stages that may block */
    uint64_t bytes, events, records;
};

enum phase { PHASE_OPEN, PHASE_READ, PHASE_WRITE, PHASE_FINISH, N_PHASES };

struct stats;

enum stats_detail {
    STATS_TIMES,                 /* reads the clock at every change of stage: some 20 ns */
    STATS_CPU,                   /* also the thread's CPU time in stages that may block: a system call and a lock each;
                                  * and sometimes the resources of the process (curve.h) */
    STATS_SPANS,                 /* also a record of the stages of each thread over time */
};

/* Starts counting, for a team of at most n_threads. The process has one for its sort. NULL: out of memory. */
struct stats *stats_new(int n_threads, enum stats_detail detail);
void stats_free(struct stats *stats);

/* Bytes of memory that stats_new() allocates. */
size_t stats_memory(int n_threads, enum stats_detail detail);

/* From now on the calling thread of the team is in this stage. Returns the stage before it. */
enum stage stats_enter(struct stats *stats, enum stage stage);

/* Returns the calling thread to the stage it was in before. Adds the bytes and one event to the stage that it
 * leaves. */
void stats_leave(struct stats *stats, enum stage before, uint64_t bytes);

/* Adds n records to the stage that the calling thread of the team is in. */
void stats_records(struct stats *stats, uint64_t n);

/* Gives a slot to a thread that is not in the team; its number comes after those of the team. name must
 * stay valid. Returns -1 if no slot is left: then that thread is not counted. */
int stats_join(struct stats *stats, const char *name);

/* Equivalents of stats_enter() and stats_leave() for the slot of a thread that has joined. */
enum stage stats_enter_as(struct stats *stats, int slot, enum stage stage);
void stats_leave_as(struct stats *stats, int slot, enum stage before, uint64_t bytes);

/* Begins a phase, unless it has begun. The main thread calls it. In the team it also notes the number of threads. */
void stats_phase(struct stats *stats, enum phase phase);

/* Stops all clocks. Call it after all other threads have finished. */
void stats_stop(struct stats *stats);

/* ---- what was counted ---- */

int stats_threads(const struct stats *stats);            /* in the team */
int stats_slots(const struct stats *stats);              /* the threads of the team and those that joined */
/* The counts of a slot for a stage; stats_total(): the sum over all slots. */
struct stats_count stats_of(const struct stats *stats, int slot, enum stage stage);
struct stats_count stats_total(const struct stats *stats, enum stage stage);

/* Bytes of uncompressed input. inflated, found: bytes of STAGE_INFLATE and STAGE_FIND. For text and CRAM, where no
 * records are inflated, the bytes found are used. */
static inline uint64_t stats_input_bytes(uint64_t inflated, uint64_t found)
{
    return inflated > found ? inflated : found;
}

/* Nanoseconds in which at least one thread was in the stage. Counted from STATS_CPU on, for working stages that may
 * block; otherwise 0. Call it after stats_stop(). */
uint64_t stats_any_thread(const struct stats *stats, enum stage stage);

/* The resources that the process used over time, until stats_stop(). Returns the number of points; 0 below
 * STATS_CPU. */
size_t stats_curve(const struct stats *stats, const struct curve_point **points);

/* Nanoseconds since stats_new(); once stopped, from stats_new() to stats_stop(). */
uint64_t stats_wall(const struct stats *stats);

enum { STATS_NAME_SIZE = 32 };

/* Writes the name of the slot's thread to name: "thread 0", or the name it joined with. Returns name. */
const char *stats_name(const struct stats *stats, int slot, char name[STATS_NAME_SIZE]);

const char *stats_phase_name(enum phase phase);

/* The share of the time in which thread 0 had a CPU, while it was ready to work and in no stage that may block. It is
 * below 1 if other programs used the CPU. Call it after stats_stop(). */
double stats_ran(const struct stats *stats);

/* The start and the end of the phase or, if it has not ended, the time now. Returns false if it has not begun. */
bool stats_phase_times(const struct stats *stats, enum phase phase, uint64_t *start, uint64_t *end);

/* Part of a slot's time, in nanoseconds since stats_new(). */
struct stats_span {
    uint64_t start, end;
    enum stage stage;
};

/* Returns the spans of a slot in order, without gaps. *at must be 0 at first. Call it after stats_stop(). Returns false
 * if there are no more. The memory for spans is bounded. When it is full, the time so far is cut into cells, and each
 * cell goes to the stage that lacks most of its time, so that the shares of the stages stay the same. */
bool stats_next_span(const struct stats *stats, int slot, size_t *at, struct stats_span *span);

#endif
