/* SPDX-License-Identifier: MIT */
#include "mpi/splitter.h"
#include "order/sort_key.h"

int splitter_compare(const struct splitter *s, const struct sort_rule *rule, uint64_t key, const uint8_t *record)
{
    if (key != s->key)
        return key < s->key ? -1 : 1;
    if (!rule || !s->record)
        return rule != NULL;
    return sort_key_compare(rule, (const struct bam_record *)record, (const struct bam_record *)s->record);
}

const struct bam_key *splitter_find(const struct splitter *s, const struct sort_rule *rule, struct merge_way list,
                                    bool ties)
{
    const struct bam_key *from = list.next;
    for (size_t n = (size_t)(list.end - from); n > 0;) {
        size_t half = n / 2;
        int order = splitter_compare(s, rule, from[half].sort, bam_key_record(list.base, from[half]));
        if (order < 0 || (ties && order == 0)) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}
