/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/endian_io.h"
#include "stats/stats_cycles.h"

enum { HOT_MAX = UINT16_MAX };

void stats_cycles_free(struct stats_cycles *c)
{
    free(c->hot);
    free(c->totals);
    *c = (struct stats_cycles){0};
}

/* ---- where things lie ---- */

static size_t quality_table(size_t stride, int end)
{
    return (size_t)end * CYCLE_QUALS * stride;
}

/* Rows of pairs are half as long. */
static size_t pair_table(size_t stride, int end, int way)
{
    return CYCLE_ENDS * CYCLE_QUALS * stride + (size_t)(end * CYCLE_WAYS + way) * CYCLE_PAIRS * (stride / 2);
}

static size_t n_cells(size_t stride)
{
    return pair_table(stride, CYCLE_ENDS, 0);
}

static enum stats_base base_of(unsigned code)
{
    switch (code) {
    case 1: return STATS_A;
    case 2: return STATS_C;
    case 4: return STATS_G;
    case 8: return STATS_T;
    case 15: return STATS_N;
    default: return STATS_O;
    }
}

/* Pairs of A, C, G and T come first, so that they lie together. */
static unsigned pair_row(unsigned high, unsigned low)
{
    enum { PLAIN = STATS_T + 1 };
    if (high < PLAIN && low < PLAIN)
        return high * PLAIN + low;
    if (high < PLAIN)
        return PLAIN * PLAIN + high * (CYCLE_BASES - PLAIN) + low - PLAIN;
    return PLAIN * CYCLE_BASES + (high - PLAIN) * CYCLE_BASES + low;
}

static void set_rows(struct stats_cycles *c)
{
    for (unsigned byte = 0; byte < 256; byte++)
        c->pair_at[byte] = pair_row(base_of(byte >> 4), base_of(byte & 15)) * (uint32_t)(c->stride / 2);
}

/* ---- room ---- */

/* Returns true if the row may have counts. The rows of qualities come first. All rows of pairs of bases may have
 * counts. */
static bool may_count(const struct stats_cycles *c, size_t row)
{
    return row >= CYCLE_ENDS * CYCLE_QUALS || (row % CYCLE_QUALS & ~(size_t)c->seen[row / CYCLE_QUALS]) == 0;
}

static bool is_zero(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Returns a copy of the tables with longer rows. Rows without counts are not touched, so they take no memory. */
static void *widen(const void *cells, size_t stride, size_t wider, size_t size)
{
    uint8_t *made = calloc(n_cells(wider), size);
    if (!made || !cells)
        return made;
    const uint8_t *from = cells;
    size_t n_long = CYCLE_ENDS * CYCLE_QUALS, n_rows = n_long + CYCLE_ENDS * CYCLE_WAYS * CYCLE_PAIRS;
    uint8_t *to = made;
    for (size_t i = 0; i < n_rows; i++) {
        size_t halves = i < n_long ? 1 : 2, n = stride / halves * size;
        if (!is_zero(from, n))
            memcpy(to, from, n);
        from += n;
        to += wider / halves * size;
    }
    return made;
}

/* Makes room for n cycles and one more column, where the pair of a last base begins. Returns -1 if out of memory. */
static int reserve(struct stats_cycles *c, size_t n)
{
    if (n + 1 < c->stride)
        return 0;
    size_t wider = n + 1 < 2 * c->stride ? 2 * c->stride : n + 1;
    wider = (wider + 63) / 64 * 64;
    if (wider % 128 == 0)
        wider += 64;             /* so that not all rows begin in the same set of the cache */
    if (CYCLE_PAIRS * (uint64_t)wider > UINT32_MAX)
        return -1;
    uint16_t *hot = widen(c->hot, c->stride, wider, sizeof *hot);
    uint64_t *totals = hot && c->totals ? widen(c->totals, c->stride, wider, sizeof *totals) : NULL;
    if (!hot || (c->totals && !totals)) {
        free(hot);
        return -1;
    }
    free(c->hot);
    free(c->totals);
    c->hot = hot;
    c->totals = totals;
    c->stride = wider;
    set_rows(c);
    return 0;
}

/* Adds the hot counters of `from` to the totals of `to`, whose rows are at least as long. */
static void fold(struct stats_cycles *to, struct stats_cycles *from)
{
    uint16_t *hot = from->hot;
    uint64_t *total = to->totals;
    size_t n_long = CYCLE_ENDS * CYCLE_QUALS, n_rows = n_long + CYCLE_ENDS * CYCLE_WAYS * CYCLE_PAIRS;
    for (size_t i = 0; i < n_rows; i++) {
        size_t halves = i < n_long ? 1 : 2, n = from->stride / halves;
        if (may_count(from, i) && !is_zero(hot, n * sizeof *hot)) {
            for (size_t j = 0; j < n; j++)
                total[j] += hot[j];
            memset(hot, 0, n * sizeof *hot);
        }
        hot += n;
        total += to->stride / halves;
    }
    from->n_records = 0;
}

int stats_cycles_close(struct stats_cycles *c)
{
    if (!c->hot)
        return 0;
    if (!c->totals && !(c->totals = calloc(n_cells(c->stride), sizeof *c->totals)))
        return -1;
    fold(c, c);
    return 0;
}

static void add_totals(struct stats_cycles *c, const struct stats_cycles *from)
{
    const uint64_t *add = from->totals;
    uint64_t *total = c->totals;
    size_t n_long = CYCLE_ENDS * CYCLE_QUALS, n_rows = n_long + CYCLE_ENDS * CYCLE_WAYS * CYCLE_PAIRS;
    for (size_t i = 0; i < n_rows; i++) {
        size_t halves = i < n_long ? 1 : 2, n = from->stride / halves;
        if (may_count(from, i) && !is_zero(add, n * sizeof *add))
            for (size_t j = 0; j < n; j++)
                total[j] += add[j];
        add += n;
        total += c->stride / halves;
    }
}

int stats_cycles_join(struct stats_cycles *c, struct stats_cycles *from)
{
    if (!from->hot)
        return 0;
    if (reserve(c, from->stride - 2) < 0 || stats_cycles_close(c) < 0)
        return -1;
    for (int end = 0; end < CYCLE_ENDS; end++)
        c->seen[end] |= from->seen[end];
    fold(c, from);
    if (from->totals)
        add_totals(c, from);
    stats_cycles_free(from);
    return 0;
}

size_t stats_cycles_memory(size_t n)
{
    enum { QUALITIES = 94, PLAIN = 25 };         /* '!' to '~'; pairs of A, C, G, T, N */
    size_t stride = (n + 1 + 63) / 64 * 64 + 64;
    size_t rows = CYCLE_ENDS * QUALITIES * stride + (size_t)CYCLE_ENDS * CYCLE_WAYS * PLAIN * (stride / 2);
    return rows * (sizeof(uint16_t) + sizeof(uint64_t));
}

/* ---- counting ---- */

enum { RUN = 8 };                /* qualities that are looked at together */

static inline bool is_run(uint64_t eight)
{
    return eight == (eight & 255) * 0x0101010101010101;
}

/* Returns the place where element i of n counts. back: the last element belongs to the first cycle. */
static inline uint32_t place_of(uint32_t i, uint32_t n, bool back)
{
    return back ? n - 1 - i : i;
}

/* Returns the bitwise OR of the n qualities. */
static inline uint8_t count_qualities(uint16_t *table, size_t stride, const uint8_t *qual, uint32_t n, bool back)
{
    uint32_t i = 0;
    uint64_t seen = 0;
    for (; i + RUN <= n; i += RUN) {
        uint16_t *column = table + (back ? n - i - RUN : i);
        uint64_t eight = load_le64(qual + i);
        seen |= eight;
        if (is_run(eight)) {
            uint16_t *cells = column + qual[i] * stride;
            for (size_t j = 0; j < RUN; j++)
                cells[j]++;
        } else {
            for (uint32_t j = 0; j < RUN; j++)
                column[qual[i + j] * stride + place_of(j, RUN, back)]++;
        }
    }
    for (; i < n; i++) {
        seen |= qual[i];
        table[qual[i] * stride + place_of(i, n, back)]++;
    }
    seen |= seen >> 32;
    seen |= seen >> 16;
    return (uint8_t)(seen | seen >> 8);
}

static inline void count_pairs(uint16_t *table, const uint32_t *at, const uint8_t *seq, uint32_t n_bytes, bool back)
{
    for (uint32_t i = 0; i < n_bytes; i++)
        table[at[seq[i]] + place_of(i, n_bytes, back)]++;
}

int stats_cycles_add(struct stats_cycles *c, int end, bool is_reverse, const uint8_t *seq, const uint8_t *qual,
                     uint32_t n)
{
    if (reserve(c, n) < 0 || (c->n_records == HOT_MAX && stats_cycles_close(c) < 0))
        return -1;
    c->n_records++;
    uint32_t n_full = n / 2, odd = n & 1;
    uint16_t *qualities = c->hot + quality_table(c->stride, end);
    uint16_t *pairs = c->hot + pair_table(c->stride, end, is_reverse ? 1 + (int)odd : 0);
    size_t last_row = odd ? pair_row(base_of(seq[n_full] >> 4), STATS_BASES) * (c->stride / 2) : 0;
    if (is_reverse) {                            /* the direction is a constant in each call */
        c->seen[end] |= count_qualities(qualities, c->stride, qual, n, true);
        count_pairs(pairs + odd, c->pair_at, seq, n_full, true);
    } else {
        c->seen[end] |= count_qualities(qualities, c->stride, qual, n, false);
        count_pairs(pairs, c->pair_at, seq, n_full, false);
    }
    if (odd)
        pairs[last_row + (is_reverse ? 0 : n_full)]++;
    return 0;
}

/* C is 2 and G is 4: one of the two middle bits is set, and no other. */
static inline uint32_t gc_of(uint64_t codes)
{
    uint64_t gc = (codes >> 1 ^ codes >> 2) & ~codes & ~(codes >> 3) & 0x1111111111111111;
    gc = (gc + (gc >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (uint32_t)(gc * 0x0101010101010101 >> 56);
}

uint32_t stats_cycles_gc(const uint8_t *seq, uint32_t n)
{
    uint32_t gc = 0, i = 0, n_full = n / 2;
    for (; i + 8 <= n_full; i += 8)
        gc += gc_of(load_le64(seq + i));
    uint64_t rest = 0;
    for (int shift = 0; i < n_full; i++, shift += 8)
        rest |= (uint64_t)seq[i] << shift;
    gc += gc_of(rest);
    return n & 1 ? gc + gc_of(seq[n_full] & 0xf0) : gc;
}

/* ---- what was counted ---- */

uint64_t stats_cycles_quality(const struct stats_cycles *c, int end, size_t cycle, int quality)
{
    return c->totals && cycle < c->stride
         ? c->totals[quality_table(c->stride, end) + (size_t)quality * c->stride + cycle] : 0;
}

uint64_t stats_cycles_quality_sum(const struct stats_cycles *c, int end, int quality)
{
    uint64_t sum = 0;
    for (size_t cycle = 0; cycle < c->stride; cycle++)
        sum += stats_cycles_quality(c, end, cycle, quality);
    return sum;
}

/* Adds the bases in the high (or low) half of all pairs that have this number. */
static void add_half(const struct stats_cycles *c, int end, int way, size_t number, bool high,
                     uint64_t bases[STATS_BASES])
{
    const uint64_t *table = c->totals + pair_table(c->stride, end, way) + number;
    for (unsigned base = 0; base < STATS_BASES; base++)
        for (unsigned other = 0; other < CYCLE_BASES; other++)
            bases[base] += table[(high ? pair_row(base, other) : pair_row(other, base)) * (c->stride / 2)];
}

void stats_cycles_bases(const struct stats_cycles *c, int end, size_t cycle, uint64_t seq[STATS_BASES],
                        uint64_t read[STATS_BASES])
{
    uint64_t forward[STATS_BASES] = {0}, back[STATS_BASES] = {0};
    if (!c->totals || cycle + 1 >= c->stride)
        return;
    add_half(c, end, 0, cycle / 2, cycle % 2 == 0, forward);
    add_half(c, end, 1, cycle / 2, cycle % 2 == 1, back);
    add_half(c, end, 2, (cycle + 1) / 2, cycle % 2 == 0, back);
    for (int i = 0; i < STATS_BASES; i++)
        seq[i] += forward[i] + back[i];
    for (int i = 0; i <= STATS_T; i++)
        read[i] += forward[i] + back[STATS_T - i];
}
