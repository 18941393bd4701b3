/* SPDX-License-Identifier: MIT */
/* A place in the order of all records. */
#ifndef SPLITTER_H
#define SPLITTER_H

#include "sort/merge_ring.h"

/* A splitter cuts the order of all ranks' records. A record is below the splitter if it comes before the splitter's key
 * and record. A record that ties with the splitter is below it in two cases: its rank comes before the splitter's,
 * or it is the splitter's and the tied records before it in this rank have fewer than `bytes` bytes. */
struct splitter {
    uint64_t key, bytes;
    const uint8_t *record;       /* without SEQ and QUAL. NULL: only the key is known; if records are compared, then all
                                  * records with this key come after the splitter */
    int64_t rank;
};

/* Compares a record with the splitter. < 0: the record comes before those that tie with the splitter; 0: it ties; > 0:
 * it comes after them. rule: compares records of equal keys; if it is NULL, they tie. */
int splitter_compare(const struct splitter *splitter, const struct sort_rule *rule, uint64_t key,
                     const uint8_t *record);

/* Sorted records of one rank. */
struct splitter_list {
    const void *of;
    size_t n;
    int (*compare)(const void *of, size_t number, const struct splitter *splitter);    /* see splitter_compare() */
    uint64_t (*size)(const void *of, size_t number);     /* bytes of a record */
};

/* Returns the number of records that are below the splitter. The first `from` records are known to be below it. *tied:
 * bytes of the rank's tied records before these; the function adds those that it finds below the splitter. */
size_t splitter_below(const struct splitter *splitter, const struct splitter_list *list, size_t from, int rank,
                      uint64_t *tied);

/* Keys of one sublist, and the rule that compares records of equal keys. */
struct splitter_keys {
    struct merge_way way;
    const struct sort_rule *rule;
};

/* Returns these keys as a list. They stay the caller's. */
struct splitter_list splitter_list_of(const struct splitter_keys *keys);

/* Returns the records of a sublist that have this key. */
struct merge_way splitter_with_key(struct merge_way list, uint64_t key);

#endif
