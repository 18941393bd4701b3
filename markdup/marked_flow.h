/* SPDX-License-Identifier: MIT */
/* Records in coordinate order, slice by slice, on their way through `markdup`. The main thread hands the work out and
 * takes it back in order; it reads no record.
 *
 *   source --> keys -----> keyed --> rounds --------> waiting --------> finish --> sink
 *              a task for            a task for each  until no set is   a task for
 *              each slice            shard of keys    open before it    each slice
 *
 * Each round adds the keyed slices to the sets (markdup/marked_rounds.h). All shards end a round before the next one
 * begins. So when no set is open before a slice, the duplicates in it are known. Slices that do not fit into memory
 * wait in temporary files (markdup/marked_store.h), the youngest slices first, because they are needed last. */
#ifndef MARKED_FLOW_H
#define MARKED_FLOW_H

#include "base/record_stream.h"
#include "markdup/dup_chains.h"
#include "markdup/marked_slice.h"

struct dup_counts;
struct engine;
struct marked_flow;
struct marked_store;
struct record_sink;

struct marked_flow_options {
    const struct record_stream *source;  /* in coordinate order; the caller's */
    struct marked_rule rule;     /* with -S, rule.others is chains.others */
    struct dup_chains_opt chains; /* without totals, settled and context */
    bool follows;                /* losses are needed, not only flags */
    int64_t window;              /* -l */
    const struct engine *engine;
    size_t room;                 /* approximate bytes of slices in use before reading pauses */
    struct marked_store *store;  /* for waiting records that do not fit into the room */
    size_t n_counts;             /* number of struct dup_counts: read groups, and none */
    const char *path;            /* path of the input, for messages */
    struct record_sink *sink;
};

/* The least room that lets all threads work, if slices usually have records_size bytes of records; and bytes of memory
 * for that room and for the store of such slices. */
size_t marked_flow_room(int n_threads, size_t records_size);
size_t marked_flow_memory(int n_threads, size_t records_size);

/* NULL: failed, and the error is recorded in the latch. */
struct marked_flow *marked_flow_open(const struct marked_flow_options *options);

/* Call it after the parallel region, because late tasks still read their slots. */
void marked_flow_close(struct marked_flow *flow);

/* As advance(), take() and help() of struct list_stream. */
enum chunk_state marked_flow_advance(struct marked_flow *flow);
void marked_flow_take(struct marked_flow *flow, struct record_list *list);
bool marked_flow_help(struct marked_flow *flow);

/* The records taken so far, those given, and the number left out. */
struct marked_totals {
    struct tally taken, given;
    uint64_t dropped;
};

const struct marked_totals *marked_flow_totals(const struct marked_flow *flow);

/* Adds the counts to sum[n_counts], which must be zero-initialised. */
void marked_flow_counts(const struct marked_flow *flow, struct dup_counts *sum);

#endif
