/* SPDX-License-Identifier: MIT */
/* Records that follow one another in the input of `markdup`, on their way into the output: what tasks find out of them,
 * and how they are finished. Serial; no I/O.
 *
 *   made --> keyed --> entered in each shard --> settled --> finished --> in the sink
 *            a task    a task for each shard     losses      a task */
#ifndef MARKED_SLICE_H
#define MARKED_SLICE_H

#include <stdatomic.h>
#include "markdup/dup_mark.h"
#include "markdup/dup_sets.h"
#include "read/record_slice.h"
#include "sort/spill_run.h"
#include "write/record_list.h"

struct dup_counts;

/* A record until the shards have seen it. */
struct marked_read {
    struct dup_read read;
    int64_t reach;               /* the largest place of the records up to it on its reference, in the slice */
    int64_t before;              /* as in struct dup_entry; of the first record of the slice: the main thread's */
    uint32_t single, pair;       /* its shards */
    bool leads;                  /* as dup_sets_single() says; the shard's of the single */
};

/* What the shards need of a slice. All but `entries` is ready for use once allocated, and is used again. */
struct marked_entries {
    struct marked_read *reads;   /* of each record */
    size_t max;                  /* records there is room for */
    uint32_t *list;              /* twice the record's number, and 1 in the table of pairs; by shard */
    uint32_t *begin;             /* where the entries of each shard begin in it, and where the last ones end */
    uint32_t *breaks;            /* records in front of which all sets close: these are on another reference, or none */
    size_t n_breaks;
};

/* Where the records end, for those that follow. All zeros: there are none before. */
struct marked_place {
    bool is_set, is_nowhere;     /* is_nowhere: neither reference nor position */
    int32_t ref;
    int64_t start, reach;
};

/* The result for a record. All zeros: nothing. */
struct marked_settled {
    uint32_t count;              /* dc, or the largest number where it is more; 0: not settled */
    uint32_t original : 30;      /* where its name begins in the slice's, + 1; 0: none */
    uint32_t type : 2;           /* enum dup_type */
};

/* How records are written. What the pointers lead to stays the caller's; threads share it. */
struct marked_rule {
    const struct dup_rule *read;
    struct dup_mark_rule mark;
    bool removes;                /* duplicates are left out */
    bool adds_tags;              /* more is wanted than flags */
    const struct dup_others *others;     /* whose other records are duplicates, too; NULL: nobody's are */
};

enum { MARKED_MISSED = 10 };     /* records without barcode whose names a slice remembers */

struct marked_slice {
    struct record_slice records;
    enum { MARKED_HERE, MARKED_LEAVES, MARKED_AWAY } where;  /* the main thread's, or its finisher's */
    struct spill_run run;        /* its records, while they are away; n and checksum stay in `records` */
    uint64_t first;              /* number of its first record in the input, from 0 up */
    struct marked_entries *entries;   /* NULL: the shards are done with it, or it is not keyed yet */
    struct marked_place from, to;     /* the place before it, and its own end: before that is joined with `from` */
    size_t joined;               /* records before its first break: they are in the reach of those before the slice */
    size_t out_of_order;               /* the first record out of order or unreadable, by number; records.n: none */
    enum bam_fault fault;        /* why it cannot */
    _Atomic uint64_t *lost;      /* a bit for each record; any shard sets it before the slice is final */
    size_t max_lost;             /* words there is room for */
    struct marked_settled *settled; /* of each record; NULL: none is settled */
    struct byte_buffer names;    /* of originals */
    size_t n_examined, n_untagged;   /* records that take part, and those of them without the barcode tag */
    size_t n_missed;             /* records whose barcode could not be read ... */
    uint32_t missed[MARKED_MISSED];  /* ... and the first of them */
    enum dup_mark_fault unmarked;    /* why a record cannot be written ... */
    bool changed;                /* ... or: it would not be the same record ... */
    size_t faulty;               /* ... and which one */
    size_t n_dropped;            /* records that are left out */
    struct record_list list;     /* of the records that are written */
    size_t max_list;
    uint64_t checksum;           /* of the records that are written, as they were read but for what was changed ... */
    uint64_t mark;               /* of the sink, when it has got them */
    size_t memory;               /* bytes that it was counted with */
};

void marked_slice_free(struct marked_slice *slice);
void marked_entries_free(struct marked_entries *entries);

/* The slice's records are there: reads them, and divides them among the shards. counts: by read group; what is read
 * is added. -1: out of memory. */
int marked_slice_key(struct marked_slice *slice, const struct dup_rule *rule, uint32_t n_shards,
                     struct dup_counts *counts);

/* Joins it with what is before it. *at: where the records before it end, and then where it ends. False: its first
 * record is not in order. */
bool marked_slice_join(struct marked_slice *slice, struct marked_place *at);

/* Enters the records of a shard into its sets. *number: of the last one that was, or of the one with a fault. */
enum dup_fault marked_slice_enter(const struct marked_slice *slice, uint32_t shard, struct dup_sets *sets,
                                  uint64_t *number);

/* The record has lost. Any thread may call it. */
static inline void marked_slice_lose(struct marked_slice *slice, size_t i)
{
    atomic_fetch_or_explicit(&slice->lost[i / 64], (uint64_t)1 << i % 64, memory_order_relaxed);
}

/* Stores a verdict. That of a duplicate and that of an original do not replace each other: without the chain pass a
 * duplicate may go on to count singles. Returns 0, or -1 if there is no memory. */
int marked_slice_settle(struct marked_slice *slice, const struct dup_verdict *verdict);

/* Makes the records as they are written, and lists them. In counts, by read group, what is left out is taken off the
 * number of written ones. -1: out of memory, or a record cannot be written: see `unmarked` and `changed`. */
int marked_slice_finish(struct marked_slice *slice, const struct marked_rule *rule, struct dup_counts *counts);

/* Bytes of its records and lists, without entries; and of a slice with so many bytes of records, with them. */
size_t marked_slice_memory(const struct marked_slice *slice);
size_t marked_slice_memory_of(size_t records_size);

/* Forgets all but its memory, which may serve other records. */
void marked_slice_clear(struct marked_slice *slice);

#endif
