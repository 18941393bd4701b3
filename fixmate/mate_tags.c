/* SPDX-License-Identifier: MIT */
#include "bam/bam_record.h"
#include "fixmate/mate_tags.h"

enum { HEAD = 3 };               /* bytes of a tag before its value */
static const char names[MATE_TAGS][2] = {{'M', 'Q'}, {'M', 'C'}, {'c', 't'}, {'m', 's'}, {'M', 'N'}};

/* The tag at p if it is one of ours; MATE_TAGS: none. */
static enum mate_tag mate_tag_of(const uint8_t *p)
{
    if (p[0] == 'M')
        return p[1] == 'Q' ? MATE_MQ : p[1] == 'C' ? MATE_MC : p[1] == 'N' ? MATE_MN : MATE_TAGS;
    return p[0] == 'm' && p[1] == 's' ? MATE_MS : p[0] == 'c' && p[1] == 't' ? MATE_CT : MATE_TAGS;
}

void mate_tags_begin(struct mate_tags *t, const uint8_t *p, const uint8_t *end)
{
    t->begin = p;
    t->end = end;
    t->first = NULL;
    memset(t->left, 0, sizeof t->left);
    memset(t->gone, 0, sizeof t->gone);
    memset(t->n_added, 0, sizeof t->n_added);
    t->added.n = 0;
    for (const uint8_t *next; end - p >= HEAD && (next = bam_record_aux_next(p, end)); p = next) {
        enum mate_tag which = mate_tag_of(p);
        if (which == MATE_TAGS)
            continue;
        t->first = t->first ? t->first : p;
        t->left[which]++;
    }
}

/* Removes the first added tag of that name. The added tags are ours, and can be read. */
static void drop_added(struct byte_buffer *added, enum mate_tag which)
{
    uint8_t *end = added->p + added->n;
    for (uint8_t *p = added->p, *next; p < end; p = next) {
        next = p + (bam_record_aux_next(p, end) - p);
        if (mate_tag_of(p) == which) {
            memmove(p, next, (size_t)(end - next));
            added->n -= (size_t)(next - p);
            return;
        }
    }
}

void mate_tags_drop(struct mate_tags *t, enum mate_tag which)
{
    if (t->left[which] > 0) {
        t->left[which]--;
        t->gone[which]++;
    } else if (t->n_added[which] > 0) {
        t->n_added[which]--;
        drop_added(&t->added, which);
    }
}

/* Returns the place for a value of `size` bytes; NULL: out of memory. */
static uint8_t *put(struct mate_tags *t, enum mate_tag which, char type, size_t size)
{
    struct byte_buffer *added = &t->added;
    mate_tags_drop(t, which);
    if (byte_buffer_reserve(added, added->n + HEAD + size) < 0)
        return NULL;
    uint8_t *p = added->p + added->n;
    added->n += HEAD + size;
    t->n_added[which]++;
    memcpy(p, names[which], sizeof names[which]);
    p[2] = (uint8_t)type;
    return p + HEAD;
}

int mate_tags_put_int(struct mate_tags *t, enum mate_tag which, uint32_t value)
{
    uint8_t *p = put(t, which, 'i', sizeof value);
    if (p)
        store_le32(p, value);
    return p ? 0 : -1;
}

int mate_tags_put_small(struct mate_tags *t, enum mate_tag which, uint32_t value)
{
    size_t size = bam_record_aux_width(value);
    uint8_t *p = put(t, which, 'I', size);
    if (p)
        bam_record_aux_store(p - 1, value, size);
    return p ? 0 : -1;
}

int mate_tags_put_text(struct mate_tags *t, enum mate_tag which, const uint8_t *text, size_t n)
{
    uint8_t *p = put(t, which, 'Z', n + 1);
    if (!p)
        return -1;
    memcpy(p, text, n);
    p[n] = 0;
    return 0;
}

static uint8_t *copy(uint8_t *to, const uint8_t *p, const uint8_t *end)
{
    if (end > p)
        memcpy(to, p, (size_t)(end - p));
    return to + (end - p);
}

uint8_t *mate_tags_write(const struct mate_tags *t, uint8_t *to)
{
    uint32_t gone[MATE_TAGS], left = 0;
    for (int i = 0; i < MATE_TAGS; i++)
        left += gone[i] = t->gone[i];
    const uint8_t *from = t->begin;              /* start of the bytes not written yet */
    for (const uint8_t *p = t->first, *next; left > 0; p = next) {
        enum mate_tag which = mate_tag_of(p);
        next = bam_record_aux_next(p, t->end);
        if (which == MATE_TAGS || gone[which] == 0)
            continue;
        gone[which]--;
        left--;
        to = copy(to, from, p);
        from = next;
    }
    to = copy(to, from, t->end);
    return copy(to, t->added.p, t->added.p + t->added.n);
}
