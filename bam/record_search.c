/* SPDX-License-Identifier: MIT */
#include "bam/record_search.h"

/* A search may look at this many times its bytes. In real data one chain is walked, and hardly ever a second one. */
enum { SEARCH_TIMES = 4 };

/* The bytes of a block in which a first record is looked for. Records longer than this are so rare that it costs
 * nothing when the main thread walks them. */
enum { SEARCH_SPAN = 16384 };

/* The records that a start needs at least, if it is not verified and the last record is cut. */
enum { START_LEAST = 2 };

static void spend(struct record_search *s, uint64_t bytes)
{
    s->left -= bytes < s->left ? bytes : s->left;
}

struct record_search record_search_begin(const uint8_t *p, size_t n, int32_t n_ref)
{
    return (struct record_search){.p = p, .n = n, .n_ref = n_ref, .left = SEARCH_TIMES * (uint64_t)n};
}

/* The number of bytes that the check of the record at `at` may have read. All faults except these two are found in the
 * fixed fields and the end of the name. */
static uint64_t checked(const struct record_search *s, size_t at, enum bam_fault fault)
{
    if (fault != BAM_OK && fault != BAM_BAD_CIGAR && fault != BAM_BAD_CG)
        return 0;
    return bam_record_size(bam_record_at(s->p + at));
}

size_t record_search_next(struct record_search *s, size_t from, size_t last)
{
    for (size_t at = from; at < last && s->left > 0; at++) {
        enum bam_fault fault = bam_record_check(s->p + at, s->n - at, s->n_ref).fault;
        if (fault == BAM_OK)
            return at;
        spend(s, checked(s, at, fault));
    }
    return last;
}

void record_search_walked(struct record_search *s, size_t from, size_t at)
{
    enum bam_fault fault = bam_record_check(s->p + at, s->n - at, s->n_ref).fault;
    spend(s, at - from + checked(s, at, fault));
}

/* The chains that a search accepts. */
struct search_rule {
    size_t last;                 /* the first record begins before this place */
    uint64_t least;              /* number of records that the chain has at least */
    bool checks;                 /* each record passes the check; if not set, only the first one must pass */
    bool ends;                   /* the last record ends with the bytes; if not set, it may be cut */
};

/* Follows the records from `at` on, to the last complete one, or to the first one that does not pass the check. */
static struct record_chain follow(const struct record_search *s, size_t at, bool checks)
{
    struct record_chain chain = {at, at, 0};
    while (s->n - chain.end >= BAM_FIXED) {
        if (checks && bam_record_check(s->p + chain.end, s->n - chain.end, s->n_ref).fault)
            break;
        size_t size = bam_record_size(bam_record_at(s->p + chain.end));
        if (size < BAM_FIXED || size > s->n - chain.end)
            break;
        chain.end += size;
        chain.n++;
    }
    return chain;
}

static bool is_accepted(const struct record_search *s, const struct record_chain *chain, const struct search_rule *rule)
{
    if (chain->n < rule->least || chain->end == s->n)
        return chain->n >= rule->least;
    return !rule->ends && bam_record_check(s->p + chain->end, s->n - chain->end, s->n_ref).fault == BAM_CUT;
}

static struct record_chain find(struct record_search search, const struct search_rule *rule)
{
    for (size_t at = 0; (at = record_search_next(&search, at, rule->last)) < rule->last; at++) {
        struct record_chain chain = follow(&search, at, rule->checks);
        if (is_accepted(&search, &chain, rule))
            return chain;
        record_search_walked(&search, at, chain.end);
    }
    return (struct record_chain){search.n, search.n, 0};
}

struct record_chain record_search_chain(const uint8_t *p, size_t n, int32_t n_ref)
{
    struct search_rule rule = {.last = n > SEARCH_SPAN ? SEARCH_SPAN : n, .least = 1};
    return find(record_search_begin(p, n, n_ref), &rule);
}

size_t record_search_start(const uint8_t *p, size_t n, int32_t n_ref, bool ends)
{
    struct search_rule rule = {.last = n, .least = ends ? 1 : START_LEAST, .checks = true, .ends = ends};
    return find(record_search_begin(p, n, n_ref), &rule).begin;
}
