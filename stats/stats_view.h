/* SPDX-License-Identifier: MIT */
/* A record as `stats` looks at it. */
#ifndef STATS_VIEW_H
#define STATS_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"

/* The end of a template that a record is. STATS_FIRST: not paired, or READ1 only; STATS_LAST: READ2 only; STATS_OTHER:
 * neither, or both. */
enum stats_end { STATS_FIRST, STATS_LAST, STATS_OTHER, STATS_ENDS };

struct stats_view {
    const struct bam_record *record;
    uint32_t flag;
    enum stats_end end;
    bool is_primary, is_reverse;
    int32_t ref, pos;
    uint32_t length;             /* length of SEQ */
    uint32_t whole;              /* length including the bases that H operations cut off */
    uint32_t n_cigar;
    const uint8_t *cigar;        /* little-endian operations */
    const uint8_t *seq, *qual, *tags;
};

static inline enum stats_end stats_view_end(uint32_t flag)
{
    uint32_t reads = flag & (BAM_FREAD1 | BAM_FREAD2);
    if (!(flag & BAM_FPAIRED) || reads == BAM_FREAD1)
        return STATS_FIRST;
    return reads == BAM_FREAD2 ? STATS_LAST : STATS_OTHER;
}

static inline uint32_t stats_view_op(const struct stats_view *v, uint32_t i)
{
    return load_le32(v->cigar + 4 * (size_t)i);
}

static inline bool stats_view_is_unmapped(const struct stats_view *v)
{
    return v->flag & BAM_FUNMAP;
}

/* Returns the number of bases that H operations cut off. They stand at the ends. */
static inline uint32_t stats_view_clipped(const struct stats_view *v)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i);
        if (bam_cigar_op(op) == BAM_CHARD_CLIP)
            sum += bam_cigar_oplen(op);
    }
    return sum;
}

static inline void stats_view_set(struct stats_view *v, const uint8_t *record)
{
    const struct bam_record *r = (const struct bam_record *)record;
    const uint8_t *tag;
    v->record = r;
    v->flag = bam_record_flag(r);
    v->end = stats_view_end(v->flag);
    v->is_primary = !(v->flag & BAM_FSUPPLEMENTARY);
    v->is_reverse = v->flag & BAM_FREVERSE;
    v->ref = bam_record_ref_id(r);
    v->pos = bam_record_pos(r);
    v->length = load_le32(r->seq_len);
    v->cigar = bam_record_cigar(r, &v->n_cigar, &tag);
    v->seq = bam_record_seq(r);
    v->qual = v->seq + ((size_t)v->length + 1) / 2;
    v->tags = v->qual + v->length;
    v->whole = v->length + stats_view_clipped(v);
}

#endif
