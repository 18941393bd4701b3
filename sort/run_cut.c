/* SPDX-License-Identifier: MIT */
#include "sort/run_cut.h"
#include "order/sort_key.h"
#include "order/sublist_sort.h"

bool run_cut_before(const struct run_cut *a, const struct run_cut *b, const struct sort_rule *rule)
{
    if (a->key.sort != b->key.sort)
        return a->key.sort < b->key.sort;
    int by_record = rule ? sort_key_compare(rule, bam_record_at(bam_key_record(a->base, a->key)),
                                            bam_record_at(bam_key_record(b->base, b->key))) : 0;
    if (by_record)
        return by_record < 0;
    return a->way != b->way ? a->way < b->way : a->key.place < b->key.place;
}

const struct bam_key *run_cut_find(const struct run_cut *cut, const struct sort_rule *rule,
                                   struct merge_way keys, size_t way)
{
    const struct bam_key *from = keys.next;
    for (size_t n = (size_t)(keys.end - from); n > 0;) {
        size_t half = n / 2;
        struct run_cut probe = {from[half], keys.base, way};
        if (run_cut_before(&probe, cut, rule)) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}

size_t run_cut_count(const struct bam_sublist *list, size_t every)
{
    return list->n > every / 2 ? (list->n - every / 2 - 1) / every + 1 : 0;
}

size_t run_cut_take(const struct bam_sublist *list, size_t every, struct bam_key *samples, size_t max)
{
    size_t n = 0;
    for (size_t at = every / 2; at < list->n && n < max; at += every)
        samples[n++] = list->keys[at];
    return n;
}

size_t run_cut_sample(const struct bam_arena *a, size_t every, struct bam_key *samples, size_t max)
{
    struct bam_key_order order = bam_arena_order(a);
    size_t n = 0;
    for (size_t i = 0; i < a->n_sublists; i++)
        n += run_cut_take(&a->sublists[i], every, samples + n, max - n);
    sublist_sort(samples, n, &order);
    return n;
}
