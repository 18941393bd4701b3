/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam/long_pos.h"
#include "bam/plain_header.h"
#include "order/collate_key.h"
#include "order/coordinate_key.h"
#include "order/key_room.h"
#include "order/minhash.h"
#include "order/name_key.h"
#include "order/sort_key.h"
#include "order/tag_key.h"
#include "order/template_key.h"

struct sort_rule {
    struct sort_order order;
    enum sort_by names_by;       /* the name order in use; SORT_COORDINATE: none */
    unsigned ref_bits;           /* bits that hold 0 .. n_ref; n_ref stands for "no reference" */
    unsigned pos_bits;           /* bits that hold 0 .. max_pos */
    uint64_t max_pos;            /* largest value of (position + 1) with its own key; larger ones share one */
    int32_t n_ref;
    bool far;                    /* there may be positions beyond 32 bits */
    struct name_key names;
    struct tag_key tags;
    struct template_key templates;
    struct collate_key collated;
};

/* Packs the coordinate into as few leading bits as this header needs. All positions beyond the longest
 * reference share one key. */
static uint64_t coordinate_sub_key(const struct sort_rule *rule, const struct bam_record *r)
{
    struct key_fill fill = {0, 64};
    int32_t ref = bam_record_ref_id(r);
    uint64_t pos = (uint64_t)long_pos(r) + 1;
    key_put(&fill, (uint64_t)(ref < 0 ? rule->n_ref : ref), rule->ref_bits);
    if (pos > rule->max_pos) {
        key_put_ones(&fill);
    } else {
        key_put(&fill, pos, rule->pos_bits);
        key_put(&fill, (bam_record_flag(r) & FLAG_REVERSE) != 0, 1);
    }
    return fill.key;
}

/* The name order that decides, alone or next. */
static enum sort_by names_by(const struct sort_order *order)
{
    enum sort_by by = order->by == SORT_TAG ? order->then : order->by;
    return by == SORT_NAME_NATURAL || by == SORT_NAME_ASCII || by == SORT_NAME_PICARD ? by : SORT_COORDINATE;
}

/* Learns the header lines that the order needs. -1: out of memory. */
static int learn_lines(struct sort_rule *rule, sam_hdr_t *sam)
{
    sam_hdr_t *lines = plain_header_is(sam) ? plain_header_lines(sam) : sam;
    int status = !lines ? -1 : rule->order.by == SORT_TAG ? tag_key_init(&rule->tags, rule->order.tag, lines)
               : template_key_init(&rule->templates, sam, lines);
    if (lines != sam)
        sam_hdr_destroy(lines);
    return status;
}

struct sort_rule *sort_rule_new(const struct sort_order *order, sam_hdr_t *sam)
{
    struct sort_rule *rule = calloc(1, sizeof *rule);
    if (!rule)
        return NULL;
    rule->order = *order;
    rule->names_by = names_by(order);
    rule->n_ref = sam_hdr_nref(sam);
    rule->max_pos = (uint64_t)long_pos_longest(sam) + 1;
    /* at least 1 bit: for 0 bits key_put() would shift by 64 */
    rule->ref_bits = key_bits((uint64_t)rule->n_ref | 1);
    rule->pos_bits = key_bits(rule->max_pos);
    if (order->by == SORT_COLLATE)
        rule->collated = collate_key_init(order->n_bins);
    if (rule->names_by != SORT_COORDINATE)
        name_key_init(&rule->names, rule->names_by);
    if ((order->by == SORT_TAG || order->by == SORT_TEMPLATE) && learn_lines(rule, sam) < 0) {
        sort_rule_free(rule);
        return NULL;
    }
    return rule;
}

void sort_rule_free(struct sort_rule *rule)
{
    if (rule) {
        tag_key_free(&rule->tags);
        template_key_free(&rule->templates);
    }
    free(rule);
}

void sort_rule_learn(struct sort_rule *rule, const struct bam_record *const *records, size_t n)
{
    struct text *texts = calloc(n + 1, sizeof *texts);
    if (!texts)
        return;                  /* not an error: the keys only decide less */
    for (size_t i = 0; i < n; i++)
        texts[i] = bam_record_text(records[i]);
    if (rule->names_by != SORT_COORDINATE)
        name_key_learn(&rule->names, texts, n);
    if (rule->order.by == SORT_TAG)
        tag_key_learn(&rule->tags, records, texts, n);
    if (rule->order.by == SORT_TEMPLATE)
        template_key_learn(&rule->templates, records, texts, n);
    free(texts);
}

void sort_rule_learn_of(struct sort_rule *rule, const uint8_t *bytes, size_t size, int32_t n_ref)
{
    enum { SAMPLE_RECORDS = 256 };
    const struct bam_record *sample[SAMPLE_RECORDS];
    size_t n = 0;
    for (size_t at = 0; n < SAMPLE_RECORDS && !bam_record_check(bytes + at, size - at, n_ref).fault; n++) {
        sample[n] = bam_record_at(bytes + at);
        at += bam_record_size(sample[n]);
    }
    sort_rule_learn(rule, sample, n);
}

enum bam_fault sort_key_make(const struct sort_rule *rule, const struct bam_record *r, uint64_t *key)
{
    switch (rule->order.by) {
    case SORT_COORDINATE:
        *key = rule->far ? coordinate_key_far(r) : coordinate_key(r);
        break;
    case SORT_NAME_NATURAL: case SORT_NAME_ASCII: case SORT_NAME_PICARD:
        *key = name_key_make(&rule->names, r);
        break;
    case SORT_TAG:
        *key = tag_key_make(&rule->tags, r, rule->names_by == SORT_COORDINATE
                            ? coordinate_sub_key(rule, r) : name_key_make(&rule->names, r));
        break;
    case SORT_TEMPLATE:
        return template_key_make(&rule->templates, r, key);
    case SORT_COLLATE:
        *key = collate_key_make(&rule->collated, r);
        break;
    case SORT_MINHASH:
        *key = 0;                /* a placeholder: the sort task makes the key */
    }
    return BAM_OK;
}

uint64_t sort_key_sorted(const struct sort_rule *rule, const struct minhash *minhash, const struct bam_record *r)
{
    uint64_t key = 0;
    if (minhash)
        return minhash_key(minhash, r);
    sort_key_make(rule, r, &key);                /* had no fault before, so has none now */
    return key;
}

int sort_key_compare(const struct sort_rule *rule, const struct bam_record *a, const struct bam_record *b)
{
    if (rule->order.by == SORT_TEMPLATE)
        return template_key_compare(&rule->templates, a, b);
    if (rule->order.by == SORT_MINHASH)
        return minhash_compare(a, b);
    if (rule->order.by == SORT_COLLATE)
        return collate_key_compare(&rule->collated, a, b);
    if (rule->order.by == SORT_COORDINATE && !rule->far)
        return key_compare(coordinate_key(a), coordinate_key(b));
    int order = rule->order.by == SORT_TAG ? tag_key_compare(&rule->tags, a, b) : 0;
    if (order)
        return order;
    return rule->names_by == SORT_COORDINATE ? coordinate_key_compare(a, b)
                                             : name_key_compare(rule->names_by, a, b);
}

enum sort_word sort_key_word(const struct sort_rule *rule, const struct bam_record *r, unsigned number, uint64_t *word)
{
    if (rule->order.by != SORT_TAG)
        return SORT_COMPARE;
    if (tag_key_word(&rule->tags, r, &number, word))
        return SORT_WORD;
    bool by_name = rule->names_by != SORT_COORDINATE;
    if (number > 0)              /* all positions beyond 32 bits share one coordinate key */
        return by_name || bam_record_pos(r) == INT32_MAX ? SORT_COMPARE : SORT_TIE;
    *word = by_name ? name_key_make(&rule->names, r) : coordinate_key_far(r);
    return SORT_WORD;
}

bool sort_key_decides(const struct sort_rule *rule)
{
    return rule->order.by == SORT_COORDINATE && !rule->far;
}

bool sort_key_in_order(const struct sort_rule *rule, uint64_t key_a, const struct bam_record *a, uint64_t key_b,
                       const struct bam_record *b)
{
    return key_a < key_b || (key_a == key_b && (!rule || sort_key_compare(rule, a, b) <= 0));
}

void sort_rule_expect_marks(struct sort_rule *rule)
{
    rule->tags.marked = rule->tags.tag[0] == 'R' && rule->tags.tag[1] == 'G';
    rule->templates.marked = rule->order.by == SORT_TEMPLATE;
}

bool sort_rule_takes_marks(const struct sort_rule *rule)
{
    return rule && (rule->tags.marked || rule->templates.marked);
}

void sort_rule_expect_far(struct sort_rule *rule)
{
    rule->far = true;
}
