/* SPDX-License-Identifier: MIT */
/* The key of a record: 16 bytes that represent it while it is sorted. */
#ifndef BAM_KEY_H
#define BAM_KEY_H

#include "order/coordinate_key.h"
#include "order/sort_key.h"

/* The sort moves keys instead of records. Keys compare by (sort, place). place grows with the input, so this order is
 * stable. */
struct bam_key {
    uint64_t sort;
    uint64_t place;              /* arena offset << 24 | record size, saturated */
};

enum { BAM_KEY_SIZE_BITS = 24 };
#define BAM_KEY_SIZE_MAX (((uint64_t)1 << BAM_KEY_SIZE_BITS) - 1)

/* The record of a key whose place is relative to base. */
static inline const uint8_t *bam_key_record(const uint8_t *base, struct bam_key key)
{
    return base + (key.place >> BAM_KEY_SIZE_BITS);
}

static inline size_t bam_key_record_size(const uint8_t *base, struct bam_key key)
{
    uint64_t size = key.place & BAM_KEY_SIZE_MAX;
    return size < BAM_KEY_SIZE_MAX ? size : bam_record_size(bam_record_at(bam_key_record(base, key)));
}

static inline uint64_t bam_key_place(uint64_t offset, size_t record_size)
{
    return offset << BAM_KEY_SIZE_BITS | (record_size < BAM_KEY_SIZE_MAX ? record_size : BAM_KEY_SIZE_MAX);
}

/* The rule that decides between keys with equal sort, before their places do. */
struct bam_key_order {
    const struct sort_rule *rule;   /* compares the records; NULL: records are not compared */
    const uint8_t *base;         /* start of the arena, which places are relative to */
};

/* Makes the key of a checked record that is stored after order->base; without a rule, the key of coordinate order.
 * Returns a fault as sort_key_make() does. */
static inline enum bam_fault bam_key_make(const struct bam_key_order *order, const struct bam_record *r,
                                          struct bam_key *key)
{
    key->place = bam_key_place((uint64_t)((const uint8_t *)r - order->base), bam_record_size(r));
    if (order->rule)
        return sort_key_make(order->rule, r, &key->sort);
    key->sort = coordinate_key(r);
    return BAM_OK;
}

static inline bool bam_key_less(const struct bam_key_order *order, const struct bam_key *a, const struct bam_key *b)
{
    int by_record = 0;
    if (a->sort != b->sort)
        return a->sort < b->sort;
    if (order->rule)
        by_record = sort_key_compare(order->rule, bam_record_at(bam_key_record(order->base, *a)),
                                     bam_record_at(bam_key_record(order->base, *b)));
    return by_record ? by_record < 0 : a->place < b->place;
}

#endif
