/* SPDX-License-Identifier: MIT */
/* The default level where the fields of records do not tell: any bytes lazily. */
#include "codec/deflate_lazy.h"

/* A second lazy step gains 0.5 % on generated qualities of 40 levels, for 11 % of the speed; the literals of some data
 * cost so little that short matches do not pay (10x reads 0.25 %, unmapped ones 3 %). */
static struct tuning tune(const uint8_t *in, uint32_t n)
{
    uint32_t pairs, same = same_pairs(in, n, &pairs);
    if (same < pairs / 32)
        return (struct tuning){0, 32, false, false};
    if (same < pairs / 16)
        return (struct tuning){0, 32, false, true};
    if (same < pairs / 9)
        return (struct tuning){4, 128, true, true};
    if (same < pairs / 9 * 2)
        return (struct tuning){0, 32, true, true};
    return (struct tuning){6, 32, true, true};
}

INLINE void parse_segments(struct deflate_parse *d, struct parse *p)
{
    const struct tuning t = tune(p->in, p->n);
    lazy_begin(d);
    for (uint32_t i = FIRST; i < p->at; i += 2)    /* what is matched already can be referred to */
        lazy_insert(d, p->in, i);
    for (uint32_t end = SEGMENT; p->at < p->last; end += SEGMENT) {
        parse_lazy(d, p, min_u32(end, p->last), &t);
        put_mark(d);
    }
}

static void parse_older(struct deflate_parse *d, struct parse *p) { parse_segments(d, p); }
NEWER static void parse_newer(struct deflate_parse *d, struct parse *p) { parse_segments(d, p); }

void deflate_lazy(struct deflate_parse *d, struct parse *p, bool newer)
{
    (newer ? parse_newer : parse_older)(d, p);
}
