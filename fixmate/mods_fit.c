/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "bam/long_pos.h"
#include "fixmate/mod_chain.h"
#include "fixmate/mods_fit.h"

/* The result of reading all chains. */
struct look {
    int64_t n_of[16];            /* number of bases in SEQ, along the read; MOD_CHAIN_ANY: all */
    bool reverse;
    bool has_seq, has_ml;
    uint64_t n_types, n_values;  /* that ML must have */
    bool beyond;                 /* a list continues after SEQ */
    bool stops;                  /* there is a number at which htslib stops and accepts the rest */
};

/* Walks along SEQ from the first number of a list, which ends at p. htslib compares inexactly. */
static void follow(struct look *l, const struct mod_chain *c, int64_t number, const uint8_t *p)
{
    enum { FAR = 0x7f000000 };
    int64_t left = l->n_of[c->base];
    while (number < left && !l->stops) {
        left -= number + 1;
        number = INT32_MAX;
        if (*p == ',')
            p = mod_chain_number(p + 1, &number, &l->stops);
    }
    l->beyond = l->beyond || number - left < FAR || (*p && *p != ';');
}

static const uint8_t *look_forward(struct look *l, const struct mod_chain *c)
{
    const uint8_t *p = c->list;
    int64_t first = INT32_MAX;
    if (*p == ',') {
        bool large = false;
        const uint8_t *end = mod_chain_number(p + 1, &first, &large);
        if (end == p + 1 || large)
            return NULL;
        p = end;
    }
    if (c->n_types > 0)
        follow(l, c, first, p);
    for (p = c->list; *p && *p != ';'; p++)
        l->n_values += *p == ',' ? c->n_types : 0;
    return p;
}

/* htslib reads the full list here, so the list may end in a comma, but not without ML. */
static const uint8_t *look_reverse(struct look *l, const struct mod_chain *c)
{
    const uint8_t *p = c->list, *end = c->code_end;
    uint32_t passed = 0;         /* an int, as in htslib */
    for (;;) {
        int64_t number;
        bool large = false;
        p += *p == ',';
        if (!*p || *p == ';')
            break;
        end = mod_chain_number(p, &number, &large);
        if (end == p || large)
            return NULL;
        p = end;
        passed += (uint32_t)number + 1;
        l->n_values += c->n_types;
    }
    bool fits = (int32_t)((uint32_t)l->n_of[c->base] - passed) >= 0;
    return c->n_types > 0 && !fits ? NULL : !l->has_ml && end ? end : p;
}

static bool look_at_chains(struct look *l, const uint8_t *p)
{
    enum { TYPES_MAX = 256 };    /* limit of htslib */
    while (*p) {
        struct mod_chain c;
        if (!mod_chain_read(p, &c) || (l->n_types += c.n_types) >= TYPES_MAX)
            return false;
        p = l->reverse ? look_reverse(l, &c) : look_forward(l, &c);
        if (!p || !*p)
            return false;
        p++;
    }
    return l->reverse || !l->has_seq || l->stops || !l->beyond;
}

static unsigned complement(unsigned base)
{
    return (base & 1) << 3 | (base & 2) << 1 | (base & 4) >> 1 | (base & 8) >> 3;
}

/* The first tag of that name, or of its draft name. */
static const uint8_t *first_tag(const struct bam_record *r, const char name[2], const char draft[2])
{
    int bad;
    const uint8_t *tags = long_pos_other_tags(r), *end = bam_record_end(r);
    const uint8_t *found = bam_record_aux_find(tags, end, name, &bad);
    return found ? found : bam_record_aux_find(tags, end, draft, &bad);
}

bool mods_fit(const struct bam_record *r)
{
    const uint8_t *mm = first_tag(r, "MM", "Mm"), *ml = first_tag(r, "ML", "Ml"), *mn = first_tag(r, "MN", "MN");
    int64_t l_seq = load_le32(r->seq_len), counts[16] = {0};
    struct look l = {.reverse = bam_record_flag(r) & BAM_FREVERSE, .has_seq = l_seq > 0, .has_ml = ml};
    if (!mm)
        return true;
    if (mm[0] != 'Z' || (mn && l_seq && bam_record_aux_int(mn, 0) != l_seq) || (ml && (ml[0] != 'B' || ml[1] != 'C')))
        return false;
    mod_chain_count_bases(bam_record_seq(r), 0, l_seq, counts);
    for (unsigned i = 0; i < 16; i++)
        l.n_of[i] = counts[l.reverse ? complement(i) : i];
    l.n_of[MOD_CHAIN_ANY] = l_seq;
    return look_at_chains(&l, mm + 1) && (!ml || l.n_values == load_le32(ml + 2));
}
