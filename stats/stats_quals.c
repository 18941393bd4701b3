/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "stats/stats_quals.h"

enum {
    FEW_MAX = UINT8_MAX,
    HOT_MAX = UINT16_MAX,
    ROUND = 64,                  /* rows are whole lines of the cache, but for the next rule */
};

/* For functions whose arguments are constants in some calls. */
#define ALWAYS __attribute__((always_inline))

void stats_quals_free(struct stats_quals *c)
{
    free(c->few[0]);
    free(c->few[1]);
    free(c->hot);
    free(c->totals);
    *c = (struct stats_quals){0};
}

/* ---- room ---- */

/* Returns true if the row of the quality may have counts. */
static bool may_count(const struct stats_quals *c, size_t quality)
{
    return (quality & ~(size_t)c->seen) == 0;
}

static bool is_zero(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Returns a copy of a table with longer rows. Rows without counts are not touched, so they take no memory. */
static void *widen(const struct stats_quals *c, const void *cells, size_t wider, size_t size)
{
    uint8_t *made = calloc(QUALS * wider, size);
    for (size_t i = 0; made && cells && i < QUALS; i++) {
        const uint8_t *row = (const uint8_t *)cells + i * c->stride * size;
        if (may_count(c, i) && !is_zero(row, c->stride * size))
            memcpy(made + i * wider * size, row, c->stride * size);
    }
    return made;
}

/* Returns false if out of memory. */
static bool widen_all(const struct stats_quals *c, struct stats_quals *to)
{
    for (int i = 0; i < 2; i++) {
        if (!(to->few[i] = calloc(to->stride / QUALS_BLOCK, sizeof *to->few[i])))
            return false;
        if (c->few[i])
            memcpy(to->few[i], c->few[i], c->stride / QUALS_BLOCK * sizeof *to->few[i]);
    }
    to->hot = widen(c, c->hot, to->stride, sizeof *to->hot);
    to->totals = c->totals ? widen(c, c->totals, to->stride, sizeof *to->totals) : NULL;
    return to->hot && (to->totals || !c->totals);
}

/* Makes room for n cycles. Returns -1 if out of memory. */
static int reserve(struct stats_quals *c, size_t n)
{
    if (n <= c->stride && c->stride > 0)
        return 0;
    size_t wider = n < 2 * c->stride ? 2 * c->stride : n;
    wider = (wider / ROUND + 1) * ROUND;
    if (wider % (2 * ROUND) == 0)
        wider += ROUND;          /* so that not all rows begin in the same set of the cache */
    struct stats_quals to = *c;
    to.stride = wider;
    to.few[0] = to.few[1] = NULL;
    to.hot = NULL;
    to.totals = NULL;
    if (!widen_all(c, &to)) {
        stats_quals_free(&to);
        return -1;
    }
    free(c->few[0]);
    free(c->few[1]);
    free(c->hot);
    free(c->totals);
    *c = to;
    return 0;
}

/* ---- to larger counters ---- */

/* Adds the counters of few qualities to the others. */
static void fold_few(struct stats_quals *c)
{
    size_t n = (c->longest + QUALS_BLOCK - 1) / QUALS_BLOCK;
    for (int back = 0; back < 2; back++) {
        for (size_t block = 0; block < n; block++)
            for (uint32_t k = 0; k < c->n_levels; k++) {
                uint16_t *cells = c->hot + c->level[k] * c->stride + block * QUALS_BLOCK;
                quals_block counts = c->few[back][block].each[k];
                for (size_t i = 0; i < QUALS_BLOCK; i++)
                    cells[i] += counts[back ? QUALS_BLOCK - 1 - i : i];
            }
        memset(c->few[back], 0, n * sizeof *c->few[back]);
    }
    c->n_few = c->longest = 0;
}

/* Adds the hot counters of `from` to the totals of `to`, whose rows are at least as long. */
static void fold_hot(struct stats_quals *to, struct stats_quals *from)
{
    fold_few(from);
    for (size_t i = 0; i < QUALS; i++) {
        uint16_t *hot = from->hot + i * from->stride;
        uint64_t *total = to->totals + i * to->stride;
        if (may_count(from, i) && !is_zero(hot, from->stride * sizeof *hot)) {
            for (size_t j = 0; j < from->stride; j++)
                total[j] += hot[j];
            memset(hot, 0, from->stride * sizeof *hot);
        }
    }
    from->n_hot = 0;
}

int stats_quals_close(struct stats_quals *c)
{
    if (!c->hot)
        return 0;
    if (!c->totals && !(c->totals = calloc(QUALS * c->stride, sizeof *c->totals)))
        return -1;
    fold_hot(c, c);
    return 0;
}

static void add_totals(struct stats_quals *c, const struct stats_quals *from)
{
    for (size_t i = 0; i < QUALS; i++) {
        const uint64_t *add = from->totals + i * from->stride;
        uint64_t *total = c->totals + i * c->stride;
        if (may_count(from, i) && !is_zero(add, from->stride * sizeof *add))
            for (size_t j = 0; j < from->stride; j++)
                total[j] += add[j];
    }
}

int stats_quals_join(struct stats_quals *c, struct stats_quals *from)
{
    if (!from->hot)
        return 0;
    if (reserve(c, from->stride) < 0 || stats_quals_close(c) < 0)
        return -1;
    c->seen |= from->seen;
    fold_hot(c, from);
    if (from->totals)
        add_totals(c, from);
    stats_quals_free(from);
    return 0;
}

size_t stats_quals_memory(size_t n)
{
    enum { QUALITIES = 94 };             /* '!' to '~' */
    size_t stride = (n / ROUND + 2) * ROUND;
    return QUALITIES * stride * (sizeof(uint16_t) + sizeof(uint64_t))
         + 2 * stride / QUALS_BLOCK * sizeof(struct quals_few);
}

/* ---- counting ---- */

/* Adds a quality to the few, if there is room. */
static void add_level(struct stats_quals *c, uint8_t quality)
{
    c->is_many = c->n_levels == QUALS_FEW;
    if (c->is_many)
        return;
    fold_few(c);                                 /* its counters were those of the first quality */
    for (uint32_t k = c->n_levels; k < QUALS_FEW; k++)
        memset(&c->levels.each[k], c->n_levels == 0 || k == c->n_levels ? quality : c->level[0], QUALS_BLOCK);
    c->is_level[quality] = true;
    c->level[c->n_levels++] = quality;
}

/* Counts the qualities that are not among the few. */
static void add_others(struct stats_quals *c, bool back, const uint8_t *qual, uint32_t n)
{
    bool new[QUALS] = {false};
    for (uint32_t i = 0; i < n; i++)
        if (!c->is_level[qual[i]]) {
            new[qual[i]] = true;
            c->seen |= qual[i];
            c->hot[qual[i] * c->stride + (back ? n - 1 - i : i)]++;
        }
    for (int quality = 0; quality < QUALS; quality++)
        if (new[quality])
            add_level(c, (uint8_t)quality);
}

/* Counts a read one quality at a time. */
ALWAYS static inline void add_each(struct stats_quals *c, bool back, const uint8_t *qual, uint32_t n)
{
    uint16_t *table = c->hot;
    size_t stride = c->stride;
    uint8_t seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        seen |= qual[i];
        table[qual[i] * stride + (back ? n - 1 - i : i)]++;
    }
    c->seen |= seen;
}

static inline quals_block load(const uint8_t *qual)
{
    quals_block block;
    memcpy(&block, qual, sizeof block);
    return block;
}

/* Counts one of the few qualities in a block. Returns 255 where the block has it. */
ALWAYS static inline quals_block add_level_of(struct quals_few *few, const struct quals_few *levels, int k,
                                              quals_block qual, quals_block inside)
{
    quals_block found = (quals_block)(qual == levels->each[k]) & inside;
    few->each[k] -= found;                       /* 255 is -1 */
    return found;
}

/* Counts the few qualities of a block: four, or all. inside: 255 where the block belongs to the read. Returns 255 where
 * a quality was counted. */
ALWAYS static inline quals_block add_block(struct quals_few *few, const struct quals_few *levels, bool all,
                                           quals_block qual, quals_block inside)
{
    quals_block any = {0};
    for (int k = 0; k < (all ? QUALS_FEW : QUALS_FEW / 2); k += 4)
        any |= add_level_of(few, levels, k, qual, inside) | add_level_of(few, levels, k + 1, qual, inside)
             | add_level_of(few, levels, k + 2, qual, inside) | add_level_of(few, levels, k + 3, qual, inside);
    return any;
}

/* Returns 255 in the first n bytes, or in the last n. */
static inline quals_block inside_of(uint32_t n, bool back)
{
    static const uint8_t bytes[3 * QUALS_BLOCK] = {
        [QUALS_BLOCK] = 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    };
    return load(bytes + (back ? n : 2 * QUALS_BLOCK - n));
}

/* Counts the few qualities of a read: four, or all. Returns false if the read has others. */
ALWAYS static inline bool add_few(struct stats_quals *c, bool back, bool all, const uint8_t *qual, uint32_t n)
{
    const struct quals_few levels = c->levels;
    struct quals_few *few = c->few[back];
    uint32_t n_full = n / QUALS_BLOCK, rest = n % QUALS_BLOCK;
    const quals_block whole = ~(quals_block){0};
    quals_block any = whole;
    for (uint32_t i = 0; i < n_full; i++) {
        const uint8_t *block = back ? qual + n - (i + 1) * QUALS_BLOCK : qual + i * QUALS_BLOCK;
        any &= add_block(&few[i], &levels, all, load(block), whole);
    }
    if (rest > 0) {
        uint8_t last[QUALS_BLOCK] = {0};
        memcpy(back ? last + QUALS_BLOCK - rest : last, back ? qual : qual + n - rest, rest);
        quals_block inside = inside_of(rest, back);
        any &= add_block(&few[n_full], &levels, all, load(last), inside) | ~inside;
    }
    uint64_t words[2];
    memcpy(words, &any, sizeof words);
    return (words[0] & words[1]) == UINT64_MAX;
}

/* Calls add_few() with the direction and `all` as constants, for each of which the compiler makes a loop of its own. */
static bool add_known(struct stats_quals *c, bool back, const uint8_t *qual, uint32_t n)
{
    if (c->n_levels > QUALS_FEW / 2)
        return back ? add_few(c, true, true, qual, n) : add_few(c, false, true, qual, n);
    return back ? add_few(c, true, false, qual, n) : add_few(c, false, false, qual, n);
}

int stats_quals_add(struct stats_quals *c, bool is_reverse, const uint8_t *qual, uint32_t n)
{
    if (reserve(c, n) < 0 || (c->n_hot == HOT_MAX && stats_quals_close(c) < 0))
        return -1;
    c->n_hot++;
    if (c->is_many) {
        if (is_reverse)
            add_each(c, true, qual, n);
        else
            add_each(c, false, qual, n);
        return 0;
    }
    if (c->n_few == FEW_MAX)
        fold_few(c);
    c->n_few++;
    if (c->longest < n)
        c->longest = n;
    if (c->n_levels == 0 || !add_known(c, is_reverse, qual, n))
        add_others(c, is_reverse, qual, n);
    return 0;
}

/* ---- what was counted ---- */

uint64_t stats_quals_count(const struct stats_quals *c, size_t cycle, int quality)
{
    return c->totals && cycle < c->stride ? c->totals[(size_t)quality * c->stride + cycle] : 0;
}

uint64_t stats_quals_sum(const struct stats_quals *c, int quality)
{
    uint64_t sum = 0;
    for (size_t cycle = 0; may_count(c, (size_t)quality) && cycle < c->stride; cycle++)
        sum += stats_quals_count(c, cycle, quality);
    return sum;
}
