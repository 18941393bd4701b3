/* SPDX-License-Identifier: MIT */
/* The contiguous region of memory that holds the input while it is sorted.
 *
 *   base                    bottom          top                        size
 *   | inflated BAM stream ->|     free      |<- keys of the records    |
 *
 * Records never move. The arena is full when records and their 16-byte keys meet. The main thread moves bottom and top;
 * tasks write only into the parts that it gave out. */
#ifndef BAM_ARENA_H
#define BAM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/record_checksum.h"
#include "bam/bam_record.h"
#include "base/tally.h"
#include "codec/bgzf_block.h"
#include "order/bam_key.h"

struct latch;

/* Bytes of the largest arena: a key has 40 bits for the offset. */
#define BAM_ARENA_MAX ((uint64_t)1 << (64 - BAM_KEY_SIZE_BITS))

/* The largest number of records in a BGZF block, and so of keys that its walk may list. */
enum { BAM_ARENA_BLOCK_KEYS = BGZF_MAX_BLOCK / BAM_MIN_RECORD + 1 };

/* The result of a walk: the records found in some bytes of the stream, and what was learned about them. */
struct bam_walk {
    uint64_t start;              /* arena offset of the first record looked at */
    uint64_t end;                /* arena offset one past the last complete record */
    uint64_t checksum;           /* sum of record_checksum() over the records, modulo 2^64 */
    uint32_t n;                  /* records found, and keys in the caller's list */
    uint32_t n_fix;              /* how many of them bam_record_fix() would change */
    bool beyond;                 /* one of them begins after the end of its reference */
    enum bam_fault fault;        /* fault of the record at `end`; BAM_CUT: the record only needs more bytes */
};

struct bam_sublist {
    struct bam_key *keys;        /* in the arena; sorted once the task that sorts them is done */
    size_t n;
};

struct bam_arena {
    uint8_t *base;
    size_t size;
    size_t mapped;               /* bytes of address space reserved; size may be less, see bam_arena_reset() */
    size_t bottom;               /* bytes of the stream given out */
    size_t top;                  /* offset of the lowest key */
    size_t advised;              /* the use of huge pages is decided up to here; a multiple of WINDOW, or the end */
    bool grown;                  /* for a record larger than the arena */
    bool huge_pages_are_slow;    /* if set, no more huge pages are requested */
    size_t walked;               /* offset of the first record that is not yet listed */
    uint64_t n_records;          /* records listed so far */
    uint64_t checksum;           /* sum over the records listed, modulo 2^64 */
    uint64_t origin;             /* for messages: offset of base in the uncompressed stream, modulo 2^64 */
    uint64_t n_before;           /* how many of n_records belong to earlier inputs; for messages */
    size_t sublist_bottom;       /* walked, when the open sublist began */
    size_t sublist_top;          /* top, when the open sublist began */
    struct bam_sublist *sublists;
    size_t n_sublists, max_sublists;
    bool normalised;             /* the records are already normalised: bam_record_fix() changes none of them */
    int32_t n_ref;               /* number of @SQ lines; reference ids are less than this */
    const int64_t *lengths;      /* lengths of these references; NULL: `beyond` is not needed */
    bool beyond;                 /* a record listed so far begins after the end of its reference */
    const struct sort_rule *rule;   /* makes the keys; NULL: coordinate order */
};

/* Reserves size bytes of address space, or as much as a limit (ulimit -v) allows. Pages are touched
 * only as the arena fills. -1: out of memory. */
int bam_arena_init(struct bam_arena *arena, size_t size);
void bam_arena_free(struct bam_arena *arena);

/* Count and checksum of the records listed so far. */
static inline struct tally bam_arena_tally(const struct bam_arena *arena)
{
    return (struct tally){.n = arena->n_records, .checksum = arena->checksum};
}

/* Returns whether no record is listed. */
static inline bool bam_arena_empty(const struct bam_arena *arena)
{
    return arena->top == arena->size;
}

/* Bytes of stream that certainly still fit. It assumes that all bytes that are given out but not yet listed are records
 * of the smallest size, each with a key. */
size_t bam_arena_room(const struct bam_arena *arena);

/* The order of this arena's keys. */
struct bam_key_order bam_arena_order(const struct bam_arena *arena);

/* Gives out the next size bytes of the stream and returns where they lie. The caller has checked bam_arena_room(). */
uint8_t *bam_arena_take(struct bam_arena *arena, size_t size);

/* Walks the complete records in [start, end) of the stream and lists their keys in keys[], which has room for (end -
 * start) / BAM_MIN_RECORD + 1. Changes nothing else. Stops at the first record that is cut or bad. This function and
 * the next two use only the arena's base, n_ref, lengths, normalised and rule. */
struct bam_walk bam_arena_walk(const struct bam_arena *arena, uint64_t start, uint64_t end, struct bam_key *keys);

/* Walks the block [start, end) without knowing where its first record begins. Chooses the block's start if records
 * follow each other from there to the end. Otherwise it chooses the first place in the block's first 16 KiB from which
 * they do. If there is no such place, or if the search reads more than a few times the size of the block (see
 * record_search.h), it finds nothing, and the walk starts at `end`. */
struct bam_walk bam_arena_guess(const struct bam_arena *arena, uint64_t start, uint64_t end, struct bam_key *keys);

/* Makes room for the keys of n complete records, which follow the listed records and end where the bytes given out end.
 * Returns where the keys belong. The caller adds the checksums of the records later. */
struct bam_key *bam_arena_list(struct bam_arena *arena, uint32_t n);

/* Like bam_arena_walk(), for n complete records that were copied to their place, [start, end). known: the keys that the
 * records had in another place, where they lay one after the other and were checked and normalised. NULL: they had no
 * keys. */
struct bam_walk bam_arena_take_known(const struct bam_arena *arena, uint64_t start, uint64_t end,
                                     const struct bam_key *known, uint32_t n, struct bam_key *keys);

/* Normalises, in place, each of these n records that bam_record_fix() would change. Makes its key again and corrects
 * the sum of checksums. Changes nothing else. -1: out of memory. */
int bam_arena_fix(const struct bam_arena *arena, struct bam_key *keys, uint32_t n, uint64_t *checksum);

/* Where a block came from, for messages. */
struct bam_origin {
    const char *file;
    uint64_t offset;             /* offset of the compressed block in the file */
};

/* Takes over the records of the block that ends at block_end. Call it in stream order. Accepts the guess if it starts
 * where the previous record ends; otherwise walks again from that end. Normalises records that need it.
 *
 * place: if not NULL, the guess's keys are not copied to their place, because a task that has them in its cache copies
 * them faster. *place is then the address to which the caller must copy them, or NULL if there is nothing to copy.
 *
 * 1: the name of the next record lacks its NUL (bam_record_can_close()), and there is no room for a NUL here. -1: a bad
 * record or no memory; the error is recorded in the latch. */
int bam_arena_accept(struct bam_arena *arena, const struct bam_walk *guess, const struct bam_key *keys,
                     uint64_t block_end, struct bam_key **place, struct latch *latch, const struct bam_origin *origin);

/* Closes the open sublist if it holds at least min_records records or min_bytes bytes,
 * but never an empty one. 1: closed, and *sublist is the new sublist, not yet sorted.
 * 0: it stays open. -1: out of memory. */
int bam_arena_close_sublist(struct bam_arena *arena, size_t min_records, size_t min_bytes, struct bam_sublist *sublist);

/* Makes a sublist from the oldest min_records records of the open sublist, or from all its records if there are fewer.
 * The rest of the block that the last of them came from goes into the sublist, too. 1: done; 0: the open sublist is
 * empty; -1: out of memory. All keys must be in their places. */
int bam_arena_cut_sublist(struct bam_arena *arena, size_t min_records, struct bam_sublist *sublist);

/* Records in the open sublist. */
size_t bam_arena_open_records(const struct bam_arena *arena);

/* Empties an arena whose records are no longer needed. Afterwards the arena has at most size bytes; memory beyond that
 * goes back to the system. Counts, the origin and the order stay, because they describe the stream. */
void bam_arena_reset(struct bam_arena *arena, size_t size);

/* Continues the stream of `from` in the empty arena `to`: moves the bytes of the record that is
 * cut at from's end. -1: out of memory. */
int bam_arena_carry(struct bam_arena *to, const struct bam_arena *from);

/* Gives an arena without keys room for `room` more bytes of stream, by moving it to a larger region.
 * For a record that is larger than the arena. -1: out of memory. */
int bam_arena_grow(struct bam_arena *arena, size_t room);

#endif
