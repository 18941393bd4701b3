/* SPDX-License-Identifier: MIT */
#include "bam/record_search.h"

/* A search may look at this many times its bytes. In real data one chain is walked, and hardly ever a second one. */
enum { SEARCH_TIMES = 4 };

/* The bytes of a block in which a first record is looked for. Records longer than this are so rare that it costs
 * nothing when the main thread walks them. */
enum { SEARCH_SPAN = 16384 };

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

/* Follows the records from `at` on, to the last complete one. */
static struct record_chain follow(const uint8_t *p, size_t n, size_t at)
{
    struct record_chain chain = {at, at, 0};
    while (n - chain.end >= BAM_FIXED) {
        size_t size = bam_record_size(bam_record_at(p + chain.end));
        if (size < BAM_FIXED || size > n - chain.end)
            break;
        chain.end += size;
        chain.n++;
    }
    return chain;
}

struct record_chain record_search_chain(const uint8_t *p, size_t n, int32_t n_ref)
{
    struct record_search search = record_search_begin(p, n, n_ref);
    size_t last = n > SEARCH_SPAN ? SEARCH_SPAN : n;
    for (size_t at = 0; (at = record_search_next(&search, at, last)) < last; at++) {
        struct record_chain chain = follow(p, n, at);
        if (chain.end == n || bam_record_check(p + chain.end, n - chain.end, n_ref).fault == BAM_CUT)
            return chain;
        record_search_walked(&search, at, chain.end);
    }
    return (struct record_chain){n, n, 0};
}
