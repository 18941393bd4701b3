/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "base/latch.h"
#include "stats/idxstats.h"

/* The counts of a reference. The last ones count records without a reference. */
struct ref_counts {
    uint64_t mapped, unmapped;
};

struct ref_sums_of {
    const struct idxstats_settings *settings;
    int32_t n_ref;
    struct ref_counts each[];    /* n_ref + 1 */
};

/* A visit is a series of consecutive records on one reference. If there are more visits than references with records,
 * one of these references appeared again. */
struct visits {
    uint64_t n;
    int32_t first, last;         /* references, if n is not 0 */
};

/* ------------------------------------------------------------------- counts */

static int begin(void *settings, sam_hdr_t *sam, const struct ref_regions *regions, struct latch *latch)
{
    (void)regions, (void)latch;
    ((struct idxstats_settings *)settings)->sam = sam;
    return 0;
}

static size_t size_of_sums(sam_hdr_t *sam)
{
    return sizeof(struct ref_sums_of) + ((size_t)sam_hdr_nref(sam) + 1) * sizeof(struct ref_counts);
}

static void *open_sums(const void *settings)
{
    const struct idxstats_settings *s = settings;
    struct ref_sums_of *sums = calloc(1, size_of_sums(s->sam));
    if (sums) {
        sums->settings = s;
        sums->n_ref = sam_hdr_nref(s->sam);
    }
    return sums;
}

static size_t memory_of_sums(const void *settings, sam_hdr_t *sam, size_t range)
{
    (void)settings, (void)range;
    return size_of_sums(sam);
}

static int join_sums(void *left, void *right)
{
    struct ref_sums_of *to = left, *from = right;
    for (int32_t i = 0; i <= to->n_ref; i++) {
        to->each[i].mapped += from->each[i].mapped;
        to->each[i].unmapped += from->each[i].unmapped;
        from->each[i] = (struct ref_counts){0, 0};
    }
    return 0;
}

static void *open_visits(const void *settings)
{
    (void)settings;
    return calloc(1, sizeof(struct visits));
}

static size_t memory_of_visits(const void *settings, sam_hdr_t *sam, size_t range)
{
    (void)settings, (void)sam, (void)range;
    return sizeof(struct visits);
}

static int join_visits(void *left, void *right)
{
    struct visits *to = left, *from = right;
    bool is_same = to->n > 0 && from->n > 0 && to->last == from->first;
    if (from->n > 0) {
        to->first = to->n > 0 ? to->first : from->first;
        to->last = from->last;
        to->n += from->n - is_same;
    }
    *from = (struct visits){.n = 0};
    return 0;
}

static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    struct ref_sums_of *s = sums;
    struct visits *visits = part;
    const struct bam_record *r = (const struct bam_record *)record;
    int32_t ref = bam_record_ref_id(r);
    struct ref_counts *counts = &s->each[ref < 0 ? s->n_ref : ref];
    (void)size;
    if (bam_record_flag(r) & BAM_FUNMAP)
        counts->unmapped++;
    else
        counts->mapped++;
    if (visits->n == 0)
        visits->first = ref;
    if (visits->n == 0 || visits->last != ref)
        visits->n++;
    visits->last = ref;
    return 0;
}

/* -------------------------------------------------------------------- print */

static void print_row(sam_hdr_t *sam, int32_t ref, struct ref_counts counts, FILE *out)
{
    fprintf(out, "%s\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\n", ref < 0 ? "*" : sam_hdr_tid2name(sam, ref),
            ref < 0 ? 0 : (int64_t)sam_hdr_tid2len(sam, ref), counts.mapped, counts.unmapped);
}

static uint64_t count_visited(const struct ref_sums_of *s)
{
    uint64_t n = 0;
    for (int32_t i = 0; i <= s->n_ref; i++)
        n += s->each[i].mapped + s->each[i].unmapped > 0;
    return n;
}

static int print(void *sums, void *part, FILE *out, struct latch *latch)
{
    struct ref_sums_of *s = sums;
    const struct visits *visits = part;
    struct ref_counts *none = &s->each[s->n_ref];
    if (!s->settings->any_order && visits->n > count_visited(s))
        return latch_fail(latch, "%s: file is not position sorted. samtools sort sorts it; `sort --idxstats FILE` "
                          "counts in the same pass", s->settings->path);
    if (s->settings->as_index)
        *none = (struct ref_counts){0, none->mapped + none->unmapped};
    for (int32_t i = 0; i < s->n_ref; i++)
        print_row(s->settings->sam, i, s->each[i], out);
    print_row(s->settings->sam, -1, *none, out);
    return 0;
}

void idxstats_print_index(const hts_idx_t *index, sam_hdr_t *sam, FILE *out)
{
    for (int32_t i = 0; i < sam_hdr_nref(sam); i++) {
        struct ref_counts counts = {0, 0};
        if (hts_idx_get_stat(index, i, &counts.mapped, &counts.unmapped) < 0)
            counts = (struct ref_counts){0, 0};  /* the reference has no records */
        print_row(sam, i, counts, out);
    }
    print_row(sam, -1, (struct ref_counts){0, hts_idx_get_n_no_coor(index)}, out);
}

struct counter idxstats_counter(struct idxstats_settings *settings)
{
    return (struct counter){.command = "idxstats", .settings = settings, .begin = begin, .add = add, .print = print,
                            .sums = {open_sums, join_sums, free, memory_of_sums},
                            .part = {open_visits, join_visits, free, memory_of_visits}};
}
