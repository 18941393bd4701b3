/* SPDX-License-Identifier: MIT */
/* The default level, any bytes: finds the cheapest of all ways to write a part of a block.
 *
 *   probe     each position finds a position before it with the same four bytes; every other position also finds one
 *             with the same ten
 *   choose    goes from the last position to the first. Each position gets its least cost to the end, and the match
 *             or literal that gives it. A match that is found at x + 1 is known at x, too, one byte longer, if the
 *             byte at x agrees as well. So positions find what a search of many more positions would find
 *   emit      turns the chosen matches into sequences
 *   count     counts their symbols, which price the next part
 *
 * A part is cut into LANES lanes, and one vector holds the same step of all lanes. A step has no branch, and none of
 * its positions waits for another. Processors without AVX2 go through the lanes one after the other, with the same
 * numbers. codec/README.md has a picture. */
#include "codec/deflate_probe.h"

enum {
    ZERO = 8192,                  /* costs are counted from this far below the least of them */
    COST_MAX = 0xf000,
    GAP_COST = 4096,              /* added to the costs of positions after a gap: only the match across it goes there */
    GAP_LEN = 0x4000,             /* length of a match across a gap; no match that is found is as long */
    SAMPLES = 127,                /* one in this many bytes of the block is counted before its first part */
    PART_SEGMENTS = LANES_PART / SEGMENT,
};
_Static_assert(LANE_CHUNK >= ALL_SEEN && LANE_CHUNK == 32, "chunks are turned 32 steps at once");
_Static_assert(LANE_WARM % LANE_CHUNK == 0, "a lane is whole chunks");
_Static_assert(LANES_PART == PART_SEGMENTS * SEGMENT, "a part is whole segments");
_Static_assert((int)GAP_LEN > (int)FOUND_MAX && GAP_LEN + LANE_STEPS + LANE_WARM <= INT16_MAX,
               "lengths are compared with a sign");
_Static_assert((int)FOUND_MAX < (int)LANE_COSTS, "costs at the ends of matches are kept");
_Static_assert(GAP_COST > 16 * (2 * PRICE_MAX + PRICE * (5 + 13)), "any match across a gap costs less");
_Static_assert(PRICE_MAX * 16 * (ALL_SEEN + LANE_CHUNK) + 2 * ZERO + GAP_COST <= COST_MAX, "costs fit 16 bits");

/* ---- prices ---- */

/* Returns PRICE * log2(v). */
static uint32_t log2_of(uint32_t v) { return (PRICE * log2_256(v) + 128) >> 8; }

static uint32_t price_of(uint32_t count, uint32_t log2_all)
{
    uint32_t bits = log2_all - min_u32(log2_of(count), log2_all);
    return min_u32(max_u32(bits, PRICE), PRICE_MAX);
}

static uint32_t length_price(const struct lanes *l, uint32_t len, uint32_t log2_all)
{
    return price_of(l->lengths[len_symbol(len) - 257], log2_all) + PRICE * len_extra_bits(len);
}

static void make_prices(struct lanes *l)
{
    uint32_t all = 0, matches = 0;
    for (uint32_t i = 0; i < 256; i++)
        all += l->literals[i];
    for (uint32_t i = 0; i < 29; i++)
        all += l->lengths[i];
    for (uint32_t i = 0; i < 16; i++)
        matches += l->distances[i];
    all = log2_of(all);
    matches = log2_of(matches);
    for (uint32_t k = 0; k < 16; k++) {            /* the mean of 16 literals, by how often each comes */
        uint32_t n = 0, sum = 0;
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t count = l->literals[16 * k + i] + 1;
            n += count;
            sum += count * price_of(count, all);
        }
        l->price.literal[k] = (uint8_t)(sum / n);
    }
    for (uint32_t len = MIN_MATCH; len < ALL_SEEN; len++)
        l->price.length[len] = (uint16_t)(length_price(l, len, all) << 4 | (len - 3));
    l->price.length[ALL_SEEN] = ALL_SEEN - 3;
    for (uint32_t k = 1; k < 16; k++)
        l->price.longer[k] = (uint8_t)length_price(l, min_u32(16 * k + 8, 250), all);
    for (uint32_t i = 0; i < 16; i++)
        l->price.distance[i] = (uint8_t)(price_of(l->distances[i], matches) + PRICE * i);
}

/* Begins the counts, before anything was parsed: literals come as often as in a sample of the block, as many matches
 * are assumed, and all lengths and distances are equally frequent. These counts stay, since a length or distance that
 * is rare so far may still come. */
static void guess_counts(struct lanes *l, const uint8_t *in, uint32_t n)
{
    memset(l->literals, 0, sizeof l->literals);
    for (uint32_t i = 0; i < n; i += SAMPLES)
        l->literals[in[i]]++;
    for (uint32_t i = 0; i < 29; i++)
        l->lengths[i] = n / SAMPLES / 29 + 1;
    for (uint32_t i = 0; i < 16; i++)
        l->distances[i] = n / SAMPLES / 16 + 1;
}

/* Counts the symbols of the segments from `segment` on. */
static void count_segments(struct lanes *l, const struct deflate_parse *d, uint32_t segment)
{
    for (uint32_t g = segment; g < d->n_segments; g++)
        for (uint32_t i = 0; i < 256; i++)
            l->literals[i] += d->lit_freq[g][i];
    for (uint32_t i = d->mark[segment].seq; i < d->mark[d->n_segments].seq; i++) {
        uint32_t sym = d->seq[i].dist_sym;
        if (d->seq[i].len == 0)                    /* literals before the end of a segment */
            continue;
        l->lengths[d->seq[i].len_sym - 1]++;
        l->distances[sym < 2 ? sym : sym / 2]++;
    }
}

/* ---- choose ---- */

/* A part as choose() gets it. */
struct part {
    const uint8_t *in;            /* the block */
    uint32_t n;                   /* bytes of the block */
    uint32_t begin;               /* where the part begins in the block */
    uint32_t steps;               /* positions of a lane */
    uint16_t first[LANES];        /* the position after the first one that each lane looks at */
};

/* Sets *part. The places of a part are followed by the block's next bytes, then by zeros after the block's end. */
static void set_part(struct lanes *l, const struct parse *p, uint32_t begin, uint32_t end, uint32_t places,
                     struct part *part)
{
    uint32_t steps = (places + LANES - 1) / LANES, passed = 0;
    steps = (steps + LANE_CHUNK - 1) / LANE_CHUNK * LANE_CHUNK;
    if (steps % 256 == 0)         /* sixteen rows at such a distance would share their place in the cache */
        steps += LANE_CHUNK;
    uint32_t behind = LANES * steps + LANE_WARM + 16 - places, there = min_u32(behind, p->n - end);
    memcpy(l->bytes + 1 + places, p->in + end, there);
    memset(l->bytes + 1 + places + there, 0, behind - there);
    memset(l->len + places, 0, behind);
    memset(l->gaps, 0, sizeof *l->gaps * (steps + LANE_WARM));
    *part = (struct part){.in = p->in, .n = p->n, .begin = begin, .steps = steps};
    for (uint32_t k = 0, gap = 0; k < LANES; k++) {
        uint32_t first = (k + 1) * steps + LANE_WARM;
        for (; gap < l->n_gaps && l->gap[gap].place < first; gap++)
            passed += l->gap[gap].n;
        part->first[k] = (uint16_t)(begin + first + passed);
    }
    for (uint32_t gap = 0; gap < l->n_gaps; gap++) {
        uint32_t k = l->gap[gap].place / steps, i = l->gap[gap].place % steps;
        l->gaps[i] |= (uint16_t)(1u << k);
        if (k > 0 && i < LANE_WARM)
            l->gaps[steps + i] |= (uint16_t)(1u << (k - 1));
    }
}

/* The state of one lane at the last position that was looked at. Positions are 16 bits. Positions after the end of the
 * block may be too small, which does not matter. */
struct lane {
    uint16_t cost[LANE_CHUNK + ALL_SEEN + 1];      /* costs of a chunk's positions, and of those after it */
    uint16_t at;
    uint16_t run, len, dist;                       /* how many bytes equal the one before; the match carried back */
    uint16_t end, end_cost;                        /* where that match ends, if it is longer than ALL_SEEN */
    int32_t zero;
};

/* Goes from the last position inside a long match to its first. The costs are those after the last position. The match
 * carried back is kept if it agrees over all of the gap, too; otherwise the long match replaces it. */
static void pass_gap(const struct part *part, const struct gap *g, struct lane *s, uint16_t *cost)
{
    bool agrees = s->len && g->x >= s->dist && memcmp(part->in + g->x, part->in + g->x - s->dist, g->n + 1u) == 0;
    if (!agrees)
        s->dist = g->dist, s->len = 1;
    if (s->len <= ALL_SEEN) {
        s->end_cost = cost[s->len];
        s->end = (uint16_t)(s->at + s->len);
    }
    for (uint32_t k = 0; k < ALL_SEEN; k++)
        cost[k] = (uint16_t)(s->end_cost + GAP_COST);
    s->len = GAP_LEN;
    s->run = 0;
    s->at = (uint16_t)(s->at - g->n);
}

static uint32_t lane_same(const struct part *part, const struct lane *s, uint16_t at, uint8_t byte)
{
    uint32_t there = at > s->dist ? (uint32_t)(at - s->dist) : 0;
    return at >= s->dist && part->in[min_u32(there, part->n - 1)] == byte;
}

/* Counts the lane's costs from a new zero, ZERO below the least of them. */
static void lane_rebase(struct lanes *l, struct lane *s, uint32_t chunk, uint32_t k)
{
    uint16_t least = s->end_cost;
    for (uint32_t i = 0; i <= ALL_SEEN; i++)
        least = s->cost[i] < least ? s->cost[i] : least;
    int32_t down = least - ZERO;
    s->end_cost = (uint16_t)(s->end_cost - down);
    for (uint32_t i = ALL_SEEN + 1; i-- > 0;)
        s->cost[LANE_CHUNK + i] = (uint16_t)(s->cost[i] - down);
    l->zero[chunk][k] = s->zero += down;
}

/* Computes the costs of position i of lane k from those after it. */
static void lane_step(struct lanes *l, const struct part *part, struct lane *s, uint32_t k, uint32_t i)
{
    const uint8_t *byte = l->bytes + 1 + k * part->steps + i;
    uint16_t at = --s->at, *cost = s->cost + i % LANE_CHUNK;
    uint32_t len = l->len[k * part->steps + i], dist = l->found[k * part->steps + i];
    s->run = byte[0] == byte[-1] ? (uint16_t)(s->run + 1) : 0;
    bool found = len > max_u32(s->run, 3);
    if (!found)
        len = s->run, dist = 1;
    s->len = lane_same(part, s, at, *byte) ? (uint16_t)(s->len + 1) : 0;
    bool again = s->len >= len;
    if (s->len <= len)
        s->len = (uint16_t)len, s->dist = (uint16_t)dist;
    l->taken[i * LANES + k] = s->dist;
    if (!again || s->len <= ALL_SEEN)
        s->end_cost = UINT16_MAX;
    if (!again && found && len > ALL_SEEN && i + len < part->steps + LANE_WARM) {
        uint32_t to = i + len;
        int32_t v = l->cost[to % LANE_COSTS][k] + l->zero[to / LANE_CHUNK][k] - s->zero;
        s->end_cost = (uint16_t)(v < 0 ? 0 : v > COST_MAX ? COST_MAX : v);
        s->end = (uint16_t)(at + len);
    }
    if (cost[ALL_SEEN] <= s->end_cost) {
        s->end_cost = cost[ALL_SEEN];
        s->end = (uint16_t)(at + ALL_SEEN);
    }
    uint32_t best = UINT16_MAX;
    for (uint32_t n = MIN_MATCH; n < ALL_SEEN && n <= s->len; n++)
        best = min_u32(best, (uint32_t)cost[n] + l->price.length[n]);
    if (s->len >= ALL_SEEN) {
        uint32_t longer = min_u32((uint16_t)(s->end - at) >> 4, 15);
        best = min_u32(best, s->end_cost + 16u * l->price.longer[longer] + l->price.length[ALL_SEEN]);
    }
    best += 16u * l->price.distance[log2_floor(s->dist | 1u)];
    uint32_t literal = cost[1] + 16u * l->price.literal[*byte >> 4];
    if (i < part->steps)
        l->chosen[k * part->steps + i] = best < literal ? best & 15 : 0;
    *cost = (uint16_t)(min_u32(best, literal) & ~15u);
    l->cost[i % LANE_COSTS][k] = *cost;
    if (l->gaps[i] >> k & 1)
        pass_gap(part, &l->gap[l->found[k * part->steps + i]], s, cost);
}

static void choose_older(struct lanes *l, const struct part *part)
{
    for (uint32_t k = LANES; k-- > 0;) {
        struct lane s = {.at = part->first[k], .dist = 1, .end = (uint16_t)(part->first[k] + ALL_SEEN)};
        for (uint32_t i = part->steps + LANE_WARM; i-- > 0;) {
            if (i % LANE_CHUNK == LANE_CHUNK - 1)
                lane_rebase(l, &s, i / LANE_CHUNK, k);
            lane_step(l, part, &s, k, i);
        }
    }
}

#ifdef __x86_64__
/* These two functions move sixteen bytes to or from each of two places. gcc 9 has no _mm256_loadu2_m128i() and
 * _mm256_storeu2_m128i(). */
NEWER_AVX2 INLINE __m256i load_two(const uint8_t *low, const uint8_t *high)
{
    __m256i x = _mm256_castsi128_si256(_mm_loadu_si128((const void *)low));
    return _mm256_inserti128_si256(x, _mm_loadu_si128((const void *)high), 1);
}
NEWER_AVX2 INLINE void store_two(uint8_t *low, uint8_t *high, __m256i x)
{
    _mm_storeu_si128((void *)low, _mm256_castsi256_si128(x));
    _mm_storeu_si128((void *)high, _mm256_extracti128_si256(x, 1));
}

/* Transposes two squares at once: dst[k][i] = src[i][k]. Each has n rows of n elements, and a row is 16 bytes. row and
 * dst_row are the bytes from one row's beginning to the next; other and dst_other those from the first square to the
 * second. Each round interleaves the rows of both halves. */
NEWER_AVX2 INLINE void turn(const uint8_t *src, size_t row, size_t other, uint8_t *dst, size_t dst_row,
                            size_t dst_other, int n)
{
    __m256i a[16], b[16];
    UNROLL(16)
    for (int i = 0; i < n; i++) {
        const uint8_t *from = src + (size_t)i * row;
        a[i] = other == 16 ? _mm256_loadu_si256((const void *)from) : load_two(from, from + other);
    }
    UNROLL(4)
    for (int round = 1; round < n; round *= 2) {
        UNROLL(8)
        for (int i = 0; i < n / 2; i++) {
            __m256i x = a[i], y = a[i + n / 2];
            b[2 * i] = n == 16 ? _mm256_unpacklo_epi8(x, y) : _mm256_unpacklo_epi16(x, y);
            b[2 * i + 1] = n == 16 ? _mm256_unpackhi_epi8(x, y) : _mm256_unpackhi_epi16(x, y);
        }
        UNROLL(16)
        for (int i = 0; i < n; i++)
            a[i] = b[i];
    }
    UNROLL(16)
    for (int i = 0; i < n; i++) {
        uint8_t *to = dst + (size_t)i * dst_row;
        if (dst_other == 16)
            _mm256_storeu_si256((void *)to, a[i]);
        else
            store_two(to, to + dst_other, a[i]);
    }
}

/* A chunk of all lanes, ordered by step. */
struct chunk {
    _Alignas(32) uint16_t cost[(LANE_CHUNK + ALL_SEEN + 1) * LANES], found[LANE_CHUNK * LANES];
    _Alignas(32) uint8_t len[LANE_CHUNK * LANES], byte[(LANE_CHUNK + 1) * LANES], chosen[LANE_CHUNK * LANES];
};

/* The state of all lanes, as struct lane has it for one. */
struct all {
    __m256i at, run, len, dist, end, end_cost, before;     /* before: the last cost */
};

/* Numbers that a step needs, in each 16 bits or as tables of look_up(): prices, and constants, which a compiler would
 * make anew at each step. less[n] is -n. */
struct wide {
    __m256i literal, distance, longer, length[ALL_SEEN + 1], less[ALL_SEEN + 1];
    __m256i one, three, low, all_seen, even, last, index, log2;
};

NEWER_AVX2 static inline void turn_chunk(struct lanes *l, const struct part *part, struct chunk *c, uint32_t first)
{
    size_t steps = part->steps;
    turn(l->len + first, steps, 16, c->len, LANES, 16 * LANES, 16);
    turn(l->bytes + 1 + first, steps, 16, c->byte + LANES, LANES, 16 * LANES, 16);
    UNROLL(1)
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t step = k / 2 * 16, lane = k % 2 * 8;
        turn((const uint8_t *)(l->found + first + step + lane * steps), 2 * steps, 16,
             (uint8_t *)(c->found + LANES * step + lane), 2 * LANES, 8 * 2 * LANES, 8);
    }
    for (uint32_t k = 0; k < LANES; k++)
        c->byte[k] = l->bytes[first + k * steps];
}

NEWER_AVX2 static inline void rebase(struct lanes *l, struct chunk *c, struct all *s, int32_t *zero, uint32_t chunk)
{
    __m256i *cost = (__m256i *)c->cost, least = s->end_cost;
    for (int k = 0; k <= ALL_SEEN; k++)
        least = _mm256_min_epu16(least, cost[k]);
    uint16_t least_of[LANES];
    _mm256_storeu_si256((void *)least_of, least);
    for (int k = 0; k < LANES; k++)
        l->zero[chunk][k] = zero[k] += least_of[k] - ZERO;
    least = _mm256_sub_epi16(least, _mm256_set1_epi16(ZERO));
    s->end_cost = _mm256_sub_epi16(s->end_cost, least);
    for (int k = ALL_SEEN; k >= 0; k--)
        cost[LANE_CHUNK + k] = _mm256_sub_epi16(cost[k], least);
    s->before = cost[LANE_CHUNK];
}

/* Returns the bytes base[index[k]]. */
NEWER_AVX2 static inline __m128i gather(const uint8_t *base, const uint16_t *index)
{
    __m128i x = _mm_setzero_si128(), y = x;
#define LANE(k)                                                                                                        \
    x = _mm_insert_epi8(x, base[index[k]], k);                                                                         \
    y = _mm_insert_epi8(y, base[index[(k) + 8]], (k) + 8)
    LANE(0); LANE(1); LANE(2); LANE(3); LANE(4); LANE(5); LANE(6); LANE(7);
#undef LANE
    return _mm_or_si128(x, y);
}

/* Returns 16 table[v]; the table is 16 bytes long, and v < 16. */
NEWER_AVX2 static inline __m256i look_up(const struct wide *w, __m256i table, __m256i v)
{
    return _mm256_slli_epi16(_mm256_shuffle_epi8(table, _mm256_or_si256(v, w->index)), 4);
}

/* Returns 16 table[log2_floor(v)]. The exponents of float numbers are the logarithms: one vector for the even lanes,
 * one for the odd. */
NEWER_AVX2 static inline __m256i look_up_log2(const struct wide *w, __m256i table, __m256i v)
{
    __m256 even = _mm256_cvtepi32_ps(_mm256_and_si256(v, w->even));
    __m256 odd = _mm256_cvtepi32_ps(_mm256_srli_epi32(v, 16));
    __m256i low = _mm256_srli_epi32(_mm256_castps_si256(even), 23);
    __m256i high = _mm256_srli_epi32(_mm256_castps_si256(odd), 7);
    __m256i x = _mm256_add_epi16(_mm256_blend_epi16(low, high, 0xaa), w->log2);
    return _mm256_slli_epi16(_mm256_shuffle_epi8(table, x), 4);
}

/* Finds the costs at the ends of the matches that were found here. Bit 2k of m: lane k has such a match. */
NEWER_AVX2 static inline void find_ends(struct lanes *l, const struct part *part, const struct chunk *c, struct all *s,
                                        const int32_t *zero, uint32_t i, uint32_t m)
{
    for (; m; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctz(m) / 2, len = c->len[LANES * (i % LANE_CHUNK) + k], to = i + len;
        if (to >= part->steps + LANE_WARM)
            continue;
        int32_t v = l->cost[to % LANE_COSTS][k] + l->zero[to / LANE_CHUNK][k] - zero[k];
        v = v < 0 ? 0 : v > COST_MAX ? COST_MAX : v;
        __m256i lane = _mm256_cmpeq_epi16(_mm256_set1_epi16((short)k), _mm256_load_si256((const void *)lane_numbers));
        s->end_cost = _mm256_blendv_epi8(s->end_cost, _mm256_set1_epi16((short)v), lane);
        s->end = _mm256_blendv_epi8(s->end, _mm256_add_epi16(s->at, _mm256_set1_epi16((short)len)), lane);
    }
}

/* Takes the longest match of each lane: the one found here, a run, or the one carried back. Returns find_ends()'s m. */
NEWER_AVX2 static inline uint32_t carry(struct lanes *l, const struct part *part, const struct chunk *c, struct all *s,
                                        const struct wide *w, uint32_t i)
{
    const uint32_t k = i % LANE_CHUNK;
    const __m128i byte = _mm_load_si128((const void *)(c->byte + LANES * (k + 1)));
    const __m128i before = _mm_load_si128((const void *)(c->byte + LANES * k));
    __m256i len = _mm256_cvtepu8_epi16(_mm_load_si128((const void *)(c->len + LANES * k)));
    __m256i dist = _mm256_load_si256((const void *)(c->found + LANES * k));
    _Alignas(32) uint16_t there[LANES];
    s->at = _mm256_sub_epi16(s->at, w->one);
    s->run = _mm256_and_si256(_mm256_add_epi16(s->run, w->one), _mm256_cvtepi8_epi16(_mm_cmpeq_epi8(byte, before)));
    __m256i found = _mm256_cmpgt_epi16(len, _mm256_max_epi16(s->run, w->three));
    len = _mm256_blendv_epi8(s->run, len, found);
    dist = _mm256_blendv_epi8(w->one, dist, found);
    _mm256_store_si256((void *)there, _mm256_min_epu16(_mm256_subs_epu16(s->at, s->dist), w->last));
    __asm__("" : "+m"(there));                     /* numbers are read from memory, not one by one out of the vector */
    __m256i same = _mm256_cvtepi8_epi16(_mm_cmpeq_epi8(gather(part->in, there), byte));
    same = _mm256_and_si256(same, _mm256_cmpeq_epi16(_mm256_max_epu16(s->at, s->dist), s->at));
    s->len = _mm256_and_si256(_mm256_add_epi16(s->len, w->one), same);
    __m256i keep = _mm256_cmpgt_epi16(s->len, len), longest = _mm256_max_epi16(s->len, len);
    __m256i again = _mm256_cmpeq_epi16(longest, s->len), longer = _mm256_cmpgt_epi16(longest, w->all_seen);
    s->len = longest;
    s->dist = _mm256_blendv_epi8(dist, s->dist, keep);
    _mm256_storeu_si256((void *)(l->taken + LANES * i), s->dist);
    s->end_cost = _mm256_or_si256(s->end_cost, _mm256_xor_si256(_mm256_and_si256(longer, again), w->less[1]));
    return (uint32_t)_mm256_movemask_epi8(_mm256_andnot_si256(again, _mm256_and_si256(longer, found))) & 0x55555555;
}

/* Chooses the cheapest match or literal. */
NEWER_AVX2 static inline void choose_step(struct lanes *l, struct chunk *c, struct all *s, const struct wide *w,
                                          uint32_t i)
{
    const uint32_t k = i % LANE_CHUNK;
    const __m128i byte = _mm_load_si128((const void *)(c->byte + LANES * (k + 1)));
    __m256i *cost = (__m256i *)c->cost + k, less = _mm256_sub_epi16(w->less[0], s->len);
    s->end_cost = _mm256_min_epu16(cost[ALL_SEEN], s->end_cost);
    s->end = _mm256_blendv_epi8(s->end, _mm256_add_epi16(s->at, w->all_seen),
                                _mm256_cmpeq_epi16(s->end_cost, cost[ALL_SEEN]));
    __m256i longer = _mm256_min_epi16(_mm256_srli_epi16(_mm256_sub_epi16(s->end, s->at), 4), w->low);
    longer = _mm256_or_si256(look_up(w, w->longer, longer), w->length[ALL_SEEN]);
    __m256i best = _mm256_or_si256(_mm256_add_epi16(s->end_cost, longer), _mm256_cmpgt_epi16(less, w->less[ALL_SEEN]));
    UNROLL(12)
    for (int n = MIN_MATCH; n < ALL_SEEN; n++) {
        __m256i shorter = _mm256_cmpgt_epi16(less, w->less[n]);
        best = _mm256_min_epu16(best, _mm256_or_si256(_mm256_add_epi16(cost[n], w->length[n]), shorter));
    }
    best = _mm256_adds_epu16(best, look_up_log2(w, w->distance, s->dist));
    __m256i literal = look_up(w, w->literal, _mm256_srli_epi16(_mm256_cvtepu8_epi16(byte), 4));
    literal = _mm256_add_epi16(literal, s->before);
    __m256i least = _mm256_min_epu16(literal, best);
    __m256i chosen = _mm256_andnot_si256(_mm256_cmpeq_epi16(least, literal), _mm256_and_si256(best, w->low));
    s->before = _mm256_andnot_si256(w->low, least);
    *cost = s->before;
    _mm256_storeu_si256((void *)l->cost[i % LANE_COSTS], s->before);
    chosen = _mm256_permute4x64_epi64(_mm256_packus_epi16(chosen, chosen), 0x08);
    _mm_store_si128((void *)(c->chosen + LANES * k), _mm256_castsi256_si128(chosen));
}

/* Does pass_gap() for the lanes that have a gap here. */
NEWER_AVX2 static struct all pass_gaps(const struct lanes *l, const struct part *part, struct chunk *c, struct all s,
                                       uint32_t i)
{
    union {
        struct all v;
        uint16_t of[sizeof s / 2 / LANES][LANES];
    } u = {.v = s};
    uint16_t *step = c->cost + LANES * (i % LANE_CHUNK);
    for (uint32_t m = l->gaps[i]; m; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctz(m);
        struct lane one = {.at = u.of[0][k], .len = u.of[2][k], .dist = u.of[3][k], .end = u.of[4][k],
                           .end_cost = u.of[5][k]};
        for (uint32_t n = 0; n <= ALL_SEEN; n++)
            one.cost[n] = step[LANES * n + k];
        pass_gap(part, &l->gap[c->found[LANES * (i % LANE_CHUNK) + k]], &one, one.cost);
        for (uint32_t n = 0; n < ALL_SEEN; n++)
            step[LANES * n + k] = one.cost[n];
        u.of[0][k] = one.at, u.of[1][k] = one.run, u.of[2][k] = one.len, u.of[3][k] = one.dist;
        u.of[4][k] = one.end, u.of[5][k] = one.end_cost, u.of[6][k] = one.cost[0];
    }
    return u.v;
}

NEWER_AVX2 static inline void widen(struct wide *w, const struct lane_prices *p, const struct part *part)
{
    w->literal = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p->literal));
    w->distance = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p->distance));
    w->longer = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p->longer));
    for (int n = 0; n <= ALL_SEEN; n++) {
        w->length[n] = _mm256_set1_epi16((short)p->length[n]);
        w->less[n] = _mm256_set1_epi16((short)-n);
    }
    w->one = _mm256_set1_epi16(1);
    w->three = _mm256_set1_epi16(3);
    w->low = _mm256_set1_epi16(15);
    w->all_seen = _mm256_set1_epi16(ALL_SEEN);
    w->even = _mm256_set1_epi32(0xffff);
    w->last = _mm256_set1_epi16((short)(part->n - 1));
    w->index = _mm256_set1_epi16((short)0x8000);   /* the higher byte becomes 0 */
    w->log2 = _mm256_set1_epi16(0x8000 - 127);
    __asm__("" : "+m"(*w));
}

NEWER_AVX2 static void choose_newer(struct lanes *l, const struct part *part)
{
    struct chunk c = {.cost = {0}};
    struct wide w;
    int32_t zero[LANES] = {0};
    const __m256i nothing = _mm256_setzero_si256();
    __m256i at = _mm256_loadu_si256((const void *)part->first), end = _mm256_add_epi16(at, _mm256_set1_epi16(ALL_SEEN));
    struct all s = {at, nothing, nothing, _mm256_set1_epi16(1), end, nothing, nothing};
    widen(&w, &l->price, part);
    for (uint32_t i = part->steps + LANE_WARM; i > 0;) {
        uint32_t chunk = i / LANE_CHUNK - 1;
        turn_chunk(l, part, &c, chunk * LANE_CHUNK);
        rebase(l, &c, &s, zero, chunk);
        for (uint32_t to = i - LANE_CHUNK; i-- > to;) {
            uint32_t m = carry(l, part, &c, &s, &w, i);
            if (m)
                find_ends(l, part, &c, &s, zero, i, m);
            choose_step(l, &c, &s, &w, i);
            if (l->gaps[i])
                s = pass_gaps(l, part, &c, s, i);
        }
        i++;
        if (i < part->steps)
            turn(c.chosen, LANES, 16 * LANES, l->chosen + i, part->steps, 16, 16);
    }
}
#else
#define choose_newer choose_older
#endif

/* ---- emit ---- */

/* Puts the matches that are chosen from x to `stop`, a gap or the end of the part. Among these positions, place i is
 * position i + base. Returns where the last match ends, or `stop` if that is later. */
INLINE uint32_t emit_places(struct deflate_parse *d, struct parse *p, const struct lanes *l, const struct part *part,
                            uint32_t base, uint32_t x, uint32_t stop, agree64_fn *agree)
{
    static const uint8_t zeros[64] = {0};
    x = max_u32(p->anchor, x);
    uint32_t lane = (x - base) / part->steps, first = base + lane * part->steps;
    for (uint32_t from = x; from < stop; from = max_u32(x, from + 64)) {
        uint64_t taken = ~agree(l->chosen + (from - base), zeros);
        for (taken &= below(stop - from); taken; taken &= ~below(x - from)) {
            x = from + (uint32_t)__builtin_ctzll(taken);
            for (; x - first >= part->steps; first += part->steps)
                lane++;
            uint32_t dist = l->taken[(x - first) * LANES + lane], len = l->chosen[x - base] + 3u;
            if (len == ALL_SEEN)
                len = extend_seen(p, x, dist, MAX_MATCH, agree);
            put_match(d, p, x, len, dist);
            x += len;
        }
    }
    return max_u32(p->anchor, stop);
}

/* Puts the rest of a match that leads across a gap. */
INLINE void emit_gap(struct deflate_parse *d, struct parse *p, const struct gap *gap, uint32_t x)
{
    while (x < (uint32_t)gap->x + gap->n) {
        uint32_t len = extend(p->in + x, p->in + x - gap->dist, 0, min_u32(p->n - x, MAX_MATCH));
        if (len < MIN_MATCH)
            return;
        put_match(d, p, x, len, gap->dist);
        x += len;
    }
}

/* Calls emit_places() for each segment, and ends the segment at a multiple of SEGMENT up to `stop`. Literals end there,
 * too. */
INLINE uint32_t emit_segments(struct deflate_parse *d, struct parse *p, const struct lanes *l, const struct part *part,
                              uint32_t base, uint32_t x, uint32_t stop, agree64_fn *agree)
{
    for (uint32_t end = (x / SEGMENT + 1) * SEGMENT; end <= stop; end = (x / SEGMENT + 1) * SEGMENT) {
        x = emit_places(d, p, l, part, base, x, end, agree);
        if (end > p->anchor)
            put_rest(d, p, end);
        put_mark(d);
    }
    return emit_places(d, p, l, part, base, x, stop, agree);
}

INLINE void emit(struct deflate_parse *d, struct parse *p, struct lanes *l, const struct part *part, uint32_t end,
                 agree64_fn *agree)
{
    uint32_t base = part->begin, x = base;
    for (const struct gap *gap = l->gap; gap < l->gap + l->n_gaps; gap++) {
        l->chosen[gap->place] = 0;
        emit_gap(d, p, gap, emit_segments(d, p, l, part, base, x, gap->x, agree));
        base += gap->n;
        x = gap->x + gap->n;
    }
    emit_segments(d, p, l, part, base, x, end, agree);
}

/* ---- all ---- */

typedef void choose_fn(struct lanes *l, const struct part *part);

INLINE void parse_parts(struct deflate_parse *d, struct parse *p, bool newer, choose_fn *choose, agree64_fn *agree)
{
    struct lanes *l = &d->lanes;
    struct part part;
    memset(l->of_4, 0, sizeof l->of_4);
    memset(l->of_10, 0, sizeof l->of_10);
    guess_counts(l, p->in, p->n);
    for (uint32_t begin = 1, end; begin < p->last; begin = end) {
        uint32_t first = begin / SEGMENT, segments = (p->last + SEGMENT - 1) / SEGMENT - first;
        uint32_t parts = (segments + PART_SEGMENTS - 1) / PART_SEGMENTS, known = d->n_segments;
        end = min_u32(p->last, (first + (segments + parts - 1) / parts) * SEGMENT);
        make_prices(l);
        set_part(l, p, begin, end, probe(l, p, begin, end, newer), &part);
        choose(l, &part);
        emit(d, p, l, &part, end, agree);
        if (end < p->last)
            count_segments(l, d, known);
    }
}

static void parse_older(struct deflate_parse *d, struct parse *p) { parse_parts(d, p, false, choose_older, agree64); }
NEWER_AVX2 static void parse_newer(struct deflate_parse *d, struct parse *p)
{
    parse_parts(d, p, true, choose_newer, agree64_avx2);
}

void deflate_lanes(struct deflate_parse *d, struct parse *p, bool newer) { (newer ? parse_newer : parse_older)(d, p); }
