/* SPDX-License-Identifier: MIT */
/* The time of every thread: clocks and counters for each stage, updated once a block, and on demand a record of the
 * stages of each thread over time.
 *
 *     enum stage before = clocks_enter(clocks, STAGE_INFLATE);
 *     ...
 *     clocks_leave(clocks, before, size);
 *
 * Stages nest. Only the clock of the innermost stage runs, so the times of a slot add up to the wall
 * time. A slot is a thread of the team, by omp_get_thread_num(), or a thread that has joined. Each slot
 * is written only by its thread, until clocks_stop(); the counts may be read at any time. If clocks is
 * NULL, nothing is counted. */
#ifndef CLOCKS_H
#define CLOCKS_H

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
    X(STAGE_JOIN, "join", "join counts", STAGE_PARALLEL, false) \
    X(STAGE_OTHER, "other", "all else on thread 0", STAGE_SERIAL, false)

#define STAGE_NUMBER(stage, ...) stage,
enum stage { STAGES(STAGE_NUMBER) N_STAGES };

struct stage_info {
    const char *name, *what;
    enum stage_kind kind;
    bool may_block;
};

/* The constant facts of a stage. */
const struct stage_info *clocks_stage(enum stage stage);

/* The counts. Times are in nanoseconds. */
struct clocks_count {
    uint64_t ns;
    uint64_t blocked_ns;         /* the part of ns without a CPU; only for stages that may block */
    uint64_t bytes, events, records;
};

enum phase { PHASE_OPEN, PHASE_READ, PHASE_WRITE, PHASE_FINISH, N_PHASES };

struct clocks;

enum clocks_detail {
    CLOCKS_TIMES,                /* reads the clock at every change of stage: some 20 ns */
    CLOCKS_CPU,                  /* also the thread's CPU time in stages that may block: a system call and a lock each;
                                  * and sometimes the resources of the process (curve.h) */
    CLOCKS_SPANS,                /* also a record of the stages of each thread over time */
};

/* Starts counting, for a team of at most n_threads. The process has one struct clocks, for its command. NULL: out of
 * memory. */
struct clocks *clocks_new(int n_threads, enum clocks_detail detail);
void clocks_free(struct clocks *clocks);

/* Bytes of memory that clocks_new() allocates. */
size_t clocks_memory(int n_threads, enum clocks_detail detail);

/* From now on the calling thread of the team is in this stage. Returns the stage before it. */
enum stage clocks_enter(struct clocks *clocks, enum stage stage);

/* Returns the calling thread to the stage it was in before. Adds the bytes and one event to the stage that it
 * leaves. */
void clocks_leave(struct clocks *clocks, enum stage before, uint64_t bytes);

/* Adds n records to the stage that the calling thread of the team is in. */
void clocks_records(struct clocks *clocks, uint64_t n);

/* Gives a slot to a thread that is not in the team; its number comes after those of the team. name must
 * stay valid. Returns -1 if no slot is left: then that thread is not counted. */
int clocks_join(struct clocks *clocks, const char *name);

/* Equivalents of clocks_enter() and clocks_leave() for the slot of a thread that has joined. */
enum stage clocks_enter_as(struct clocks *clocks, int slot, enum stage stage);
void clocks_leave_as(struct clocks *clocks, int slot, enum stage before, uint64_t bytes);

/* Begins a phase, unless it has begun. The main thread calls it. In the team it also notes the number of threads. */
void clocks_phase(struct clocks *clocks, enum phase phase);

/* Stops all clocks. Call it after all other threads have finished. */
void clocks_stop(struct clocks *clocks);

/* ---- what was counted ---- */

int clocks_threads(const struct clocks *clocks);         /* in the team */
int clocks_slots(const struct clocks *clocks);           /* the threads of the team and those that joined */
/* The counts of a slot for a stage; clocks_total(): the sum over all slots. */
struct clocks_count clocks_of(const struct clocks *clocks, int slot, enum stage stage);
struct clocks_count clocks_total(const struct clocks *clocks, enum stage stage);

/* Bytes of uncompressed input. inflated, found: bytes of STAGE_INFLATE and STAGE_FIND. For text and CRAM, where no
 * records are inflated, the bytes found are used. */
static inline uint64_t clocks_input_bytes(uint64_t inflated, uint64_t found)
{
    return inflated > found ? inflated : found;
}

/* Nanoseconds in which at least one thread was in the stage. Counted from CLOCKS_CPU on, for working stages that may
 * block; otherwise 0. Call it after clocks_stop(). */
uint64_t clocks_any_thread(const struct clocks *clocks, enum stage stage);

/* The resources that the process used over time, until clocks_stop(). Returns the number of points; 0 below
 * CLOCKS_CPU. */
size_t clocks_curve(const struct clocks *clocks, const struct curve_point **points);

/* Nanoseconds since clocks_new(); once stopped, from clocks_new() to clocks_stop(). */
uint64_t clocks_wall(const struct clocks *clocks);

enum { CLOCKS_NAME_SIZE = 32 };

/* Writes the name of the slot's thread to name: "thread 0", or the name it joined with. Returns name. */
const char *clocks_name(const struct clocks *clocks, int slot, char name[CLOCKS_NAME_SIZE]);

const char *clocks_phase_name(enum phase phase);

/* The share of the time in which thread 0 had a CPU, while it was ready to work and in no stage that may block. It is
 * below 1 if other programs used the CPU. Call it after clocks_stop(). */
double clocks_ran(const struct clocks *clocks);

/* The start and the end of the phase or, if it has not ended, the time now. Returns false if it has not begun. */
bool clocks_phase_times(const struct clocks *clocks, enum phase phase, uint64_t *start, uint64_t *end);

/* Part of a slot's time, in nanoseconds since clocks_new(). */
struct clocks_span {
    uint64_t start, end;
    enum stage stage;
};

/* Returns the spans of a slot in order, without gaps. *at must be 0 at first. Call it after clocks_stop(). Returns
 * false if there are no more. The memory for spans is bounded. When it is full, the time so far is cut into cells, and
 * each cell goes to the stage that lacks most of its time, so that the shares of the stages stay the same. */
bool clocks_next_span(const struct clocks *clocks, int slot, size_t *at, struct clocks_span *span);

#endif
