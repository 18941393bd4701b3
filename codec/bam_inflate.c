/* SPDX-License-Identifier: MIT */
/* A processor cannot predict whether a literal or a match comes next, and each wrong guess costs as much as some ten
 * symbols. So few branches depend on the data: one look-up gives up to two literals, or a literal and a length. The
 * entry of the next symbol is looked up before a match is copied. So a wrong guess is found while bytes are copied.
 *
 * An entry of a table:
 *
 *   31 .. 30 | 29 ............ 14 | 13 | 12       | 11 .. 8     | 7   | 6    | 5 .. 0
 *   literals | literals           | -  | literals | code's bits | bad | rare | all bits
 *   (count)  | base lit (length)  |    | only     |             |     |      | to take
 *            | distance - 1       |
 *
 * An entry that is neither rare nor of literals only is a token: a length or a distance. "All bits" are those of the
 * code and the extra bits after it, whose value is added to the base. An entry may stand for two literals, or for a
 * literal and a length; then the bits of both codes count as the code's. */
#include <stdlib.h>
#include "codec/bam_inflate.h"
#include "base/endian_io.h"
#include "codec/huffman.h"
#include "codec/newer.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
    /* RFC 1951 sections 3.2.5 and 3.2.6 */
    N_LITLEN = HUFFMAN_MAX_SYMBOLS, N_DIST = 32,
    END_OF_BLOCK = 256,
    FIRST_LEN = 257,
    MIN_MATCH = 3,
    /* RFC 1951 section 3.2.7: the symbol "repeat previous", and how far a repeat may run past both codes' lengths */
    REPEAT = 16,
    MAX_REPEAT = 138,

    /* Bits of the input that choose an entry; of literals and lengths, see litlen_bits(). With BITS_LEAST all tables
     * together stay in the first-level cache. */
    BITS_LEAST = 11, BITS = 12, DIST_BITS = 9,
    SIZE = 1 << BITS, DIST_SIZE = 1 << DIST_BITS,
    SUB_BITS = HUFFMAN_MAX_BITS - BITS_LEAST, DIST_SUB_BITS = HUFFMAN_MAX_BITS - DIST_BITS,
    /* The number of sub-tables. Each has two codes or more, except the first, which is for words that do not exist. */
    N_SUBS = 1 + N_LITLEN / 2, N_DIST_SUBS = 1 + N_DIST / 2,
    PRE_BITS = 7, PRE_TOTAL = PRE_BITS + 7,      /* bits of a symbol; of it and its repeat count */

    TOTAL = 63,
    COUNT_SHIFT = 30,
    CODE_SHIFT = 8, CODE_MASK = 15,
    LITERALS = 1 << 12,
    LITERAL = 1 << COUNT_SHIFT | LITERALS,
    /* A symbol that must not occur, the end of a block, or, if it takes no bits, a code of more bits than the table. */
    RARE = 1 << 6,
    BAD = 1 << 7,                /* a symbol that must not occur; set together with RARE */
    FIRST_SHIFT = 14, SECOND_SHIFT = 22,
    /* A code's length times this puts the length into both fields, "code's bits" and "all bits". */
    ONE_BIT = 1 | 1 << CODE_SHIFT,

    /* A refill counts FILLED bits or more, and all 64 bits of the buffer are right. Without another one, the loop takes
     * an entry of literals, a length and a distance, all without sub-tables, and looks up the entry after them. */
    FILLED = 56,
    MAX_LEN_EXTRA = 5, MAX_DIST_EXTRA = 13,
    WORD = 8,
    /* The loop ends this many bytes before the end of the input: it refills at most five times before it looks. */
    IN_MARGIN = 5 * WORD,
    /* Bytes that are copied for a match of any length. */
    WIDE_MATCH = 64,
    /* The loop ends this many bytes before the end of the output: it puts a few literals and copies a match. */
    OUT_MARGIN = WORD + HUFFMAN_MAX_LEN + WIDE_MATCH,
};
_Static_assert(BITS + (BITS + MAX_LEN_EXTRA) + (DIST_BITS + MAX_DIST_EXTRA) + BITS <= 64, "up to the next look-up");
_Static_assert((HUFFMAN_MAX_BITS + MAX_LEN_EXTRA) + (DIST_BITS + MAX_DIST_EXTRA) + BITS <= 64, "after a sub-table");
_Static_assert(2 * BITS + HUFFMAN_MAX_BITS <= FILLED, "literals");
_Static_assert(BITS + (BITS + MAX_LEN_EXTRA) + (DIST_BITS + MAX_DIST_EXTRA) <= FILLED, "until the next refill");

/* The place that decoding has reached. It stays in registers until something unusual comes. */
struct cursor {
    uint64_t bits;
    uint64_t left;               /* the number of valid bits; in the loop only its lowest 6 bits have a meaning */
    const uint8_t *next;         /* the next bytes to load */
};

struct output {
    uint8_t *start, *at, *end;
};

struct bam_inflate {
    uint32_t litlens[SIZE], dists[DIST_SIZE];
    uint32_t part[SIZE / 2];     /* see fill_pairs() */
    uint32_t litlen_subs[N_SUBS << SUB_BITS], dist_subs[N_DIST_SUBS << DIST_SUB_BITS];
    uint32_t litlen_entry[N_LITLEN], dist_entry[N_DIST];         /* without the code's length */
    struct huffman_words litlen;
    uint32_t bits;               /* bits that choose an entry of litlens */
    struct cursor at;
    struct output out;
    const uint8_t *in_end;
    bool final_block, newer;
};

enum result { GO_ON, BLOCK_DONE, DAMAGED };

/* ---- bits ---- */

/* Refills the bit buffer to 56 bits or more. 8 bytes must be there to load. */
INLINE void refill(struct cursor *c)
{
    c->bits |= load_le64(c->next) << (c->left & 63);
    c->next += (~c->left >> 3) & 7;
    c->left |= FILLED;
}

/* Refills at the end of the input: loads the bytes that are left. */
INLINE void refill_careful(struct cursor *c, const uint8_t *end)
{
    c->left &= 63;
    if (end - c->next >= WORD) {
        refill(c);
    } else {
        for (; c->left < FILLED && c->next < end; c->left += 8)
            c->bits |= (uint64_t)*c->next++ << c->left;
    }
}

/* Returns the next n < 32 bits. */
INLINE uint32_t next_bits(const struct cursor *c, uint32_t n)
{
    return (uint32_t)c->bits & ((1u << n) - 1);
}

INLINE void drop_bits(struct cursor *c, uint64_t n)
{
    c->bits >>= n;
    c->left -= n;
}

/* Refills the bit buffer and moves the next n < 32 bits to *v. Returns -1 if the input has fewer. */
static int take(struct bam_inflate *d, uint32_t n, uint32_t *v)
{
    refill_careful(&d->at, d->in_end);
    if (d->at.left < n)
        return -1;
    *v = next_bits(&d->at, n);
    drop_bits(&d->at, n);
    return 0;
}

/* ---- codes ---- */

/* Fills the tables for codes longer than `bits`. The entry in the main table names a sub-table, which the other bits of
 * the longest code choose from. */
static void fill_subs(const struct huffman_words *c, const uint32_t *entries, uint32_t bits, uint32_t *table,
                      uint32_t *sub)
{
    uint32_t n = 0, size = 1u << bits, last = size, sub_size = 1u << (HUFFMAN_MAX_BITS - bits);
    for (uint32_t i = 0; i < sub_size; i++)
        sub[i] = RARE | BAD | ONE_BIT;
    for (uint32_t len = bits + 1; len <= HUFFMAN_MAX_BITS; len++)
        for (uint32_t k = c->first[len]; k < c->first[len + 1]; k++) {
            if ((c->word[k] & (size - 1)) != last) {
                last = c->word[k] & (size - 1);
                table[last] = RARE | ++n << FIRST_SHIFT;
            }
            uint32_t e = entries[c->sorted[k]] + len * ONE_BIT;
            for (uint32_t i = c->word[k] >> bits; i < sub_size; i += 1u << (len - bits))
                sub[n * sub_size + i] = e;
        }
}

/* Copies the first n entries to the n places after them. Up to three more entries are written; where n is 1 or 2, they
 * overlap the entries read. */
INLINE void double_table(uint32_t *table, uint32_t n)
{
    uint32_t four[4];
    for (uint32_t i = 0; i < n; i += 4) {
        memcpy(four, table + i, sizeof four);
        memcpy(table + n + i, four, sizeof four);
    }
}

/* Fills a table with one symbol per entry. The table of all words of len bits is the table for len - 1
 * twice, with the codes of len bits put into it. */
static void fill_table(const struct huffman_words *c, const uint32_t *entries, uint32_t bits, uint32_t *table,
                       uint32_t *sub)
{
    table[0] = RARE;
    for (uint32_t len = 1; len <= bits; len++) {
        double_table(table, 1u << (len - 1));
        for (uint32_t k = c->first[len]; k < c->first[len + 1]; k++)
            table[c->word[k]] = entries[c->sorted[k]] + len * ONE_BIT;
    }
    if (sub)
        fill_subs(c, entries, bits, table, sub);
}

/* Returns the number to add to the entry of a literal so that it also stands for entry e; 0 if e cannot be second. */
INLINE uint32_t second_part(uint32_t e)
{
    uint32_t literal = e & (uint32_t)UINT8_MAX << FIRST_SHIFT;
    if (e & RARE)
        return 0;
    return e - LITERALS + (e & LITERALS ? (literal << (SECOND_SHIFT - FIRST_SHIFT)) - literal : 0);
}

/* Adds a second symbol to the entries of literals after which one fits. The second symbols come from a table that grows
 * as in fill_table() while the literals get shorter. */
static void fill_pairs(struct bam_inflate *d)
{
    const struct huffman_words *c = &d->litlen;
    uint32_t *part = d->part;
    part[0] = 0;
    for (uint32_t room = 1, len = d->bits - 1; len > 0; room++, len--) {
        double_table(part, 1u << (room - 1));
        for (uint32_t k = c->first[room]; k < c->first[room + 1]; k++)
            part[c->word[k]] = second_part(d->litlen_entry[c->sorted[k]] + room * ONE_BIT);
        for (uint32_t k = c->first[len]; k < c->first[len + 1]; k++) {
            uint32_t e = d->litlen_entry[c->sorted[k]] + len * ONE_BIT, *to = d->litlens + c->word[k];
            for (uint32_t i = 0; e & LITERALS && i < 1u << room; i += 2, to += 2 << len) {
                to[0] = e + part[i];
                to[1 << len] = e + part[i + 1];
            }
        }
    }
}

/* Returns how many bits choose an entry. The larger table takes longer to make and crowds the cache. It pays where two
 * symbols often take exactly BITS bits: with a probability of 0.16, by the lengths of their codes. On 16 files it made
 * inflating up to 5 % faster where that is exceeded, and up to 8 % slower elsewhere. */
static uint32_t litlen_bits(const struct huffman_words *c)
{
    enum { OFTEN = 16 * SIZE / 100 };
    uint32_t pairs = 0;
    for (uint32_t len = 1; len < BITS; len++)
        pairs += (uint32_t)(c->first[len + 1] - c->first[len])
               * (uint32_t)(c->first[BITS - len + 1] - c->first[BITS - len]);
    return pairs > OFTEN ? BITS : BITS_LEAST;
}

static int set_codes(struct bam_inflate *d, const uint8_t *litlen, uint32_t n_litlen,
                     const uint8_t *dist, uint32_t n_dist)
{
    struct huffman_words dists;
    if (huffman_words(&d->litlen, litlen, n_litlen, true) < 0 || huffman_words(&dists, dist, n_dist, true) < 0)
        return -1;
    d->bits = litlen_bits(&d->litlen);
    fill_table(&d->litlen, d->litlen_entry, d->bits, d->litlens, d->litlen_subs);
    fill_table(&dists, d->dist_entry, DIST_BITS, d->dists, d->dist_subs);
    fill_pairs(d);
    return 0;
}

/* RFC 1951 section 3.2.6 */
static int fixed_codes(struct bam_inflate *d)
{
    uint8_t litlen[N_LITLEN], dist[N_DIST];
    for (uint32_t i = 0; i < N_LITLEN; i++)
        litlen[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(dist, 5, N_DIST);
    return set_codes(d, litlen, N_LITLEN, dist, N_DIST);
}

/* Reads the code for code lengths and fills its table. */
static int read_precode(struct bam_inflate *d, uint32_t n, uint32_t *table)
{
    uint8_t lens[HUFFMAN_N_PRECODE] = {0};
    struct huffman_words pre;
    uint32_t len, entries[HUFFMAN_N_PRECODE];
    for (uint32_t i = 0; i < HUFFMAN_N_PRECODE; i++)
        entries[i] = i << FIRST_SHIFT | huffman_precode_extra[i];
    for (uint32_t i = 0; i < n; i++) {
        if (take(d, 3, &len) < 0)
            return -1;
        lens[huffman_precode_order[i]] = (uint8_t)len;
    }
    if (huffman_words(&pre, lens, HUFFMAN_N_PRECODE, false) < 0)
        return -1;
    fill_table(&pre, entries, PRE_BITS, table, NULL);
    return 0;
}

/* Puts the next lengths at lens[*at]: one length, or a repeat as entry e and its extra bits `extra` state. Writes up to
 * MAX_REPEAT lengths. Returns -1 if there is no length to repeat. */
INLINE int put_lens(uint8_t *lens, uint32_t *at, uint32_t e, uint32_t extra)
{
    static const uint8_t repeat_base[HUFFMAN_N_PRECODE - REPEAT] = {3, 3, 11};
    uint32_t sym = e >> FIRST_SHIFT, n = 1;
    if (sym < REPEAT) {
        lens[*at] = (uint8_t)sym;
    } else {
        if (sym == REPEAT && *at == 0)
            return -1;
        n = repeat_base[sym - REPEAT] + extra;
        memset(lens + *at, sym == REPEAT ? lens[*at - 1] : 0, MAX_REPEAT);
    }
    *at += n;
    return 0;
}

/* Reads n code lengths to lens[n + MAX_REPEAT]. */
static int read_lens(struct bam_inflate *d, const uint32_t *table, uint32_t n, uint8_t *lens)
{
    struct cursor c = d->at;
    uint32_t at = 0;
    while (at < n) {
        refill_careful(&c, d->in_end);
        for (int i = 0; i < FILLED / PRE_TOTAL && at < n; i++) {
            uint32_t e = table[next_bits(&c, PRE_BITS)], total = e & TOTAL;
            if (total > c.left || put_lens(lens, &at, e, next_bits(&c, total) >> ((e >> CODE_SHIFT) & CODE_MASK)) < 0)
                return -1;
            drop_bits(&c, total);
        }
    }
    d->at = c;
    return at == n ? 0 : -1;
}

/* RFC 1951 section 3.2.7 */
static int dynamic_codes(struct bam_inflate *d)
{
    uint32_t n_litlen, n_dist, n_pre, table[1 << PRE_BITS];
    uint8_t lens[HUFFMAN_N_LITLEN + HUFFMAN_N_DIST + MAX_REPEAT] = {0};
    if (take(d, 5, &n_litlen) < 0 || take(d, 5, &n_dist) < 0 || take(d, 4, &n_pre) < 0)
        return -1;
    n_litlen += FIRST_LEN;
    n_dist += 1;
    if (n_litlen > HUFFMAN_N_LITLEN || n_dist > HUFFMAN_N_DIST || read_precode(d, n_pre + 4, table) < 0
        || read_lens(d, table, n_litlen + n_dist, lens) < 0)
        return -1;
    return set_codes(d, lens, n_litlen, lens + n_litlen, n_dist);
}

/* ---- copy ---- */

INLINE void copy_16(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from, 16);
}

INLINE uint32_t extra_of(uint64_t bits, uint64_t e)
{
    uint32_t taken = (uint32_t)bits & ((1u << (uint8_t)e) - 1);
    return taken >> ((e >> CODE_SHIFT) & 31);
}

INLINE size_t len_of(uint64_t bits, uint64_t e)
{
    return MIN_MATCH + ((uint32_t)e >> SECOND_SHIFT & UINT8_MAX) + extra_of(bits, e);
}

INLINE size_t dist_of(uint64_t bits, uint64_t e)
{
    return 1 + ((uint32_t)e >> FIRST_SHIFT) + extra_of(bits, e);
}

INLINE void copy_bytes(uint8_t *to, size_t dist, size_t len)
{
    for (const uint8_t *from = to - dist; len > 0; len--)
        *to++ = *from++;
}

/* Copies a match with a distance below 16. If the distance is below eight, a product gives eight bytes: the first
 * `dist` bytes times the sum of 2^(8 * dist * i). Each next store begins where a repeat begins. */
INLINE void copy_near(uint8_t *to, size_t dist, size_t len)
{
    static const uint64_t repeats[WORD] = {0, 0x0101010101010101, 0x0001000100010001, 0x0001000001000001,
                                           0x0000000100000001, 0x0000010000000001, 0x0001000000000001,
                                           0x0100000000000001};
    static const uint8_t steps[WORD] = {0, 8, 8, 6, 8, 5, 6, 7};
    const uint8_t *from = to - dist;
    if (dist >= WORD) {
        for (size_t i = 0; i < len; i += WORD)
            store_le64(to + i, load_le64(from + i));
        return;
    }
    uint64_t bytes = (load_le64(from) & (((uint64_t)1 << 8 * dist) - 1)) * repeats[dist];
    size_t step = steps[dist], i = 0;
    do {
        UNROLL(4)
        for (int k = 0; k < 4; k++, i += step)
            store_le64(to + i, bytes);
    } while (UNLIKELY(i < len));
}

/* Copies a match. May write up to WIDE_MATCH bytes more than len. */
INLINE void copy_match(uint8_t *to, size_t dist, size_t len)
{
    const uint8_t *from = to - dist;
    if (UNLIKELY(dist < 16)) {
        copy_near(to, dist, len);
        return;
    }
    size_t i = 0;
    do {
        UNROLL(4)
        for (size_t end = i + WIDE_MATCH; i < end; i += 16)
            copy_16(to + i, from + i);
    } while (UNLIKELY(i < len));
}

/* ---- decode ---- */

/* Returns the next entry of a table of 2^table_bits entries, in 64 bits as the numbers that it is used with, so that no
 * instruction extends it. */
INLINE uint64_t litlen_at(const struct bam_inflate *d, uint32_t table_bits, uint64_t bits)
{
    return d->litlens[bits & ((1u << table_bits) - 1)];
}

/* Returns the entry that a rare one stands for. */
INLINE uint64_t litlen_of_rare(const struct bam_inflate *d, uint64_t e, uint64_t bits)
{
    uint32_t sub_bits = HUFFMAN_MAX_BITS - d->bits;
    return e & TOTAL ? e : d->litlen_subs[(e >> FIRST_SHIFT << sub_bits) + (bits >> d->bits & ((1u << sub_bits) - 1))];
}

INLINE uint64_t dist_at(const struct bam_inflate *d, uint64_t bits)
{
    return d->dists[bits & (DIST_SIZE - 1)];
}

INLINE uint64_t dist_of_rare(const struct bam_inflate *d, uint64_t e, uint64_t bits)
{
    enum { MASK = (1 << DIST_SUB_BITS) - 1 };
    return e & TOTAL ? e : d->dist_subs[(e >> FIRST_SHIFT << DIST_SUB_BITS) + (bits >> DIST_BITS & MASK)];
}

INLINE bool is_literal(uint64_t e)
{
    return e & LITERALS;
}

/* Takes the bits of an entry, where the input does not end. */
INLINE void take_entry(struct cursor *c, uint64_t e)
{
    c->bits >>= e & TOTAL;
    c->left -= e;
}

/* Puts the literals of an entry, which are 0 to 2. Writes two bytes. */
INLINE void put_literals(uint8_t **at, uint64_t e)
{
    store_le16(*at, (uint16_t)(e >> FIRST_SHIFT));
    *at += e >> COUNT_SHIFT;
}

/* Puts the literals of an entry and returns the next entry. */
INLINE uint64_t after_literals(const struct bam_inflate *d, uint32_t table_bits, struct cursor *c, uint8_t **at,
                               uint64_t e)
{
    put_literals(at, e);
    take_entry(c, e);
    return litlen_at(d, table_bits, c->bits);
}

/* Decodes until the input or the output may end, or the block ends. table_bits, which is d->bits, is a constant: a
 * variable costs 4 %. */
INLINE enum result decode_most(struct bam_inflate *d, uint32_t table_bits)
{
    struct cursor c = d->at;
    uint8_t *at = d->out.at, *const start = d->out.start;
    if (d->in_end - c.next < IN_MARGIN || d->out.end - at < OUT_MARGIN)
        return GO_ON;
    const uint8_t *const in_stop = d->in_end - IN_MARGIN, *const out_stop = d->out.end - OUT_MARGIN;
    refill(&c);
    uint64_t e = litlen_at(d, table_bits, c.bits);
    do {
        if (is_literal(e)) {
            e = after_literals(d, table_bits, &c, &at, e);
            if (is_literal(e)) {
                e = after_literals(d, table_bits, &c, &at, e);
                refill(&c);
                if (is_literal(e)) {
                    e = after_literals(d, table_bits, &c, &at, e);
                    refill(&c);
                    continue;
                }
            }
        }
        if (UNLIKELY(e & RARE)) {
            e = litlen_of_rare(d, e, c.bits);
            if (is_literal(e)) {
                e = after_literals(d, table_bits, &c, &at, e);
                refill(&c);
                continue;
            }
            if (e & RARE)
                break;
            refill(&c);
        }
        put_literals(&at, e);
        size_t len = len_of(c.bits, e);
        take_entry(&c, e);
        e = dist_at(d, c.bits);
        if (UNLIKELY(e & RARE)) {
            refill(&c);
            e = dist_of_rare(d, e, c.bits);
            if (e & BAD)
                return DAMAGED;
        }
        size_t dist = dist_of(c.bits, e);
        take_entry(&c, e);
        if (UNLIKELY(dist > (size_t)(at - start)))
            return DAMAGED;
        e = litlen_at(d, table_bits, c.bits);
        refill(&c);
        copy_match(at, dist, len);
        at += len;
    } while (c.next < in_stop && at < out_stop);
    d->at = c;
    d->out.at = at;
    return GO_ON;
}

INLINE enum result decode_any(struct bam_inflate *d)
{
    return d->bits == BITS ? decode_most(d, BITS) : decode_most(d, BITS_LEAST);
}

static enum result decode_older(struct bam_inflate *d) { return decode_any(d); }
NEWER static enum result decode_newer(struct bam_inflate *d) { return decode_any(d); }

/* Takes an entry and its extra bits where the input may end. *bits: the entry's bits and those after it. Returns a bad
 * entry if the input has fewer bits. */
static uint64_t take_careful(struct bam_inflate *d, bool is_dist, uint64_t *bits)
{
    struct cursor *c = &d->at;
    refill_careful(c, d->in_end);
    *bits = c->bits;
    uint64_t e = is_dist ? dist_at(d, *bits) : litlen_at(d, d->bits, *bits);
    if (e & RARE)
        e = is_dist ? dist_of_rare(d, e, *bits) : litlen_of_rare(d, e, *bits);
    if ((e & TOTAL) > c->left)
        return BAD;
    drop_bits(c, e & TOTAL);
    return e;
}

/* Takes a distance and copies a match where the input or the output may end. */
static enum result match_careful(struct bam_inflate *d, size_t len)
{
    struct output *o = &d->out;
    uint64_t bits, e = take_careful(d, true, &bits);
    if (e & BAD)
        return DAMAGED;
    size_t dist = dist_of(bits, e);
    if (dist > (size_t)(o->at - o->start))
        return DAMAGED;
    copy_bytes(o->at, dist, len);
    o->at += len;
    return GO_ON;
}

/* Decodes one entry, and the distance after a length, where the input or the output may end. */
static enum result decode_careful(struct bam_inflate *d)
{
    struct output *o = &d->out;
    uint64_t bits, e = take_careful(d, false, &bits);
    if (e & (BAD | RARE))
        return e & BAD ? DAMAGED : BLOCK_DONE;
    size_t literals = e >> COUNT_SHIFT, len = is_literal(e) ? 0 : len_of(bits, e);
    if (literals + len > (size_t)(o->end - o->at))
        return DAMAGED;
    for (size_t i = 0; i < literals; i++)
        *o->at++ = (uint8_t)(e >> (FIRST_SHIFT + 8 * i));
    return len > 0 ? match_careful(d, len) : GO_ON;
}

/* ---- blocks ---- */

static int compressed_block(struct bam_inflate *d)
{
    enum result result;
    do {
        result = (d->newer ? decode_newer : decode_older)(d);
        if (result == GO_ON)
            result = decode_careful(d);
    } while (result == GO_ON);
    return result == DAMAGED ? -1 : 0;
}

/* RFC 1951 section 3.2.4 */
static int stored_block(struct bam_inflate *d)
{
    enum { HEADER = 4 };
    struct cursor *c = &d->at;
    struct output *o = &d->out;
    c->next -= (c->left & 63) >> 3;
    c->bits = c->left = 0;
    if (d->in_end - c->next < HEADER)
        return -1;
    size_t n = load_le16(c->next);
    if ((n ^ 0xffff) != load_le16(c->next + 2))
        return -1;
    c->next += HEADER;
    if (n > (size_t)(d->in_end - c->next) || n > (size_t)(o->end - o->at))
        return -1;
    if (n > 0)
        memcpy(o->at, c->next, n);
    c->next += n;
    o->at += n;
    return 0;
}

static int any_block(struct bam_inflate *d)
{
    enum { STORED, FIXED, DYNAMIC };
    enum { END_BITS = 7 };
    uint32_t final, type;
    if (take(d, 1, &final) < 0 || take(d, 2, &type) < 0)
        return -1;
    d->final_block = final;
    if (type == STORED)
        return stored_block(d);
    /* A block with fixed codes ends with END_BITS bits of 0 (RFC 1951 section 3.2.6). The end mark of a BGZF file is
     * such a block with nothing else. Making the tables for it would take 47,000 instructions. */
    if (type == FIXED && d->at.left >= END_BITS && next_bits(&d->at, END_BITS) == 0)
        return take(d, END_BITS, &type);
    if (type > DYNAMIC || (type == FIXED ? fixed_codes(d) : dynamic_codes(d)) < 0)
        return -1;
    return compressed_block(d);
}

int bam_inflate(struct bam_inflate *d, const uint8_t *in, size_t n, uint8_t *out, size_t size)
{
    d->at = (struct cursor){.next = in};
    d->in_end = in + n;
    d->out = (struct output){out, out, out + size};
    do
        if (any_block(d) < 0)
            return -1;
    while (!d->final_block);
    return d->out.at == d->out.end ? 0 : -1;
}

/* ---- construction ---- */

/* RFC 1951 section 3.2.5: the symbols of lengths and distances. */
static void make_entries(struct bam_inflate *d)
{
    for (uint32_t i = 0; i < N_LITLEN; i++)
        d->litlen_entry[i] = i < END_OF_BLOCK ? i << FIRST_SHIFT | LITERAL : i == END_OF_BLOCK ? RARE : RARE | BAD;
    for (uint32_t i = 0; i < N_DIST; i++)
        d->dist_entry[i] = RARE | BAD;
    for (uint32_t len = HUFFMAN_MAX_LEN; len >= MIN_MATCH; len--)
        d->litlen_entry[len_symbol(len)] = (len - MIN_MATCH) << SECOND_SHIFT | len_extra_bits(len);
    for (uint32_t sym = 0, dist = 1; sym < HUFFMAN_N_DIST; sym++) {
        d->dist_entry[sym] = (dist - 1) << FIRST_SHIFT | dist_extra_bits(dist);
        dist += 1u << dist_extra_bits(dist);
    }
}

struct bam_inflate *bam_inflate_new(bool portable)
{
    struct bam_inflate *d = calloc(1, sizeof *d);
    if (d) {
        make_entries(d);
        d->newer = !portable && cpu_is_newer();
    }
    return d;
}

size_t bam_inflate_memory(void)
{
    return sizeof(struct bam_inflate);
}
