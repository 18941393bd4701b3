/* SPDX-License-Identifier: MIT */
/* Where sorted runs are cut, so that the parts between two cuts can be merged by
 * different threads. A cut is a place in the whole order, ties included: every
 * record of every run is before it or not, whatever the keys. Serial.
 *
 *   run 0   | . . . . | . . . . . . . | . . . |
 *   run 1   | . . | . . . . . | . . . . . . . |
 *   run 2   | . . . . . . | . . . . | . . . . |
 *            range 0       range 1     range 2      each range is merged on its own */
#ifndef RUN_CUT_H
#define RUN_CUT_H

#include "merge/run_merge.h"

struct run_cut {
    struct bam_key key;          /* of the first record that is not before the cut ... */
    const uint8_t *base;         /* ... and what its place is relative to; any if keys decide and the source is a run */
    size_t source;               /* that it is in; as run_merge counts them */
};

/* Whether a cut is before another one. rule: see struct run_merge. */
bool run_cut_before(const struct run_cut *a, const struct run_cut *b, const struct sort_rule *rule);

/* The first key of a part of source number `source` that is not before the cut,
 * or part.end. Of equal keys with one base their places decide, of others their
 * sources: so the sublists of an arena may count as one source, but a run that
 * the cut is in must not be searched. */
const struct bam_key *run_cut_find(const struct run_cut *cut, const struct sort_rule *rule,
                                   struct merge_source part, size_t source);

/* Every every-th key of each sorted sublist of the arena, from its middle on, all
 * sorted; at most max. Returns how many. */
size_t run_cut_sample(const struct bam_arena *arena, size_t every, struct bam_key *samples, size_t max);

#endif
