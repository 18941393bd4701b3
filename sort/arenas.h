/* SPDX-License-Identifier: MIT */
/* The memory for records: two arenas, of which one is filled. If not all records fit, the other one
 * leaves memory meanwhile, as a sorted run.
 *
 *   filled: | A         | B         | A         | B      |   then merged with the runs
 *   leaves:             | A         | B         | A      |   (B stays, and so does A if everything fits)
 *
 * Only the main thread calls these functions, but for arenas_give_back(). */
#ifndef ARENAS_H
#define ARENAS_H

#include "bam_arena.h"

struct arenas {
    struct bam_arena each[2];
    struct bam_arena *filled;    /* its counts and checksum are those of all records so far */
    bool placed;                 /* a record with a reference has left memory */
};

/* Reserves two arenas of one size: at most `size` bytes each, less if a limit (ulimit -v) leaves less.
 * -1: out of memory, and the error is recorded in the latch. */
int arenas_open(struct arenas *arenas, size_t size, struct latch *latch);
void arenas_close(struct arenas *arenas);

/* Gives one of n_shares parts of the memory back to the system. All of it takes 0.15 s of CPU time per GiB, so several
 * threads may each give back a share at a time. Afterwards the arenas hold nothing. */
void arenas_give_back(const struct arenas *arenas, size_t share, size_t n_shares);

/* What both must know of the records to come: the number of references, their lengths and the order, as in struct
 * bam_arena. The caller keeps both while records are read. normalised: they were normalised by another sort. (-M keeps
 * ranks in fields that their bins seem to disagree with.) */
void arenas_expect(struct arenas *arenas, int32_t n_ref, const int64_t *lengths, const struct sort_rule *rule,
                   bool normalised);

/* Whether a record, of all so far, begins behind the end of its reference; false without lengths. */
bool arenas_beyond(const struct arenas *arenas);

/* The one that is not filled. It holds the older records, or none. */
static inline struct bam_arena *arenas_other(struct arenas *arenas)
{
    return &arenas->each[arenas->filled == &arenas->each[0]];
}

/* Bytes that so many bytes of records take together with their keys, judged by the records so far. 0: nobody knows. */
double arenas_with_keys(const struct arenas *arenas, double records);

/* Bytes that records and keys take now. */
uint64_t arenas_taken(const struct arenas *arenas);

/* Records that the filled arena still has room for, judged by those in it. */
uint64_t arenas_records_to_fit(const struct arenas *arenas);

/* The records of the other arena have left memory, or it has none. Empties it; it then has at most size bytes. */
void arenas_empty_other(struct arenas *arenas, size_t size);

/* Goes on in the other arena, which is empty: carries over the record that is cut at the end of the full one.
 * -1: out of memory, and the error is recorded in the latch. */
int arenas_change(struct arenas *arenas, struct latch *latch);

/* Makes the filled arena larger if `room` bytes do not fit, which happens when it holds nothing but the beginning of
 * a long record. -1: out of memory, and the error is recorded in the latch. */
int arenas_grow(struct arenas *arenas, size_t room, struct latch *latch);

/* Whether no record has a reference. All sublists must be sorted. */
bool arenas_unplaced(const struct arenas *arenas);

#endif
