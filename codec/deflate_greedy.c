/* SPDX-License-Identifier: MIT */
/* -l 1, any bytes: data that are not records, and blocks whose fields do not show enough.
 *
 * A table of single positions is a third faster than a table of pairs. It is good enough where there are many matches,
 * as in reads that overlap. Where there are many literals or long matches (copies of reads), its output is up to 5 %
 * larger. So the first bytes are tried with it, and their outcome decides whether the rest is matched with pairs. Where
 * qualities go up and down in small steps, the complete block is matched with pairs in a larger table: 2 to 5 %
 * smaller. */
#include "codec/deflate_greedy.h"

enum {
    HASH_BITS = 14,               /* 32 KiB */
    STEPS_BITS = 16,              /* 128 KiB, where qualities go in small steps; 15 are 0.2 to 0.6 % larger */
    SMALL_STEP = 3,
    STEP_STRIDE = 29,             /* with this stride, the number of steps scatters by 1 % of all bytes */
    MANY_STEPS = 246,             /* in 1,000 bytes */
    SAMPLE_STRIDE = 127,          /* one byte in this many is counted */
    TRIAL = 2 * SEGMENT,
    /* Literals per match in the trial. The trial is at the beginning of a block, where little can be referred to yet.
     * Reads of 40 levels have 6 to 8, and so have reads of low coverage; they are up to 0.6 % larger without pairs. RNA
     * by name has more. */
    MANY_LITERALS = 8,
    /* Mean length. Reads have 10 to 20, copies of reads 40 to 140. */
    LONG_MATCHES = 22,
    SINGLE_STRIDE = 4,
    PAIR_STRIDE = 2,              /* 1 instead is 0.3 % smaller, 4 % slower; 4 % smaller above LONGEST_MATCHES */
    LONGEST_MATCHES = 96,         /* mean length */
};
_Static_assert(SINGLE_STRIDE * INSERT <= FIRST, "insert_matched() does not go below 0");
_Static_assert(sizeof ((struct deflate_parse *)0)->fast_head == 2 << STEPS_BITS, "positions are two bytes");

/* Returns whether MANY_STEPS bytes in 1,000 differ little from the next one, as in qualities that go up and down in
 * small steps; qualities of 40 levels may. Then there are many short matches to choose from. HiSeq has 206 to 252 such
 * bytes, reads of 40 levels at random steps 235 to 450. */
static bool has_small_steps(const uint8_t *in, uint32_t n)
{
    uint32_t small = 0, samples = 0;
    for (uint32_t i = 0; i + 1 < n; i += STEP_STRIDE, samples++) {
        uint32_t up = (uint32_t)in[i + 1] - in[i] + SMALL_STEP;
        small += up <= 2 * SMALL_STEP && up != SMALL_STEP;
    }
    return small * 1000 >= samples * MANY_STEPS;
}

/* The settings that suit a block. */
struct suited {
    struct greedy singly;
    bool cheap;                   /* literals cost so little that pairs gain nothing (long reads and unmapped reads of 4
                                     levels: 3 to 6 % larger) */
    bool steps;                   /* short matches are worth a larger table, with pairs */
};

/* Returns the settings by how often two bytes of a sample are equal. Hashing 4 bytes instead of 5 is 3 % smaller on
 * generated qualities of 40 levels; hashing 6 and taking the nearest is 2 % smaller on qualities of 4 levels. A distant
 * match of 4 bytes is worth four literals if these cost 5 bits each, but not if they cost 4. */
static struct suited tune(uint8_t *head, const uint8_t *in, uint32_t n)
{
    uint32_t pairs, same = same_pairs(in, n, SAMPLE_STRIDE, &pairs);
    bool noisy = same < pairs / 32, mixed = !noisy && same < pairs / 16, cheap = same >= pairs / 9 * 2;
    return (struct suited){
        .singly = {
            .head = head,
            .factor = noisy ? HASH_FACTOR(4) : mixed ? HASH_FACTOR(5) : HASH_FACTOR(6),
            .bits = HASH_BITS,
            .stride = mixed ? 3 : SINGLE_STRIDE,
            .far_of_4 = noisy ? MAX_DIST + 1 : mixed ? 16384 : 2048,
            .nearest = !mixed,
            .ahead = noisy,
        },
        .cheap = cheap,
        .steps = !cheap && has_small_steps(in, n),
    };
}

/* Puts the matches that begin before stop, segment by segment. */
INLINE void parse_segments(struct deflate_parse *d, struct parse *p, uint32_t stop, const struct greedy *g)
{
    for (uint32_t end = (p->at / SEGMENT + 1) * SEGMENT; p->at < stop; end += SEGMENT) {
        parse_greedy(d, p, min_u32(end, stop), g);
        put_mark(d);
    }
}

/* Calls parse_segments() with single positions. The compiler knows the values of some fields of g in each call. */
INLINE void parse_singly(struct deflate_parse *d, struct parse *p, uint32_t stop, struct greedy g)
{
    bool ahead = g.ahead, nearest = g.nearest;
    g.bits = HASH_BITS;
    g.pairs = false;
    g.nearest = g.ahead = true;
    if (ahead)
        parse_segments(d, p, stop, &g);
    g.ahead = false;
    if (!ahead && nearest)
        parse_segments(d, p, stop, &g);
    g.nearest = false;
    if (!nearest)
        parse_segments(d, p, stop, &g);
}

/* Begins the table. It has all positions before p->at that are inside the window. */
INLINE void begin(struct deflate_parse *d, const struct parse *p, const struct greedy *g)
{
    uint32_t end = min_u32(p->at, p->last);
    memset(d->fast_head, 0, 2u << g->bits);
    for (uint32_t at = max_u32(end, MAX_DIST) - MAX_DIST; at < end; at++)
        greedy_insert(g, p->in, at);
}

/* Matches with single positions. Unless literals are cheap, a trial comes first. If the trial finds few matches, or
 * copies, the function ends there and returns the stride of pairs, which match the rest. Otherwise it matches the rest
 * itself and returns 0. If nearly all bytes are in copies, most of the block's literals are in the trial. Then the
 * trial is undone, so that pairs match its bytes, too, with stride 1. */
INLINE uint32_t try_singly(struct deflate_parse *d, struct parse *p, const struct suited *t)
{
    const struct parse from = *p;
    const uint32_t n_lits = d->n_lits, n_seqs = d->n_seqs, n_segments = d->n_segments;
    begin(d, p, &t->singly);
    for (bool trial = !t->cheap;; trial = false) {
        parse_singly(d, p, trial ? min_u32(p->at / SEGMENT * SEGMENT + TRIAL, p->last) : p->last, t->singly);
        if (!trial)
            return 0;
        uint32_t lits = d->n_lits - n_lits, seqs = d->n_seqs - n_seqs, matched = p->anchor - from.anchor - lits;
        if (matched > LONGEST_MATCHES * seqs)
            break;
        if (lits >= MANY_LITERALS * seqs || matched >= LONG_MATCHES * seqs)
            return PAIR_STRIDE;
    }
    *p = from;
    d->n_lits = n_lits;
    d->n_seqs = n_seqs;
    d->n_segments = n_segments;
    return 1;
}

INLINE void parse_pairs(struct deflate_parse *d, struct parse *p, const struct greedy *g)
{
    begin(d, p, g);
    parse_segments(d, p, p->last, g);
}

INLINE void parse_any(struct deflate_parse *d, struct parse *p, enum greedy_bytes bytes)
{
    const struct suited t = tune(d->fast_head, p->in, p->n);
    const bool steps = bytes == GREEDY_STEPS || t.steps;
    uint32_t stride = steps ? 1 : bytes == GREEDY_HARD && !t.cheap ? PAIR_STRIDE : 0;
    if (stride == 0)
        stride = try_singly(d, p, &t);
    if (stride > 0 && steps)
        parse_pairs(d, p, &(struct greedy){
            .head = d->fast_head, .factor = HASH_FACTOR(4), .bits = STEPS_BITS, .stride = stride,
            .far_of_4 = MAX_DIST + 1, .pairs = true, .net = LESS_LITERALS,
        });
    else if (stride > 0)
        parse_pairs(d, p, &(struct greedy){
            .head = d->fast_head, .factor = HASH_FACTOR(4), .bits = HASH_BITS,
            .stride = stride, .far_of_4 = t.singly.far_of_4, .pairs = true,
        });
}

static void parse_older(struct deflate_parse *d, struct parse *p, enum greedy_bytes bytes) { parse_any(d, p, bytes); }
NEWER_AVX2 static void parse_newer(struct deflate_parse *d, struct parse *p, enum greedy_bytes bytes)
{
    parse_any(d, p, bytes);
}

void deflate_greedy(struct deflate_parse *d, struct parse *p, bool newer, enum greedy_bytes bytes)
{
    (newer ? parse_newer : parse_older)(d, p, bytes);
}
