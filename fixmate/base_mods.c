/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "fixmate/base_mods.h"
#include "bam/long_pos.h"
#include "fixmate/mod_chain.h"
#include "fixmate/mods_fit.h"

enum {
    NAME = 2,                    /* bytes of a tag before its type, ... */
    HEAD = 3,                    /* ... before its value, ... */
    ARRAY = HEAD + 5,            /* ... and before the elements of an array, after their type and number */
    LENGTH_MOST = 4,             /* bytes of MN's value */
};

/* ------------------------------------------------------------------- tags */

/* Like htslib, treats a tag that cannot be read as the last one. Returns the size of the tag at p, plus any bytes after
 * it that are not a tag. */
static size_t tag_size(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *next = bam_record_aux_skip(p + NAME, end);
    return (size_t)((next && end - next >= HEAD ? next : end) - p);
}

/* Returns the second letter of the tag at p (M, L or N) if it is one of ours; otherwise 0. A draft of the format has
 * them in lower case. */
static uint8_t mod_tag_letter(const uint8_t *p)
{
    uint8_t second = p[1] & (uint8_t)~0x20;
    return p[0] == 'M' && (second == 'M' || second == 'L' || second == 'N') ? second : 0;
}

bool base_mods_any(const uint8_t *p, const uint8_t *end)
{
    for (; end - p >= HEAD; p += tag_size(p, end))
        if (mod_tag_letter(p))
            return true;
    return false;
}

/* The tags of a record. Tags are offsets in its bytes, of the last one of each name; 0: none. */
struct mods {
    struct byte_buffer *record;
    size_t tags;                 /* start of the tags */
    size_t mm, ml, mn;
    bool twice;                  /* there are two MM, or two ML */
    int64_t length;              /* value of MN; -1: none */
    int64_t l_seq;
    bool reverse;
    int64_t clip5, clip3;        /* number of bases that were cut off, along the read */
};

static uint8_t *end_of(const struct mods *m)
{
    return m->record->p + m->record->n;
}

/* Finds our tags. The last tag of each name is used. */
static void find_mod_tags(struct mods *m)
{
    uint8_t *p = m->record->p + m->tags;
    for (; end_of(m) - p >= HEAD; p += tag_size(p, end_of(m))) {
        uint8_t letter = mod_tag_letter(p);
        size_t *place = letter == 'M' ? &m->mm : letter == 'L' ? &m->ml : letter ? &m->mn : NULL;
        if (!place)
            continue;
        p[1] = letter;
        m->twice = m->twice || (*place && place != &m->mn);
        *place = (size_t)(p - m->record->p);
    }
}

/* Size of a number of this type; 0: not a number. */
static size_t number_size(uint8_t type)
{
    return type == 'A' || type == 'f' || type == 'd' ? 0 : bam_record_aux_scalar_size(type);
}

/* The value of the last MN; -1 if there is none. */
static int64_t said_length(const struct mods *m)
{
    const uint8_t *type = m->record->p + m->mn + NAME;
    return m->mn && bam_record_aux_skip(type, end_of(m)) ? (int32_t)bam_record_aux_int(type, -1) : -1;
}

/* Removes all of our tags. A tag whose name is not in the draft, Mn, stays, as in samtools. */
static void remove_tags(struct mods *m)
{
    uint8_t *to = m->record->p + m->tags, *end = end_of(m);
    for (uint8_t *p = to, *next; end - p >= HEAD; p = next) {
        next = p + tag_size(p, end);
        if (mod_tag_letter(p) && p[1] != 'n')
            continue;
        memmove(to, p, (size_t)(next - p));
        to += next - p;
    }
    m->record->n = (size_t)(to - m->record->p);
}

/* ---------------------------------------------------------------- clipping */

/* MM and ML while they are cut, in place. */
struct cut {
    int64_t before[16], until[16];   /* bases of the primary record before the remaining part, and up to its end */
    uint8_t *to;                 /* where the next byte of MM goes */
    const uint8_t *value;        /* the next value of ML; NULL: there is no ML */
    uint8_t *value_to;
};

static void keep(struct cut *t, const uint8_t *text, size_t n)
{
    memmove(t->to, text, n);
    t->to += n;
}

static void keep_values(struct cut *t, size_t n, bool kept)
{
    if (!t->value)
        return;
    if (kept)
        for (size_t i = 0; i < n; i++)
            *t->value_to++ = t->value[i];
    t->value += n;
}

static void keep_number(struct cut *t, int64_t number)
{
    uint8_t digits[20], *p = digits + sizeof digits;
    do
        *--p = (uint8_t)('0' + number % 10);
    while (number /= 10);
    keep(t, p, (size_t)(digits + sizeof digits - p));
}

/* Writes the list at p again, without the modifications of bases that are cut off. The list counts bases of the kind
 * `base`. Returns the end of the old list. */
static const uint8_t *cut_list(struct cut *t, const uint8_t *p, unsigned base, size_t n_types)
{
    int64_t before = t->before[base], until = t->until[base], passed = 0;
    while (*p == ',') {
        int64_t number;
        bool large = false;
        const uint8_t *start = p;
        p = mod_chain_number(p + 1, &number, &large);
        bool first = passed < before && number >= before - passed && until > before;
        bool kept = first || (passed >= before && number < until - passed);
        if (first) {                             /* this number now counts from the cut */
            keep(t, (const uint8_t *)",", 1);
            keep_number(t, number - (before - passed));
        } else if (kept) {
            keep(t, start, (size_t)(p - start));
        }
        keep_values(t, n_types, kept);
        passed = kept || (passed < before && number < before - passed) ? passed + number + 1 : until;
    }
    return p;
}

/* Writes all chains of the text at p again, without the modifications of bases that are cut off. */
static void cut_chains(struct cut *t, const uint8_t *p)
{
    unsigned base = 0;
    bool goes_on = false;        /* a chain without numbers came before */
    while (*p) {
        struct mod_chain c;
        mod_chain_read(p, &c);
        base = goes_on ? base : c.base;
        goes_on = *c.list != ',';
        keep(t, p, (size_t)(c.list - p));
        p = cut_list(t, c.list, base, c.n_types) + 1;
        keep(t, (const uint8_t *)";", 1);
    }
}

/* Writes the tags again without MN, after those at mm and ml have become shorter. */
static void close_gaps(struct mods *m, size_t mm_end, size_t mm_size, size_t ml_end, size_t ml_size)
{
    uint8_t *record = m->record->p;
    size_t to = m->tags;
    for (size_t at = m->tags, next; m->record->n - at >= HEAD; at = next) {
        next = at == m->mm ? mm_end : at == m->ml ? ml_end : at + tag_size(record + at, end_of(m));
        size_t size = at == m->mm ? mm_size : at == m->ml ? ml_size : mod_tag_letter(record + at) ? 0 : next - at;
        memmove(record + to, record + at, size);
        to += size;
    }
    m->record->n = to;
}

/* Cuts MM and ML to the remaining part of the primary record's SEQ, and removes MN. An ML of another type is removed,
 * too. False: all must be removed. */
static bool cut_to_primary(struct mods *m, const struct bam_record *primary)
{
    uint8_t *mm = m->record->p + m->mm, *ml = m->ml ? m->record->p + m->ml : NULL;
    size_t mm_size = tag_size(mm, end_of(m)), ml_size = ml ? tag_size(ml, end_of(m)) : 0;
    bool has_values = ml && ml[2] == 'B' && ml[3] == 'C' && bam_record_aux_skip(ml + NAME, end_of(m));
    struct cut t = {.to = mm + HEAD};
    if (m->twice || mm[2] != 'Z' || mm[mm_size - 1] != 0)
        return false;
    if (has_values)
        t.value = t.value_to = ml + ARRAY;
    uint64_t n_said;
    if (!mod_chain_all(mm + HEAD, &n_said) || (has_values && n_said != load_le32(ml + HEAD + 1)))
        return false;
    mod_chain_count_bases(bam_record_seq(primary), 0, m->clip5, t.before);
    memcpy(t.until, t.before, sizeof t.until);
    mod_chain_count_bases(bam_record_seq(primary), m->clip5, (int64_t)load_le32(primary->seq_len) - m->clip3, t.until);
    cut_chains(&t, mm + HEAD);
    *t.to++ = 0;
    size_t n_values = has_values ? (size_t)(t.value_to - (ml + ARRAY)) : 0;
    if (has_values)
        store_le32(ml + HEAD + 1, (uint32_t)n_values);
    close_gaps(m, m->mm + mm_size, (size_t)(t.to - mm), m->ml + ml_size, has_values ? ARRAY + n_values : 0);
    return true;
}

/* -------------------------------------------------------------- the record */

/* Sets the first MN to the length of SEQ. It keeps its place, and its size if that is enough. */
static enum base_mods put_length(struct mods *m)
{
    int bad;
    uint8_t *tags = m->record->p + m->tags, *end = end_of(m);
    const uint8_t *type = bam_record_aux_find(tags, end, "MN", &bad);
    if (!type)
        return bad ? BASE_MODS_BROKEN : BASE_MODS_WITHOUT_LENGTH;
    uint8_t *p = tags + (type - tags);
    size_t had = number_size(*p), size = bam_record_aux_width((uint32_t)m->l_seq);
    if (had == 0)
        return BASE_MODS_BROKEN;
    if (size > had) {
        memmove(p + 1 + size, p + 1 + had, (size_t)(end - p) - 1 - had);
        m->record->n += size - had;
    }
    bam_record_aux_store(p, (uint32_t)m->l_seq, size > had ? size : had);
    return BASE_MODS_NORMALISED;
}

static void set_clips(struct mods *m, const struct bam_record *r)
{
    uint32_t n;
    const uint8_t *tag, *cigar = bam_record_cigar(r, &n, &tag);
    uint32_t first = n > 0 ? load_le32(cigar) : 0, last = n > 1 ? load_le32(cigar + 4 * (size_t)(n - 1)) : 0;
    int64_t left = bam_cigar_op(first) == BAM_CHARD_CLIP ? bam_cigar_oplen(first) : 0;
    int64_t right = bam_cigar_op(last) == BAM_CHARD_CLIP ? bam_cigar_oplen(last) : 0;
    m->clip5 = m->reverse ? right : left;
    m->clip3 = m->reverse ? left : right;
}

static enum base_mods fix_primary(struct mods *m)
{
    bool clipped = m->clip5 || m->clip3;
    if (clipped && m->length != m->l_seq)        /* they were made before bases were cut off */
        remove_tags(m);
    return !clipped && m->length <= 0 && m->l_seq ? put_length(m) : BASE_MODS_NORMALISED;
}

static enum base_mods fix_other(struct mods *m, const struct bam_record *primary)
{
    int64_t whole = load_le32(primary->seq_len);
    bool is_whole_read = m->clip5 == 0 && m->clip3 == 0;
    if (m->length == m->l_seq)
        return BASE_MODS_NORMALISED;
    if (whole != m->l_seq + m->clip5 + m->clip3
        || (!is_whole_read && (m->length < 0 || m->length == whole) && !cut_to_primary(m, primary))) {
        remove_tags(m);
        return BASE_MODS_NORMALISED;
    }
    return m->l_seq ? put_length(m) : BASE_MODS_NORMALISED;
}

/* Corrects a primary record, or one that has a primary record. block_size is not changed. */
static enum base_mods fix(struct mods *m, const struct bam_record *r, const struct bam_record *primary)
{
    find_mod_tags(m);
    if (!m->mm) {
        remove_tags(m);
        return BASE_MODS_NORMALISED;
    }
    m->length = said_length(m);
    set_clips(m, r);
    return primary ? fix_other(m, primary) : fix_primary(m);
}

static void set_size(const struct mods *m, struct bam_record *r)
{
    store_le32(r->block_size, (uint32_t)(m->record->n - 4));
}

enum base_mods base_mods_fix(struct byte_buffer *record, const struct bam_record *primary)
{
    if (byte_buffer_reserve(record, record->n + LENGTH_MOST) < 0)
        return BASE_MODS_NO_MEMORY;
    struct bam_record *r = (struct bam_record *)record->p;
    struct mods m = {
        .record = record,
        .tags = (size_t)(long_pos_other_tags(r) - record->p),
        .l_seq = load_le32(r->seq_len),
        .reverse = bam_record_flag(r) & BAM_FREVERSE,
    };
    bool is_other = bam_record_flag(r) & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY);
    enum base_mods result = primary || !is_other ? fix(&m, r, primary) : BASE_MODS_NORMALISED;
    set_size(&m, r);
    if (result == BASE_MODS_BROKEN || mods_fit(r))
        return result;
    remove_tags(&m);
    set_size(&m, r);
    return BASE_MODS_NORMALISED;
}

/* ------------------------------------------------------------------- guard */

/* Returns whether fixmate may remove the tag at p, or write it. */
static bool may_change(const uint8_t *p)
{
    static const char names[][NAME] = {{'M', 'Q'}, {'M', 'C'}, {'c', 't'}, {'m', 's'}, {'N', 'M'}, {'M', 'D'},
                                       {'C', 'G'}, {'S', 'M'}, {0, 0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (memcmp(p, names[i], NAME) == 0)
            return true;
    return mod_tag_letter(p);
}

static const uint8_t *pass_changed(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= HEAD && may_change(p))
        p += tag_size(p, end);
    return p;
}

bool base_mods_kept_others(const struct bam_record *read, const struct bam_record *made)
{
    const uint8_t *p = bam_record_aux(read), *end = bam_record_end(read);
    const uint8_t *to = bam_record_aux(made), *to_end = bam_record_end(made);
    bool sound = p == end;       /* there are no bytes that are not a tag */
    for (size_t size; end - p >= HEAD; p += size) {
        size = tag_size(p, end);
        sound = bam_record_aux_skip(p + NAME, end) == p + size;
        if (may_change(p))
            continue;
        to = pass_changed(to, to_end);
        if ((size_t)(to_end - to) < size || memcmp(p, to, size) != 0)
            return false;
        to += size;
    }
    return !sound || pass_changed(to, to_end) == to_end;
}
