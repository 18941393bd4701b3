/* SPDX-License-Identifier: MIT */
/* Every order: its comparison is a strict weak order, and the keys agree with it for any sample, and so do the parts.
 *
 *   order 2 | records to learn from | records */
#include "fuzz.h"
#include "order/minhash.h"

enum { RECORDS = 8 };

/* The comparison of two records, for sort_key.h and minhash.h alike. */
struct judge {
    struct sort_rule *rule;
    struct minhash *minhash;   /* NULL except for -M */
    bool decides;
};

static enum bam_fault key_of(const struct judge *judge, struct bam_record *r, uint64_t *key)
{
    if (!judge->minhash)
        return sort_key_make(judge->rule, r, key);
    struct minhash_rank rank;
    if (minhash_applies(r)) {
        minhash_rank(judge->minhash, r, &rank);
        minhash_apply(r, &rank);
    }
    *key = minhash_key(judge->minhash, r);
    return BAM_OK;
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

static void check_parts(const struct judge *judge, const struct bam_record *a, const struct bam_record *b, int order)
{
    uint64_t x, y;
    for (unsigned number = 0;; number++) {
        enum sort_word there = sort_key_word(judge->rule, a, number, &x);
        MUST(sort_key_word(judge->rule, b, number, &y) == there);
        if (there == SORT_TIE)
            MUST(order == 0);
        if (there != SORT_WORD)
            return;
        MUST(order < 0 ? x <= y : order > 0 ? x >= y : x == y);
        if (x != y)
            return;
    }
}

static void check_pair(const struct judge *judge, const struct bam_record *a, uint64_t x, const struct bam_record *b,
                       uint64_t y)
{
    int order = sort_key_compare(judge->rule, a, b);
    MUST(sign(sort_key_compare(judge->rule, b, a)) == -sign(order));
    MUST(order < 0 ? x <= y : order > 0 ? x >= y : x == y);
    if (judge->decides && x == y)
        MUST(order == 0);
    if (x == y)
        check_parts(judge, a, b, order);
}

static void check_all(const struct judge *judge, struct bam_record *const *records, const uint64_t *keys, size_t n)
{
    for (size_t a = 0; a < n; a++) {
        MUST(sort_key_compare(judge->rule, records[a], records[a]) == 0);
        for (size_t b = a + 1; b < n; b++)
            check_pair(judge, records[a], keys[a], records[b], keys[b]);
        for (size_t b = 0; b < n; b++)
            for (size_t c = 0; c < n; c++)
                if (sort_key_compare(judge->rule, records[a], records[b]) <= 0
                    && sort_key_compare(judge->rule, records[b], records[c]) <= 0)
                    MUST(sort_key_compare(judge->rule, records[a], records[c]) <= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sam_hdr_t *sam;
    struct feed f = {data, size};
    struct sort_order order = fuzz_order(&f);
    struct bam_record *records[RECORDS];
    uint64_t keys[RECORDS];
    uint8_t buffer[FUZZ_RECORD_MAX];
    size_t n = 0, n_keyed = 0, n_learn = feed_byte(&f) % (RECORDS + 1);
    if (!sam)
        sam = fuzz_header();
    for (size_t got; n < RECORDS && (got = fuzz_record(&f, buffer)) > 0; n++)
        records[n] = (struct bam_record *)exact_copy(buffer, got);
    struct judge judge = {.rule = sort_rule_new(&order, sam)};
    MUST(judge.rule);
    sort_rule_learn(judge.rule, (const struct bam_record *const *)records,
                    n < n_learn ? n : n_learn);
    if (order.by == SORT_MINHASH)
        MUST(judge.minhash = minhash_new(&order));
    judge.decides = judge.minhash ? minhash_decides(judge.minhash) : sort_key_decides(judge.rule);
    for (size_t i = 0; i < n; i++) {             /* records with a fault go to the end */
        struct bam_record *r = records[i];
        if (!key_of(&judge, r, &keys[n_keyed])) {
            records[i] = records[n_keyed];
            records[n_keyed++] = r;
        }
    }
    check_all(&judge, records, keys, n_keyed);
    for (size_t i = 0; i < n; i++)
        free(records[i]);
    sort_rule_free(judge.rule);
    minhash_free(judge.minhash);
    return 0;
}
