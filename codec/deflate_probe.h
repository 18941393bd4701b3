/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: the matches of a part's positions, and the positions inside long matches. */
#ifndef DEFLATE_PROBE_H
#define DEFLATE_PROBE_H

#include "codec/deflate_records.h"

enum {
    FOUND_MAX = 255,              /* the length of a match is known up to this many bytes */
};
_Static_assert(ALL_SEEN + 16 <= MARGIN, "what is compared at once stays inside the input");

#ifdef __x86_64__
_Alignas(32) static const uint16_t lane_numbers[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#endif

/* SPAN positions are probed at once. No branch depends on the bytes, so the processor never predicts one wrongly:
 *
 *   find_slots   the slots of all positions in both tables
 *   find_pair    the candidates of two positions in both tables, and which of ALL_SEEN bytes agree
 *   keep_longer  the longer match of the two, and its distance; matches beyond the window are dropped
 *
 * Only every other position looks into the table of ten bytes. A match of eleven bytes and more contains such a
 * position, and choose() carries the match back from there. */
_Static_assert(LEAST_GAP >= SPAN / 2, "what is passed reaches beyond what is probed already");

#define FACTOR_4 0x9e3779b1u
#define FACTOR_8 0x85ebca77u
#define FACTOR_10 0xc2b2ae35u

struct slots {
    uint16_t *of_4, *of_10;
};

static inline struct slots slots_of(struct lanes *l, const uint8_t *at)
{
    uint32_t of_4 = load_le32(at) * FACTOR_4;
    uint32_t of_10 = of_4 + load_le32(at + 4) * FACTOR_8 + load_le32(at + 6) * FACTOR_10;
    return (struct slots){&l->of_4[of_4 >> (32 - BITS_OF_4)], &l->of_10[of_10 >> (32 - BITS_OF_10)]};
}

/* Puts positions [x, end) into both tables. */
static void enter_older(struct lanes *l, const uint8_t *in, uint32_t x, uint32_t end)
{
    for (; x < end; x++) {
        struct slots slot = slots_of(l, in + x);
        *slot.of_4 = *slot.of_10 = (uint16_t)x;
    }
}

/* Probes positions [x, x + n). The results go to place i of a part and the places after it. */
static void probe_older(struct lanes *l, const uint8_t *in, uint32_t x, uint32_t i, uint32_t n)
{
    memcpy(l->bytes + 1 + i, in + x, n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = x + k, len_10 = 0;
        struct slots slot = slots_of(l, in + at);
        uint32_t with = *slot.of_4, with_10 = *slot.of_10, len = agree16(in + at, in + with);
        *slot.of_4 = *slot.of_10 = (uint16_t)at;
        if (k % 2 == 0)
            len_10 = agree16(in + at, in + with_10);
        if (len_10 > len)
            len = len_10, with = with_10;
        l->len[i + k] = (uint8_t)(at - with > MAX_DIST ? 0 : len);
        l->found[i + k] = (uint16_t)(at - with);
    }
}

/* Returns 64 bits. Bit k is set if ALL_SEEN bytes agree at the k-th position, and the next two positions have found
 * other matches. */
static uint64_t ends_older(const uint8_t *len, const uint16_t *found)
{
    uint64_t bits = 0;
    for (uint32_t k = 0; k < 64; k++)
        bits |= (uint64_t)(len[k] == ALL_SEEN && found[k] != found[k + 1] && found[k] != found[k + 2]) << k;
    return bits;
}

#ifdef __x86_64__
/* A span while it is probed. */
struct probes {
    _Alignas(32) uint32_t slot_4[SPAN], slot_10[SPAN];
    _Alignas(32) uint32_t with_4[SPAN / 2], with_10[SPAN / 2], same_4[SPAN / 2], same_10[SPAN / 2];    /* pairs */
};

/* Returns the products of `factor` and the four bytes at each of eight positions. */
NEWER_AVX2 static inline __m256i multiply(const uint8_t *in, uint32_t factor)
{
    const __m256i fours = _mm256_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6,
                                           4, 5, 6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7, 8, 9, 10);
    __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)in));
    return _mm256_mullo_epi32(_mm256_shuffle_epi8(bytes, fours), _mm256_set1_epi32((int)factor));
}

/* Finds the slots of n positions, at most a span, as slots_of() does. It writes whole groups of eight, so up to seven
 * slots more. */
NEWER_AVX2 INLINE void find_slots(struct probes *o, const uint8_t *in, uint32_t n)
{
    for (uint32_t k = 0; k < n; k += 8) {
        __m256i of_4 = multiply(in + k, FACTOR_4);
        __m256i of_8 = _mm256_add_epi32(of_4, multiply(in + k + 4, FACTOR_8));
        __m256i of_10 = _mm256_add_epi32(of_8, multiply(in + k + 6, FACTOR_10));
        _mm256_store_si256((void *)(o->slot_4 + k), _mm256_srli_epi32(of_4, 32 - BITS_OF_4));
        _mm256_store_si256((void *)(o->slot_10 + k), _mm256_srli_epi32(of_10, 32 - BITS_OF_10));
    }
}

/* Returns 16 bits. Bit k is set if the k-th byte agrees. */
NEWER_AVX2 static inline uint16_t same16(__m128i here, const uint8_t *there)
{
    return (uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(here, _mm_loadu_si128((const void *)there)));
}

/* Finds the candidates of positions x + 2k and x + 2k + 1. Only the first of the two looks into the table of ten. */
NEWER_AVX2 static inline void find_pair(struct lanes *l, struct probes *o, const uint8_t *in, uint64_t x, uint64_t k)
{
    uint64_t slot = o->slot_4[2 * k], slot_10 = o->slot_10[2 * k], next = o->slot_4[2 * k + 1];
    uint64_t with = l->of_4[slot], with_10 = l->of_10[slot_10], at = x + 2 * k, with_next;
    __m128i here = _mm_loadu_si128((const void *)(in + at));
    l->of_4[slot] = l->of_10[slot_10] = (uint16_t)at;
    with_next = l->of_4[next];
    l->of_4[next] = l->of_10[o->slot_10[2 * k + 1]] = (uint16_t)(at + 1);
    uint32_t same_next = same16(_mm_loadu_si128((const void *)(in + at + 1)), in + with_next);
    o->with_4[k] = (uint32_t)(with | with_next << 16);
    o->with_10[k] = (uint32_t)with_10;
    o->same_4[k] = same16(here, in + with) | same_next << 16;
    o->same_10[k] = same16(here, in + with_10);
}

/* Keeps in each 16-bit number the bits below the lowest bit that is not set. */
NEWER_AVX2 static inline __m256i first_set(__m256i bits)
{
    return _mm256_andnot_si256(_mm256_sub_epi16(bits, _mm256_set1_epi16(-1)), bits);
}

/* Returns how many bits are set in each 16-bit number. */
NEWER_AVX2 static inline __m256i count_set(__m256i bits)
{
    const __m256i counts = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                                            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    __m256i n = _mm256_shuffle_epi8(counts, _mm256_and_si256(bits, low));
    n = _mm256_add_epi8(n, _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16(bits, 4), low)));
    return _mm256_maddubs_epi16(n, _mm256_set1_epi8(1));
}

/* Keeps the longer match of each position, unless it is beyond the window. */
NEWER_AVX2 static inline void keep_longer(struct lanes *l, const struct probes *o, uint32_t x, uint32_t i)
{
    const __m256i most = _mm256_set1_epi16((short)MAX_DIST);
    UNROLL(1)
    for (uint32_t k = 0; k < SPAN; k += 16) {
        __m256i same_4 = first_set(_mm256_load_si256((const void *)(o->same_4 + k / 2)));
        __m256i same = _mm256_max_epu16(same_4, first_set(_mm256_load_si256((const void *)(o->same_10 + k / 2))));
        __m256i with = _mm256_blendv_epi8(_mm256_load_si256((const void *)(o->with_10 + k / 2)),
                                          _mm256_load_si256((const void *)(o->with_4 + k / 2)),
                                          _mm256_cmpeq_epi16(same, same_4));
        __m256i at = _mm256_add_epi16(_mm256_set1_epi16((short)(x + k)),
                                      _mm256_load_si256((const void *)lane_numbers));
        __m256i dist = _mm256_sub_epi16(at, with), near = _mm256_cmpeq_epi16(_mm256_min_epu16(dist, most), dist);
        __m256i len = _mm256_and_si256(count_set(same), near);
        len = _mm256_permute4x64_epi64(_mm256_packus_epi16(len, len), 0x08);
        _mm_storeu_si128((void *)(l->len + i + k), _mm256_castsi256_si128(len));
        _mm256_storeu_si256((void *)(l->found + i + k), dist);
    }
}

NEWER_AVX2 static void probe_newer(struct lanes *l, const uint8_t *in, uint32_t x, uint32_t i)
{
    struct probes o;
    memcpy(l->bytes + 1 + i, in + x, SPAN);
    find_slots(&o, in + x, SPAN);
    UNROLL(1)
    for (uint32_t k = 0; k < SPAN / 2; k++)
        find_pair(l, &o, in, x, k);
    keep_longer(l, &o, x, i);
}

NEWER_AVX2 static void enter_newer(struct lanes *l, const uint8_t *in, uint32_t x, uint32_t end)
{
    struct probes o;
    for (uint32_t n; x < end; x += n) {
        n = min_u32(end - x, SPAN);
        find_slots(&o, in + x, n);
        for (uint32_t k = 0; k < n; k++)
            l->of_4[o.slot_4[k]] = l->of_10[o.slot_10[k]] = (uint16_t)(x + k);
    }
}
_Static_assert(7 + 6 + 16 <= MARGIN, "what find_slots() loads stays inside the input");

NEWER_AVX2 static inline __m256i found_again(const uint16_t *found)
{
    __m256i here = _mm256_loadu_si256((const void *)found);
    __m256i next = _mm256_cmpeq_epi16(here, _mm256_loadu_si256((const void *)(found + 1)));
    return _mm256_or_si256(next, _mm256_cmpeq_epi16(here, _mm256_loadu_si256((const void *)(found + 2))));
}

NEWER_AVX2 static uint64_t ends_newer(const uint8_t *len, const uint16_t *found)
{
    uint64_t bits = 0;
    for (uint32_t k = 0; k < 64; k += 32) {
        __m256i again = _mm256_packs_epi16(found_again(found + k), found_again(found + k + 16));
        __m256i seen = _mm256_loadu_si256((const void *)(len + k));
        seen = _mm256_cmpeq_epi8(seen, _mm256_set1_epi8(ALL_SEEN));
        again = _mm256_permute4x64_epi64(again, 0xd8);
        bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_andnot_si256(again, seen)) << k;
    }
    return bits;
}
#else
#define probe_newer(l, in, x, i) probe_older(l, in, x, i, SPAN)
#define enter_newer enter_older
#define ends_newer ends_older
#endif

/* Returns whether the match of a position is so long that the positions inside it are passed. The match must have been
 * found ALL_SEEN positions before, too, so that no other match is cut short. */
static inline bool is_long(const struct lanes *l, const uint8_t *in, uint32_t x, uint32_t i)
{
    uint32_t dist = l->found[i], ahead = LEAST_GAP + 2 - ALL_SEEN, with = (uint16_t)(x - dist);
    uint32_t far = agree16(in + x + ahead, in + with + ahead) == ALL_SEEN;
    return far & (l->found[i - ALL_SEEN] == dist) & (l->len[i - ALL_SEEN] == ALL_SEEN) & (l->len[i] == ALL_SEEN);
}

/* Passes the positions after x (place i) that are inside the match of x, up to the match's last position: they are put
 * into the tables, but no sequence begins or ends there. Positions before `known` are in the tables already. Returns
 * how many positions are passed. */
static uint32_t pass_inside(struct lanes *l, const uint8_t *in, uint32_t x, uint32_t i, uint32_t known, uint32_t end,
                            bool newer)
{
    uint32_t dist = l->found[i++], len = extend(in + x, in + x - dist, ALL_SEEN, end - x);
    if (len < LEAST_GAP + 2)
        return 0;
    uint32_t last = x + len - 1;
    (newer ? enter_newer : enter_older)(l, in, known, last + 1);
    l->len[i] = 0;
    l->found[i] = (uint16_t)l->n_gaps;
    l->bytes[1 + i] = in[last];
    l->gap[l->n_gaps++] = (struct gap){(uint16_t)i, (uint16_t)(x + 1), (uint16_t)(len - 2), (uint16_t)dist};
    return len - 2;
}

/* Looks for a match that is long at the middle of a probed span, else at its end. Passes the positions inside that
 * match; then *n is the number of the span's places, including the match's last position. Returns how many positions
 * are passed. */
static inline uint32_t pass_long(struct lanes *l, const uint8_t *in, uint32_t x, uint32_t i, uint32_t end, uint32_t *n,
                                 bool newer)
{
    if (x + SPAN + LEAST_GAP >= end)
        return 0;
    bool middle = is_long(l, in, x + SPAN / 2 - 1, i + SPAN / 2 - 1);
    if (!(middle | is_long(l, in, x + SPAN - 1, i + SPAN - 1)))
        return 0;
    uint32_t k = middle ? SPAN / 2 : SPAN, passed = pass_inside(l, in, x + k - 1, i + k - 1, x + SPAN, end, newer);
    if (passed)
        *n = k + 1;
    return passed;
}

/* Returns how many bytes at x agree with those dist before it: at least ALL_SEEN, which agree, and at most `most`. */
INLINE uint32_t extend_seen(const struct parse *p, uint32_t x, uint32_t dist, uint32_t most, agree64_fn *agree)
{
    uint32_t len = ALL_SEEN;
    most = max_u32(min_u32(p->n - x, most), ALL_SEEN);
    for (uint32_t same = WINDOW; len < most && same == WINDOW; len += same) {
        if (p->n - x - len < 64)
            return extend(p->in + x, p->in + x - dist, len, most);
        same = (uint32_t)__builtin_ctzll(~same_64(p, x + len, dist, agree));
    }
    return min_u32(len, most);
}

/* Compares further bytes where ALL_SEEN bytes agree, at the last position that has found the match. choose() carries
 * the length back to the other positions. */
INLINE void extend_found(struct lanes *l, const struct parse *p, uint32_t begin, uint32_t n, bool newer)
{
    uint32_t gap = 0, passed = 0;
    for (uint32_t i = 0; i < n; i += 64) {
        uint64_t ends = (newer ? ends_newer : ends_older)(l->len + i, l->found + i);
        for (ends &= below(min_u32(64, n - i)); ends; ends &= ends - 1) {
            uint32_t place = i + (uint32_t)__builtin_ctzll(ends), most = FOUND_MAX;
            for (; gap < l->n_gaps && l->gap[gap].place <= place; gap++)
                passed += l->gap[gap].n;
            if (gap < l->n_gaps)
                most = min_u32(most, l->gap[gap].place - 1u - place);
            uint32_t at = begin + place + passed, dist = l->found[place];
            l->len[place] = (uint8_t)extend_seen(p, at, dist, most, newer ? agree64_avx2 : agree64);
        }
    }
}

/* Finds the matches of a part. Returns how many places the part has. */
INLINE uint32_t probe(struct lanes *l, const struct parse *p, uint32_t begin, uint32_t end, bool newer)
{
    uint32_t i = 0;
    l->n_gaps = 0;
    l->bytes[0] = p->in[begin - 1];
    for (uint32_t x = begin; x < end;) {
        uint32_t n = min_u32(SPAN, end - x);
        if (newer && n == SPAN)
            probe_newer(l, p->in, x, i);
        else
            probe_older(l, p->in, x, i, n);
        x += pass_long(l, p->in, x, i, end, &n, newer);
        x += n;
        i += n;
    }
    l->found[i] = l->found[i + 1] = 0;
    extend_found(l, p, begin, i, newer);
    return i;
}

#endif
