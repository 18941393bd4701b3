/* SPDX-License-Identifier: MIT */
/* The default level where the fields of records do not tell: any bytes lazily. */
#include "codec/deflate_lazy.h"

/* Whether a sample holds nothing but printable ASCII and white space. BAM has zeros in every record. */
static bool is_text(const uint8_t *in, uint32_t n)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < n; i += SAMPLE_STRIDE)
        others += in[i] < '\t' || in[i] > '~';
    return others == 0;
}

/* Text has long matches, and fields that come again soon: positions inside a match are worth little. Against the
 * tuning of other bytes: SAM 14 to 20 % faster, 0.3 to 0.6 % larger; FASTQ 8 % and 0.5 %; VCF 7 % and nothing. Without
 * `deep` SAM would be another 8 % faster, 1 % larger. */
static struct tuning tune_text(uint32_t same, uint32_t pairs)
{
    struct tuning t = {.min_gain = 6, .dense_len = 24, .deep = true, .two_steps = true, .sparse_len = 48};
    if (same < pairs / 6)
        t.dense_len = 12, t.sparse_len = 32;
    return t;
}

/* A second lazy step gains 0.5 % on generated qualities of 40 levels, for 11 % of the speed; the literals of some data
 * cost so little that short matches do not pay (10x reads 0.25 %, unmapped ones 3 %). */
static struct tuning tune(const uint8_t *in, uint32_t n)
{
    uint32_t pairs, same = same_pairs(in, n, &pairs);
    if (is_text(in, n))
        return tune_text(same, pairs);
    if (same < pairs / 32)
        return (struct tuning){.dense_len = 32};
    if (same < pairs / 16)
        return (struct tuning){.dense_len = 32, .two_steps = true};
    if (same < pairs / 9)
        return (struct tuning){.min_gain = 4, .dense_len = 128, .deep = true, .two_steps = true};
    if (same < pairs / 9 * 2)
        return (struct tuning){.dense_len = 32, .deep = true, .two_steps = true};
    return (struct tuning){.min_gain = 6, .dense_len = 32, .deep = true, .two_steps = true};
}

INLINE void parse_segments(struct deflate_parse *d, struct parse *p, const struct tuning *t)
{
    lazy_begin(d, t->wide);
    for (uint32_t i = FIRST; i < p->at; i += 2)    /* what is matched already can be referred to */
        lazy_insert(d, p->in, i, t->wide);
    for (uint32_t end = SEGMENT; p->at < p->last; end += SEGMENT) {
        parse_lazy(d, p, min_u32(end, p->last), t);
        put_mark(d);
    }
}

/* Twice, since a table of the newer positions alone is up to 16 % faster: 40 levels, long reads. */
INLINE void parse_any(struct deflate_parse *d, struct parse *p)
{
    struct tuning t = tune(p->in, p->n);
    if (t.deep) {
        t.deep = t.wide = true;
        parse_segments(d, p, &t);
    } else {
        t.deep = t.wide = false;
        parse_segments(d, p, &t);
    }
}

static void parse_older(struct deflate_parse *d, struct parse *p) { parse_any(d, p); }
NEWER static void parse_newer(struct deflate_parse *d, struct parse *p) { parse_any(d, p); }

void deflate_lazy(struct deflate_parse *d, struct parse *p, bool newer)
{
    (newer ? parse_newer : parse_older)(d, p);
}
