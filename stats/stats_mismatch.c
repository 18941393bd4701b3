/* SPDX-License-Identifier: MIT */
#include "stats/stats_mismatch.h"

/* Returns the code of a letter if it is A, C, G or T, else 0. */
static unsigned plain_code(char letter)
{
    switch (letter) {
    case 'A': case 'a': return 1;
    case 'C': case 'c': return 2;
    case 'G': case 'g': return 4;
    case 'T': case 't': return 8;
    default: return 0;
    }
}

static unsigned code_at(const uint8_t *seq, uint64_t i)
{
    return i & 1 ? seq[i / 2] & 15 : seq[i / 2] >> 4;
}

/* Logs the mismatches of a block of n bases that begins at `query` of SEQ. bases: the bases of the reference that the
 * block is aligned to. */
static int log_block(struct stats_log *log, const struct stats_view *v, const char *bases, uint64_t query,
                     uint64_t cycle, uint64_t n)
{
    enum { NONE = 0, ANY = 15 };
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = code_at(v->seq, query + i), expected = plain_code(bases[i]);
        if (code == expected || code == NONE || (code != ANY && !expected))
            continue;
        uint64_t at = v->is_reverse ? v->whole - 1 - (cycle + i) : cycle + i;
        if (stats_log_mismatch(log, at, code == ANY ? 0 : (v->qual[query + i] + 1u) & 255) < 0)
            return -1;
    }
    return 0;
}

enum stats_mismatch stats_mismatch_log(struct stats_log *log, const struct stats_view *v,
                                       const struct stats_sequence *sequence)
{
    int64_t place = v->pos;
    uint64_t query = 0, cycle = 0;
    for (uint32_t i = 0; i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i), n = bam_cigar_oplen(op);
        switch (bam_cigar_op(op)) {
        case BAM_CDEL:
            place += n;
            break;
        case BAM_CINS: case BAM_CSOFT_CLIP:
            query += n;
            cycle += n;
            break;
        case BAM_CHARD_CLIP:
            cycle += n;
            break;
        case BAM_CMATCH: case BAM_CEQUAL: case BAM_CDIFF:
            if (place < 0 || place + n > sequence->n || query + n > v->length)
                return STATS_MISMATCH_BEYOND;
            if (log_block(log, v, sequence->bases + place, query, cycle, n) < 0)
                return STATS_MISMATCH_NO_MEMORY;
            place += n;
            query += n;
            cycle += n;
            break;
        }
    }
    return STATS_MISMATCH_OK;
}
