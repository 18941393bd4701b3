/* SPDX-License-Identifier: MIT */
/* Sorts and merges many records that repeat a few, so that there are ties: in order, stable, none lost.
 *
 *   order 2 | length of the list | which record each is | records */
#include "bam_arena.h"
#include "fuzz.h"
#include "sort/run_merge.h"
#include "order/sublist_sort.h"

enum { RECORDS = 6, LIST = 255 };

struct list {
    uint8_t *base;               /* the records, one after another */
    size_t size, n;
    struct bam_key keys[LIST];
};

/* Appends a record, unless it has no key. */
static void append(struct list *list, const struct sort_rule *rule, const uint8_t *record, size_t size)
{
    struct bam_key *key = &list->keys[list->n];
    if (sort_key_make(rule, (const struct bam_record *)record, &key->sort))
        return;
    key->place = bam_key_place(list->size, size);
    memcpy(list->base + list->size, record, size);
    list->size += size;
    list->n++;
}

static void fill(struct list *list, struct feed *f, struct sort_rule *rule)
{
    uint8_t records[RECORDS][FUZZ_RECORD_MAX];
    size_t sizes[RECORDS], n = 0, n_list = feed_byte(f);
    uint8_t picks[LIST];
    const struct bam_record *sample[RECORDS];
    feed_copy(f, picks, n_list);
    for (; n < RECORDS && (sizes[n] = fuzz_record(f, records[n])) > 0; n++)
        sample[n] = (const struct bam_record *)records[n];
    sort_rule_learn(rule, sample, n);
    list->base = must_alloc(LIST * FUZZ_RECORD_MAX);
    for (size_t i = 0; i < n_list && n > 0; i++)
        append(list, rule, records[picks[i] % n], sizes[picks[i] % n]);
}

static void merge_all(const struct list *list, const struct sort_rule *rule, const struct bam_key_order *order, size_t cut)
{
    struct run_merge merge;
    struct merge_item item, last = {{0, 0}, NULL, 0};
    size_t n = 0;
    MUST(run_merge_init(&merge, order->rule ? rule : NULL, 2, 0) == 0);
    run_merge_add(&merge, (struct merge_way){list->keys, list->keys + cut, list->base});
    run_merge_add(&merge, (struct merge_way){list->keys + cut, list->keys + list->n, list->base});
    MUST(run_merge_start(&merge, NULL, NULL) == 0);
    for (; run_merge_next(&merge, &item) > 0; n++, last = item)
        MUST(n == 0 || bam_key_less(order, &last.key, &item.key));
    MUST(n == list->n);
    run_merge_free(&merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sam_hdr_t *sam;
    struct feed f = {data, size};
    struct list *list = calloc(1, sizeof *list);
    if (!sam)
        sam = fuzz_header();
    struct sort_order by = fuzz_order(&f);
    if (by.by == SORT_MINHASH)
        by.by = SORT_COORDINATE;                 /* its keys are made in the sort task */
    struct sort_rule *rule = sort_rule_new(&by, sam);
    MUST(list && rule);
    fill(list, &f, rule);
    struct bam_key_order order = {sort_key_decides(rule) ? NULL : rule, list->base};
    size_t cut = list->n ? size % list->n : 0;
    sublist_sort(list->keys, cut, &order);
    sublist_sort(list->keys + cut, list->n - cut, &order);
    merge_all(list, rule, &order, cut);
    uint64_t bytes = 0;
    sublist_sort(list->keys, list->n, &order);
    for (size_t i = 0; i < list->n; i++) {
        MUST(i == 0 || bam_key_less(&order, &list->keys[i - 1], &list->keys[i]));
        bytes += bam_key_record_size(list->base, list->keys[i]);
    }
    MUST(bytes == list->size);
    free(list->base);
    free(list);
    sort_rule_free(rule);
    return 0;
}
