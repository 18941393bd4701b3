/* SPDX-License-Identifier: MIT */
/* The default level. A block of whole records is matched field by field.
 *
 *   fixed fields, name             the same bytes of the records before, of the mate, and of records at the same place
 *   end of the name, CIGAR, tags   lazily, among the last positions of two hashes (deflate_lazy.h)
 *   SEQ                            the reads before, by position on the reference, or samples (deflate_records.h);
 *                                  lazily from where mapped reads turn out to have little in common
 *   QUAL                           by runs (deflate_qual.h); in a copy of a read, that read's
 *
 * Anything else is matched lazily altogether (deflate_lazy.c): long reads, qualities that do not come in runs, with all
 * around them, and the rest of a block whose reads are copies of each other that positions do not explain. */
#include "codec/deflate_lazy.h"
#include "codec/deflate_qual.h"
#include "codec/deflate_records.h"

enum {
    /* doc/tried.md says what other numbers cost. */
    N_BEFORE = 28,                /* records that another one is compared with */
    N_READS = 6,                  /* of each kind that SEQ is compared with */
    MANY_LITERALS = 3,            /* of a SEQ, from which on it is looked for by samples */
    NAME_BITS = 10,
    PLACE_BITS = 10,
    NAME_TAIL = 28,               /* last bytes of a name that are matched lazily: tile and coordinates */

    FIRST_RECORDS = 8,            /* tell whether fields are alike */
    SHORT_QUAL = 40,              /* if they have fewer qualities on average, there is little to gain */
    NO_QUAL = 0xff,
    FEW_RUNS = 7,                 /* as RUN_RATE, where the lazy parser is the other choice */
    /* SEQ bytes that count as explained at the beginning of a block. -l 1 has more, but a
     * block given up late costs twice here. */
    FIRST_SEQ = 1500,
    SEQ_STRIDE = 2,               /* of the positions of earlier SEQ that the lazy search gets to know late */

    /* What a record's head is compared with: so many records before, its mate, the last place that is its mate's, the
     * last that is its own. */
    MATE = N_BEFORE,
    MATES_PLACE,
    OWN_PLACE,
    N_HEADS,
};
_Static_assert((int)N_HEADS <= (int)MAX_DISTS && (int)N_READS <= (int)MAX_READS, "which of them fits best_of()");
_Static_assert(BAM_FIXED + 1 >= 9, "eight bytes before the NUL can be loaded");

static const struct effort effort = {.reads = N_READS, .many_literals = MANY_LITERALS, .lazy = true};
static const struct tuning name_tuning = {.dense_len = 16, .two_steps = true};
static const struct tuning seq_tuning = {.min_gain = 4, .dense_len = 32, .two_steps = true};
static const struct tuning tag_tuning = {.dense_len = 16, .deep = true, .two_steps = true};

/* What a record is compared with. */
struct history {
    uint32_t record[N_BEFORE];                     /* where they begin, the last first */
    uint16_t name_end[1 << NAME_BITS];             /* by the hash of its last eight bytes: mates */
    uint16_t place[1 << PLACE_BITS];               /* by the hash of a reference and position: a record or its mate */
    struct reads reads;
    struct qual_tables quals;
    struct qual_events events;                     /* of the last piece */
};

INLINE void match_lazily(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, const struct tuning *t)
{
    to = min_u32(to, p->last);
    for (; from < min_u32(p->anchor, to); from++)
        lazy_insert(d, p->in, from);
    p->at = from;
    parse_lazy(d, p, to, t);
}

INLINE uint16_t *find_place(struct history *h, const struct parse *p, uint32_t at)
{
    return &h->place[hash(load_le64(p->in + at), HASH_FACTOR(8), PLACE_BITS)];
}

INLINE void match_head(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       agree64_fn *agree)
{
    uint32_t dist[N_HEADS], tail = max_u32(f->at + BAM_FIXED, f->cigar - NAME_TAIL);
    uint32_t own = f->at + offsetof(struct bam_record, ref_id), next = f->at + offsetof(struct bam_record, next_ref_id);
    uint16_t *own_place = find_place(h, p, own), *next_place = find_place(h, p, next);
    uint16_t *mate = &h->name_end[hash(load_le64(p->in + f->cigar - 9), HASH_FACTOR(8), NAME_BITS)];
    for (uint32_t k = 0; k < N_BEFORE; k++)
        dist[k] = distance(f->at, h->record[k]);
    dist[MATE] = distance(f->cigar, *mate);
    dist[MATES_PLACE] = distance(next, *next_place);
    dist[OWN_PLACE] = distance(own, *own_place);
    for (uint32_t k = MATE; k < N_HEADS; k++)      /* what begins less far into the first record */
        if (dist[k] > f->at)
            dist[k] = 1;
    if (f->at > 0)
        match_at(d, p, f->at, tail, dist, N_HEADS, true, agree);
    match_lazily(d, p, tail, f->seq, &name_tuning);
    *mate = (uint16_t)f->cigar;
    *next_place = (uint16_t)next;
    *own_place = (uint16_t)own;
    memmove(h->record + 1, h->record, sizeof h->record - sizeof *h->record);
    h->record[0] = f->at;
}

INLINE void match_qual(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       const struct qual_costs *costs, agree64_fn *agree)
{
    struct qual_events *q = &h->events;
    if (is_copy(p, f, agree))
        match_at(d, p, f->qual, f->tags, (const uint32_t[]){1, p->dist}, 2, false, agree);
    for (uint32_t from = max_u32(f->qual, p->anchor); from < f->tags; from = max_u32(q->at[q->n], p->anchor)) {
        qual_find_events(q, p, from, min_u32(f->tags, from + QUAL_PIECE), agree);
        qual_find_matches(q, p, &h->quals, agree);
        qual_find_costs(q, costs);
        qual_put(d, p, q, costs);
    }
}

/* Do the first records promise that fields are alike: short reads with qualities in runs? To look at all of them would
 * cost 2 %, since they are not in the cache yet. */
INLINE bool is_promising(const struct parse *p, agree64_fn *agree)
{
    uint32_t quals = 0, at = 0;
    struct sampled s = {0, 0};
    struct fields f;
    for (uint32_t k = 0; k < FIRST_RECORDS; k++, at = f.end) {
        if (!find_fields(p->in, p->n, at, &f) || f.qual == f.tags || p->in[f.qual] == NO_QUAL)
            return false;
        quals += f.tags - f.qual;
        sample_runs(p, &f, &s, agree);
    }
    return at * (MIN_RECORDS / FIRST_RECORDS) < p->n && s.differ * FEW_RUNS <= s.all && quals * QUAL_RATE >= at
        && quals >= FIRST_RECORDS * SHORT_QUAL;
}

/* Of mapped reads that are not alike: less than half of their SEQ was found in other reads. */
INLINE bool are_strangers(const struct reads *h)
{
    return h->seq_bytes > FIRST_SEQ && h->seq_lits * 2 > h->seq_bytes - FIRST_SEQ;
}

/* SEQ of all records before end becomes known to the lazy search. */
INLINE void insert_seqs(struct deflate_parse *d, const struct parse *p, uint32_t end)
{
    struct fields f;
    for (uint32_t at = 0; at < end && find_fields(p->in, p->n, at, &f); at = f.end)
        for (uint32_t x = f.seq; x < min_u32(f.qual, p->last); x += SEQ_STRIDE)
            lazy_insert(d, p->in, x);
}

/* Up to the end; or to what is no record, or copies: then the rest is not done. */
INLINE bool parse_records(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    struct history h = {.reads.seq_bytes = FIRST_SEQ};
    struct qual_costs costs;
    struct fields f;
    bool alike = true;
    qual_costs_make(&costs);
    lazy_begin(d);
    for (uint32_t at = 0; at < p->n; at = f.end) {
        p->at = max_u32(at, p->anchor);
        if (!find_fields(p->in, p->n, at, &f))
            return false;
        match_head(d, p, &h, &f, agree);
        if (alike)
            match_seq(d, p, &h.reads, &f, effort, agree);
        else
            match_lazily(d, p, f.seq, f.qual, &seq_tuning);
        match_qual(d, p, &h, &f, &costs, agree);
        match_lazily(d, p, f.tags, f.end, &tag_tuning);
        if (!alike || !is_unlike(&h.reads))
            continue;
        if (!are_strangers(&h.reads)) {
            p->at = max_u32(f.end, p->anchor);
            return false;
        }
        alike = false;
        insert_seqs(d, p, f.end);
    }
    return true;
}

INLINE bool parse_fields(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    return is_promising(p, agree) && parse_records(d, p, agree);
}

static bool parse_older(struct deflate_parse *d, struct parse *p) { return parse_fields(d, p, agree64); }
NEWER_AVX2 static bool parse_newer(struct deflate_parse *d, struct parse *p)
{
    return parse_fields(d, p, agree64_avx2);
}

void deflate_fields(struct deflate_parse *d, struct parse *p, bool newer)
{
    if (!(newer ? parse_newer : parse_older)(d, p) && p->at < p->last)
        deflate_lazy(d, p, newer);
}
