/* SPDX-License-Identifier: MIT */
/* Sorts one sublist of keys. Serial. */
#ifndef SUBLIST_SORT_H
#define SUBLIST_SORT_H

#include "order/bam_key.h"

/* Sorts keys[n] by (sort, record, place), in place and without other memory: a radix sort from the highest byte that
 * differs. Records are compared only if order has a rule and sort is equal. place grows with the input, so equal
 * records stay in input order: the sort is stable. */
void sublist_sort(struct bam_key *keys, size_t n, const struct bam_key_order *order);

#endif
