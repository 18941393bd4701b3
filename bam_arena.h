/* SPDX-License-Identifier: MIT */
/* The contiguous region that holds the input while it is sorted.
 *
 *   base                    bottom          top                        size
 *   | inflated BAM stream ->|     free      |<- keys of the records    |
 *
 * Records grow from the bottom and are never moved; their 16-byte keys grow
 * from the top; the arena is full when the two meet. One thread (the master)
 * moves bottom and top; tasks write only into the ranges it gave out. */
#ifndef BAM_ARENA_H
#define BAM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/bam_record.h"

struct latch;
struct sort_rule;

/* What sorting moves about instead of a record. Keys compare by (sort, place);
 * place grows with the input, so that order is the stable one. */
struct bam_key {
    uint64_t sort;
    uint64_t place;              /* arena offset << 24 | record size, saturated */
};

enum { BAM_KEY_SIZE_BITS = 24 };
#define BAM_KEY_SIZE_MAX (((uint64_t)1 << BAM_KEY_SIZE_BITS) - 1)
#define BAM_ARENA_MAX ((uint64_t)1 << (64 - BAM_KEY_SIZE_BITS))

/* The record of a key whose place is relative to base. */
static inline const uint8_t *bam_key_record(const uint8_t *base, struct bam_key key)
{
    return base + (key.place >> BAM_KEY_SIZE_BITS);
}

static inline size_t bam_key_record_size(const uint8_t *base, struct bam_key key)
{
    uint64_t size = key.place & BAM_KEY_SIZE_MAX;
    return size < BAM_KEY_SIZE_MAX ? size : bam_record_size((const struct bam_record *)bam_key_record(base, key));
}

static inline uint64_t bam_key_place(uint64_t offset, size_t record_size)
{
    return offset << BAM_KEY_SIZE_BITS | (record_size < BAM_KEY_SIZE_MAX ? record_size : BAM_KEY_SIZE_MAX);
}

/* What decides between keys that are equal in sort, before place does. */
struct bam_key_order {
    const struct sort_rule *rule;   /* NULL: nothing does */
    const uint8_t *base;         /* of the arena */
};

/* sort_key_compare() on the records of two keys. */
int bam_key_compare_records(const struct bam_key_order *order, const struct bam_key *a, const struct bam_key *b);

static inline bool bam_key_less(const struct bam_key_order *order, const struct bam_key *a,
                                const struct bam_key *b)
{
    if (a->sort != b->sort)
        return a->sort < b->sort;
    int by_record = order->rule ? bam_key_compare_records(order, a, b) : 0;
    return by_record ? by_record < 0 : a->place < b->place;
}

/* The records found in one piece of the stream, and what was found out on the way. */
struct bam_walk {
    uint64_t start;              /* arena offset of the first record looked at */
    uint64_t end;                /* one past the last whole record */
    uint64_t checksum;           /* sum of bam_checksum() over the records */
    uint32_t n;                  /* records, and keys in the caller's list */
    uint32_t n_fix;              /* of them, records that bam_record_fix() would change */
    enum bam_fault fault;        /* of the record at end: BAM_CUT if it only needs more bytes */
};

struct bam_sublist {
    struct bam_key *keys;        /* in the arena; sorted once the task that sorts it is done */
    size_t n;
};

struct bam_arena {
    uint8_t *base;
    size_t size;
    size_t mapped;               /* bytes reserved; size may be less, see bam_arena_reset() */
    size_t bottom;               /* stream bytes given out */
    size_t top;                  /* offset of the lowest key */
    size_t advised;              /* where no decision on huge pages was made yet; a multiple of the window */
    bool huge_pages_are_slow;    /* so no more are asked for */
    size_t walked;               /* where the first record not yet listed begins */
    uint64_t n_records;          /* listed so far */
    uint64_t checksum;           /* of the records listed */
    uint64_t origin;             /* offset of base in the input's uncompressed stream, modulo 2^64, for messages */
    uint64_t n_before;           /* of n_records, those of inputs before the present one, for messages */
    size_t sublist_bottom;       /* walked, when the open sublist began */
    size_t sublist_top;          /* top, when the open sublist began */
    struct bam_sublist *sublists;
    size_t n_sublists, max_sublists;
    int32_t n_ref;               /* @SQ lines: bound of the reference ids */
    const struct sort_rule *rule;   /* makes the keys; NULL: coordinate order */
};

/* Order-independent checksum of one record: sum modulo 2^64, over its segments
 * of BGZF_FILL bytes, of byte_hash(segment) with the segment's number as seed.
 * Segments, because an output block holds at most one. */
uint64_t bam_checksum(const uint8_t *record, size_t size);

/* Reserves size bytes of address space (touched only as they fill), or as much
 * of it as a limit (ulimit -v) lets one have. -1: no memory. */
int bam_arena_init(struct bam_arena *arena, size_t size);
void bam_arena_free(struct bam_arena *arena);

/* Whether no record is listed. */
static inline bool bam_arena_empty(const struct bam_arena *arena)
{
    return arena->top == arena->size;
}

/* Bytes of stream that still fit with certainty: what is left when every byte
 * given out and not yet listed turns out to be records of the smallest size. */
size_t bam_arena_room(const struct bam_arena *arena);

/* The order of this arena's keys. */
struct bam_key_order bam_arena_order(const struct bam_arena *arena);

/* Gives out the next size bytes of the stream; returns their place. The caller
 * has looked at bam_arena_room(). */
uint8_t *bam_arena_take(struct bam_arena *arena, size_t size);

/* Walks the whole records in [start, end) of the stream, lists their keys in
 * keys[] (room for (end - start) / BAM_MIN_RECORD + 1) and changes nothing else.
 * Stops at the first record that is cut or bad. */
struct bam_walk bam_arena_walk(const struct bam_arena *arena, uint64_t start, uint64_t end,
                               struct bam_key *keys);

/* The same for the block [start, end), of which nobody knows where in it the
 * first record begins: at its start if that looks like records all along, else
 * at the first place that does. */
struct bam_walk bam_arena_guess(const struct bam_arena *arena, uint64_t start, uint64_t end,
                                struct bam_key *keys);

/* Where a block came from, for messages. */
struct bam_origin {
    const char *file;
    uint64_t offset;             /* of the compressed block in the file */
};

/* Takes over the records of the block that ends at block_end, in stream order:
 * the guess if its start is right, else by walking again; mends those that
 * need it. With place not NULL the guess's keys are not copied to where they belong,
 * which whoever has them in the cache can do better: *place says where that is, NULL
 * if there is nothing left to copy. -1: a bad record or no memory, told to the latch. */
int bam_arena_accept(struct bam_arena *arena, const struct bam_walk *guess,
                     const struct bam_key *keys, uint64_t block_end, struct bam_key **place,
                     struct latch *latch, const struct bam_origin *origin);

/* Closes the open sublist if it holds at least min_records records or
 * min_bytes bytes (never when it is empty): 1, and the new sublist, unsorted,
 * in *sublist; 0: stays open; -1: no memory. */
int bam_arena_close_sublist(struct bam_arena *arena, size_t min_records, size_t min_bytes,
                            struct bam_sublist *sublist);

/* Makes a sublist of the oldest records of the open one, min_records or all there are, and
 * the rest of their block: 1; 0: it is empty; -1: no memory. All keys are in their places. */
int bam_arena_cut_sublist(struct bam_arena *arena, size_t min_records, struct bam_sublist *sublist);

/* Records in the open sublist. */
size_t bam_arena_open_records(const struct bam_arena *arena);

/* Makes an arena in which nothing of worth lies empty again; of size bytes at
 * most, the rest goes back to the system. What the stream is about (counts,
 * offsets, order) stays. */
void bam_arena_reset(struct bam_arena *arena, size_t size);

/* Goes on in the empty arena `to` with the stream that `from` has the beginning
 * of: the bytes of the record that is cut at from's end move there. -1: no memory. */
int bam_arena_carry(struct bam_arena *to, const struct bam_arena *from);

/* Gives an arena without keys room for `room` bytes more of stream, by moving
 * it: for a record that is larger than the arena. -1: no memory. */
int bam_arena_grow(struct bam_arena *arena, size_t room);

#endif
