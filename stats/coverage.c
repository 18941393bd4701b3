/* SPDX-License-Identifier: MIT */
/* Parts, ranges and the whole:
 *
 *   records of a chunk --> part, which has a range --\
 *   records of a chunk --> part, which has a range ---> part that also has the whole --> table
 *   records of a chunk --> part, which has a range --/
 *
 * A task counts the records of a chunk into a part. The part's range is the log of their reads, and the places that
 * these cover. Parts are joined from left to right (stats/join_tree.h). The first join gives the left part the whole
 * (stats/coverage_whole.h). It takes in one range after the other, and keeps only places that a later read may cover.
 * Sums that do not depend on the order of reads are kept for each thread. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "base/message.h"
#include "stats/coverage.h"
#include "stats/coverage_whole.h"
#include "stats/stats_view.h"

struct coverage_sums {
    int32_t n_ref;
    struct coverage_counts each[];       /* n_ref */
};

struct coverage_part {
    const struct coverage_settings *settings;
    struct coverage_range range; /* its records; none after it was joined */
    struct coverage_whole *whole;        /* the parts that were joined to it; NULL: none yet */
    int64_t begin, last;         /* the places of its first read and of the last read; last INT64_MIN: none yet */
    uint64_t n_records, first;   /* number of records; of those before the first read */
    const char *fault;           /* fault of the record fault_at, counted from 0; NULL: none */
    uint64_t fault_at;
};

struct coverage_settings coverage_settings_default(void)
{
    return (struct coverage_settings){.filtered = BAM_FUNMAP | BAM_FSECONDARY | BAM_FQCFAIL | BAM_FDUP,
                                      .depth = 1000 * 1000};
}

/* -------------------------------------------------------------------- sums */

static int begin(void *settings, sam_hdr_t *sam, const struct ref_regions *regions, struct latch *latch)
{
    (void)regions, (void)latch;
    ((struct coverage_settings *)settings)->sam = sam;
    return 0;
}

static size_t memory_of_sums(const void *settings, sam_hdr_t *sam, size_t range)
{
    (void)settings, (void)range;
    return sizeof(struct coverage_sums) + (size_t)sam_hdr_nref(sam) * sizeof(struct coverage_counts);
}

static void *open_sums(const void *settings)
{
    sam_hdr_t *sam = ((const struct coverage_settings *)settings)->sam;
    struct coverage_sums *sums = calloc(1, memory_of_sums(settings, sam, 0));
    if (sums)
        sums->n_ref = sam_hdr_nref(sam);
    return sums;
}

static void add_counts(struct coverage_counts *to, const struct coverage_counts *from)
{
    to->reads += from->reads;
    to->mapqs += from->mapqs;
    to->spans += from->spans;
    to->bases += from->bases;
    to->n_quals += from->n_quals;
    to->quals += from->quals;
    to->places += from->places;
}

static int join_sums(void *left, void *right)
{
    struct coverage_sums *to = left, *from = right;
    for (int32_t i = 0; i < to->n_ref; i++) {
        add_counts(&to->each[i], &from->each[i]);
        from->each[i] = (struct coverage_counts){0};
    }
    return 0;
}

/* ------------------------------------------------------------------- parts */

static void clear(struct coverage_part *part)
{
    coverage_range_clear(&part->range);
    part->last = INT64_MIN;
    part->n_records = part->first = 0;
    part->fault = NULL;
}

static void *open_part(const void *settings)
{
    struct coverage_part *part = calloc(1, sizeof *part);
    if (part) {
        part->settings = settings;
        clear(part);
    }
    return part;
}

static void close_part(void *part)
{
    struct coverage_part *p = part;
    coverage_range_free(&p->range);
    coverage_whole_close(p->whole);
    free(p);
}

/* Reads are assumed to have at least 36 bases and one CIGAR operation, and blocks at least one operation or 8 bases of
 * low quality between them. Arrays double. Blocks are in three of them: those of reads, and `each` and `tail` of what
 * reads cover. */
static size_t memory_of_part(const void *settings, sam_hdr_t *sam, size_t range)
{
    enum { LEAST_RECORD = BAM_FIXED + 8 + 4 + 54, BLOCK = 8 + 4 };
    (void)settings, (void)sam;
    return sizeof(struct coverage_part) + 2 * (range / LEAST_RECORD) * sizeof(struct coverage_read)
         + 3 * 2 * (range / LEAST_RECORD + range / 8 / BLOCK) * sizeof(struct covered_block);
}

static size_t memory_of_whole(const void *settings, sam_hdr_t *sam)
{
    (void)settings;
    return coverage_whole_memory(sam_hdr_nref(sam));
}

static int fail(struct coverage_part *part, const char *fault, uint64_t record)
{
    part->fault = fault;
    part->fault_at = record;
    return -1;
}

static const char unsorted[] = "it is out of coordinate order. `samtools sort --coverage FILE` sorts and counts in one "
                               "pass";

/* Joins a range to those that were joined to the part. */
static int join_range(struct coverage_part *part, struct coverage_range *range)
{
    const struct coverage_settings *s = part->settings;
    if (!part->whole && !(part->whole = coverage_whole_open(sam_hdr_nref(s->sam))))
        return -1;
    int status = coverage_whole_join(part->whole, range, s->depth > 0 ? (uint64_t)s->depth : UINT64_MAX);
    coverage_range_clear(range);
    return status;
}

static int join_parts(void *left, void *right)
{
    struct coverage_part *to = left, *from = right;
    int status = join_range(to, &to->range);
    if (!to->fault && from->last > INT64_MIN && from->begin < to->last)
        fail(to, unsorted, to->n_records + from->first);
    else if (!to->fault && from->fault)
        fail(to, from->fault, to->n_records + from->fault_at);
    if (status == 0 && !to->fault)
        status = join_range(to, &from->range);
    to->n_records += from->n_records;
    to->last = from->last > to->last ? from->last : to->last;
    clear(from);
    return status;
}

static const char *fault(const void *part, uint64_t *record)
{
    const struct coverage_part *p = part;
    *record = p->fault_at;
    return p->fault;
}

/* ----------------------------------------------------------------- a record */

/* Adds a block to the last read. */
static int add_block(struct coverage_range *range, struct coverage_read *read, int64_t begin, int64_t end)
{
    if (read->n_blocks > 0 && range->blocks[range->n_blocks - 1].end == begin) {
        range->blocks[range->n_blocks - 1].end = end;
        return 0;
    }
    struct covered_block *grown = byte_buffer_grow(range->blocks, range->n_blocks, &range->room_blocks, sizeof *grown);
    if (!grown)
        return -1;
    range->blocks = grown;
    range->blocks[range->n_blocks++] = (struct covered_block){begin, end};
    read->n_blocks++;
    return 0;
}

/* Adds n bases with these qualities, which begin at this place. */
static int add_bases(struct coverage_part *part, struct coverage_read *read, int64_t begin, const uint8_t *quals,
                     uint32_t n)
{
    enum { NO_QUALITY = 255 };
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += quals[i];
    read->quals += part->settings->no_quals ? (uint64_t)NO_QUALITY * n : sum;
    read->bases += n;
    read->n_quals += n;
    return add_block(&part->range, read, begin, begin + n);
}

/* Adds those of n bases whose qualities are high enough. */
static int add_good_bases(struct coverage_part *part, struct coverage_read *read, int64_t begin, const uint8_t *quals,
                          uint32_t n)
{
    int least = part->settings->min_quality;
    for (uint32_t i = 0, from; i < n; i++) {
        for (from = i; i < n && quals[i] >= least;)
            i++;
        if (i > from && add_bases(part, read, begin + from, quals + from, i - from) < 0)
            return -1;
    }
    return 0;
}

/* Adds an operation that aligns k bases, from base number `base` on, to the reference from `pos` on. Bases beyond the
 * reference do not count. A read without SEQ has no qualities: its bases count with any -Q. */
static int add_aligned(struct coverage_part *part, struct coverage_read *read, const struct stats_view *v, int64_t pos,
                       uint32_t base, uint32_t k)
{
    int64_t begin = pos < 0 ? 0 : pos, end = pos + k, length = sam_hdr_tid2len(part->settings->sam, v->ref);
    end = end < length ? end : length;
    if (begin >= end)
        return 0;
    int64_t place = covered_place(v->ref, begin + 1);
    uint32_t n = (uint32_t)(end - begin);
    const uint8_t *quals = v->qual + base + (begin - pos);
    if (v->length > 0)
        return part->settings->min_quality > 0 ? add_good_bases(part, read, place, quals, n)
                                               : add_bases(part, read, place, quals, n);
    read->bases += n;
    return add_block(&part->range, read, place, place + n);
}

/* Adds the bases of the read and its end. */
static int add_cigar(struct coverage_part *part, struct coverage_read *read, const struct stats_view *v)
{
    int64_t pos = v->pos;
    uint32_t base = 0;
    for (uint32_t i = 0; i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i), k = bam_cigar_oplen(op), type = bam_cigar_type(bam_cigar_op(op));
        if (type == 3 && add_aligned(part, read, v, pos, base, k) < 0)
            return -1;
        base += type & 1 ? k : 0;
        pos += type & 2 ? k : 0;
    }
    read->end = covered_place(v->ref, pos + 1);
    return 0;
}

/* Adds a read that is in order to the log of the range. */
static int add_read(struct coverage_part *part, struct coverage_counts *counts, const struct stats_view *v)
{
    struct coverage_range *range = &part->range;
    struct coverage_read read = {.begin = covered_place(v->ref, (int64_t)v->pos + 1)};
    struct coverage_read *grown = byte_buffer_grow(range->reads, range->n, &range->room, sizeof *grown);
    if (!grown)
        return -1;
    range->reads = grown;
    if (add_cigar(part, &read, v) < 0
        || (read.n_blocks > 0
            && covered_add(&range->covered, range->blocks + range->n_blocks - read.n_blocks, read.n_blocks) < 0))
        return -1;
    counts->spans += read.end > read.begin;
    counts->bases += read.bases;
    counts->n_quals += read.n_quals;
    counts->quals += read.quals;
    if (read.end > read.begin || range->n == 0 || range->reads[range->n - 1].begin < read.begin)
        range->reads[range->n++] = read;
    return 0;
}

static bool passes(const struct coverage_settings *s, const struct stats_view *v)
{
    int64_t length = 0;
    if (v->ref < 0 || v->flag & s->filtered || (s->required && !(v->flag & s->required))
        || v->record->mapq < s->min_mapq)
        return false;
    for (uint32_t i = 0; s->min_length > 0 && i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i);
        length += bam_cigar_type(bam_cigar_op(op)) & 1 ? bam_cigar_oplen(op) : 0;
    }
    return length >= s->min_length;
}

static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    struct coverage_part *p = part;
    struct stats_view v;
    (void)size;
    if (p->fault)
        return -1;
    uint64_t number = p->n_records++;
    stats_view_set(&v, record);
    if (!passes(p->settings, &v))
        return 0;
    struct coverage_counts *counts = &((struct coverage_sums *)sums)->each[v.ref];
    int64_t place = covered_place(v.ref, (int64_t)v.pos + 1);
    counts->reads++;
    counts->mapqs += v.record->mapq;
    if (place < p->last)
        return fail(p, unsorted, number);
    if (p->last == INT64_MIN) {
        p->first = number;
        p->begin = place;
    }
    p->last = place;
    if (stats_view_is_unmapped(&v))
        return 0;
    if (v.pos + bam_record_ref_span(v.record) > INT32_MAX)
        return fail(p, "it ends beyond 2^31-1, where only upstream samtools counts", number);
    return add_read(p, counts, &v) < 0 ? fail(p, "out of memory for coverage", number) : 0;
}

/* -------------------------------------------------------------------- print */

static double share(uint64_t sum, uint64_t n)
{
    return n > 0 ? (double)sum / (double)n : 0;
}

/* As samtools, 0/0 is -nan. */
static void print_of_length(double value, int64_t length, FILE *out)
{
    if (length > 0)
        fprintf(out, "\t%g", value / (double)length);
    else
        fputs("\t-nan", out);
}

static void print_row(sam_hdr_t *sam, int32_t ref, const struct coverage_counts *c, FILE *out)
{
    int64_t length = sam_hdr_tid2len(sam, ref);
    fprintf(out, "%s\t1\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64, sam_hdr_tid2name(sam, ref), length, c->reads, c->places);
    print_of_length(100.0 * (double)c->places, length, out);
    print_of_length((double)c->bases, length, out);
    fprintf(out, "\t%.3g\t%.3g\n", share(c->quals, c->n_quals), share(c->mapqs, c->reads));
}

/* References that reads span come first, as in samtools. */
static int print(void *sums, void *part, FILE *out, struct latch *latch)
{
    struct coverage_sums *s = sums;
    struct coverage_part *p = part;
    bool lacks_quals = false;
    if (join_range(p, &p->range) < 0)
        return latch_fail(latch, "out of memory for coverage");
    coverage_whole_end(p->whole);
    if (s->n_ref > 0 && !p->settings->no_header)
        fputs("#rname\tstartpos\tendpos\tnumreads\tcovbases\tcoverage\tmeandepth\tmeanbaseq\tmeanmapq\n", out);
    for (int32_t i = 0; i < s->n_ref; i++) {
        add_counts(&s->each[i], &p->whole->counts[i]);
        lacks_quals |= s->each[i].n_quals < s->each[i].bases;
    }
    for (int turn = 0; turn < 2; turn++)
        for (int32_t i = 0; i < s->n_ref; i++)
            if ((s->each[i].spans == 0) == turn)
                print_row(p->settings->sam, i, &s->each[i], out);
    if (lacks_quals)
        message_warning("some reads have no qualities: meanbaseq is that of the others");
    return 0;
}

struct counter coverage_counter(struct coverage_settings *settings)
{
    return (struct counter){.command = "coverage", .settings = settings, .begin = begin, .add = add, .fault = fault,
                            .print = print, .sums = {open_sums, join_sums, free, memory_of_sums},
                            .part = {open_part, join_parts, close_part, memory_of_part},
                            .whole_memory = memory_of_whole};
}
