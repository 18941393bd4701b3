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

/* Returns the first record, from `from` on, that ties with the splitter or comes after it; with `ties`, the first one
 * that comes after it. list->n: there is none. */
static size_t find_from(const struct splitter *s, const struct splitter_list *list, size_t from, bool ties)
{
    size_t end = list->n;
    while (from < end) {
        size_t middle = from + (end - from) / 2;
        int order = list->compare(list->of, middle, s);
        if (order < 0 || (ties && order == 0))
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

size_t splitter_below(const struct splitter *s, const struct splitter_list *list, size_t from, int rank, uint64_t *tied)
{
    size_t tie = find_from(s, list, from, false);
    if (rank > s->rank)
        return tie;
    size_t end = find_from(s, list, tie, true);
    if (rank < s->rank)
        return end;
    for (; tie < end && *tied < s->bytes; tie++)
        *tied += list->size(list->of, tie);
    return tie;
}

static int compare_key(const void *keys, size_t number, const struct splitter *s)
{
    const struct splitter_keys *k = keys;
    struct bam_key key = k->way.next[number];
    return splitter_compare(s, k->rule, key.sort, bam_key_record(k->way.base, key));
}

static uint64_t size_of_key(const void *keys, size_t number)
{
    const struct splitter_keys *k = keys;
    return bam_key_record_size(k->way.base, k->way.next[number]);
}

struct splitter_list splitter_list_of(const struct splitter_keys *k)
{
    return (struct splitter_list){k, (size_t)(k->way.end - k->way.next), compare_key, size_of_key};
}

struct merge_way splitter_with_key(struct merge_way way, uint64_t key)
{
    struct splitter at = {.key = key};
    struct splitter_keys keys = {way, NULL};
    struct splitter_list list = splitter_list_of(&keys);
    size_t from = find_from(&at, &list, 0, false);
    return (struct merge_way){way.next + from, way.next + find_from(&at, &list, from, true), way.base};
}
