/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include "base/ascii.h"
#include "fixmate/mod_chain.h"

const uint8_t *mod_chain_number(const uint8_t *p, int64_t *value, bool *large)
{
    *value = 0;
    for (p += *p == '+'; ascii_is_digit(*p); p++) {
        *value = 10 * *value + (*p - '0');
        if (*value > INT32_MAX) {
            *value = INT32_MAX;
            *large = true;
        }
    }
    return p;
}

/* Returns the base as BAM has it; 0: none. Tables of older htslibs lack U. */
static unsigned code_of_letter(uint8_t letter)
{
    switch (letter) {
    case 'A': return 1;
    case 'C': return 2;
    case 'G': return 4;
    case 'T': case 'U': return 8;
    case 'N': return MOD_CHAIN_ANY;
    default: return 0;
    }
}

bool mod_chain_read(const uint8_t *p, struct mod_chain *c)
{
    bool large = false;
    int64_t code;
    c->base = code_of_letter(*p);
    if (!c->base || (p[1] != '+' && p[1] != '-'))
        return false;
    p += 2;
    c->code_end = ascii_is_digit(*p) ? mod_chain_number(p, &code, &large) : NULL;
    if (c->code_end) {
        c->n_types = 1;
        p = c->code_end;
    } else {
        for (c->n_types = 0; ascii_is_letter(*p); p++)
            c->n_types++;
    }
    bool marked = *p == '.' || *p == '?';
    c->list = p + marked;
    return !large && (marked || *p == ',' || *p == ';');
}

bool mod_chain_all(const uint8_t *p, uint64_t *n_values)
{
    *n_values = 0;
    while (*p) {
        struct mod_chain c;
        if (!mod_chain_read(p, &c))
            return false;
        for (p = c.list; *p == ','; *n_values += c.n_types) {
            int64_t number;
            bool large = false;
            p = mod_chain_number(p + 1, &number, &large);
            if (!ascii_is_digit(p[-1]) || large)
                return false;
        }
        if (*p++ != ';')
            return false;
    }
    return true;
}

/* Counts by pairs, alternating between two tables, because a processor waits before it adds to the same place again. */
void mod_chain_count_bases(const uint8_t *seq, int64_t from, int64_t to, int64_t counts[16])
{
    uint32_t pairs[2][256] = {{0}};
    for (; from < to && from % 2; from++)
        counts[bam_seqi(seq, from)]++;
    for (; from + 3 < to; from += 4) {
        pairs[0][seq[from / 2]]++;
        pairs[1][seq[from / 2 + 1]]++;
    }
    for (; from < to; from++)
        counts[bam_seqi(seq, from)]++;
    for (unsigned i = 0; i < 256; i++) {
        counts[i >> 4] += pairs[0][i] + pairs[1][i];
        counts[i & 15] += pairs[0][i] + pairs[1][i];
    }
}
