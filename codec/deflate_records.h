/* SPDX-License-Identifier: MIT */
/* Inside the encoder: the records of a block, the bytes of them that agree, and the matching that both levels share.
 * It compares the same bytes of n records, and SEQ with the reads before, by position on the reference; where that
 * explains little, by samples. */
#ifndef DEFLATE_RECORDS_H
#define DEFLATE_RECORDS_H

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "bam/bam_record.h"
#include "codec/deflate_parse.h"

/* From section 4.2 of the SAM specification. They are not taken from a header of htslib, so that the encoder's objects
 * serve builds with any htslib (test/check_htslibs.sh). */
enum {
    FLAG_UNMAPPED = 0x4,
    CIGAR_SOFT_CLIP = 4,          /* the operation S */
    NO_QUAL = 0xff,               /* each quality of a read that has none */
};

enum {
    LONG_RECORD = 1024,           /* bytes; such records and longer ones are those of long reads */
    /* If a block (of 64 KiB) has fewer records, they are long: their fields are hardly alike. At -l 1 this many records
     * decide how qualities are matched. */
    MIN_RECORDS = 16,
    FIRST_RECORDS = 8,            /* records that decide whether a block goes by fields at the default level */
    /* A SEQ is compared with this many reads at even bases, and with as many at odd ones: two bases are
     * a byte. 2 instead of 4 are 0.4 % larger, 1 is 3.5 % larger; 6 gain nothing. */
    N_READS = 4,
    N_SAMPLED = 2,                /* distances that samples give */
    MAX_DISTS = 32,               /* best_of() keeps the index of a distance in five bits */
    SAMPLE_BITS = 11,
    NAME_BITS = 10,
    WINDOW = 63,                  /* positions that are looked at together: bit 63 stays 0, which ends any run */
    /* Runs pay where fewer than one quality in this many differs from the one before it.
     * With 4 levels one in ten differs, with 8 one in 14, with 40 every other. */
    RUN_RATE = 6,
};

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
    __m256i y = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(a + 32)),
                                  _mm256_loadu_si256((const void *)(b + 32)));
    return (uint32_t)_mm256_movemask_epi8(x) | (uint64_t)(uint32_t)_mm256_movemask_epi8(y) << 32;
}
#else
#define agree64_avx2 agree64
#endif

INLINE uint64_t same_64(const struct parse *p, uint32_t x, uint32_t dist, agree64_fn *agree)
{
    return agree(p->in + x, p->in + x - dist) & INT64_MAX;
}

static NOINLINE uint64_t same_at_end(const struct parse *p, uint32_t x, uint32_t dist)
{
    uint32_t back = x + 64 - p->n;
    return dist + back <= x ? agree64(p->in + x - back, p->in + x - back - dist) >> back : 0;
}

/* Returns a word. Bit k is set where the byte at x + k equals the one dist bytes before it, for k < WINDOW. Bits beyond
 * the end of the input are 0, and nothing there is loaded. Near the end all are 0 if fewer than 64 bytes lie before
 * those that are compared. */
INLINE uint64_t same_window(const struct parse *p, uint32_t x, uint32_t dist, agree64_fn *agree)
{
    return p->n - x >= 64 ? same_64(p, x, dist, agree) : same_at_end(p, x, dist);
}

/* Returns a word. Bit k is set if bits k to k + MIN_MATCH - 1 of m are set. */
INLINE uint64_t begins(uint64_t m)
{
    m &= m >> 1;
    return m & m >> 2;
}
_Static_assert(MIN_MATCH == 4, "begins()");

INLINE uint64_t below(uint32_t n) { return n < 64 ? (1ull << n) - 1 : UINT64_MAX; }

/* ---- records ---- */

/* Where the fields of a record begin, and where it ends. */
struct fields {
    uint32_t at, cigar, seq, qual, tags, end;
};

/* Returns whether there is a complete record at `at`, and sets *f to its fields. The record's lengths must fit each
 * other; nothing else is checked. */
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

/* Finds the mate of a record, or another record whose name ends like its name. */
struct mates {
    uint16_t cigar[1 << NAME_BITS];                /* where it begins, by the hash of a name's last eight bytes */
};

INLINE uint16_t *mate_slot(struct mates *m, const struct parse *p, const struct fields *f)
{
    return &m->cigar[hash(load_le64(p->in + f->cigar - 9), HASH_FACTOR(8), NAME_BITS)];
}
_Static_assert(BAM_FIXED + 1 >= 9, "eight bytes before the NUL can be loaded");

/* Returns the distance from `here` to `there`, or 1, which is always possible, if a match cannot have that distance. */
INLINE uint32_t distance(uint32_t here, int64_t there)
{
    uint64_t dist = here - (uint64_t)there;        /* more than `here` if `there` is negative */
    return dist - 1 < min_u32(here, MAX_DIST) ? (uint32_t)dist : 1;
}

/* A loop over n distances. For newer processors it is unrolled where the compiler knows n; that takes long to
 * compile. */
#define EACH_OF(k, n, agree, body) \
    if (__builtin_constant_p(n) && (agree) == agree64_avx2) { \
        UNROLL(20) \
        for (uint32_t k = 0; k < (n); k++) \
            body; \
    } else { \
        for (uint32_t k = 0; k < (n); k++) \
            body; \
    }

/* There is one word for each of n distances. Finds the one with the most ones in a row from bit s on. Returns
 * length << 5 | 31 - index of the distance. If two runs are equally long, the one with the lower index wins. */
INLINE uint32_t best_of(const uint64_t *same, uint32_t n, uint32_t s, agree64_fn *agree)
{
    uint32_t best = 0;
    EACH_OF(k, n, agree, best = max_u32(best, (uint32_t)__builtin_ctzll(~(same[k] >> s)) << 5 | (31 - k)));
    return best;
}

#ifdef __x86_64__
NEWER_AVX2 static inline __m256i max64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

/* Does what best_of() does, for MAX_DISTS distances. It has no loop, which makes the encoder 3 to 6 % faster. Bit 63 of
 * same[] is not set. */
NEWER_AVX2 static inline uint32_t best_of_all(const uint64_t *same, uint32_t s)
{
    __m256i run[8], best[8], other;
    UNROLL(8)
    for (int i = 0; i < 8; i++) {
        __m256i x = _mm256_srl_epi64(_mm256_loadu_si256((const void *)(same + 4 * i)), _mm_cvtsi32_si128((int)s));
        best[i] = run[i] = _mm256_andnot_si256(_mm256_add_epi64(x, _mm256_set1_epi64x(1)), x);
    }
    UNROLL(3)
    for (int step = 4; step > 0; step /= 2)
        UNROLL(4)
        for (int i = 0; i < step; i++)
            best[i] = max64(best[i], best[i + step]);
    other = max64(best[0], _mm256_permute4x64_epi64(best[0], 0x4e));
    best[0] = max64(other, _mm256_shuffle_epi32(other, 0x4e));
    uint64_t longest = (uint64_t)_mm256_extract_epi64(best[0], 0);
    uint32_t which = 0;
    UNROLL(8)
    for (int i = 0; i < 8; i++)
        which |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(run[i], best[0]))) << 4 * i;
    return (uint32_t)__builtin_popcountll(longest) << 5 | (31 - (uint32_t)__builtin_ctz(which));
}
_Static_assert(MAX_DISTS == 32, "eight words of four");
#else
#define best_of_all(same, s) best_of(same, MAX_DISTS, s, agree64)
#endif

/* Calls best_of(), compiled for the same processors as `agree`: those that have AVX2, or all. */
#define BEST_OF(same, n, s, agree) \
    ((n) == MAX_DISTS && (agree) == agree64_avx2 ? best_of_all(same, s) : best_of(same, n, s, agree))

/* Returns what a match gains: the quarter bytes that it saves, minus the bits of its distance. */
INLINE int32_t gain_of(uint32_t best, const uint32_t *dist)
{
    return (int32_t)(4 * (best >> 5)) - (int32_t)log2_floor(dist[31 - (best & 31)]);
}

INLINE void match_windows(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, const uint32_t *dist,
                          uint32_t n, bool lazy, agree64_fn *agree)
{
    to = min_u32(to, p->last);
    for (uint32_t x = max_u32(from, p->anchor), step; x < to; x += step) {
        uint64_t same[MAX_DISTS], starts = 0;
        if (p->n - x >= 64) {
            EACH_OF(k, n, agree, (same[k] = same_64(p, x, dist[k], agree), starts |= begins(same[k])));
        } else {
            for (uint32_t k = 0; k < n; k++)
                same[k] = same_at_end(p, x, dist[k]), starts |= begins(same[k]);
        }
        step = WINDOW - MIN_MATCH + 1;
        for (starts &= below(to - x); starts;) {
            uint32_t s = (uint32_t)__builtin_ctzll(starts), best = BEST_OF(same, n, s, agree);
            while (lazy && starts >> s & 2) {
                uint32_t next = BEST_OF(same, n, s + 1, agree);
                if (gain_of(next, dist) <= gain_of(best, dist) + 1)
                    break;
                best = next;
                s++;
            }
            uint32_t len = best >> 5, far = dist[31 - (best & 31)], here = x + s;
            if (s + len == WINDOW)
                len = extend(p->in + here, p->in + here - far, len, min_u32(p->n - here, MAX_MATCH));
            put_match(d, p, here, len, far);
            p->dist = far;
            step = max_u32(s + len, WINDOW - MIN_MATCH + 1);
            starts &= ~below(s + len);
        }
    }
}

/* The loops for all processors are not unrolled, so one function serves any n. */
static NOINLINE void match_at_older(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to,
                                    const uint32_t *dist, uint32_t n, bool lazy)
{
    match_windows(d, p, from, to, dist, n, lazy, agree64);
}

/* The numbers of distances that are compared. For newer processors each of them has a function of its own, so that its
 * loops are unrolled. Inlined at each call, these functions would take a third more of the compiler's time. */
#define EACH_N(one) one(1) one(2) one(4) one(6) one(10) one(32)
#define MATCH_AT_NEWER(n) \
    NEWER_AVX2 static NOINLINE void match_at_##n(struct deflate_parse *d, struct parse *p, uint32_t from, \
                                                 uint32_t to, const uint32_t *dist, bool lazy) \
    { \
        match_windows(d, p, from, to, dist, n, lazy, agree64_avx2); \
    }
EACH_N(MATCH_AT_NEWER)
#define MATCH_AT_CASE(n) case n: match_at_##n(d, p, from, to, dist, lazy); return;

/* Puts the matches that begin in [from, to), at n distances: always the longest of the matches at the next position
 * where one begins. lazy: a match that begins a byte later is taken instead if it gains more. No distance may reach
 * before the input. */
INLINE void match_at(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, const uint32_t *dist,
                     uint32_t n, bool lazy, agree64_fn *agree)
{
    if (agree == agree64_avx2)
        switch (n) {
        EACH_N(MATCH_AT_CASE)
        }
    match_at_older(d, p, from, to, dist, n, lazy);
}

/* ---- SEQ ---- */

struct effort {
    uint32_t many_literals;       /* a SEQ with this many literals is looked up by samples */
    bool lazy;
};

/* The effort of the default level. */
static const struct effort thorough = {.many_literals = 3, .lazy = true};

/* The last reads of one place, by the lowest bit of the position; the last read comes first. */
struct place_reads {
    struct {
        int64_t pos;                               /* position of the first base, as if it were not clipped */
        uint32_t seq;
    } read[2][N_READS];
    int64_t pos;                                   /* position of the last read */
};

/* The reads that SEQ is compared with. */
struct reads {
    struct place_reads place[2];                   /* in template order first and second reads lie at two places */
    uint32_t here;                                 /* the place of the last read */
    uint16_t sample[1 << SAMPLE_BITS];             /* bases, by the hash of eight bytes */
};

/* Returns the position of the first base, as if no base were clipped. */
INLINE int64_t unclipped_pos(const struct bam_record *r)
{
    uint32_t op = load_le16(r->n_cigar) ? load_le32(r->data + r->name_len) : 0;
    return (int64_t)bam_record_pos(r) - ((op & 15) == CIGAR_SOFT_CLIP ? op >> 4 : 0);
}

/* Returns how many bytes before `at` are not part of a match so far. */
INLINE uint32_t lits_before(const struct deflate_parse *d, const struct parse *p, uint32_t at)
{
    return d->n_lits + max_u32(p->anchor, at) - p->anchor;
}

/* TG, CA, AC, GT, TA, AT */
enum { N_SAMPLED_BASES = 6 };
static const uint8_t sampled_bases[N_SAMPLED_BASES][64] = {
    {[0 ... 63] = 0x84}, {[0 ... 63] = 0x21}, {[0 ... 63] = 0x12},
    {[0 ... 63] = 0x48}, {[0 ... 63] = 0x81}, {[0 ... 63] = 0x18},
};

/* Finds where the same bases were before, in a read that its position did not explain either: copies of a fragment,
 * secondary alignments, amplicons. Samples are taken at the bytes of sampled_bases[], three in eight. So a copy has the
 * same samples, however it is shifted. Sets dist[] to the first distance and the last. Returns whether there is one. */
INLINE bool find_samples(const struct parse *p, struct reads *h, const struct fields *f, uint32_t *dist,
                         agree64_fn *agree)
{
    uint32_t n = 0, end = min_u32(f->qual, max_u32(p->n, 64) - 64);
    for (uint32_t x = f->seq; x + 8 <= end; x += 64) {
        uint64_t taken = 0;
        UNROLL(6)
        for (uint32_t k = 0; k < N_SAMPLED_BASES; k++)
            taken |= agree(p->in + x, sampled_bases[k]);
        taken &= below(end - 7 - x);
        for (; taken; taken &= taken - 1) {
            uint32_t at = x + (uint32_t)__builtin_ctzll(taken);
            uint64_t bases = load_le64(p->in + at);
            uint16_t *slot = &h->sample[hash(bases, HASH_FACTOR(8), SAMPLE_BITS)];
            uint32_t there = *slot;
            *slot = (uint16_t)at;
            if (load_le64(p->in + there) == bases && at - there <= min_u32(f->seq, MAX_DIST))
                dist[n++ > 0] = at - there;
        }
    }
    if (n == 1)
        dist[1] = dist[0];
    return n > 0;
}

/* Returns whether a read that begins at pos has no base in common with the last read of the place. */
INLINE bool is_elsewhere(const struct place_reads *place, int64_t pos, uint32_t bases)
{
    return (uint64_t)(pos - place->pos + bases) > 2ull * bases;
}

/* Returns the distance to the bases at the same position of the read that is `back` bytes before; 1 if they are at odd
 * bases there, or if there is no record. */
INLINE uint32_t read_distance(const struct parse *p, const struct fields *f, int64_t pos, uint32_t back)
{
    struct fields there;
    if (back == 0 || !find_fields(p->in, p->n, f->at - back, &there))
        return 1;
    int64_t bases = pos - unclipped_pos((const void *)(p->in + f->at - back));
    return bases & 1 ? 1 : distance(f->seq, there.seq + bases / 2);
}

/* Matches SEQ. back: bytes to the beginning of another record that it is compared with as well; 0: none. */
INLINE void match_seq(struct deflate_parse *d, struct parse *p, struct reads *h, const struct fields *f,
                      struct effort e, uint32_t back, agree64_fn *agree)
{
    const struct bam_record *r = (const void *)(p->in + f->at);
    const uint32_t anchor = p->anchor, n_seqs = d->n_seqs, n_lits = d->n_lits;
    int64_t pos = unclipped_pos(r);
    if (is_elsewhere(&h->place[h->here], pos, f->tags - f->qual))
        h->here ^= 1;
    struct place_reads *place = &h->place[h->here];
    uint32_t dist[N_READS + N_SAMPLED], lits = lits_before(d, p, f->seq), other = read_distance(p, f, pos, back);
    for (uint32_t k = 0; k < N_READS; k++)
        dist[k] = distance(f->seq, place->read[pos & 1][k].seq + (pos - place->read[pos & 1][k].pos) / 2);
    if (other > 1)
        dist[N_READS - 1] = other;
    match_at(d, p, f->seq, f->qual, dist, N_READS, e.lazy, agree);
    if (lits_before(d, p, f->qual) - lits >= e.many_literals && find_samples(p, h, f, dist + N_READS, agree)) {
        p->anchor = anchor;
        d->n_seqs = n_seqs;
        d->n_lits = n_lits;
        match_at(d, p, f->seq, f->qual, dist, N_READS + N_SAMPLED, e.lazy, agree);
    }
    if (bam_record_flag(r) & FLAG_UNMAPPED)
        return;
    memmove(place->read[pos & 1] + 1, place->read[pos & 1], (N_READS - 1) * sizeof place->read[0][0]);
    place->read[pos & 1][0].pos = place->pos = pos;
    place->read[pos & 1][0].seq = f->seq;
}

/* Returns whether the read is a copy: the last match runs from SEQ into QUAL, and the bytes after it match, too. */
INLINE bool is_copy(const struct parse *p, const struct fields *f, agree64_fn *agree)
{
    if (p->anchor <= f->qual || p->anchor >= f->tags)
        return false;
    uint64_t next = below(min_u32(f->tags - p->anchor, WINDOW));
    return (same_window(p, p->anchor, p->dist, agree) & next) == next;
}

#endif
