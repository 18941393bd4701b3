/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: what the first sequences of a block tell of how much smaller a deeper search would
 * make it. */
#ifndef DEFLATE_TRIAL_H
#define DEFLATE_TRIAL_H

#include "codec/deflate_records.h"

enum {
    LONG_LEN = 40,                /* of a match; such come from copies of whole fields */
    NEAR = 512,                   /* a match no further than so many bytes */
    LITERAL_SAMPLES = 256,
};

/* Of the first records: bytes, those of heads and names, and qualities. */
struct head_share {
    uint32_t bytes, heads, quals;
};

/* Are there FIRST_RECORDS, most of mapped reads, with SEQ and QUAL? */
static inline bool measure_heads(const struct parse *p, struct head_share *h)
{
    struct fields f;
    uint32_t mapped = 0;
    for (uint32_t k = 0, at = 0; k < FIRST_RECORDS; k++, at = f.end) {
        if (!find_fields(p->in, p->n, at, &f))
            return false;
        mapped += is_mapped(p, &f);
        h->heads += f.cigar - f.at;
        h->quals += f.tags - f.qual;
        h->bytes = f.end;
    }
    return mapped * 2 > FIRST_RECORDS && h->quals * QUAL_RATE > h->bytes;
}

/* What became of a trial, and how often two of its literals are the same. */
struct trial {
    uint32_t bytes, lits, seqs;
    uint32_t apart, by_one;       /* matches with literals before them, with one */
    uint32_t from_8, from_16;     /* of 8 to 15 bytes, of 16 to LONG_LEN */
    uint32_t near;                /* no further than NEAR */
    uint32_t in_long;             /* bytes of long matches */
    uint32_t same, pairs;
};

/* Of what was put from one mark to the other. */
static inline struct trial look_back(const struct deflate_parse *d, struct mark from, struct mark to)
{
    struct trial t = {.lits = to.lit - from.lit, .seqs = to.seq - from.seq};
    t.bytes = t.lits;
    for (const struct seq *s = d->seq + from.seq; s < d->seq + to.seq; s++) {
        t.bytes += s->len;
        t.apart += s->lits > 0;
        t.by_one += s->lits == 1;
        t.from_8 += s->len >= 8 && s->len < 16;
        t.from_16 += s->len >= 16 && s->len < LONG_LEN;
        t.near += s->dist_sym <= dist_symbol(NEAR);
        t.in_long += s->len >= LONG_LEN ? s->len : 0u;
    }
    uint16_t count[256] = {0};
    uint32_t samples = 0, step = t.lits / LITERAL_SAMPLES + 1;
    for (uint32_t i = from.lit; i < to.lit; i += step, samples++)
        t.same += count[d->lit[i]]++;
    t.pairs = samples * (samples - (samples > 0)) / 2;
    return t;
}

/* What a match must gain for deflate_deep(): more if literals are so often the same; few literals say little. */
static inline int32_t cheap_literals(const struct trial *t)
{
    return (int32_t)min_u32(max_u32(t->same * 400 / max_u32(t->pairs, 1), 12) - 12, 6);
}

#endif
