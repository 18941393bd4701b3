/* SPDX-License-Identifier: MIT */
/* The memory for records: two arenas, one of which is being filled. If not all records fit, the records of the other
 * arena are spilled meanwhile, as a sorted run.
 *
 *   filled: | A         | B         | A         | B      |   then merged with the runs
 *   leaves:             | A         | B         | A      |   (B stays, and so does A if everything fits)
 *
 * Only the main thread calls these functions, except for arenas_give_back(). */
#ifndef ARENAS_H
#define ARENAS_H

#include "bam_arena.h"

struct arenas {
    struct bam_arena each[2];
    struct bam_arena *filled;    /* its counts and checksum cover all records so far */
    bool placed;                 /* a record with a reference was spilled */
};

/* Reserves two arenas of equal size: at most `size` bytes each, or less if a limit (ulimit -v) leaves less. -1: out of
 * memory, and the error is recorded in the latch. */
int arenas_open(struct arenas *arenas, size_t size, struct latch *latch);
void arenas_close(struct arenas *arenas);

/* Gives one of n_shares parts of the memory back to the system. To give back everything takes 0.15 s of CPU time per
 * GiB, so several threads may each give back a share at the same time. Afterwards the arenas are empty. */
void arenas_give_back(const struct arenas *arenas, size_t share, size_t n_shares);

/* Sets what both arenas must know about the records to come: the number of references, their lengths and the order, as
 * in struct bam_arena. The caller keeps the lengths and the order while records are read. normalised: another sort has
 * normalised the records. (-M keeps ranks in fields, with which the records' bins then seem to disagree.) */
void arenas_expect(struct arenas *arenas, int32_t n_ref, const int64_t *lengths, const struct sort_rule *rule,
                   bool normalised);

/* Returns whether any record so far begins after the end of its reference; false without lengths. */
bool arenas_beyond(const struct arenas *arenas);

/* The arena that is not being filled. It holds the older records, or none. */
static inline struct bam_arena *arenas_other(struct arenas *arenas)
{
    return &arenas->each[arenas->filled == &arenas->each[0]];
}

/* Bytes that this number of bytes of records takes together with the keys, estimated from the records so far. 0:
 * unknown. */
double arenas_with_keys(const struct arenas *arenas, double records);

/* Bytes that records and keys take now. */
uint64_t arenas_taken(const struct arenas *arenas);

/* Records that the filled arena still has room for, estimated from the records in it. */
uint64_t arenas_records_to_fit(const struct arenas *arenas);

/* Empties the other arena, whose records were spilled, or which has none. Afterwards it has at most size bytes. */
void arenas_empty_other(struct arenas *arenas, size_t size);

/* Continues in the other arena, which is empty: carries over the record that is cut at the end of the full arena. -1:
 * out of memory, and the error is recorded in the latch. */
int arenas_change(struct arenas *arenas, struct latch *latch);

/* Makes the filled arena larger if `room` bytes do not fit, which happens when it holds only the beginning of a long
 * record. -1: out of memory, and the error is recorded in the latch. */
int arenas_grow(struct arenas *arenas, size_t room, struct latch *latch);

/* Returns whether no record has a reference. All sublists must be sorted. */
bool arenas_unplaced(const struct arenas *arenas);

#endif
