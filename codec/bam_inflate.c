/* SPDX-License-Identifier: MIT */
/* Mispredicted branches cost most of the time when BAM is inflated: a processor cannot predict whether a literal or a
 * match comes next, nor how long the match is. So symbols are decoded without branches:
 *
 *   decode   every look-up does the same for any entry: it takes bits, stores two literals of which 0 to 2 count,
 *            stores a token which counts if it is a length or a distance, and sets the table for the next look-up
 *   copy     takes two tokens at a time, and copies literals and a match to the output
 *
 * Decoding waits for its own look-ups. So one loop decodes a chunk and copies the one before, whose branches are known:
 *
 *   in  -> | chunk 2 |  decode -> tokens, literals
 *                                 tokens, literals  copy -> | chunk 1 | -> out
 *
 * An entry of a table:
 *
 *   31 .. 30 | 29 ............ 14 | 13        | 12  | 11   | 10    | 9 .. 6      | 5 .. 0
 *   literals | literals           | next is a | bad | rare | token | code's bits | all bits
 *   (count)  | base lit (length)  | distance  |     |      |       |             | to take
 *            | distance - 1       |
 *
 * "All bits" are those of the code and the extra bits after it, whose value is added to the base. An entry may stand
 * for two literals, or for a literal and a length; then the bits of both codes count as the code's. */
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

    /* Bits of the input that choose an entry. With 12, fewer codes are longer than the table's bits, but
     * the 2 * 16 KiB of tables and the data do not fit into the first-level cache: 7 % slower. */
    BITS = 11,
    SIZE = 1 << BITS,
    SUB_BITS = HUFFMAN_MAX_BITS - BITS,
    SUB_SIZE = 1 << SUB_BITS,
    /* The number of sub-tables. Each has two codes or more, except the first, which is for words that do not exist. */
    N_SUBS = 1 + N_LITLEN / 2,
    PRE_BITS = 7, PRE_TOTAL = PRE_BITS + 7,      /* bits of a symbol; of it and its repeat count */

    TOTAL = 63,
    COUNT_SHIFT = 30, LITERAL = 1 << COUNT_SHIFT,
    CODE_SHIFT = 6, CODE_MASK = 15,
    TOKEN = 1 << 10, TOKEN_TO_SIZE = 6,          /* shifted by this, the bit is the size of a token or 0 */
    NEXT_DIST = SIZE * sizeof(uint32_t),
    BAD = 1 << 12,               /* a symbol that must not occur; set together with RARE */
    /* An entry that the loop does not handle. If it takes no bits either, the code is longer than BITS. */
    RARE = 1 << 11,
    FIRST_SHIFT = 14, SECOND_SHIFT = 22,
    /* A code's length times this puts the length into both fields, "code's bits" and "all bits". */
    ONE_BIT = 1 | 1 << CODE_SHIFT,

    /* A refill gives FILLED bits or more, which must be enough for three look-ups. So an entry that takes
     * more than MAX_TOTAL bits is rare, and a length takes at most MAX_LEN_TOTAL. */
    FILLED = 56,
    MAX_TOTAL = 20,
    MAX_LEN_TOTAL = BITS + 5,

    /* Compressed bytes per chunk: some 80 matches, so that the tokens stay in the first-level cache. */
    CHUNK = 256,
    WORD = 8,
    /* Bounds the look-ups per chunk: each uses up at least one bit, of the chunk or of the bit buffer around it. */
    MAX_STEPS = (CHUNK + 5 * WORD) * 8,
    /* The loop ends this many bytes before the end of the input, because it may refill twice. */
    IN_MARGIN = 2 * WORD,
    /* Bytes that are copied for any length. */
    WIDE_RUN = 16,
    WIDE_MATCH = 64,
};
_Static_assert(NEXT_DIST == 1 << 13, "it is a bit of an entry and a table's size");
_Static_assert(2 * MAX_TOTAL + MAX_LEN_TOTAL <= FILLED, "distance, length, distance");
_Static_assert(2 * MAX_LEN_TOTAL + MAX_TOTAL <= FILLED, "length, distance, length");

/* A length or a distance, as a look-up found it. Tokens come in pairs: a length, then a distance. */
struct token {
    uint32_t entry;
    uint32_t lits_end;           /* the low half of the address where the literals before the match end */
    uint64_t bits;               /* the bit buffer before the bits of the entry were taken */
};

_Static_assert(sizeof(struct token) == TOKEN >> TOKEN_TO_SIZE, "one step");

/* The tokens that the loop has decoded and not copied yet. */
struct chunk {
    struct token *end;
    uint8_t *lits_end;
    struct token tokens[MAX_STEPS + 2];
    uint8_t lits[MAX_STEPS + WIDE_RUN];
};

/* The place that decoding has reached. It stays in registers until something unusual comes. */
struct cursor {
    uint64_t bits;
    uint64_t left;               /* the number of valid bits; in the loop only its lowest 6 bits have a meaning */
    const uint8_t *next;         /* the next bytes to load */
    const uint8_t *table;        /* the table of literals and lengths, or the table of distances */
    struct token *token;
    uint8_t *lit;
};

struct output {
    uint8_t *start, *at, *end;
};

struct bam_inflate {
    uint32_t table[2 * SIZE];    /* for literals and lengths, then for distances */
    uint32_t part[SIZE / 2];     /* see fill_pairs() */
    uint32_t sub[2][N_SUBS * SUB_SIZE];
    uint32_t litlen_entry[N_LITLEN], dist_entry[N_DIST];         /* without the code's length */
    struct huffman_words litlen;
    struct cursor at;
    struct output out;
    const uint8_t *in_end, *stop;                /* the loop refills only before stop */
    bool last_chunk, final_block, newer;
    int filling;                 /* the chunk that is decoded; the other one is copied */
    struct chunk chunk[2];
};

enum result { GO_ON, CHUNK_DONE, BLOCK_DONE, DAMAGED };

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

INLINE void drop_bits(struct cursor *c, uint32_t n)
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

/* Fills the tables for longer codes. The entry in the main table names a sub-table of SUB_SIZE entries. */
static void fill_subs(const struct huffman_words *c, const uint32_t *entries, uint32_t *table, uint32_t *sub)
{
    uint32_t n = 0, last = SIZE;
    for (uint32_t i = 0; i < SUB_SIZE; i++)
        sub[i] = RARE | BAD | ONE_BIT;
    for (uint32_t len = BITS + 1; len <= HUFFMAN_MAX_BITS; len++)
        for (uint32_t k = c->first[len]; k < c->first[len + 1]; k++) {
            if ((c->word[k] & (SIZE - 1)) != last) {
                last = c->word[k] & (SIZE - 1);
                table[last] = RARE | ++n << FIRST_SHIFT;
            }
            uint32_t e = entries[c->sorted[k]] + len * ONE_BIT;
            for (uint32_t i = c->word[k] >> BITS; i < SUB_SIZE; i += 1u << (len - BITS))
                sub[n * SUB_SIZE + i] = e;
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
        for (uint32_t k = c->first[len]; k < c->first[len + 1]; k++) {
            uint32_t e = entries[c->sorted[k]] + len * ONE_BIT;
            table[c->word[k]] = e | ((e & TOTAL) > MAX_TOTAL ? RARE : 0);
        }
    }
    if (sub)
        fill_subs(c, entries, table, sub);
}

/* Returns the number to add to the entry of a literal so that it also stands for entry e; 0 if e cannot be second. */
INLINE uint32_t second_part(uint32_t e)
{
    uint32_t literal = e & (uint32_t)UINT8_MAX << FIRST_SHIFT;
    return e & RARE ? 0 : e & TOKEN ? e : e - literal + (literal << (SECOND_SHIFT - FIRST_SHIFT));
}

/* Adds a second symbol to the entries of literals after which one fits. The second symbols come from a table that grows
 * as in fill_table() while the literals get shorter. */
static void fill_pairs(struct bam_inflate *d)
{
    const struct huffman_words *c = &d->litlen;
    uint32_t *part = d->part;
    part[0] = 0;
    for (uint32_t room = 1, len = BITS - 1; len > 0; room++, len--) {
        double_table(part, 1u << (room - 1));
        for (uint32_t k = c->first[room]; k < c->first[room + 1]; k++)
            part[c->word[k]] = second_part(d->litlen_entry[c->sorted[k]] + room * ONE_BIT);
        for (uint32_t k = c->first[len]; k < c->first[len + 1]; k++) {
            uint32_t e = d->litlen_entry[c->sorted[k]] + len * ONE_BIT, *to = d->table + c->word[k];
            for (uint32_t i = 0; e & LITERAL && i < 1u << room; i += 2, to += 2 << len) {
                to[0] = e + part[i];
                to[1 << len] = e + part[i + 1];
            }
        }
    }
}

static int set_codes(struct bam_inflate *d, const uint8_t *litlen, uint32_t n_litlen,
                     const uint8_t *dist, uint32_t n_dist)
{
    struct huffman_words dists;
    if (huffman_words(&d->litlen, litlen, n_litlen, true) < 0 || huffman_words(&dists, dist, n_dist, true) < 0)
        return -1;
    fill_table(&d->litlen, d->litlen_entry, BITS, d->table, d->sub[0]);
    fill_table(&dists, d->dist_entry, BITS, d->table + SIZE, d->sub[1]);
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

INLINE uint32_t extra_of(const struct token *t)
{
    uint32_t taken = (uint32_t)t->bits & ((1u << (t->entry & 31)) - 1);
    return taken >> ((t->entry >> CODE_SHIFT) & CODE_MASK);
}

INLINE size_t len_of(const struct token *t)
{
    return MIN_MATCH + ((t->entry >> SECOND_SHIFT) & UINT8_MAX) + extra_of(t);
}

INLINE size_t dist_of(const struct token *t)
{
    return 1 + (t->entry >> FIRST_SHIFT) + extra_of(t);
}

/* Returns the number of literals from lit on, before the match of token t. */
INLINE size_t run_of(const struct token *t, const uint8_t *lit)
{
    return (uint32_t)(t->lits_end - (uint32_t)(uintptr_t)lit);
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
    UNROLL(4)
    for (int k = 0; k < 4; k++, i += step)
        store_le64(to + i, bytes);
    for (; UNLIKELY(i < len); i += step)
        store_le64(to + i, bytes);
}

/* Copies a match. May write up to WIDE_MATCH bytes more than len. */
INLINE void copy_match(uint8_t *to, size_t dist, size_t len)
{
    const uint8_t *from = to - dist;
    if (UNLIKELY(dist < 16)) {
        copy_near(to, dist, len);
        return;
    }
    UNROLL(4)
    for (size_t i = 0; i < WIDE_MATCH; i += 16)
        copy_16(to + i, from + i);
    for (size_t i = WIDE_MATCH; UNLIKELY(i < len); i += 16)
        copy_16(to + i, from + i);
}

/* Copies the literals from *lit on and one match. May write `beyond` bytes more, which is WIDE_MATCH or 0. Returns
 * false, and has done nothing, if there is not enough room or the distance is too large. */
INLINE bool copy_token(struct output *o, const struct token *t, const uint8_t **lit, size_t beyond)
{
    size_t run = run_of(t, *lit), len = len_of(t), dist = dist_of(t + 1);
    if (UNLIKELY(run + len + beyond > (size_t)(o->end - o->at) || dist > (size_t)(o->at - o->start) + run))
        return false;
    if (beyond) {
        copy_16(o->at, *lit);
        for (size_t i = WIDE_RUN; UNLIKELY(i < run); i += 16)
            copy_16(o->at + i, *lit + i);
        copy_match(o->at + run, dist, len);
    } else {
        memcpy(o->at, *lit, run);
        copy_bytes(o->at + run, dist, len);
    }
    o->at += run + len;
    *lit += run;
    return true;
}

/* Copies as copy_token() does, but writes no byte more. Returns -1 if the data are damaged. */
static int copy_careful(struct output *o, const struct token *t, const uint8_t **lit)
{
    return copy_token(o, t, lit, 0) ? 0 : -1;
}

/* Copies the rest of chunk c, from t and lit on. */
static int copy_rest(struct output *o, const struct chunk *c, const struct token *t, const uint8_t *lit)
{
    for (; t < c->end; t += 2)
        if (!copy_token(o, t, &lit, WIDE_MATCH) && copy_careful(o, t, &lit) < 0)
            return -1;
    size_t run = (size_t)(c->lits_end - lit);
    if (run > (size_t)(o->end - o->at))
        return -1;
    if (run > 0)
        memcpy(o->at, lit, run);
    o->at += run;
    return 0;
}

/* ---- decode ---- */

/* Returns the next entry, in 64 bits as the numbers that it is used with, so that no instruction extends it. */
INLINE uint64_t look_up(const struct cursor *c)
{
    uint32_t e;
    memcpy(&e, c->table + (c->bits & (SIZE - 1)) * sizeof e, sizeof e);
    return e;
}

/* Does the work that every entry needs. */
INLINE void advance(struct cursor *c, uint64_t e, const struct bam_inflate *d)
{
    c->token->entry = (uint32_t)e;
    c->token->bits = c->bits;
    c->bits >>= e & TOTAL;
    c->left -= e;
    store_le16(c->lit, (uint16_t)(e >> FIRST_SHIFT));
    c->lit += e >> COUNT_SHIFT;
    c->token->lits_end = (uint32_t)(uintptr_t)c->lit;
    c->token = (struct token *)(void *)((uint8_t *)c->token + ((e >> TOKEN_TO_SIZE) & sizeof *c->token));
    c->table = (const uint8_t *)d->table + (e & NEXT_DIST);
}

/* Does three look-ups and returns 0. Stops at a rare entry and returns that entry. */
INLINE uint64_t advance_3(struct cursor *c, const struct bam_inflate *d)
{
    refill(c);
    UNROLL(3)
    for (int i = 0; i < 3; i++) {
        uint64_t e = look_up(c);
        if (UNLIKELY(e & RARE))
            return e;
        advance(c, e, d);
    }
    return 0;
}

INLINE bool at_litlen(const struct cursor *c, const struct bam_inflate *d)
{
    return c->table == (const uint8_t *)d->table;
}

/* Returns the entry that a rare one stands for. */
INLINE uint32_t resolve(const struct cursor *c, uint32_t e, const struct bam_inflate *d)
{
    if (e & (TOTAL | TOKEN))
        return e;
    return d->sub[!at_litlen(c, d)][(e >> FIRST_SHIFT) * SUB_SIZE + (c->bits >> BITS & (SUB_SIZE - 1))];
}

/* Returns whether the entry stands for a symbol, and not for the end of the block or damaged data. */
INLINE bool is_symbol(uint32_t e)
{
    return !(e & RARE) || e & TOKEN;
}

/* Does one look-up where the input may end. */
static enum result decode_careful(struct bam_inflate *d)
{
    struct cursor *c = &d->at;
    refill_careful(c, d->in_end);
    uint32_t e = (uint32_t)look_up(c);
    if (e & RARE)
        e = resolve(c, e, d);
    if (e & BAD || (e & TOTAL) > c->left)
        return DAMAGED;
    uint64_t left = c->left - (e & TOTAL);
    bool symbol = is_symbol(e);
    if (symbol)
        advance(c, e, d);
    else
        c->bits >>= e & TOTAL;
    c->left = left;
    return symbol ? GO_ON : BLOCK_DONE;
}

/* Decodes where the loop cannot: at the end of the chunk or of the input, or at a rare entry. */
static __attribute__((noinline)) enum result decode_unusual(struct bam_inflate *d)
{
    enum result result = GO_ON;
    if (d->at.next >= d->stop && !d->last_chunk && at_litlen(&d->at, d))
        return CHUNK_DONE;
    do
        result = decode_careful(d);
    while (result == GO_ON && d->last_chunk && d->at.next >= d->stop);
    return result;
}

/* Decodes a chunk while the chunk before it is copied. */
INLINE enum result decode_chunk(struct bam_inflate *d)
{
    const struct chunk *copied = &d->chunk[!d->filling];
    const struct token *token = copied->tokens, *const token_end = copied->end;
    const uint8_t *lit = copied->lits, *const stop = d->stop;
    struct cursor c = d->at;
    struct output o = d->out;
    enum result result;
    for (;;) {
        if (UNLIKELY(c.next >= stop))
            goto unusual;
        uint64_t rare = advance_3(&c, d);
        if (UNLIKELY(rare)) {
            rare = resolve(&c, (uint32_t)rare, d);
            if (!is_symbol((uint32_t)rare))
                goto unusual;
            refill(&c);
            advance(&c, rare, d);
        } else if (token < token_end) {
            if (UNLIKELY(!copy_token(&o, token, &lit, WIDE_MATCH)) && copy_careful(&o, token, &lit) < 0)
                return DAMAGED;
            token += 2;
        }
        continue;
    unusual:
        d->at = c;
        result = decode_unusual(d);
        c = d->at;
        if (result != GO_ON)
            break;
    }
    d->out = o;
    return copy_rest(&d->out, copied, token, lit) < 0 ? DAMAGED : result;
}

static enum result decode_older(struct bam_inflate *d) { return decode_chunk(d); }
NEWER static enum result decode_newer(struct bam_inflate *d) { return decode_chunk(d); }

/* ---- blocks ---- */

static void chunk_begin(struct bam_inflate *d)
{
    d->at.token = d->chunk[d->filling].tokens;
    d->at.lit = d->chunk[d->filling].lits;
    size_t n = (size_t)(d->in_end - d->at.next);
    d->last_chunk = n <= CHUNK + IN_MARGIN;
    d->stop = d->at.next + (!d->last_chunk ? CHUNK : n > IN_MARGIN ? n - IN_MARGIN : 0);
}

static int compressed_block(struct bam_inflate *d)
{
    enum result result;
    struct chunk *none = &d->chunk[!d->filling], *last;
    none->end = none->tokens;
    none->lits_end = none->lits;
    d->at.table = (const uint8_t *)d->table;
    do {
        chunk_begin(d);
        result = (d->newer ? decode_newer : decode_older)(d);
        last = &d->chunk[d->filling];            /* the next to be copied */
        last->end = d->at.token;
        last->lits_end = d->at.lit;
        d->filling = !d->filling;
    } while (result == CHUNK_DONE);
    return result == DAMAGED ? -1 : copy_rest(&d->out, last, last->tokens, last->lits);
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
        d->litlen_entry[len_symbol(len)] = (len - MIN_MATCH) << SECOND_SHIFT | NEXT_DIST | TOKEN | len_extra_bits(len);
    for (uint32_t sym = 0, dist = 1; sym < HUFFMAN_N_DIST; sym++) {
        d->dist_entry[sym] = (dist - 1) << FIRST_SHIFT | TOKEN | dist_extra_bits(dist);
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
