/* SPDX-License-Identifier: MIT */
#include "bam/record_search.h"

/* Times the bytes. Where records really begin, one chain is walked, and hardly ever another one. */
enum { SEARCH_TIMES = 4 };

static void spend(struct record_search *s, uint64_t bytes)
{
    s->left -= bytes < s->left ? bytes : s->left;
}

struct record_search record_search_begin(const uint8_t *p, size_t n, int32_t n_ref)
{
    return (struct record_search){.p = p, .n = n, .n_ref = n_ref, .left = SEARCH_TIMES * (uint64_t)n};
}

/* Bytes that the check of what begins at `at` may have looked at. All faults but these two show in the fixed fields and
 * the end of the name. */
static uint64_t checked(const struct record_search *s, size_t at, enum bam_fault fault)
{
    if (fault != BAM_OK && fault != BAM_BAD_CIGAR && fault != BAM_BAD_CG)
        return 0;
    return bam_record_size((const struct bam_record *)(s->p + at));
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
