/* SPDX-License-Identifier: MIT */
#include "bam/long_pos.h"

enum { HEAD_SIZE = 8, VALUE_SIZE = 8 };
static const uint8_t head[HEAD_SIZE] = {0, 0, 'B', 'I', 2 * 3, 0, 0, 0};
_Static_assert(LONG_POS_SIZE == HEAD_SIZE + 3 * VALUE_SIZE, "three values of two 32-bit words");

static int32_t nearest(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

void long_pos_put(struct bam_record *r, uint8_t *tag, const struct long_pos *far)
{
    store_le32(r->pos, (uint32_t)nearest(far->pos));
    store_le32(r->next_pos, (uint32_t)nearest(far->next_pos));
    store_le32(r->tlen, (uint32_t)nearest(far->tlen));
    memcpy(tag, head, HEAD_SIZE);
    store_le64(tag + HEAD_SIZE, (uint64_t)far->pos);
    store_le64(tag + HEAD_SIZE + VALUE_SIZE, (uint64_t)far->next_pos);
    store_le64(tag + HEAD_SIZE + 2 * VALUE_SIZE, (uint64_t)far->tlen);
}

const uint8_t *long_pos_tag(const struct bam_record *r)
{
    const uint8_t *aux = bam_record_aux(r), *end = bam_record_end(r);
    return end - aux >= LONG_POS_SIZE && memcmp(aux, head, HEAD_SIZE) == 0 ? aux : NULL;
}

/* The value that p holds in the tag, or the field if the two disagree: -M changes fields after the tag was made, and a
 * file may contain such a tag of another program. */
static int64_t value(int32_t field, const uint8_t *p, int64_t least)
{
    int64_t v = (int64_t)load_le64(p);
    return nearest(v) == field && v >= least ? v : field;
}

struct long_pos long_pos_get(const struct bam_record *r)
{
    int32_t pos = bam_record_pos(r), next = (int32_t)load_le32(r->next_pos), tlen = (int32_t)load_le32(r->tlen);
    const uint8_t *tag = long_pos_tag(r);
    if (!tag)
        return (struct long_pos){pos, next, tlen};
    tag += HEAD_SIZE;
    return (struct long_pos){
        .pos = value(pos, tag, INT32_MIN),
        .next_pos = value(next, tag + VALUE_SIZE, INT32_MIN),
        .tlen = value(tlen, tag + 2 * VALUE_SIZE, INT64_MIN),
    };
}

bool long_pos_fits(const htsFormat *format)
{
    return format->format == sam || format->format == fastq_format || format->format == fasta_format;
}

int64_t long_pos_longest(sam_hdr_t *sam)
{
    int64_t most = 0;
    for (int i = 0; i < sam_hdr_nref(sam); i++)
        most = sam_hdr_tid2len(sam, i) > most ? sam_hdr_tid2len(sam, i) : most;
    return most;
}

const char *long_pos_reference(sam_hdr_t *sam, int n, int64_t longest)
{
    for (int i = 0; i < n; i++)
        if (sam_hdr_tid2len(sam, i) > longest)
            return sam_hdr_tid2name(sam, i);
    return NULL;
}
