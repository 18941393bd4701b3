/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include "hts/bam1_bytes.h"
#include "base/byte_buffer.h"
#include "bam/long_pos.h"

static void put_fixed(struct bam_record *r, const bam1_t *b, size_t name_size, uint32_t n_cigar)
{
    const bam1_core_t *c = &b->core;
    store_le32(r->ref_id, (uint32_t)c->tid);
    store_le32(r->pos, (uint32_t)c->pos);
    r->name_len = (uint8_t)name_size;
    r->mapq = c->qual;
    store_le16(r->bin, c->bin);
    store_le16(r->n_cigar, (uint16_t)n_cigar);
    store_le16(r->flag, c->flag);
    store_le32(r->seq_len, (uint32_t)c->l_qseq);
    store_le32(r->next_ref_id, (uint32_t)c->mtid);
    store_le32(r->next_pos, (uint32_t)c->mpos);
    store_le32(r->tlen, (uint32_t)c->isize);
}

static uint8_t *put_cigar(uint8_t *p, const uint32_t *cigar, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, p += 4)
        store_le32(p, cigar[i]);
    return p;
}

static uint8_t *append(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

int bam1_bytes_append(struct byte_buffer *to, const bam1_t *b)
{
    const bam1_core_t *c = &b->core;
    size_t name_size = (size_t)c->l_qname - c->l_extranul;
    size_t seq = ((size_t)c->l_qseq + 1) / 2 + (size_t)c->l_qseq;   /* QUAL included */
    size_t tags = (size_t)b->l_data - c->l_qname - 4 * (size_t)c->n_cigar - seq;
    struct long_pos far = {c->pos, c->mpos, c->isize};
    int in_tag = c->n_cigar > BAM_INLINE_OPS_MAX;
    size_t cigar = 4 * (size_t)(in_tag ? 2 : c->n_cigar), tag = in_tag ? 8 + 4 * (size_t)c->n_cigar : 0;
    bool is_far = long_pos_needed(&far);
    size_t size = BAM_FIXED + name_size + cigar + seq + (is_far ? LONG_POS_SIZE : 0) + tags + tag;
    if (c->pos < INT32_MIN || c->mpos < INT32_MIN || name_size > BAM_NAME_SIZE_MAX || size > INT32_MAX) {
        errno = EOVERFLOW;
        return -1;
    }
    if (byte_buffer_reserve(to, to->n + size) < 0)
        return -1;
    struct bam_record *r = (struct bam_record *)(to->p + to->n);
    to->n += size;
    store_le32(r->block_size, (uint32_t)(size - 4));
    put_fixed(r, b, name_size, in_tag ? 2 : c->n_cigar);
    memcpy(r->data, bam_get_qname(b), name_size);
    uint32_t span[2] = {(uint32_t)c->l_qseq << BAM_CIGAR_SHIFT | BAM_CSOFT_CLIP, 0};
    if (in_tag)
        span[1] = (uint32_t)bam_cigar2rlen((int)c->n_cigar, bam_get_cigar(b)) << BAM_CIGAR_SHIFT | BAM_CREF_SKIP;
    uint8_t *p = put_cigar(r->data + name_size, in_tag ? span : bam_get_cigar(b), in_tag ? 2 : c->n_cigar);
    p = append(p, bam_get_seq(b), bam_get_aux(b));
    if (is_far) {
        long_pos_put(r, p, &far);
        p += LONG_POS_SIZE;
    }
    p = append(p, bam_get_aux(b), bam_get_aux(b) + tags);
    if (in_tag) {
        memcpy(p, "CGBI", 4);
        store_le32(p + 4, c->n_cigar);
        put_cigar(p + 8, bam_get_cigar(b), c->n_cigar);
    }
    return is_far;
}

static void get_fixed(bam1_core_t *c, const struct bam_record *r, uint32_t n_cigar)
{
    struct long_pos far = long_pos_get(r);
    memset(c, 0, sizeof *c);
    c->tid = bam_record_ref_id(r);
    c->pos = far.pos;
    c->bin = load_le16(r->bin);
    c->qual = r->mapq;
    /* pads the name: htslib keeps the CIGAR aligned */
    c->l_extranul = (uint8_t)(-(unsigned)r->name_len & 3);
    c->l_qname = (uint16_t)(r->name_len + c->l_extranul);
    c->flag = bam_record_flag(r);
    c->n_cigar = n_cigar;
    c->l_qseq = (int32_t)load_le32(r->seq_len);
    c->mtid = (int32_t)load_le32(r->next_ref_id);
    c->mpos = far.next_pos;
    c->isize = far.tlen;
}

static int grow_data(bam1_t *b, size_t size)
{
    if (size <= b->m_data)
        return 0;
    size_t max = size + size / 2;
    uint8_t *data = max > INT32_MAX ? NULL : realloc(b->data, max);
    if (!data)
        return -1;
    b->data = data;
    b->m_data = (uint32_t)max;
    return 0;
}

int bam1_from_record(bam1_t *b, const struct bam_record *r)
{
    uint32_t n;
    const uint8_t *tag, *cigar = bam_record_cigar(r, &n, &tag);
    const uint8_t *end = bam_record_end(r);
    if (grow_data(b, (size_t)(end - r->data) + 3 + 4 * (size_t)n) < 0)
        return -1;
    get_fixed(&b->core, r, n);
    uint8_t *p = append(b->data, r->data, r->data + r->name_len);
    memset(p, 0, b->core.l_extranul);
    p += b->core.l_extranul;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = load_le32(cigar + 4 * (size_t)i);
        memcpy(p + 4 * (size_t)i, &op, 4);
    }
    p += 4 * (size_t)n;
    p = append(p, bam_record_seq(r), bam_record_aux(r));
    p = append(p, long_pos_other_tags(r), tag ? tag : end);
    if (tag)
        p = append(p, tag + 8 + 4 * (size_t)n, end);
    b->l_data = (int)(p - b->data);
    return 0;
}
