/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include "markdup/dup_kept.h"

/* Returns whether markdup may change the tag at p. */
static bool is_markdup_tag(const uint8_t *p, bool umi)
{
    return (p[0] == 'd' && (p[1] == 'o' || p[1] == 't' || p[1] == 'c')) || (umi && p[0] == 'R' && p[1] == 'X');
}

/* Returns the next tag from *p on that markdup may not change, or the rest if it cannot be read, and moves *p past it.
 * Returns `end` if there is none. */
static const uint8_t *next_kept_tag(const uint8_t **p, const uint8_t *end, bool umi)
{
    while (*p < end) {
        const uint8_t *tag = *p, *next = end - tag >= 3 ? bam_record_aux_next(tag, end) : NULL;
        *p = next ? next : end;
        if (!next || !is_markdup_tag(tag, umi))
            return tag;
    }
    return end;
}

static bool same_tags(const uint8_t *a, const uint8_t *a_end, const uint8_t *b, const uint8_t *b_end, bool umi)
{
    while (a < a_end || b < b_end) {
        const uint8_t *x = next_kept_tag(&a, a_end, umi), *y = next_kept_tag(&b, b_end, umi);
        if (a - x != b - y || memcmp(x, y, (size_t)(a - x)) != 0)
            return false;
    }
    return true;
}

bool dup_kept(const struct bam_record *r, const uint8_t *made, size_t n, bool umi)
{
    const struct bam_record *m = bam_record_at(made);
    if (n < BAM_MIN_RECORD || !bam_record_fits(m, n) || (bam_record_flag(r) ^ bam_record_flag(m)) & ~BAM_FDUP)
        return false;
    struct bam_record expected = *m;
    memcpy(expected.block_size, r->block_size, sizeof r->block_size);
    memcpy(expected.flag, r->flag, sizeof r->flag);
    expected.name_len = umi ? r->name_len : m->name_len;
    if (memcmp(&expected, r, sizeof expected) != 0 || (!umi && memcmp(r->data, m->data, r->name_len) != 0))
        return false;
    const uint8_t *tags = bam_record_aux(r), *made_tags = bam_record_aux(m);
    const uint8_t *body = r->data + r->name_len, *made_body = m->data + m->name_len;
    return tags - body == made_tags - made_body && memcmp(body, made_body, (size_t)(tags - body)) == 0
        && same_tags(tags, bam_record_end(r), made_tags, made + n, umi);
}
