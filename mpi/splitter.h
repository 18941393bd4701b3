/* SPDX-License-Identifier: MIT */
/* A place in the order of all records. */
#ifndef SPLITTER_H
#define SPLITTER_H

#include "sort/merge_ring.h"

/* Below it are those that come before its key and record and, of those that tie with it, those of the ranks before
 * `source` and the first ones of `source`, as many as begin within `bytes`. */
struct splitter {
    uint64_t key, bytes;
    const uint8_t *record;       /* without SEQ and QUAL; NULL: only the key is known, and where records are compared
                                  * those that have it come behind */
    int64_t source;
};

/* Where a record stands: < 0 before what ties with the splitter, 0 it ties, > 0 behind. rule: compares records of equal
 * keys; NULL: they tie. */
int splitter_compare(const struct splitter *splitter, const struct sort_rule *rule, uint64_t key,
                     const uint8_t *record);

/* The first record of a sorted list that does not come before what ties with the splitter, or (ties: before and with)
 * it; list.end if there is none. */
const struct bam_key *splitter_find(const struct splitter *splitter, const struct sort_rule *rule,
                                    struct merge_way list, bool ties);

#endif
