/* SPDX-License-Identifier: MIT */
/* Where sorted runs are cut, so that each thread can merge the records between two cuts. A cut is a position in the
 * complete order, ties included: every record of every run is either before it or not, even among equal keys. Serial.
 *
 *   run 0   | . . . . | . . . . . . . | . . . |
 *   run 1   | . . | . . . . . | . . . . . . . |
 *   run 2   | . . . . . . | . . . . | . . . . |
 *            range 0       range 1     range 2      each range is merged on its own */
#ifndef RUN_CUT_H
#define RUN_CUT_H

#include "bam_arena.h"
#include "sort/run_merge.h"

struct run_cut {
    struct bam_key key;          /* key of the first record that is not before the cut */
    const uint8_t *base;         /* the key's place is relative to this; any value if keys decide and the way is a
                                  * run */
    size_t way;                  /* number of the run, or of the arena's sublists, in the order of the input */
};

/* Returns whether cut a is before cut b. rule: see struct run_merge. */
bool run_cut_before(const struct run_cut *a, const struct run_cut *b, const struct sort_rule *rule);

/* The first of these keys of way number `way` that is not before the cut; keys.end if there is none. Between equal keys
 * of one way their places decide, otherwise their ways. All sublists of an arena are one way. Do not search the run
 * that holds the cut: its slices have different bases. */
const struct bam_key *run_cut_find(const struct run_cut *cut, const struct sort_rule *rule,
                                   struct merge_way keys, size_t way);

/* Returns how many keys there are if one of every `every` keys of a sorted sublist is taken, beginning with key every /
 * 2. */
size_t run_cut_count(const struct bam_sublist *list, size_t every);

/* Takes these keys, at most max. Returns how many it took. */
size_t run_cut_take(const struct bam_sublist *list, size_t every, struct bam_key *samples, size_t max);

/* Takes these keys of each sublist of the arena, and sorts them. Takes at most max keys; returns how many it took. */
size_t run_cut_sample(const struct bam_arena *arena, size_t every, struct bam_key *samples, size_t max);

#endif
