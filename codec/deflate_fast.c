/* SPDX-License-Identifier: MIT */
/* -l 1.
 *
 * A block of whole records is matched field by field, since it is known where what is
 * alike lies: no hash, no chain from one match to the next.
 *
 *   fixed fields, name, CIGAR   the same bytes of the records before, and of the mate
 *   SEQ                         the reads before, by position on the reference
 *   QUAL                        runs
 *   tags                        greedily
 *
 * Anything else is matched greedily: of four positions at once the best match, found
 * without a branch. So are qualities that do not come in runs, with all around them,
 * and the rest of a block whose reads turn out not to be alike. */
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "codec/deflate_parse.h"

enum {
    GROUP = 4,
    SKIP = 6,                     /* steps grow by 1 per 64 literals in a row */
    INSERT = 3,                   /* positions inside a match are inserted three at a time */
    MAX_STRIDE = 5,

    /* Fewer records in a block (of 64 KiB) are long: their fields are hardly alike. */
    MIN_RECORDS = 16,
    /* Records that another one is compared with. 4 instead of 8 are 4 % faster, 1.7 %
     * larger; 12 are 4 % slower, 0.6 % smaller. */
    N_BEFORE = 8,
    /* Of reads on the bases with even numbers, and as many on odd ones: two bases are
     * a byte. 2 instead of 4 are 0.4 % larger, 1 is 3.5 %; 6 gain nothing. */
    N_READS = 4,
    NAME_BITS = 10,
    WINDOW = 63,                  /* positions looked at at once: bit 63 stays 0, which ends any run */
    /* Runs pay where fewer than one quality in so many differs from that before it.
     * Of 4 levels one in ten does, of 8 one in 14, of 40 every other. */
    RUN_RATE = 6,
    SAMPLE_RECORDS = 4,           /* of so many records one is looked at for that */
    /* SEQ must become literals by less than one byte in so many, from so many bytes
     * on: whole genomes have one in 9 to 30, other data one in 2 to 4. */
    LITERAL_RATE = 6,
    FIRST_SEQ = 4000,
};
_Static_assert(MARGIN >= GROUP - 1 + 16, "loads stay inside the input");
_Static_assert(MAX_STRIDE * INSERT <= FIRST, "insert_matched() does not go below 0");
_Static_assert(N_BEFORE + 1 <= 16, "best_of() keeps which in four bits");

/* ---- any bytes ---- */

/* What suits a block. */
struct tuning {
    uint64_t factor;              /* HASH_FACTOR() */
    uint32_t bits;                /* of the hash */
    uint32_t stride;              /* every so manyth position of a match is inserted */
    bool nearest;                 /* of equally long matches the nearest, not the first */
};

/* Goes by how often two bytes of a sample are the same: hashing 4 bytes instead of
 * 5 is 3 % smaller on generated qualities of 40 levels; 6 and the nearest, 2 % on
 * those of 4. */
static struct tuning tune(const uint8_t *in, uint32_t n)
{
    uint32_t pairs, same = same_pairs(in, n, &pairs);
    if (same < pairs / 32)
        return (struct tuning){HASH_FACTOR(4), FAST_HASH_BITS, 3, true};
    if (same < pairs / 16)
        return (struct tuning){HASH_FACTOR(5), FAST_HASH_BITS, 3, false};
    return (struct tuning){HASH_FACTOR(6), FAST_HASH_BITS, MAX_STRIDE, true};
}

INLINE uint32_t hash_fast(const uint8_t *at, const struct tuning *t)
{
    return hash(load_le64(at), t->factor, t->bits);
}

/* Inserts position at + k and rates the candidate found there: by its length up
 * to 16, then how near it is or how early. far: it may exceed the window. */
INLINE uint32_t probe(uint16_t *head, const uint8_t *in, uint32_t at, uint32_t k,
                      const struct tuning *t, bool far)
{
    uint32_t h = hash_fast(in + at + k, t), cand = head[h], early = GROUP - 1 - k;
    head[h] = (uint16_t)(at + k);
    uint32_t score = agree16(in + at + k, in + cand) << 18 | (t->nearest ? cand << 2 | early : early << 16 | cand);
    if (far)
        score &= (uint32_t)((int32_t)(at + k - cand - (MAX_DIST + 1)) >> 31);
    return score;
}

/* Inserts positions of a match, and of what is before it if it is short. The
 * loop rarely runs more than twice: a count that is hard to predict costs more
 * than inserting a position again. */
INLINE void insert_matched(uint16_t *head, const uint8_t *in, uint32_t at, uint32_t end,
                           const struct tuning *t)
{
    uint32_t stride = t->stride, final = end - stride * INSERT + stride - 1;
    for (; at < final; at += stride * INSERT)
        UNROLL(3)
        for (uint32_t i = 0; i < INSERT; i++)
            head[hash_fast(in + at + stride * i, t)] = (uint16_t)(at + stride * i);
    UNROLL(3)
    for (uint32_t i = 0; i < INSERT; i++)
        head[hash_fast(in + final + stride * i, t)] = (uint16_t)(final + stride * i);
}

/* Matches that begin before stop. far: they may exceed the window. */
INLINE void parse_greedy_as(struct deflate_parse *d, struct parse *state, uint32_t stop,
                            const struct tuning *t, bool far)
{
    struct parse p = *state;
    while (p.at < stop) {
        uint32_t score[GROUP];
        UNROLL(4)
        for (uint32_t k = 0; k < GROUP; k++)
            score[k] = probe(d->fast_head, p.in, p.at, k, t, far);
        uint32_t best = max_u32(max_u32(score[0], score[1]), max_u32(score[2], score[3]));
        uint32_t len = best >> 18, cand = (t->nearest ? best >> 2 : best) & 0xffff;
        uint32_t early = (t->nearest ? best : best >> 16) & 3;
        if (len < MIN_MATCH || cand < 8) {
            p.at += GROUP + ((p.at - p.anchor) >> SKIP);
            continue;
        }
        uint32_t at = p.at + GROUP - 1 - early;
        if (len == 16)
            len = extend(p.in + at, p.in + cand, 16, min_u32(p.n - at, MAX_MATCH));
        put_match(d, &p, at, cand, len);
        if (p.at < p.last)
            insert_matched(d->fast_head, p.in, at + GROUP, p.at, t);
    }
    *state = p;
}

INLINE void parse_greedy(struct deflate_parse *d, struct parse *p, uint32_t stop, struct tuning t)
{
    bool nearest = t.nearest;
    t.bits = FAST_HASH_BITS;                       /* known to the compiler, as is what follows */
    t.nearest = true;
    if (nearest && stop > MAX_DIST)
        parse_greedy_as(d, p, stop, &t, true);
    else if (nearest)
        parse_greedy_as(d, p, stop, &t, false);
    t.nearest = false;
    if (!nearest && stop > MAX_DIST)
        parse_greedy_as(d, p, stop, &t, true);
    else if (!nearest)
        parse_greedy_as(d, p, stop, &t, false);
}

/* ---- which of 64 bytes agree: bit i for a[i] == b[i] ---- */

typedef uint64_t agree64_fn(const uint8_t *a, const uint8_t *b);

static inline uint64_t agree64(const uint8_t *a, const uint8_t *b)
{
    uint64_t bits = 0;
#ifdef __SSE2__
    for (int i = 0; i < 64; i += 16) {
        __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const void *)(a + i)), _mm_loadu_si128((const void *)(b + i)));
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(same) << i;
    }
#else
    const uint64_t low = 0x7f7f7f7f7f7f7f7f;
    for (int i = 0; i < 64; i += 8) {
        uint64_t x = load_le64(a + i) ^ load_le64(b + i);
        uint64_t same = ~(((x & low) + low) | x | low) >> 7;     /* 1 in every byte that is 0 */
        bits |= (same * 0x0102040810204080 >> 56) << i;
    }
#endif
    return bits;
}

#ifdef __x86_64__
NEWER_AVX2 static inline uint64_t agree64_avx2(const uint8_t *a, const uint8_t *b)
{
    __m256i x = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)a), _mm256_loadu_si256((const void *)b));
    __m256i y = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(a + 32)), _mm256_loadu_si256((const void *)(b + 32)));
    return (uint32_t)_mm256_movemask_epi8(x) | (uint64_t)(uint32_t)_mm256_movemask_epi8(y) << 32;
}
#else
#define agree64_avx2 agree64
#endif

/* Which of the WINDOW bytes from x on are those dist before. Those beyond the
 * input are not; nothing there is loaded. */
INLINE uint64_t same_window(const struct parse *p, uint32_t x, uint32_t dist, agree64_fn *agree)
{
    uint32_t left = p->n - x, back = 64 - left;
    if (left >= 64)
        return agree(p->in + x, p->in + x - dist) & INT64_MAX;
    return dist + back <= x ? agree(p->in + x - back, p->in + x - back - dist) >> back : 0;
}

/* Where MIN_MATCH bits in a row begin. */
INLINE uint64_t begins(uint64_t m)
{
    m &= m >> 1;
    return m & m >> 2;
}
_Static_assert(MIN_MATCH == 4, "begins()");

/* How many bits are set from bit s on. */
INLINE uint32_t run_length(uint64_t m, uint32_t s)
{
    return (uint32_t)__builtin_ctzll(~(m >> s));
}

INLINE uint64_t below(uint32_t n) { return n < 64 ? (1ull << n) - 1 : UINT64_MAX; }

/* ---- records ---- */

/* Where the fields of a record begin, and where it ends. */
struct fields {
    uint32_t at, cigar, seq, qual, tags, end;
};

/* Is there a whole record at `at`? Its lengths must fit each other, no more. */
INLINE bool find_fields(const uint8_t *in, uint32_t n, uint32_t at, struct fields *f)
{
    const struct bam_record *r = (const void *)(in + at);
    if (n - at < BAM_FIXED)
        return false;
    uint64_t size = bam_record_size(r), bases = load_le32(r->seq_len);
    uint64_t cigar = BAM_FIXED + r->name_len, seq = cigar + 4u * load_le16(r->n_cigar);
    uint64_t qual = seq + (bases + 1) / 2, tags = qual + bases;
    if (tags > size || size > n - at)
        return false;
    *f = (struct fields){at, at + (uint32_t)cigar, at + (uint32_t)seq, at + (uint32_t)qual,
                         at + (uint32_t)tags, at + (uint32_t)size};
    return true;
}

/* Is it whole records, and do their qualities come in runs? */
INLINE bool are_records(const struct parse *p, agree64_fn *agree)
{
    uint32_t records = 0, quals = 0, differ = 0;
    struct fields f;
    for (uint32_t at = 0; at < p->n; at = f.end) {
        if (!find_fields(p->in, p->n, at, &f))
            return false;
        if (records++ % SAMPLE_RECORDS || f.tags - f.qual < 2)
            continue;
        uint32_t others = f.tags - f.qual - 1, len = min_u32(others, WINDOW);
        uint64_t same = same_window(p, f.qual + 1 + (others - len) / 2, 1, agree);
        differ += (uint32_t)__builtin_popcountll(~same & below(len));
        quals += len;
    }
    return records >= MIN_RECORDS && differ * RUN_RATE <= quals;
}

/* What a record is compared with. */
struct history {
    uint32_t record[N_BEFORE];                     /* where they begin, the last first */
    uint16_t name_end[1 << NAME_BITS];             /* by the hash of its last eight bytes: mates */
    struct {
        int64_t pos;                               /* of the first base, were it not clipped */
        uint32_t seq;
    } read[2][N_READS];                            /* by the position's lowest bit; the last first */
    uint32_t seq_bytes, seq_lits;                  /* of mapped reads */
};

/* 1 is always possible. */
INLINE uint32_t distance(uint32_t here, int64_t there)
{
    return there >= 0 && there < here && here - there <= MAX_DIST ? here - (uint32_t)there : 1;
}

INLINE void put_found(struct deflate_parse *d, struct parse *p, uint32_t at, uint32_t len, uint32_t dist)
{
    put_seq(d, p->in + p->anchor, at - p->anchor, len, dist);
    p->anchor = at + len;
}

/* The longest run from bit s on: its length << 4, and 15 - which. The first of equals. */
INLINE uint32_t best_of(const uint64_t *same, uint32_t n, uint32_t s)
{
    uint32_t best = 0;
    UNROLL(16)
    for (uint32_t k = 0; k < n; k++)
        best = max_u32(best, run_length(same[k], s) << 4 | (15 - k));
    return best;
}

/* Matches from [from, to) on, at n distances; the next one that begins, the longest
 * of those that begin there. No distance reaches below the input. */
INLINE void match_at(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to,
                     const uint32_t *dist, uint32_t n, agree64_fn *agree)
{
    to = min_u32(to, p->last);
    for (uint32_t x = max_u32(from, p->anchor), step; x < to; x += step) {
        uint64_t same[16], starts = 0;
        UNROLL(16)
        for (uint32_t k = 0; k < n; k++) {
            same[k] = same_window(p, x, dist[k], agree);
            starts |= begins(same[k]);
        }
        step = WINDOW - MIN_MATCH + 1;
        for (starts &= below(to - x); starts;) {
            uint32_t s = (uint32_t)__builtin_ctzll(starts), best = best_of(same, n, s);
            uint32_t len = best >> 4, far = dist[15 - (best & 15)], here = x + s;
            if (s + len == WINDOW)
                len = extend(p->in + here, p->in + here - far, len, min_u32(p->n - here, MAX_MATCH));
            put_found(d, p, here, len, far);
            step = max_u32(s + len, WINDOW - MIN_MATCH + 1);
            starts &= ~below(s + len);
        }
    }
}

/* The same byte over and over, from [from, to) on. */
INLINE void match_runs(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, agree64_fn *agree)
{
    to = min_u32(to, p->last);
    for (uint32_t x = max_u32(from + 1, p->anchor), step; x < to; x += step) {
        uint64_t same = same_window(p, x, 1, agree), starts = begins(same);
        step = WINDOW - MIN_MATCH + 1;
        for (starts &= below(to - x); starts;) {
            uint32_t s = (uint32_t)__builtin_ctzll(starts), len = run_length(same, s), here = x + s;
            if (s + len == WINDOW)
                len = extend(p->in + here, p->in + here - 1, len, min_u32(p->n - here, MAX_MATCH));
            put_found(d, p, here, len, 1);
            step = max_u32(s + len, WINDOW - MIN_MATCH + 1);
            starts &= ~below(s + len);
        }
    }
}

INLINE void match_head(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       agree64_fn *agree)
{
    uint32_t dist[N_BEFORE + 1];
    uint16_t *mate = &h->name_end[hash(load_le64(p->in + f->cigar - 9), HASH_FACTOR(8), NAME_BITS)];
    for (uint32_t k = 0; k < N_BEFORE; k++)
        dist[k] = distance(f->at, h->record[k]);
    dist[N_BEFORE] = distance(f->cigar, *mate);
    if (dist[N_BEFORE] > f->at)                    /* a shorter name in the first record */
        dist[N_BEFORE] = 1;
    if (f->at > 0)
        match_at(d, p, f->at, f->seq, dist, N_BEFORE + 1, agree);
    *mate = (uint16_t)f->cigar;
    memmove(h->record + 1, h->record, sizeof h->record - sizeof *h->record);
    h->record[0] = f->at;
}
_Static_assert(BAM_FIXED + 1 >= 9, "eight bytes before the NUL can be loaded");

/* Where the first base would lie if no base were clipped. */
INLINE int64_t unclipped_pos(const struct bam_record *r)
{
    uint32_t op = load_le16(r->n_cigar) ? load_le32(r->data + r->name_len) : 0;
    return (int64_t)bam_record_pos(r) - ((op & 15) == BAM_CSOFT_CLIP ? op >> 4 : 0);
}

/* How many bytes before `at` are no part of a match so far. */
INLINE uint32_t lits_before(const struct deflate_parse *d, const struct parse *p, uint32_t at)
{
    return d->n_lits + max_u32(p->anchor, at) - p->anchor;
}

INLINE void match_seq(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                      agree64_fn *agree)
{
    const struct bam_record *r = (const void *)(p->in + f->at);
    int64_t pos = unclipped_pos(r);
    uint32_t dist[N_READS], lits = lits_before(d, p, f->seq);
    for (uint32_t k = 0; k < N_READS; k++)
        dist[k] = distance(f->seq, h->read[pos & 1][k].seq + (pos - h->read[pos & 1][k].pos) / 2);
    match_at(d, p, f->seq, f->qual, dist, N_READS, agree);
    if (bam_record_flag(r) & BAM_FUNMAP)
        return;
    h->seq_bytes += f->qual - f->seq;
    h->seq_lits += lits_before(d, p, f->qual) - lits;
    memmove(h->read[pos & 1] + 1, h->read[pos & 1], sizeof h->read[0] - sizeof h->read[0][0]);
    h->read[pos & 1][0].pos = pos;
    h->read[pos & 1][0].seq = f->seq;
}

INLINE void parse_records(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    const struct tuning tags = {HASH_FACTOR(6), TAG_HASH_BITS, MAX_STRIDE, false};
    struct history h = {.seq_bytes = FIRST_SEQ};
    struct fields f;
    for (uint32_t at = 0; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end) {
        match_head(d, p, &h, &f, agree);
        match_seq(d, p, &h, &f, agree);
        if (h.seq_lits * LITERAL_RATE > h.seq_bytes)
            break;
        match_runs(d, p, f.qual, f.tags, agree);
        p->at = max_u32(p->at, max_u32(p->anchor, f.tags));
        parse_greedy_as(d, p, min_u32(f.end, p->last), &tags, true);
    }
    p->at = max_u32(p->at, p->anchor);
}

/* ---- both ---- */

INLINE void parse_block(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    memset(d->fast_head, 0, sizeof d->fast_head);
    if (are_records(p, agree))
        parse_records(d, p, agree);
    if (p->at >= p->last)
        return;
    const struct tuning t = tune(p->in, p->n);
    for (uint32_t end = (p->at / SEGMENT + 1) * SEGMENT; p->at < p->last; end += SEGMENT) {
        parse_greedy(d, p, min_u32(end, p->last), t);
        put_mark(d);
    }
}
_Static_assert(MAX_DIST % SEGMENT == 0, "parse_greedy() is told by segments whether the window matters");

static void parse_older(struct deflate_parse *d, struct parse *p) { parse_block(d, p, agree64); }
NEWER_AVX2 static void parse_newer(struct deflate_parse *d, struct parse *p) { parse_block(d, p, agree64_avx2); }

void deflate_fast(struct deflate_parse *d, struct parse *p, bool newer)
{
    (newer ? parse_newer : parse_older)(d, p);
}
