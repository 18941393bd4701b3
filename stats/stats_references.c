/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include "base/byte_buffer.h"
#include "stats/stats_fasta.h"
#include "stats/stats_references.h"
#include "stats/stats_settings.h"

struct reference_row {
    struct stats_region region;
    bool is_part;                /* it is printed with the name of a region */
    int64_t length;
    float gc;
    int64_t unknown;
};

/* A zero-initialised struct is empty. */
struct reference_rows {
    struct reference_row *each;
    size_t n, room;
};

static int add_row(struct reference_rows *rows, const struct stats_settings *settings,
                   const struct stats_region *region)
{
    struct stats_region ended = *region;
    ended.last = stats_region_end(region, settings->sam);
    int64_t length = ended.last - region->first + 1, whole = sam_hdr_tid2len(settings->sam, region->ref);
    if (length <= 0)
        return 0;
    void *grown = byte_buffer_grow(rows->each, rows->n, &rows->room, sizeof *rows->each);
    if (!grown)
        return -1;
    rows->each = grown;
    rows->each[rows->n++] = (struct reference_row){
        .region = ended, .is_part = settings->has_targets && !(region->first == 1 && region->last == HTS_POS_MAX),
        .length = length < whole ? length : whole, .gc = -1, .unknown = -1};
    return 0;
}

static int list_rows(struct reference_rows *rows, const struct stats_settings *settings)
{
    int result = 0;
    if (settings->has_targets) {
        for (size_t i = 0; i < settings->targets.n && result == 0; i++)
            result = add_row(rows, settings, &settings->targets.each[i]);
        return result;
    }
    for (int32_t ref = 0; ref < sam_hdr_nref(settings->sam) && result == 0; ref++) {
        struct stats_region whole = {.ref = ref, .first = 1, .last = sam_hdr_tid2len(settings->sam, ref)};
        result = add_row(rows, settings, &whole);
    }
    return result;
}

/* Sets the GC and the unknown bases of a row. Both are 0 for a sequence that the file lacks. */
static void look_up(struct reference_row *row, const struct stats_settings *settings)
{
    const struct stats_region *region = &row->region;
    int64_t begin = region->first < 1 ? 0 : region->first - 1;
    const char *name = sam_hdr_tid2name(settings->sam, region->ref);
    struct stats_sequence *s = stats_fasta_take(settings->fasta, region->ref, name);
    row->gc = 0;
    row->unknown = 0;
    if (!s)
        return;
    row->gc = stats_sequence_gc(s, begin, region->last - begin);
    for (int64_t i = begin; i < region->last && i < s->n; i++)
        row->unknown += (s->bases[i] & ~0x20) == 'N';
    stats_fasta_release(settings->fasta, s);
}

static void print_row(const struct reference_row *row, const struct stats_settings *settings, FILE *out)
{
    fprintf(out, "RFS\t%s", sam_hdr_tid2name(settings->sam, row->region.ref));
    if (row->is_part)
        fprintf(out, ":%" PRId64 "-%" PRId64, row->region.first, row->region.last);
    fprintf(out, "\t%" PRId64 "\t%.2f\t%" PRId64 "\n", row->length, row->gc, row->unknown);
}

int stats_references_print(const struct stats_settings *settings, FILE *out)
{
    struct reference_rows rows = {0};
    int result = list_rows(&rows, settings);
    int64_t sum = 0, least = 0, most = 0;
    float gc = 0;
    for (size_t i = 0; i < rows.n && result == 0; i++) {
        struct reference_row *row = &rows.each[i];
        if (settings->fasta)
            look_up(row, settings);
        sum += row->length;
        gc += row->gc;
        least = i == 0 || row->length < least ? row->length : least;
        most = row->length > most ? row->length : most;
    }
    if (result == 0) {
        fprintf(out, "# Reference statistics. Use `grep ^RFS | cut -f 2-` to extract this part.\n"
                "# Total count, Output count, Average GC, Min length, Max length, Average length, "
                "Total length in first row.\n# Sequence name, Length, GC content, Unknown count in following rows.\n"
                "RFS\t%d\t%zu\t%.2f\t%" PRId64 "\t%" PRId64 "\t%.2f\t%" PRId64 "\n",
                sam_hdr_nref(settings->sam), rows.n,
                rows.n ? (double)(gc / (float)rows.n) : -1.0, least, most,
                rows.n ? (double)((float)sum / (float)rows.n) : -1.0, sum);
        for (size_t i = 0; i < rows.n; i++)
            print_row(&rows.each[i], settings, out);
    }
    free(rows.each);
    return result;
}
