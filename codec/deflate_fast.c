/* SPDX-License-Identifier: MIT */
/* -l 1. The fields of a record say where the same bytes were before, and prices in bits say how qualities are matched.
 * All other bytes are matched greedily.
 *
 *   fixed fields, name      with the same bytes of the records before, of the mate, and of records with equal fields
 *   end of the name, CIGAR  greedily
 *   SEQ                     with the reads before, by position on the reference; where that explains little, by
 *                           samples
 *   QUAL, OQ                in the way that their counts say: by runs; where literals are dear, the cheapest of all
 *                           short matches; else greedily
 *   tags                    greedily; after runs, with the records whose qualities end with an equal run
 *
 * Bytes that are no records are matched greedily, segment by segment. */
#include "codec/deflate_cheapest.h"
#include "codec/deflate_greedy.h"
#include "codec/deflate_records.h"

/* Fields by which another record is found: reference and position; lengths of name and CIGAR, MAPQ, bin and FLAG;
 * length of the template. Without the second up to 3 % larger by name; without the third 2 % in coordinate order. */
enum equal { PLACE, KIND, TEMPLATE, N_EQUALS };

enum {
    /* A record is compared with this many records before it. 3 are 0.6 % larger, by name 1.3 %; 8 are 0.1 % smaller. */
    N_BEFORE = 6,
    MATE = N_BEFORE, EQUAL, N_HEADS = EQUAL + N_EQUALS,
    EQUAL_BITS = 9,
    N_TAILS = 4,                  /* 8: 36 to 50 bases 0.7 % smaller, others 0.1 %, with 2 % more instructions */
    TO_MATE_POS = 20,             /* bytes from reference and position to the mate's reference and position */
    /* Last bytes of a name: coordinates, or a UMI. 8: NovaSeq 2 % faster, deep HiSeq 0.3 % and UMIs 1.6 % larger. */
    NAME_TAIL = 16,
    LITERAL_SHARE = 4,            /* a SEQ is looked up by samples if one byte in this many is a literal, or more */
};

/* Each long record ends segments: one in SEGMENT bytes of its tags, and one more. */
_Static_assert(PARSE_MAX / LONG_RECORD + 2 * (PARSE_MAX / SEGMENT + 1) + 1 <= MAX_SEGMENTS, "match_bytes()");

/* The effort for the SEQ of a record. */
INLINE struct effort quick_for(const struct fields *f)
{
    return (struct effort){.many_literals = (f->qual - f->seq + LITERAL_SHARE - 1) / LITERAL_SHARE};
}

/* The ways of qualities. NONE: the first records have no bases, or no OQ. */
enum way { NONE, RUNS, GREEDY, CHEAPEST };

struct quals {
    enum way way;
    struct cheapest cheapest;
    struct greedy greedy;
};

/* The state that a record is compared with. */
struct history {
    uint32_t record[N_BEFORE];                     /* where records begin, the last first */
    uint32_t to_cigar;                             /* bytes of the last record before its CIGAR */
    uint32_t tags[N_TAILS];                        /* where tags of records begin, the last first */
    uint16_t equal[N_EQUALS][1 << EQUAL_BITS];     /* where records begin, by the hash of each of enum equal's fields */
    struct mates mates;
    struct reads reads;
    struct quals qual, oq;
    struct greedy rest;
};

/* Finds the last record with the same hash of the fields, for each of enum equal, and puts this one in its place. */
INLINE void find_equals(struct history *h, const struct parse *p, uint32_t at, uint32_t *equal)
{
    const struct bam_record *r = (const void *)(p->in + at);
    const uint64_t field[N_EQUALS] = {load_le64(r->ref_id), load_le64(&r->name_len), load_le32(r->tlen)};
    UNROLL(3)
    for (uint32_t k = 0; k < N_EQUALS; k++) {
        uint16_t *slot = &h->equal[k][hash(field[k], HASH_FACTOR(8), EQUAL_BITS)];
        equal[k] = *slot;
        *slot = (uint16_t)at;
    }
}

/* Sets dist[]: the distances to records before, to the mate, whose CIGAR begins at `mate`, and to records with equal
 * fields. Up to three distances to the oldest records are replaced. If the heads of this record and the last one differ
 * in length, one distance compares their CIGARs. If the last record is the mate, one distance compares the position
 * here with the mate's position there, and another one compares the mate's position here with the position there. */
INLINE void find_heads(const struct history *h, const struct fields *f, uint32_t mate, const uint32_t *equal,
                       uint32_t *dist)
{
    for (uint32_t k = 0; k < N_BEFORE; k++)
        dist[k] = distance(f->at, h->record[k]);
    for (uint32_t k = 0; k < N_EQUALS; k++)
        dist[EQUAL + k] = distance(f->at, equal[k]);
    dist[MATE] = distance(f->cigar, mate);
    if (f->cigar - f->at != h->to_cigar)
        dist[N_BEFORE - 1] = distance(f->cigar, h->record[0] + h->to_cigar);
    if (mate > h->record[0]) {
        dist[N_BEFORE - 2] = distance(f->cigar, mate + TO_MATE_POS);
        dist[N_BEFORE - 3] = distance(f->cigar, (int64_t)mate - TO_MATE_POS);
    }
    for (uint32_t k = N_BEFORE - 3; k < N_HEADS; k++)
        if (dist[k] > f->at)                       /* the first record has a shorter name */
            dist[k] = 1;
}

/* Matches the fields before SEQ. */
INLINE void match_head(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       const uint32_t *equal, agree64_fn *agree)
{
    uint32_t dist[N_HEADS], tail = max_u32(f->at + BAM_FIXED, f->cigar - NAME_TAIL);
    uint16_t *mate = mate_slot(&h->mates, p, f);
    find_heads(h, f, *mate, equal, dist);
    if (f->at > 0)
        match_at(d, p, f->at, tail, dist, N_HEADS, false, agree);
    match_greedily(d, p, max_u32(tail, FIRST), f->seq, &h->rest, agree);
    *mate = (uint16_t)f->cigar;
    memmove(h->record + 1, h->record, sizeof h->record - sizeof *h->record);
    h->record[0] = f->at;
    h->to_cigar = f->cigar - f->at;
}

/* Matches the qualities [from, to). Those of a copy are matched with those of its read. */
INLINE void match_quals(struct deflate_parse *d, struct parse *p, const struct quals *q, uint32_t from, uint32_t to,
                        bool copy, agree64_fn *agree)
{
    if (copy)
        match_at(d, p, from, to, (const uint32_t[]){1, p->dist}, 2, false, agree);
    else if (q->way == RUNS)
        match_at(d, p, from + 1, to, (const uint32_t[]){1}, 1, false, agree);
    else if (q->way == CHEAPEST)
        match_cheapest(d, p, from, to, &q->cheapest);
    else
        match_greedily(d, p, from, to, &q->greedy, agree);
}

/* Returns how many of the last bytes of 64 agree, up to 63. */
INLINE uint32_t last_agreeing(uint64_t same)
{
    return (uint32_t)__builtin_clzll(~same | 1);
}

/* A match that begins among the last qualities and goes on into the tags, at a distance. dist 0: none. */
struct tail {
    uint32_t at, dist;
};

/* Finds a match, in one of the last N_TAILS records, that covers the last run of qualities and the first tags. The
 * qualities of that record end with the same run, of up to 63 bytes, or with a longer one, and its tags begin with the
 * same four bytes. If there are several, the function takes the record whose tags agree longest. It finds none for
 * copies, near the ends of the block, or where qualities are not matched by runs. */
INLINE struct tail find_tail(const struct parse *p, const struct history *h, const struct fields *f, bool copy,
                             agree64_fn *agree)
{
    struct tail tail = {f->tags, 0};
    uint32_t to = f->tags, from = max_u32(p->anchor, f->qual), most = MIN_MATCH - 1;
    if (copy || h->qual.way != RUNS || from >= to || to < 65 || p->n - to < 64)
        return tail;
    const uint8_t *last = p->in + to - 64;
    uint32_t run = min_u32(last_agreeing(agree(last, last - 1)) + 1, to - from);
    for (uint32_t k = 0; k < N_TAILS; k++) {
        uint32_t dist = distance(to, h->tags[k]);
        if (to < 64 + dist)
            continue;
        uint32_t back = min_u32(last_agreeing(agree(last, last - dist)), to - from);
        uint32_t ahead = (uint32_t)__builtin_ctzll(~same_64(p, to, dist, agree));
        if (back >= run && ahead > most) {
            most = ahead;
            tail = (struct tail){to - back, dist};
        }
    }
    return tail;
}

INLINE void put_tail(struct deflate_parse *d, struct parse *p, const struct tail *t, uint32_t tags)
{
    uint32_t at = max_u32(t->at, p->anchor);
    if (t->dist == 0)
        return;
    put_match(d, p, at, extend(p->in + at, p->in + at - t->dist, tags - at, min_u32(p->n - at, MAX_MATCH)), t->dist);
    p->dist = t->dist;
}

/* Returns where the text of OQ, the qualities before they were recalibrated (SAM tags, section 1.1), begins; the end of
 * the record, if there is none that is as long as the read. */
INLINE uint32_t find_oq(const struct parse *p, const struct fields *f)
{
    const uint8_t *oq = memmem(p->in + f->tags, f->end - f->tags, "OQZ", 3);
    uint32_t from = oq ? (uint32_t)(oq - p->in) + 3 : f->end, quals = f->tags - f->qual;
    return quals < f->end - from && p->in[from + quals] == 0 ? from : f->end;
}

INLINE void match_tags(struct deflate_parse *d, struct parse *p, const struct history *h, const struct fields *f,
                       agree64_fn *agree)
{
    uint32_t oq = h->oq.way == NONE ? f->end : find_oq(p, f);
    match_greedily(d, p, f->tags, oq, &h->rest, agree);
    if (oq == f->end)
        return;
    match_quals(d, p, &h->oq, oq, oq + f->tags - f->qual, false, agree);
    match_greedily(d, p, oq + f->tags - f->qual, f->end, &h->rest, agree);
}

/* How often each quality comes, and how many differ from the one before. */
struct counts {
    uint32_t of[256], all, differ;
};

INLINE void count_quals(struct counts *c, const uint8_t *in, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        c->of[in[i]]++;
        c->differ += in[i] != in[i - 1];
    }
    c->all += max_u32(n, 1) - 1;
}

/* Returns the way of qualities by what they cost as literals of their own. The cheapest matches pay where five literals
 * cost more than a match of five bytes at any distance, 3.7 bits each: literals of 40 levels cost 3.9 to 4.7, those of
 * real files without runs up to 3.7. */
static enum way way_of(const struct counts *c)
{
    uint64_t sum = 0;
    if (c->all == 0)
        return NONE;
    if (c->differ * RUN_RATE <= c->all)
        return RUNS;
    for (int i = 0; i < 256; i++)
        sum += c->of[i] ? (uint64_t)c->of[i] * log2_256(c->of[i]) : 0;
    uint64_t literals = BIT * 5 * ((uint64_t)c->all * log2_256(c->all) - sum);
    return literals > (uint64_t)c->all * (FIVE + FURTHEST) * 256 ? CHEAPEST : GREEDY;
}

/* Chooses the way by the counts of the first records. If these have no qualities, those of later records are matched as
 * the rest is. */
INLINE void begin_quals(struct quals *q, const struct counts *c, uint16_t *head, const struct greedy *rest)
{
    q->way = way_of(c);
    if (q->way == CHEAPEST)
        cheapest_begin(&q->cheapest, head);
    q->greedy = q->way == GREEDY ? greedy_begin_singles(head, HASH_FACTOR(5)) : *rest;
}

/* Looks at the first records for the ways of QUAL and OQ. */
static void begin(struct deflate_parse *d, const struct parse *p, struct history *h)
{
    struct counts qual = {0}, oq = {0};
    struct fields f;
    for (uint32_t at = 0, k = 0; k < MIN_RECORDS && at < p->n && find_fields(p->in, p->n, at, &f); at = f.end, k++) {
        uint32_t from = find_oq(p, &f);
        count_quals(&qual, p->in + f.qual, f.tags - f.qual);
        count_quals(&oq, p->in + from, min_u32(f.end - from, f.tags - f.qual));
    }
    h->rest = greedy_begin(d->pair_head, HASH_FACTOR(5));
    begin_quals(&h->qual, &qual, d->single_head[0], &h->rest);
    begin_quals(&h->oq, &oq, d->single_head[1], &h->rest);
}

/* Matches bytes without fields, segment by segment. */
INLINE void match_bytes(struct deflate_parse *d, struct parse *p, const struct history *h, uint32_t from, uint32_t to,
                        agree64_fn *agree)
{
    for (from = max_u32(from, FIRST); from < to; from += SEGMENT) {
        match_greedily(d, p, from, min_u32(from + SEGMENT, to), &h->rest, agree);
        put_mark(d);
    }
}

INLINE void parse_fast(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    struct history h = {0};
    struct fields f;
    uint32_t at = 0;
    begin(d, p, &h);
    for (; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end) {
        if (f.end - at >= LONG_RECORD) {           /* insertions and deletions move the bases of long reads */
            match_greedily(d, p, max_u32(at, FIRST), f.qual, &h.rest, agree);
            match_quals(d, p, &h.qual, f.qual, f.tags, false, agree);
            match_bytes(d, p, &h, f.tags, f.end, agree);
            continue;
        }
        uint32_t equal[N_EQUALS];
        find_equals(&h, p, at, equal);
        match_head(d, p, &h, &f, equal, agree);
        match_seq(d, p, &h.reads, &f, quick_for(&f), at - equal[PLACE], agree);
        bool copy = is_copy(p, &f, agree);
        struct tail tail = find_tail(p, &h, &f, copy, agree);
        match_quals(d, p, &h.qual, f.qual, tail.at, copy, agree);
        put_tail(d, p, &tail, f.tags);
        match_tags(d, p, &h, &f, agree);
        memmove(h.tags + 1, h.tags, sizeof h.tags - sizeof *h.tags);
        h.tags[0] = f.tags;
    }
    match_bytes(d, p, &h, at, p->last, agree);
}

static void parse_older(struct deflate_parse *d, struct parse *p) { parse_fast(d, p, agree64); }
NEWER_AVX2 static void parse_newer(struct deflate_parse *d, struct parse *p) { parse_fast(d, p, agree64_avx2); }

void deflate_fast(struct deflate_parse *d, struct parse *p, bool newer)
{
    (newer ? parse_newer : parse_older)(d, p);
}
