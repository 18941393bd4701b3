/* SPDX-License-Identifier: MIT */
/* Long reads, at both levels. A block has few of them, so each of their fields has enough bytes for a Huffman code of
 * its own. That saves more than matches do. The fields are matched as follows:
 *
 *   SEQ     as copies, found by samples: reads that overlap, other alignments of a read; the rest becomes literals
 *   QUAL    as runs; in a copy of a read, with the qualities of that read
 *   moves   greedily, as bits (of Nanopore reads, default level)
 *   others  greedily
 *
 * Records that are longer than a block are cut. Where a record continues from the block before, its SEQ is recognised
 * by its bytes. Its QUAL is recognised by the length of its SEQ, or by its bytes if the SEQ is in a block before. */
#include <stdlib.h>
#include "codec/deflate_greedy.h"
#include "codec/deflate_moves.h"
#include "codec/deflate_records.h"

enum {
    LEAST_FIELD = 512,            /* a field of this many bytes may be worth a code of its own */

    CELL = 256, CELL_STEP = 16,   /* CELL bytes are of SEQ if every CELL_STEP-th byte looks like bases */

    COPY_BYTES = 8,               /* bytes that are hashed */
    COPY_BITS = 13,               /* 16 KiB; 12 are 0.1 % larger */
    COPY_STRIDE = 8,              /* one position in this many becomes known; this many in a row are looked up */
    COPY_STEP = 64,               /* from one look-up to the next; 32 are 0.4 % smaller, 10 % slower */
    LEAST_COPY = 12,              /* bytes; 16 are 0.1 % larger */
    /* By default the lanes find more copies, and a code for each field saves little if copies hold more than this share
     * of SEQ. Overlapping reads of 10,000 bases and more have 35 percent; a few have more and lose 0.3 % of the size.
     * Reads of 1,400 bases, contigs and copies of records have 45 to 85 percent. By their fields they are 1.02 to 1.7
     * times as large as by the lanes; only reads of 15,000 bases that come twice are 0.96 times as large, and lose this
     * by the bound. Checked on 1,320 blocks of 54 files. */
    MUCH_COPIED = 45,             /* percent */
    COPIED = 8,                   /* a read is a copy if less than one byte of its SEQ in this many is a literal */

    UNIT = SEGMENT,               /* unit of qualities; their codes may change between units */
    QUAL_SAMPLES = 37,            /* one quality in this many is looked at */
    STEPS_SEEN = 256,             /* qualities of each QUAL that show how large its steps are */
    /* Where qualities change in small steps, there are matches of a few bytes at every place. Random walks have 1.3 on
     * average, real Nanopore reads 3.6 and more. */
    SMALL_STEP = 2,
    RUN_BITS = 10,                /* what a match of MIN_MATCH bytes at distance 1 costs */
    MAX_QUAL = 93,                /* SAM specification section 1.4 */
    REPEATS_IN = 16384, REPEAT_BITS = 10,
    REPEATED = 64,                /* one group of eight bytes in this many was there before */

    MAX_REGIONS = 3 * (PARSE_MAX / LONG_RECORD + 1) + 1,
};
_Static_assert(PARSE_MAX / LEAST_FIELD + 1 <= MAX_SEGMENTS, "end_segment(), and the end of the block");
_Static_assert((int)LEAST_MOVES >= (int)LEAST_FIELD, "end_segment() does not join moves with what is beside them");

enum kind { OTHERS, BASES, QUALS };

/* A region begins at the end of the one before. */
struct region {
    uint32_t end;
    enum kind kind;
};

struct regions {
    uint32_t n;
    struct region of[MAX_REGIONS];
};

INLINE uint32_t region_begin(const struct regions *r, uint32_t i) { return i > 0 ? r->of[i - 1].end : 0; }

/* Adds a region. A region for which there is no room is joined with the last one. */
INLINE void add_region(struct regions *r, uint64_t end, uint32_t n, enum kind kind)
{
    uint32_t to = end < n ? (uint32_t)end : n;
    if (to > region_begin(r, r->n) && r->n < MAX_REGIONS - 1)
        r->of[r->n++] = (struct region){to, kind};
}

/* Returns whether name[len] is characters from '!' to '~' (SAM specification section 1.4), then NUL. */
static bool is_name(const uint8_t *name, uint32_t len)
{
    for (uint32_t i = 0; i + 1 < len; i++)
        if (name[i] < '!' || name[i] > '~')
            return false;
    return len > 1 && name[len - 1] == '\0';
}

/* Finds the regions by the fields of records; the last record may continue after the block. Returns false if no record
 * begins here. */
static bool find_by_fields(struct regions *r, const uint8_t *in, uint32_t n)
{
    for (uint64_t at = 0; at + BAM_FIXED < n;) {
        const struct bam_record *b = (const void *)(in + at);
        uint64_t bases = load_le32(b->seq_len), end = at + bam_record_size(b), cigar = at + BAM_FIXED + b->name_len;
        uint64_t seq = cigar + 4u * load_le16(b->n_cigar), qual = seq + (bases + 1) / 2, tags = qual + bases;
        if (tags > end || cigar > n || !is_name(in + at + BAM_FIXED, b->name_len))
            return at > 0;
        add_region(r, seq, n, OTHERS);
        add_region(r, qual, n, BASES);
        add_region(r, tags, n, QUALS);
        at = end;
    }
    return n > BAM_FIXED;
}

/* Returns whether a byte is two bases: A, C, G, T or N in each half. Two N do not count, since an absent quality has
 * the same bits. */
static bool is_bases(uint8_t x)
{
    const uint32_t base = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 15;
    return x != 0xff && (base >> (x & 15) & base >> (x >> 4) & 1);
}

static bool is_cell_of_bases(const uint8_t *in)
{
    for (uint32_t i = 0; i < CELL; i += CELL_STEP)
        if (!is_bases(in[i]))
            return false;
    return true;
}

/* Returns whether many bytes come again, in groups of eight that are not a run. A hash picks one position in 16. */
static bool has_repeats(const uint8_t *in, uint32_t n)
{
    uint16_t last[1 << REPEAT_BITS] = {0};
    uint32_t taken = 0, same = 0;
    for (uint32_t x = 0; x + 8 <= n; x++) {
        uint64_t v = load_le64(in + x);
        uint32_t h = hash(v, HASH_FACTOR(8), REPEAT_BITS + 4);
        if (h % 16 || v >> 8 == v << 8 >> 8)
            continue;
        same += x > 0 && load_le64(in + last[h / 16]) == v;
        last[h / 16] = (uint16_t)x;
        taken++;
    }
    return same * REPEATED >= taken;
}

/* Returns how many qualities a block begins with, if they are half of it; fewer qualities become smaller among other
 * bytes. White space (9 to 13) is the only part of text that is as low as some qualities; moves are 0 or 1. */
static uint32_t count_quals(const uint8_t *in, uint32_t n)
{
    uint32_t end = 0, high = 0, low = 0;
    for (; end + CELL <= n && high == 0; end += CELL)
        for (uint32_t i = 0; i < CELL; i++)
            high |= in[end + i] > MAX_QUAL;
    end -= high ? CELL : 0;
    for (uint32_t i = 0; i < end; i += QUAL_SAMPLES)
        low += in[i] > 1 && in[i] < ' ' && !(in[i] >= '\t' && in[i] <= '\r');
    bool quals = end >= n / 2 && low > 0;
    return quals && !has_repeats(in, min_u32(end, REPEATS_IN)) ? end : 0;
}

/* Finds the regions by their bytes. */
static void find_by_bytes(struct regions *r, const uint8_t *in, uint32_t n)
{
    uint32_t quals = count_quals(in, n);           /* the earliest end of the qualities of the last SEQ */
    for (uint32_t x = 0; x + CELL <= n; x += CELL) {
        if (!is_cell_of_bases(in + x))
            continue;
        uint32_t from = x, before = region_begin(r, r->n);
        for (; x + CELL <= n && is_cell_of_bases(in + x); x += CELL)
            ;
        while (from > before && is_bases(in[from - 1]))
            from--;
        while (x < n && is_bases(in[x]))
            x++;
        if (x - from >= LEAST_FIELD) {
            add_region(r, min_u32(quals, from), n, QUALS);
            add_region(r, from, n, OTHERS);
            add_region(r, x, n, BASES);
            quals = x + 2 * (x - from);
        }
    }
    add_region(r, quals, n, QUALS);
}

/* Finds the regions of a block. Returns how many bytes may have codes of their own. */
static uint32_t find_regions(struct regions *r, const struct parse *p, bool fast)
{
    uint32_t bytes = 0, n = p->n;
    if (!find_by_fields(r, p->in, n))
        find_by_bytes(r, p->in, n);
    for (uint32_t i = 0; i < r->n; i++)
        bytes += r->of[i].kind != OTHERS ? r->of[i].end - region_begin(r, i) : 0;
    add_region(r, n, n, OTHERS);
    r->of[r->n - 1].end = n;      /* the last region takes those without room, which are not counted */
    for (uint32_t i = 0; i < r->n && !fast; i++)
        bytes += r->of[i].kind == OTHERS ? count_moves(p, region_begin(r, i), r->of[i].end) : 0;
    return bytes;
}

/* Ends the segment at `to`, unless it is short. Then the bytes before `to` that are not part of a match become
 * literals. *mark: where the last segment ended. */
INLINE void end_segment(struct deflate_parse *d, struct parse *p, uint32_t *mark, uint32_t to)
{
    if (to - *mark < LEAST_FIELD)
        return;
    *mark = to;
    to = min_u32(to, p->last);
    if (to > p->anchor)
        put_rest(d, p, to);
    put_mark(d);
}

/* ---- SEQ ---- */

struct copies {
    uint16_t at[1 << COPY_BITS];
    uint32_t known;               /* the position that becomes known next */
    uint32_t seq, copied;         /* bytes of SEQ so far, and those in copies; at -l 1 without reads that are copies */
    bool fast;
};

struct copy {
    uint32_t at, cand, len;
};

INLINE uint16_t *copy_slot(struct copies *c, uint64_t v) { return &c->at[hash(v, HASH_FACTOR(COPY_BYTES), COPY_BITS)]; }

INLINE void learn(struct copies *c, const struct parse *p, uint32_t to)
{
    for (; c->known < to; c->known += COPY_STRIDE)
        *copy_slot(c, load_le64(p->in + c->known)) = (uint16_t)c->known;
}

/* Looks for a copy at [x, x + COPY_STRIDE); at x, first looks whether the last match continues. */
INLINE bool find_copy(struct copies *c, const struct parse *p, uint32_t x, struct copy *m)
{
    uint64_t v = load_le64(p->in + x);
    *m = (struct copy){x, x - p->dist, COPY_BYTES};
    if (p->dist > 0 && p->dist + FIRST <= x && load_le64(p->in + m->cand) == v)
        return true;
    for (uint32_t end = x + COPY_STRIDE; m->at < end; m->at++) {
        v = load_le64(p->in + m->at);
        m->cand = *copy_slot(c, v);
        if (load_le64(p->in + m->cand) == v && m->cand >= FIRST && m->at - m->cand - 1 < MAX_DIST)
            return true;
    }
    return false;
}

/* Finds the next copy from x on that is long enough. */
INLINE bool next_copy(struct copies *c, const struct parse *p, uint32_t x, uint32_t to, struct copy *m)
{
    const uint8_t *in = p->in;
    for (; x + COPY_STRIDE + COPY_BYTES <= to; x += COPY_STEP) {
        learn(c, p, x);
        if (!find_copy(c, p, x, m))
            continue;
        m->len = extend(in + m->at, in + m->cand, COPY_BYTES, min_u32(to - m->at, MAX_MATCH));
        uint32_t room = min_u32(min_u32(m->at - p->anchor, MAX_MATCH - m->len), m->cand - FIRST);
        for (; room > 0 && in[m->at - 1] == in[m->cand - 1]; room--, m->at--, m->cand--)
            m->len++;
        if (m->len >= LEAST_COPY)
            return true;
        x = m->at + m->len - COPY_STEP;            /* there are other copies near a copy */
    }
    return false;
}

/* Matches SEQ in [from, to). Returns the last copy if the read is a copy, else one of length 0. */
INLINE struct copy match_bases(struct deflate_parse *d, struct parse *p, struct copies *c, uint32_t from, uint32_t to)
{
    struct copy m, last = {0};
    uint32_t copied = 0;
    to = min_u32(to, p->last);
    c->known = max_u32(from, FIRST);
    uint32_t x = max_u32(p->anchor, c->known), lits = lits_before(d, p, x);
    while (next_copy(c, p, x, to, &m)) {
        put_match(d, p, m.at, m.len, m.at - m.cand);
        p->dist = m.at - m.cand;
        x = p->anchor + (m.len < MAX_MATCH);       /* the byte after it differs */
        last = m;
        copied += m.len;
    }
    learn(c, p, to);
    bool copy = (lits_before(d, p, to) - lits) * COPIED < to - from;
    if (!copy || !c->fast) {
        c->copied += copied;
        c->seq += to - from;
    }
    return copy ? last : (struct copy){0};
}

/* Returns whether copies hold much of SEQ. */
static bool is_much_copied(const struct copies *c) { return c->copied * 100 > c->seq * MUCH_COPIED; }

/* ---- QUAL ---- */

/* Returns the distance from the qualities of a read to those of the read whose bases it has, or 0 if there are none.
 * Copy m lies in region i. */
static uint32_t quals_distance(const struct regions *r, uint32_t i, const struct copy *m)
{
    uint32_t j = i;
    while (m->len > 0 && region_begin(r, j) > m->cand)
        j--;
    if (m->len == 0 || r->of[j].kind != BASES || r->of[j + 1].kind != QUALS)
        return 0;
    uint32_t bytes = m->at - m->cand - (region_begin(r, i) - region_begin(r, j));
    return r->of[i].end - r->of[j].end + 2 * bytes;
}

/* Returns whether all qualities are equal, or absent: then nothing is left but SEQ, whose copies a search finds. */
static bool are_quals_equal(const struct regions *r, const uint8_t *in)
{
    int32_t first = -1;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t x = region_begin(r, i); r->of[i].kind == QUALS && x < r->of[i].end; x += QUAL_SAMPLES) {
            if (first >= 0 && in[x] != first)
                return false;
            first = in[x];
        }
    return first >= 0;
}

/* Returns whether qualities that differ from the one before are less than SMALL_STEP from it, on average. */
static bool have_small_steps(const struct regions *r, const uint8_t *in)
{
    uint32_t differ = 0, steps = 0;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t x = region_begin(r, i), end = min_u32(r->of[i].end, x + STEPS_SEEN);
             r->of[i].kind == QUALS && x + 1 < end; x++) {
            uint32_t step = (uint32_t)abs(in[x + 1] - in[x]);
            differ += step > 0;
            steps += step;
        }
    return steps < differ * SMALL_STEP;
}

/* Returns whether MIN_MATCH of these qualities cost less as literals than as a run. Where one pair in 2^b is equal, a
 * literal costs b bits. */
static bool are_cheap(const uint8_t *in, uint32_t n)
{
    uint32_t pairs, same = same_pairs(in, n, QUAL_SAMPLES, &pairs);
    return MIN_MATCH * (log2_256(pairs | 1) - log2_256(same | 1)) < RUN_BITS * 256;
}

/* Puts matches of distance 1: those of MIN_MATCH bytes and more, or of twice as many (longer). */
INLINE void match_runs(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, bool longer,
                       agree64_fn *agree)
{
    for (uint32_t x = max_u32(from, p->anchor) + 1, step; x + MIN_MATCH < to; x += step) {
        uint64_t same = same_window(p, x, 1, agree), starts = begins(same);
        if (longer)
            starts &= starts >> MIN_MATCH;
        step = WINDOW - (longer ? 2 * MIN_MATCH : MIN_MATCH) + 1;
        for (starts &= below(to - MIN_MATCH - x); starts;) {
            uint32_t s = (uint32_t)__builtin_ctzll(starts), len = (uint32_t)__builtin_ctzll(~(same >> s));
            uint32_t here = x + s, limit = min_u32(to - here, MAX_MATCH);
            for (uint32_t more = s + len; more == WINDOW && len < limit; len += more)
                more = (uint32_t)__builtin_ctzll(~same_window(p, here + len, 1, agree));
            len = min_u32(len, limit);
            put_match(d, p, here, len, 1);
            step = max_u32(s + len, step);
            starts &= ~below(s + len);
        }
    }
}

INLINE void match_quals(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, uint32_t dist,
                        uint32_t *mark, bool fast, agree64_fn *agree)
{
    to = min_u32(to, p->last);
    if (dist - 1 < min_u32(from, MAX_DIST) && from < to && (~same_window(p, from, dist, agree) & below(WINDOW)) == 0) {
        match_at(d, p, from, to, (const uint32_t[]){dist, 1}, 2, false, agree);
        return;
    }
    for (uint32_t end; from < to; from = end) {
        end = fast || to - from < UNIT + UNIT / 2 ? to : from + UNIT;
        match_runs(d, p, from, end, are_cheap(p->in + from, end - from), agree);
        if (end < to)
            end_segment(d, p, mark, end);
    }
}

/* ---- all ---- */

/* Default level: matches the bytes between fields; moves among them as such. */
INLINE void match_others(struct deflate_parse *d, struct parse *p, struct moves *moves, const struct greedy *g,
                         uint32_t from, uint32_t to, uint32_t *mark, agree64_fn *agree)
{
    for (uint32_t at, end; from < to; from = end) {
        at = find_moves(p, from, to, &end, agree);
        match_greedily(d, p, max_u32(from, FIRST), at, g, agree);
        if (end == at)
            break;
        end_segment(d, p, mark, at);
        match_moves(d, p, moves, at, end, agree);
        end_segment(d, p, mark, end);
    }
}

INLINE bool parse_regions(struct deflate_parse *d, struct parse *p, const struct regions *r, bool fast,
                          agree64_fn *agree)
{
    struct greedy others = greedy_begin(d->pair_head, HASH_FACTOR(5));
    struct copies copies = {.fast = fast};
    struct moves moves;
    uint32_t from = 0, mark = 0, dist = 0;
    moves.begun = false;
    for (uint32_t i = 0; i < r->n; from = r->of[i++].end) {
        uint32_t to = r->of[i].end;
        end_segment(d, p, &mark, from);
        if (r->of[i].kind == BASES) {
            struct copy last = match_bases(d, p, &copies, from, to);
            dist = quals_distance(r, i, &last);
            if (is_much_copied(&copies))
                return false;
        } else if (r->of[i].kind == QUALS) {
            match_quals(d, p, from, to, dist, &mark, fast, agree);
        } else if (fast) {
            match_greedily(d, p, from, to, &others, agree);
        } else {
            match_others(d, p, &moves, &others, from, to, &mark, agree);
        }
    }
    return true;
}

static bool parse_older(struct deflate_parse *d, struct parse *p, const struct regions *r, bool fast)
{
    return parse_regions(d, p, r, fast, agree64);
}
NEWER_AVX2 static bool parse_newer(struct deflate_parse *d, struct parse *p, const struct regions *r, bool fast)
{
    return parse_regions(d, p, r, fast, agree64_avx2);
}

bool deflate_long(struct deflate_parse *d, struct parse *p, bool newer, bool fast)
{
    struct fields first;
    struct regions r = {.n = 0};
    if (find_fields(p->in, p->n, 0, &first) && first.end < LONG_RECORD)
        return false;
    if (4 * find_regions(&r, p, fast) < p->n)    /* half: blocks of many tags up to a tenth larger at -l 1 */
        return false;
    if (are_quals_equal(&r, p->in))
        return false;
    /* By default other parsers find more in blocks of 16 records and more, which have three regions each, and where
     * steps are small. */
    if (!fast && (r.n > 3 * MIN_RECORDS || have_small_steps(&r, p->in)))
        return false;
    if ((newer ? parse_newer : parse_older)(d, p, &r, fast))
        return true;
    begin_anew(d, p);
    return false;
}
