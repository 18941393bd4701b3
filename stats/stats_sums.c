/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <libdeflate.h>
#include "stats/stats_settings.h"
#include "stats/stats_sums.h"
#include "stats/stats_tags.h"

void stats_sums_free(struct stats_sums *s)
{
    free(s->lengths.n);
    free(s->indels.n);
    stats_inserts_free(&s->inserts);
    for (int end = 0; end < STATS_CYCLE_ENDS; end++) {
        stats_bases_free(&s->bases[end]);
        stats_quals_free(&s->quals[end]);
    }
    stats_barcodes_free(&s->barcodes);
    *s = (struct stats_sums){0};
}

void *stats_sums_open(const void *settings)
{
    (void)settings;
    return calloc(1, sizeof(struct stats_sums));
}

void stats_sums_close(void *sums)
{
    if (sums)
        stats_sums_free(sums);
    free(sums);
}

static int join_columns(struct stats_column *c, const struct stats_column *from, size_t columns)
{
    if (from->room == 0)
        return 0;
    if (stats_column_reserve(c, from->room - 1, columns) < 0)
        return -1;
    for (size_t i = 0; i < from->room * columns; i++)
        c->n[i] += from->n[i];
    return 0;
}

int stats_sums_join(struct stats_sums *s, struct stats_sums *from)
{
    uint64_t *to = (uint64_t *)&s->counts;
    const uint64_t *add = (const uint64_t *)&from->counts;
    for (size_t i = 0; i < sizeof s->counts / sizeof *to; i++)
        to[i] += add[i];
    for (int i = 0; i < STATS_CHECKSUMS; i++)
        s->checksums[i] += from->checksums[i];
    for (int i = 0; i < STATS_ENDS; i++)
        if (s->longest[i] < from->longest[i])
            s->longest[i] = from->longest[i];
    if (join_columns(&s->lengths, &from->lengths, STATS_ENDS) < 0
        || join_columns(&s->indels, &from->indels, STATS_INDEL_COLUMNS) < 0
        || stats_inserts_join(&s->inserts, &from->inserts) < 0
        || stats_barcodes_join(&s->barcodes, &from->barcodes) < 0)
        return -1;
    for (int end = 0; end < STATS_CYCLE_ENDS; end++)
        if (stats_bases_join(&s->bases[end], &from->bases[end]) < 0
            || stats_quals_join(&s->quals[end], &from->quals[end]) < 0)
            return -1;
    stats_sums_free(from);
    return 0;
}

static void add_checksums(struct stats_sums *s, const struct stats_view *v)
{
    size_t name = v->record->name_len;
    s->checksums[0] += libdeflate_crc32(0, v->record->data, name ? name - 1 : 0);
    if (v->length > 0) {
        s->checksums[1] += libdeflate_crc32(0, v->seq, ((size_t)v->length + 1) / 2);
        s->checksums[2] += libdeflate_crc32(0, v->qual, v->length);
    }
}

static void raise_to(uint32_t *most, uint32_t n)
{
    if (*most < n)
        *most = n;
}

/* Counts a read in all cells from that of g bases to that of g + 1: the percentages that round to the same value. */
static void count_gc(struct stats_counts *c, int end, uint64_t g, uint64_t n)
{
    enum { LAST = STATS_GC_CELLS - 1 };
    uint64_t from = g * LAST / n, to = (g + 1) * LAST / n;
    c->gc[end][from]++;
    c->gc[end][to < LAST ? to : LAST]--;
}

/* Returns the number of bases that bwa would trim from the end of the read. Runs of fewer than LEAST bases are not
 * trimmed. */
static uint32_t trimmed(const struct stats_view *v, int quality)
{
    enum { LEAST = 35 };
    int64_t sum = 0, best = 0;
    uint32_t n = v->length, at = 0;
    if (n < LEAST)
        return 0;
    for (uint32_t l = 0; l <= n - LEAST; l++) {
        sum += quality - v->qual[v->is_reverse ? l : n - 1 - l];
        if (sum < 0)
            break;
        if (sum > best) {
            best = sum;
            at = l;
        }
    }
    return at;
}

static void count_mapped(struct stats_counts *c, const struct stats_view *v)
{
    c->bases_mapped += v->length;
    c->mapq0 += v->record->mapq == 0;
    if (!(v->flag & BAM_FPAIRED) || (v->flag & BAM_FMUNMAP)) {
        c->mapped_single++;
        return;
    }
    c->mapped_both++;
    c->proper += (v->flag & BAM_FPROPER_PAIR) != 0;
    c->anomalous += v->ref != (int32_t)load_le32(v->record->next_ref_id);
}

/* Counts a record that is not supplementary. */
static int count_primary(struct stats_sums *s, const struct stats_settings *settings, const struct stats_view *v,
                         uint32_t *gc)
{
    struct stats_counts *c = &s->counts;
    c->ends[v->end]++;
    c->bases[v->end] += v->length;
    c->qc_failed += (v->flag & BAM_FQCFAIL) != 0;
    c->paired += (v->flag & BAM_FPAIRED) != 0;
    if (stats_column_reserve(&s->lengths, v->whole, STATS_ENDS) < 0)
        return -1;
    s->lengths.n[(size_t)v->whole * STATS_ENDS + v->end]++;
    if (v->end != STATS_OTHER) {
        if (stats_bases_add(&s->bases[v->end], v->is_reverse, v->seq, v->length, gc) < 0
            || stats_quals_add(&s->quals[v->end], v->is_reverse, v->qual, v->length) < 0)
            return -1;
        count_gc(c, (int)v->end, *gc, v->length);
    }
    if (settings->trim_quality > 0)
        c->bases_trimmed += trimmed(v, settings->trim_quality);
    if (stats_view_is_unmapped(v))
        c->unmapped++;
    else
        count_mapped(c, v);
    return 0;
}

static int count_indel(struct stats_sums *s, const struct stats_view *v, bool is_deletion, int64_t cycle, uint32_t n)
{
    if (cycle < 0)
        return 0;
    if (n <= STATS_INDEL_LENGTHS)
        (is_deletion ? s->counts.deletions : s->counts.insertions)[n]++;
    if (v->end == STATS_OTHER)
        return 0;
    if (stats_column_reserve(&s->indels, (size_t)cycle, STATS_INDEL_COLUMNS) < 0)
        return -1;
    size_t column = is_deletion ? STATS_DEL_FIRST : STATS_INS_FIRST;
    s->indels.n[(size_t)cycle * STATS_INDEL_COLUMNS + column + (v->end == STATS_LAST)]++;
    return 0;
}

/* Counts the indels. Also adds up the bases that the CIGAR maps, unless targets cut some off. */
static int count_cigar(struct stats_sums *s, const struct stats_settings *settings, const struct stats_view *v)
{
    int64_t cycle = 0;
    uint64_t mapped = 0;
    for (uint32_t i = 0; i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i), n = bam_cigar_oplen(op);
        int result = 0;
        switch (n ? bam_cigar_op(op) : BAM_CPAD) {
        case BAM_CINS:
            result = count_indel(s, v, false, v->is_reverse ? (int64_t)v->length - cycle - n : cycle, n);
            mapped += n;
            cycle += n;
            break;
        case BAM_CDEL:
            result = count_indel(s, v, true, v->is_reverse ? (int64_t)v->length - cycle - 1 : cycle - 1, n);
            break;
        case BAM_CMATCH: case BAM_CEQUAL: case BAM_CDIFF:
            mapped += n;
            cycle += n;
            break;
        case BAM_CSOFT_CLIP:
            cycle += n;
            break;
        }
        if (result < 0)
            return -1;
    }
    if (!settings->has_targets)
        s->counts.cigar_bases += mapped;
    return 0;
}

static uint32_t insert_size(const struct stats_settings *settings, const struct stats_view *v)
{
    int32_t tlen = (int32_t)load_le32(v->record->tlen);
    uint32_t size = tlen < 0 ? 0 - (uint32_t)tlen : (uint32_t)tlen;
    return settings->max_insert > 0 && size > (uint32_t)settings->max_insert ? (uint32_t)settings->max_insert : size;
}

static int count_insert(struct stats_sums *s, const struct stats_settings *settings, const struct stats_view *v)
{
    int32_t next_ref = (int32_t)load_le32(v->record->next_ref_id);
    uint32_t size = insert_size(settings, v);
    if (size == 0 && v->ref != next_ref)
        return 0;
    bool is_inward = true, is_read1 = v->flag & BAM_FREAD1;
    int64_t distance = (int64_t)(int32_t)load_le32(v->record->next_pos) - v->pos;
    if (!is_read1)
        distance = -distance;
    if (distance != 0)
        is_inward = (distance > 0) == (is_read1 == !v->is_reverse);
    enum stats_orientation way = v->is_reverse == !!(v->flag & BAM_FMREVERSE) ? STATS_OTHERWISE
                               : is_inward ? STATS_INWARD : STATS_OUTWARD;
    return stats_inserts_count(&s->inserts, size, way);
}

/* Counts the barcodes of a first read, each tag on its own. */
static int count_barcodes(struct stats_sums *s, struct stats_barcode_order *order, const struct stats_tags *tags)
{
    for (int tag = 0; tag < BARCODE_TAGS; tag++) {
        const uint8_t *text = tags->barcodes[tag][0], *qualities = tags->barcodes[tag][1];
        if (!text || !bam_record_aux_is_text(text) || !text[1])
            continue;
        bool has_qualities = qualities && bam_record_aux_is_text(qualities);
        if (stats_barcodes_add(&s->barcodes, order, tag, (const char *)text + 1,
                               has_qualities ? (const char *)qualities + 1 : NULL) < 0)
            return -1;
    }
    return 0;
}

/* samtools takes NM as 0 if it is not an integer. */
static void count_mismatches(struct stats_sums *s, const struct stats_tags *tags)
{
    if (tags->nm)
        s->counts.mismatches += (uint64_t)bam_record_aux_int(tags->nm, 0);
}

enum stats_way stats_sums_add(struct stats_sums *s, struct stats_barcode_order *order,
                              const struct stats_settings *settings, const struct stats_view *v, uint32_t *gc)
{
    struct stats_tags tags;
    *gc = 0;
    stats_inserts_prefetch(&s->inserts, insert_size(settings, v));
    add_checksums(s, v);
    if (v->flag & BAM_FSECONDARY) {
        s->counts.secondary++;
        return STATS_ENDS_HERE;
    }
    s->counts.supplementary += !v->is_primary;
    if (v->length == 0)
        return STATS_ENDS_HERE;
    if (v->flag & BAM_FDUP) {
        s->counts.duplicates++;
        s->counts.duplicate_bases += v->length;
    }
    raise_to(&s->longest[STATS_OTHER], v->whole);
    if (v->end != STATS_OTHER)
        raise_to(&s->longest[v->end], v->whole);
    if (!(v->flag & (BAM_FUNMAP | BAM_FSUPPLEMENTARY | BAM_FQCFAIL | BAM_FDUP)))
        s->counts.mapq[v->record->mapq]++;
    stats_tags_find(&tags, v->tags, bam_record_end(v->record));
    if (v->is_primary
        && (count_primary(s, settings, v, gc) < 0 || (v->end == STATS_FIRST && count_barcodes(s, order, &tags) < 0)))
        return STATS_NO_MEMORY;
    if (stats_view_is_unmapped(v))
        return STATS_IS_UNPLACED;
    if (count_cigar(s, settings, v) < 0)
        return STATS_NO_MEMORY;
    if (v->is_primary && (v->flag & BAM_FPAIRED) && !(v->flag & BAM_FMUNMAP) && count_insert(s, settings, v) < 0)
        return STATS_NO_MEMORY;
    count_mismatches(s, &tags);
    return STATS_IS_MAPPED;
}

int stats_sums_close_cycles(struct stats_sums *s)
{
    for (int end = 0; end < STATS_CYCLE_ENDS; end++) {
        stats_bases_close(&s->bases[end]);
        if (stats_quals_close(&s->quals[end]) < 0)
            return -1;
    }
    return 0;
}

size_t stats_sums_memory(size_t n)
{
    return sizeof(struct stats_sums) + STATS_CYCLE_ENDS * (stats_bases_memory(n) + stats_quals_memory(n))
         + stats_inserts_memory() + stats_column_memory(n, STATS_ENDS) + stats_column_memory(n, STATS_INDEL_COLUMNS);
}
