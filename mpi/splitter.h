/* SPDX-License-Identifier: MIT */
/* A place in the order of all records. */
#ifndef SPLITTER_H
#define SPLITTER_H

#include "sort/merge_ring.h"

/* A splitter cuts the order of all ranks' records. A record is below the splitter if it comes before the splitter's key
 * and record. A record that ties with the splitter is below it in two cases: its rank comes before `source`, or its
 * rank is `source` and the tied records before it in this rank have fewer than `bytes` bytes. */
struct splitter {
    uint64_t key, bytes;
    const uint8_t *record;       /* without SEQ and QUAL. NULL: only the key is known; if records are compared, then all
                                  * records with this key come after the splitter */
    int64_t source;
};

/* Compares a record with the splitter. < 0: it comes before records that tie; 0: it ties; > 0: it comes after them.
 * rule: compares records of equal keys; NULL: they tie. */
int splitter_compare(const struct splitter *splitter, const struct sort_rule *rule, uint64_t key,
                     const uint8_t *record);

/* Returns the first record of a sorted list that ties with the splitter or comes after it; with `ties`, the first one
 * that comes after it. list.end: there is none. */
const struct bam_key *splitter_find(const struct splitter *splitter, const struct sort_rule *rule,
                                    struct merge_way list, bool ties);

#endif
