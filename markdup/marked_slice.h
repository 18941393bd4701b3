/* SPDX-License-Identifier: MIT */
/* Consecutive records in the input of `markdup`, on their way to the output: the values that tasks compute for them,
 * and how they are finished. Serial; no I/O.
 *
 *   made --> keyed --> entered in each shard --> reported --> finished --> in the sink
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

/* A record, until the shards have processed it. */
struct marked_read {
    struct dup_read read;
    int64_t reach;               /* the largest place of the records up to it on its reference, in the slice */
    int64_t before;              /* as in struct dup_entry; the main thread sets it for the first record of the slice */
    uint32_t single, pair;       /* its shards */
    bool leads;                  /* result of dup_sets_single(); set by the shard of the single */
};

/* The fields of a slice that the shards need. All except `entries` can be used again. */
struct marked_entries {
    struct marked_read *reads;   /* data of each record */
    size_t max;                  /* records allocated */
    uint32_t *list;              /* twice the record's number, plus 1 in the table of pairs; by shard */
    uint32_t *begin;             /* start of each shard's entries, and end of the last ones */
    uint32_t *breaks;            /* records before which all sets close: they are on another reference, or on none */
    size_t n_breaks;
};

/* The end of the records so far. Zero-initialised: there are none. */
struct marked_place {
    bool is_set, is_nowhere;     /* is_nowhere: neither reference nor position */
    int32_t ref;
    int64_t start, reach;
};

/* The result for a record. Zero-initialised: none. */
struct marked_settled {
    uint32_t count;              /* dc, or the largest number if that is more; 0: none */
    uint32_t original : 30;      /* start of the name in the slice's names, + 1; 0: none */
    uint32_t type : 2;           /* enum dup_type */
};

/* The rules for writing records. The caller owns the objects that the pointers lead to; threads share it. */
struct marked_rule {
    const struct dup_rule *read;
    struct dup_mark_rule mark;
    bool removes;                /* duplicates are left out */
    bool adds_tags;              /* more than flags is requested */
    const struct dup_others *others;     /* names whose other records are duplicates, too; NULL: none */
};

enum { MARKED_MISSED = 10 };     /* records without barcode whose names a slice remembers */

struct marked_slice {
    struct record_slice records;
    enum { MARKED_HERE, MARKED_LEAVES, MARKED_AWAY } where;  /* set by the main thread, or by the slice's finisher */
    struct spill_run run;        /* its records while they are stored; n and checksum stay in `records` */
    uint64_t first;              /* number of its first record in the input, from 0 */
    struct marked_entries *entries;   /* NULL: the shards are done with it, or it is not keyed yet */
    struct marked_place from, to;     /* the place before it, and its end, which only includes `from` once joined */
    size_t joined;               /* records before its first break: the records before the slice can reach them */
    size_t out_of_order;               /* index of the first record out of order or unreadable; records.n: none */
    enum bam_fault fault;        /* why it cannot be read */
    _Atomic uint64_t *lost;      /* one bit for each record; any shard sets it before the slice is final */
    size_t max_lost;             /* words allocated */
    struct marked_settled *settled; /* for each record; NULL: nothing was reported */
    struct byte_buffer names;    /* names of originals */
    size_t n_examined, n_untagged;   /* records that take part, and those of them without the barcode tag */
    size_t n_missed;             /* records whose barcode could not be read ... */
    uint32_t missed[MARKED_MISSED];  /* ... and the first of them */
    enum dup_mark_fault unmarked;    /* why a record cannot be written ... */
    bool changed;                /* ... or that it would change more than it may ... */
    size_t faulty;               /* ... and its index */
    size_t n_dropped;            /* records that are left out */
    struct record_list list;     /* list of the records that are written */
    size_t max_list;
    uint64_t checksum;  /* sum over the records that are written, as they are written */
    uint64_t mark;               /* mark of the sink, once it has them */
    size_t memory;               /* bytes that it was counted with */
};

void marked_slice_free(struct marked_slice *slice);
void marked_entries_free(struct marked_entries *entries);

/* Keys the records of the slice and divides them among the shards. counts: by read group; records read are added. -1:
 * out of memory. */
int marked_slice_key(struct marked_slice *slice, const struct dup_rule *rule, uint32_t n_shards,
                     struct dup_counts *counts);

/* Joins the slice with the records before it. *at: their end; becomes the end of the slice. False: its first record is
 * out of order. */
bool marked_slice_join(struct marked_slice *slice, struct marked_place *at);

/* Enters the records of a shard into its sets. *number: of the last record entered, or of the one with a fault. */
enum dup_fault marked_slice_enter(const struct marked_slice *slice, uint32_t shard, struct dup_sets *sets,
                                  uint64_t *number);

/* Marks the record as lost. Any thread may call it. */
static inline void marked_slice_lose(struct marked_slice *slice, size_t i)
{
    atomic_fetch_or_explicit(&slice->lost[i / 64], (uint64_t)1 << i % 64, memory_order_relaxed);
}

/* Stores a verdict. The verdicts of a duplicate and of an original do not replace each other: without the chain pass a
 * duplicate may continue to count singles. Returns 0, or -1 if out of memory. */
int marked_slice_settle(struct marked_slice *slice, const struct dup_verdict *verdict);

/* Makes the records as they are written, and lists them. In counts, by read group, records left out are subtracted from
 * the number written. -1: out of memory, or a record cannot be written: see `unmarked` and `changed`. */
int marked_slice_finish(struct marked_slice *slice, const struct marked_rule *rule, struct dup_counts *counts);

/* Bytes of its records and lists, without entries; and usual bytes of a slice with records_size bytes of records, with
 * entries. */
size_t marked_slice_memory(const struct marked_slice *slice);
size_t marked_slice_memory_of(size_t records_size);

/* Empties the slice and keeps its memory for other records. */
void marked_slice_clear(struct marked_slice *slice);

#endif
