/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include "base/byte_buffer.h"
#include "stats/stats_fasta.h"
#include "stats/stats_gcd.h"

enum { NOWHERE = -1 };           /* samtools does not tell a bin that starts at -1 from no bin */

void stats_gcd_free(struct stats_gcd *g)
{
    free(g->bins);
    g->bins = NULL;
    g->n = g->room = 0;
}

static int open_bin(struct stats_gcd *g)
{
    void *grown = byte_buffer_grow(g->bins, g->n, &g->room, sizeof *g->bins);
    if (!grown)
        return -1;
    g->bins = grown;
    g->bins[g->n++] = (struct gcd_bin){0};
    return 0;
}

/* samtools has an empty bin before the first one. */
static int open_first(struct stats_gcd *g)
{
    return g->n > 0 ? 0 : open_bin(g);
}

int stats_gcd_add(struct stats_gcd *g, bool is_new, int64_t pos, uint32_t span, float gc,
                  const struct stats_sequence *sequence)
{
    if (open_first(g) < 0)
        return -1;
    if (g->n == 1 || is_new || g->start == NOWHERE || g->start + g->size < pos + span
        || (sequence && pos + span > sequence->n)) {
        if (open_bin(g) < 0)
            return -1;
        g->start = pos;
        if (sequence)
            g->bins[g->n - 1].gc = stats_sequence_gc(sequence, pos, g->size);
    }
    struct gcd_bin *bin = &g->bins[g->n - 1];
    bin->depth++;
    if (!sequence)
        bin->gc += gc;
    return 0;
}

/* Returns the index of the first of n sorted positions that is larger than `most`; n if there is none. */
static size_t first_behind(const int32_t *places, size_t n, int64_t most)
{
    size_t low = 0, high = n;
    if (n > 0 && places[n - 1] <= most)
        return n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (places[middle] <= most)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the records of one bin together, without a comparison for each place. */
int stats_gcd_add_visit(struct stats_gcd *g, bool is_new, const int32_t *places, const float *gc, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (stats_gcd_add(g, is_new, places[i], 0, gc[i], NULL) < 0)
            return -1;
        is_new = false;
        i++;
        struct gcd_bin *bin = &g->bins[g->n - 1];
        size_t end = g->start == NOWHERE ? i : i + first_behind(places + i, n - i, g->start + g->size);
        float sum = bin->gc;
        bin->depth += (uint32_t)(end - i);
        for (; i < end; i++)
            sum += gc[i];
        bin->gc = sum;
    }
    return 0;
}

static int compare_bins(const void *a, const void *b)
{
    const struct gcd_bin *x = a, *y = b;
    if (x->gc != y->gc)
        return x->gc < y->gc ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static float percentile(const struct gcd_bin *bins, size_t n, int percent)
{
    float v = (float)percent * (float)(n + 1) / 100.0F;
    size_t k = (size_t)v;
    if (k == 0)
        return (float)bins[0].depth;
    if (k >= n)
        return (float)bins[n - 1].depth;
    return (float)bins[k - 1].depth + (v - (float)k) * (float)(bins[k].depth - bins[k - 1].depth);
}

int stats_gcd_print(struct stats_gcd *g, bool has_sequence, float average, FILE *out)
{
    static const int percents[] = {10, 25, 50, 75, 90};
    if (open_first(g) < 0)
        return -1;
    size_t last = g->n - 1;
    for (size_t i = 0; i < last; i++)
        if (g->bins[i].depth > 0)
            g->bins[i].gc = (float)rint(100.0 * (double)g->bins[i].gc / (has_sequence ? 1 : g->bins[i].depth));
    qsort(g->bins, g->n, sizeof *g->bins, compare_bins);
    for (size_t i = 0, end; i < last; i = end) {
        for (end = i + 1; end < last && fabsf(g->bins[end].gc - g->bins[i].gc) < 0.1F;)
            end++;
        fprintf(out, "GCD\t%.1f\t%.3f", g->bins[i].gc, (double)(end + 1) * 100.0 / (double)(last + 1));
        for (size_t p = 0; p < sizeof percents / sizeof *percents; p++)
            fprintf(out, "\t%.3f", percentile(g->bins + i, end - i, percents[p]) * average / (float)g->size);
        fputc('\n', out);
    }
    return 0;
}

/* A bin begins more than `size` bases after the start of the previous bin. */
size_t stats_gcd_memory(int64_t size, sam_hdr_t *sam)
{
    uint64_t n = 1, step = size > 0 ? (uint64_t)size + 1 : 1;
    for (int32_t i = 0; i < sam_hdr_nref(sam); i++)
        n += (uint64_t)sam_hdr_tid2len(sam, i) / step + 1;
    return 2 * n * sizeof(struct gcd_bin);
}
