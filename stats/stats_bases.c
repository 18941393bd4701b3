/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "stats/stats_bases.h"

enum { BLOCK_BASES = 2 * BASES_BLOCK };

/* For functions whose arguments are constants in some calls. */
#define ALWAYS __attribute__((always_inline))

void stats_bases_free(struct stats_bases *c)
{
    free(c->waiting);
    free(c->planes);
    free(c->others);
    *c = (struct stats_bases){0};
}

/* ---- bits ---- */

static inline bases_block each_byte(uint8_t byte)
{
    uint64_t word = byte * UINT64_C(0x0101010101010101);
    return (bases_block){word, word};
}

static inline bool any(bases_block bits)
{
    return (bits[0] | bits[1]) != 0;
}

static inline bases_block load(const uint8_t *bytes)
{
    bases_block block;
    memcpy(&block, bytes, sizeof block);
    return block;
}

/* Adds three bits at each place: *sum gets the low bit of the result. Returns the high bit. */
static inline bases_block add_bits(bases_block *sum, bases_block a, bases_block b)
{
    bases_block both = *sum ^ a, carry = (*sum & a) | (both & b);
    *sum = both ^ b;
    return carry;
}

/* Adds 4 blocks to the counters of two bits. Returns the bits of weight 4. */
static inline bases_block add_four(bases_block plane[2], const bases_block *blocks)
{
    bases_block a = add_bits(&plane[0], blocks[0], blocks[1]), b = add_bits(&plane[0], blocks[2], blocks[3]);
    return add_bits(&plane[1], a, b);
}

/* Adds the blocks that wait to the counters. */
static void count_waiting(struct bases_waiting *waiting, struct bases_planes *planes)
{
    for (; waiting->n < BASES_WAITING; waiting->n++)
        waiting->each[waiting->n] = each_byte(0);
    bases_block *plane = planes->each, *blocks = waiting->each, low[4];
    memcpy(low, plane, sizeof low);
    bases_block a = add_four(low, blocks), b = add_four(low, blocks + 4);
    bases_block high = add_bits(&low[2], a, b);
    a = add_four(low, blocks + 8);
    b = add_four(low, blocks + 12);
    bases_block carry = add_bits(&low[3], high, add_bits(&low[2], a, b));
    memcpy(plane, low, sizeof low);
    for (int k = 4; k < BASES_PLANES && any(carry); k++) {
        bases_block sum = plane[k] ^ carry;
        carry &= plane[k];
        plane[k] = sum;
    }
}

/* ---- room ---- */

/* Copies the blocks that have counts. The memory of the others stays untouched. */
static void copy_blocks(struct stats_bases *to, const struct stats_bases *from)
{
    for (size_t way = 0; way < BASES_WAYS; way++)
        for (size_t i = 0; i < from->n_blocks; i++) {
            size_t at = way * to->n_blocks + i, old = way * from->n_blocks + i;
            if (from->waiting[old].n == 0)      /* nothing was counted yet */
                continue;
            to->waiting[at] = from->waiting[old];
            to->planes[at] = from->planes[old];
        }
}

/* Adds the counts of codes that are no base. Memory without counts stays untouched. */
static void add_others(struct stats_bases *to, const struct stats_bases *from)
{
    for (size_t i = 0; i < from->n_blocks * BLOCK_BASES; i++)
        if (from->others[i][0] | from->others[i][1]) {
            to->others[i][0] += from->others[i][0];
            to->others[i][1] += from->others[i][1];
        }
}

/* Makes room for n cycles. Returns -1 if out of memory. */
static int reserve(struct stats_bases *c, size_t n)
{
    size_t n_blocks = (n + BLOCK_BASES) / BLOCK_BASES;   /* the last base of an odd length may begin another block */
    if (n_blocks <= c->n_blocks)
        return 0;
    if (n_blocks < 2 * c->n_blocks)
        n_blocks = 2 * c->n_blocks;
    struct stats_bases wider = {.n_blocks = n_blocks, .n_planes = c->n_planes};
    wider.waiting = calloc(BASES_WAYS * n_blocks, sizeof *wider.waiting);
    wider.planes = calloc(BASES_WAYS * n_blocks, sizeof *wider.planes);
    wider.others = calloc(BLOCK_BASES * n_blocks, sizeof *wider.others);
    if (!wider.waiting || !wider.planes || !wider.others) {
        stats_bases_free(&wider);
        return -1;
    }
    copy_blocks(&wider, c);
    add_others(&wider, c);
    struct stats_bases old = *c;
    *c = wider;
    stats_bases_free(&old);
    return 0;
}

/* ---- counting ---- */

/* A read, and where it is counted. */
struct counted_read {
    struct stats_bases *c;
    struct bases_waiting *waiting;       /* waiting reads of its way */
    struct bases_planes *planes;
    uint32_t n;
    bool is_reverse;
};

/* Returns the cycle of a base: the high or the low half of a byte of a block. */
static size_t cycle_of(const struct counted_read *r, size_t block, size_t byte, bool is_high)
{
    size_t number = block * BASES_BLOCK + (r->is_reverse ? BASES_BLOCK - 1 - byte : byte);
    return r->is_reverse ? 2 * number + is_high - r->n % 2 : 2 * number + !is_high;
}

/* Counts N and other bases, and returns the block without them. outside: bits that do not belong to the read. */
__attribute__((noinline)) static bases_block take_others(const struct counted_read *r, size_t block, bases_block bits,
                                                         bases_block outside)
{
    uint8_t bytes[BASES_BLOCK], pad[BASES_BLOCK];
    memcpy(bytes, &bits, BASES_BLOCK);
    memcpy(pad, &outside, BASES_BLOCK);
    for (size_t i = 0; i < BASES_BLOCK; i++)
        for (unsigned shift = 0; shift <= 4; shift += 4) {
            unsigned code = bytes[i] >> shift & 15;
            if ((pad[i] >> shift & 15) || (code != 0 && (code & (code - 1)) == 0))
                continue;
            r->c->others[cycle_of(r, block, i, shift == 4)][code != 15]++;
            bytes[i] &= (uint8_t)~(15u << shift);
        }
    memcpy(&bits, bytes, BASES_BLOCK);
    return bits;
}

/* Lets a block of a read wait. Returns a bit for each base, which is set for G and C. */
ALWAYS static inline bases_block add_block(const struct counted_read *r, size_t block, bases_block bits,
                                           bases_block outside)
{
    bits &= ~outside;
    bases_block one = each_byte(0x11), filled = bits | (outside & one), less = filled - one;
    /* A base that has no bit borrows, and shows as the highest bit. One that has several bits keeps some of them. */
    if (any((less & filled) | (less & ~filled & each_byte(0x88))))
        bits = take_others(r, block, bits, outside);
    struct bases_waiting *waiting = &r->waiting[block];
    if (waiting->n == BASES_WAITING) {
        count_waiting(waiting, &r->planes[block]);
        waiting->n = 0;
    }
    waiting->each[waiting->n++] = bits;
    return (bits >> 1 | bits >> 2) & one;        /* C is 2 and G is 4 */
}

/* Returns the sum of the halves of bytes. */
static uint32_t sum_halves(bases_block halves)
{
    uint32_t sum = 0;
    for (int i = 0; i < 2; i++) {
        uint64_t pairs = (halves[i] & 0x0f0f0f0f0f0f0f0f) + (halves[i] >> 4 & 0x0f0f0f0f0f0f0f0f);
        pairs = (pairs & 0x00ff00ff00ff00ff) + (pairs >> 8 & 0x00ff00ff00ff00ff);
        sum += (uint32_t)(pairs * 0x0001000100010001 >> 48);
    }
    return sum;
}

/* Returns the bits of the last block that are outside a read of which n bytes are in the block. */
static inline bases_block outside_of(uint32_t n, bool back)
{
    static const uint8_t bytes[3 * BASES_BLOCK] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        [2 * BASES_BLOCK] = 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    };
    return load(bytes + (back ? n : 2 * BASES_BLOCK - n));
}

/* Returns the bits of the half byte after the last base. byte: the place of its byte in the block. */
static inline bases_block after_last(uint32_t byte)
{
    static const uint8_t bytes[2 * BASES_BLOCK] = {[BASES_BLOCK] = 15};
    return load(bytes + BASES_BLOCK - byte);
}

/* Returns the last n bytes of a read in the form of a block. The other bytes have any value. */
static inline bases_block load_last(const uint8_t *seq, uint32_t n, uint32_t n_bytes, bool back)
{
    if (n_bytes >= BASES_BLOCK)                  /* there are enough bytes before the read and after it */
        return load(back ? seq + n - BASES_BLOCK : seq + n_bytes - n);
    uint8_t bytes[BASES_BLOCK] = {0};
    memcpy(back ? bytes + BASES_BLOCK - n : bytes, seq, n);
    return load(bytes);
}

/* Counts the bases of a read. Returns the number of G and C. */
ALWAYS static inline uint32_t add_read(const struct counted_read *r, const uint8_t *seq, bool back)
{
    enum { MOST = 15 };                          /* maximum of half a byte */
    uint32_t n_bytes = r->n / 2 + r->n % 2, last = (n_bytes - 1) / BASES_BLOCK, rest = n_bytes - last * BASES_BLOCK;
    bases_block gc = each_byte(0), outside = back && r->n % 2 ? after_last(BASES_BLOCK - 1) : each_byte(0);
    uint32_t sum = 0, room = MOST;
    for (uint32_t i = 0; i < last; i++) {
        gc += add_block(r, i, load(back ? seq + n_bytes - (i + 1) * BASES_BLOCK : seq + i * BASES_BLOCK), outside);
        outside = each_byte(0);
        if (--room == 0) {
            sum += sum_halves(gc);
            gc = each_byte(0);
            room = MOST;
        }
    }
    outside |= outside_of(rest, back);
    if (!back && r->n % 2)
        outside |= after_last(rest - 1);
    return sum + sum_halves(gc + add_block(r, last, load_last(seq, rest, n_bytes, back), outside));
}

static size_t way_of(bool is_reverse, uint32_t n)
{
    return is_reverse ? 1 + n % 2 : 0;
}

int stats_bases_add(struct stats_bases *c, bool is_reverse, const uint8_t *seq, uint32_t n, uint32_t *gc)
{
    if (reserve(c, n) < 0)
        return -1;
    size_t first = way_of(is_reverse, n) * c->n_blocks;
    struct counted_read r = {c, c->waiting + first, c->planes + first, n, is_reverse};
    *gc = n == 0 ? 0 : is_reverse ? add_read(&r, seq, true) : add_read(&r, seq, false);
    return 0;
}

/* ---- what was counted ---- */

void stats_bases_close(struct stats_bases *c)
{
    for (size_t i = 0; i < BASES_WAYS * c->n_blocks; i++) {
        if (c->waiting[i].n == 0)
            continue;
        count_waiting(&c->waiting[i], &c->planes[i]);
        c->waiting[i].n = BASES_WAITING;         /* the block has counts */
        memset(c->waiting[i].each, 0, sizeof c->waiting[i].each);
        for (int k = c->n_planes; k < BASES_PLANES; k++)
            if (any(c->planes[i].each[k]))
                c->n_planes = k + 1;
    }
}

static void join_planes(struct bases_planes *to, const struct bases_planes *from)
{
    bases_block carry = each_byte(0);
    for (int k = 0; k < BASES_PLANES; k++)
        carry = add_bits(&to->each[k], from->each[k], carry);
}

int stats_bases_join(struct stats_bases *c, struct stats_bases *from)
{
    if (from->n_blocks == 0)
        return 0;
    if (reserve(c, (from->n_blocks - 1) * BLOCK_BASES) < 0)
        return -1;
    stats_bases_close(from);
    for (size_t way = 0; way < BASES_WAYS; way++)
        for (size_t i = 0; i < from->n_blocks; i++) {
            size_t at = way * c->n_blocks + i, other = way * from->n_blocks + i;
            if (from->waiting[other].n == 0)
                continue;
            join_planes(&c->planes[at], &from->planes[other]);
            if (c->waiting[at].n == 0)
                c->waiting[at].n = BASES_WAITING;        /* the block has counts; blocks of 0 wait */
        }
    add_others(c, from);
    stats_bases_free(from);
    return 0;
}

/* Adds the counters of one base in a block of a way. byte: its place in the block. */
static void add_counters(const struct bases_planes *planes, int n_planes, size_t byte, bool is_high,
                         uint64_t bases[STATS_BASES])
{
    for (int k = 0; k < n_planes; k++) {
        const uint8_t *bytes = (const uint8_t *)&planes->each[k];
        unsigned bits = bytes[byte] >> (is_high ? 4 : 0);
        for (int base = STATS_A; base <= STATS_T; base++)
            bases[base] += (uint64_t)(bits >> base & 1) << k;
    }
}

void stats_bases_cycle(const struct stats_bases *c, size_t cycle, uint64_t seq[STATS_BASES], uint64_t read[STATS_BASES])
{
    uint64_t forward[STATS_BASES] = {0}, back[STATS_BASES] = {0};
    if (cycle + 1 >= c->n_blocks * BLOCK_BASES)
        return;
    const struct bases_planes *planes = c->planes;
    add_counters(&planes[cycle / BLOCK_BASES], c->n_planes, cycle % BLOCK_BASES / 2, cycle % 2 == 0, forward);
    for (size_t odd = 0; odd <= 1; odd++) {
        size_t number = (cycle + odd) / 2;
        planes += c->n_blocks;
        add_counters(&planes[number / BASES_BLOCK], c->n_planes, BASES_BLOCK - 1 - number % BASES_BLOCK,
                     cycle % 2 != odd, back);
    }
    for (int i = 0; i <= STATS_T; i++) {
        seq[i] += forward[i] + back[i];
        read[i] += forward[i] + back[STATS_T - i];
    }
    seq[STATS_N] += c->others[cycle][0];
    seq[STATS_O] += c->others[cycle][1];
}

size_t stats_bases_memory(size_t n)
{
    size_t n_blocks = (n + BLOCK_BASES) / BLOCK_BASES;
    return n_blocks * (BASES_WAYS * (sizeof(struct bases_waiting) + sizeof(struct bases_planes))
                       + BLOCK_BASES * sizeof(uint64_t[2]));
}
