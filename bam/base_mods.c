/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "bam/base_mods.h"
#include "bam/far_pos.h"

enum {
    NAME = 2,                    /* bytes of a tag before its type ... */
    HEAD = 3,                    /* ... and before its value; a text follows, or of an array: */
    ARRAY = HEAD + 5,            /* its type and the number of its elements before them */
    LENGTH_MOST = 4,             /* bytes of MN's value */
    ANY = 15,                    /* base N */
};

/* ------------------------------------------------------------------- tags */

/* Like htslib, takes a tag that cannot be read for the last one. Returns the bytes of the tag at p and of what is no
 * tag behind it. */
static size_t tag_size(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *next = bam_record_aux_skip(p + NAME, end);
    return (size_t)((next && end - next >= HEAD ? next : end) - p);
}

/* Which of ours the tag at p is, M, L or N; 0: none. A draft of the format has them in lower case. */
static uint8_t which_of(const uint8_t *p)
{
    uint8_t second = p[1] & (uint8_t)~0x20;
    return p[0] == 'M' && (second == 'M' || second == 'L' || second == 'N') ? second : 0;
}

bool base_mods_any(const uint8_t *p, const uint8_t *end)
{
    for (; end - p >= HEAD; p += tag_size(p, end))
        if (which_of(p))
            return true;
    return false;
}

/* What a record has. Tags are places in its bytes, the last one of their name; 0: there is none. */
struct mods {
    struct byte_buffer *record;
    size_t tags;                 /* where they begin */
    size_t mm, ml, mn;
    bool twice;                  /* there are two MM, or two ML */
    int64_t length;              /* what MN says; -1: nothing */
    int64_t l_seq;
    const uint8_t *seq;
    bool reverse;
    int64_t clip5, clip3;        /* bases that were cut off, along the read */
};

static uint8_t *end_of(const struct mods *m)
{
    return m->record->p + m->record->n;
}

/* The last tag of each name counts. */
static void find_tags(struct mods *m)
{
    uint8_t *p = m->record->p + m->tags;
    for (; end_of(m) - p >= HEAD; p += tag_size(p, end_of(m))) {
        size_t *place = which_of(p) == 'M' ? &m->mm : which_of(p) == 'L' ? &m->ml : which_of(p) ? &m->mn : NULL;
        if (!place)
            continue;
        p[1] = which_of(p);
        m->twice = m->twice || (*place && place != &m->mn);
        *place = (size_t)(p - m->record->p);
    }
}

/* Bytes of a number of this type; 0: it is none. */
static size_t number_size(uint8_t type)
{
    return type == 'A' || type == 'f' || type == 'd' ? 0 : bam_record_aux_scalar_size(type);
}

/* The number whose type is at p; `none` where it is none. */
static int64_t number_at(const uint8_t *p, int64_t none)
{
    switch (p[0]) {
    case 'c': return (int8_t)p[1];
    case 'C': return p[1];
    case 's': return (int16_t)load_le16(p + 1);
    case 'S': return load_le16(p + 1);
    case 'i': return (int32_t)load_le32(p + 1);
    case 'I': return load_le32(p + 1);
    default: return none;
    }
}

/* What the last MN says; -1: nothing. */
static int64_t said_length(const struct mods *m)
{
    const uint8_t *type = m->record->p + m->mn + NAME;
    return m->mn && bam_record_aux_skip(type, end_of(m)) ? (int32_t)number_at(type, -1) : -1;
}

/* Takes all of ours away. One whose name is no draft's, Mn, stays, as in samtools. */
static void remove_tags(struct mods *m)
{
    uint8_t *to = m->record->p + m->tags, *end = end_of(m);
    for (uint8_t *p = to, *next; end - p >= HEAD; p = next) {
        next = p + tag_size(p, end);
        if (which_of(p) && p[1] != 'n')
            continue;
        memmove(to, p, (size_t)(next - p));
        to += next - p;
    }
    m->record->n = (size_t)(to - m->record->p);
}

/* -------------------------------------------------------------------- SEQ */

/* Counts the bases [from, to) of each kind: by pairs, in two tables by turns, for a processor waits before it adds to
 * the same place again. */
static void count_bases(const uint8_t *seq, int64_t from, int64_t to, int64_t counts[16])
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

static unsigned complement(unsigned base)
{
    return (base & 1) << 3 | (base & 2) << 1 | (base & 4) >> 1 | (base & 8) >> 3;
}

/* ------------------------------------------------------------ chains of MM */

/* The beginning of a chain: C+mh?,1,0; */
struct chain {
    unsigned base;
    size_t n_types;              /* modifications that share the list, and have a value each in ML */
    const uint8_t *code_end;     /* if there is a number for a modification; else NULL */
    const uint8_t *list;         /* what is behind all that */
};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    c |= 0x20;
    return c >= 'a' && c <= 'z';
}

/* Reads a number as htslib does, and returns where it ends. 31 bits are enough for all that have a meaning: else it is
 * the largest, and *large is set. */
static const uint8_t *read_number(const uint8_t *p, int64_t *value, bool *large)
{
    *value = 0;
    for (p += *p == '+'; is_digit(*p); p++) {
        *value = 10 * *value + (*p - '0');
        if (*value > INT32_MAX) {
            *value = INT32_MAX;
            *large = true;
        }
    }
    return p;
}

/* As BAM has it; 0: there is none. Tables of older htslibs do not know U. */
static unsigned base_of(uint8_t letter)
{
    switch (letter) {
    case 'A': return 1;
    case 'C': return 2;
    case 'G': return 4;
    case 'T': case 'U': return 8;
    case 'N': return ANY;
    default: return 0;
    }
}

static bool read_chain(const uint8_t *p, struct chain *c)
{
    bool large = false;
    int64_t code;
    c->base = base_of(*p);
    if (!c->base || (p[1] != '+' && p[1] != '-'))
        return false;
    p += 2;
    c->code_end = is_digit(*p) ? read_number(p, &code, &large) : NULL;
    if (c->code_end) {
        c->n_types = 1;
        p = c->code_end;
    } else {
        for (c->n_types = 0; is_letter(*p); p++)
            c->n_types++;
    }
    bool marked = *p == '.' || *p == '?';
    c->list = p + marked;
    return !large && (marked || *p == ',' || *p == ';');
}

/* ------------------------------------------------- whether they fit to SEQ */

/* What is found while all chains are looked at. */
struct look {
    int64_t n_of[16];            /* bases of SEQ, along the read; ANY: all */
    bool reverse;
    bool has_seq, has_ml;
    uint64_t n_types, n_values;  /* that ML must have */
    bool beyond;                 /* a list goes on behind SEQ */
    bool stops;                  /* there is a number where htslib looks no further, and takes all for sound */
};

/* Goes along SEQ from the first number of a list, behind which p is. htslib compares less than exactly. */
static void follow(struct look *l, const struct chain *c, int64_t number, const uint8_t *p)
{
    enum { FAR = 0x7f000000 };
    int64_t left = l->n_of[c->base];
    while (number < left && !l->stops) {
        left -= number + 1;
        number = INT32_MAX;
        if (*p == ',')
            p = read_number(p + 1, &number, &l->stops);
    }
    l->beyond = l->beyond || number - left < FAR || (*p && *p != ';');
}

static const uint8_t *look_forward(struct look *l, const struct chain *c)
{
    const uint8_t *p = c->list;
    int64_t first = INT32_MAX;
    if (*p == ',') {
        bool large = false;
        const uint8_t *end = read_number(p + 1, &first, &large);
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

/* htslib reads the whole list here, so it may end in a comma; without ML, not even in that. */
static const uint8_t *look_reverse(struct look *l, const struct chain *c)
{
    const uint8_t *p = c->list, *end = c->code_end;
    uint32_t passed = 0;         /* as there: an int */
    for (;;) {
        int64_t number;
        bool large = false;
        p += *p == ',';
        if (!*p || *p == ';')
            break;
        end = read_number(p, &number, &large);
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
    enum { TYPES_MAX = 256 };    /* of htslib */
    while (*p) {
        struct chain c;
        if (!read_chain(p, &c) || (l->n_types += c.n_types) >= TYPES_MAX)
            return false;
        p = l->reverse ? look_reverse(l, &c) : look_forward(l, &c);
        if (!p || !*p)
            return false;
        p++;
    }
    return l->reverse || !l->has_seq || l->stops || !l->beyond;
}

static void count_along(struct look *l, const struct mods *m)
{
    int64_t counts[16] = {0};
    count_bases(m->seq, 0, m->l_seq, counts);
    for (unsigned i = 0; i < 16; i++)
        l->n_of[i] = counts[m->reverse ? complement(i) : i];
    l->n_of[ANY] = m->l_seq;
}

/* The first tag of that name, or of its draft. */
static const uint8_t *first_tag(const struct mods *m, const char name[2], const char draft[2])
{
    int bad;
    const uint8_t *tags = m->record->p + m->tags, *end = end_of(m);
    const uint8_t *found = bam_record_aux_find(tags, end, name, &bad);
    return found ? found : bam_record_aux_find(tags, end, draft, &bad);
}

/* Whether MM, ML and MN are sound, and fit to SEQ. What htslib takes, is. */
static bool fits(const struct mods *m)
{
    const uint8_t *mm = first_tag(m, "MM", "Mm"), *ml = first_tag(m, "ML", "Ml"), *mn = first_tag(m, "MN", "MN");
    struct look l = {.reverse = m->reverse, .has_seq = m->l_seq > 0, .has_ml = ml};
    if (!mm)
        return true;
    if (mm[0] != 'Z' || (mn && m->l_seq && number_at(mn, 0) != m->l_seq) || (ml && (ml[0] != 'B' || ml[1] != 'C')))
        return false;
    count_along(&l, m);
    return look_at_chains(&l, mm + 1) && (!ml || l.n_values == load_le32(ml + 2));
}

/* ---------------------------------------------------------------- clipping */

/* Whether all chains are whole. *n_values: how many values ML must have. */
static bool is_whole(const uint8_t *p, uint64_t *n_values)
{
    *n_values = 0;
    while (*p) {
        struct chain c;
        if (!read_chain(p, &c))
            return false;
        for (p = c.list; *p == ','; *n_values += c.n_types) {
            int64_t number;
            bool large = false;
            p = read_number(p + 1, &number, &large);
            if (!is_digit(p[-1]) || large)
                return false;
        }
        if (*p++ != ';')
            return false;
    }
    return true;
}

/* MM and ML while they are cut, in place. */
struct cut {
    int64_t before[16], until[16];   /* bases of the primary record before what is left of it, and up to its end */
    uint8_t *to;                 /* of MM */
    const uint8_t *value;        /* of ML; NULL: there is none */
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

/* Cuts the list at p, which counts bases of this kind, and returns where it ends. */
static const uint8_t *cut_list(struct cut *t, const uint8_t *p, unsigned base, size_t n_types)
{
    int64_t before = t->before[base], until = t->until[base], passed = 0;
    while (*p == ',') {
        int64_t number;
        bool large = false;
        const uint8_t *start = p;
        p = read_number(p + 1, &number, &large);
        bool first = passed < before && number >= before - passed && until > before;
        bool kept = first || (passed >= before && number < until - passed);
        if (first) {                             /* it counts from the cut on */
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

/* All chains of the text at p. */
static void cut_chains(struct cut *t, const uint8_t *p)
{
    unsigned base = 0;
    bool goes_on = false;        /* a chain without numbers came before */
    while (*p) {
        struct chain c;
        read_chain(p, &c);
        base = goes_on ? base : c.base;
        goes_on = *c.list != ',';
        keep(t, p, (size_t)(c.list - p));
        p = cut_list(t, c.list, base, c.n_types) + 1;
        keep(t, (const uint8_t *)";", 1);
    }
}

/* Writes the tags anew, after those at mm and ml have become shorter, and without MN. */
static void close_gaps(struct mods *m, size_t mm_end, size_t mm_size, size_t ml_end, size_t ml_size)
{
    uint8_t *record = m->record->p;
    size_t to = m->tags;
    for (size_t at = m->tags, next; m->record->n - at >= HEAD; at = next) {
        next = at == m->mm ? mm_end : at == m->ml ? ml_end : at + tag_size(record + at, end_of(m));
        size_t size = at == m->mm ? mm_size : at == m->ml ? ml_size : which_of(record + at) ? 0 : next - at;
        memmove(record + to, record + at, size);
        to += size;
    }
    m->record->n = to;
}

/* Cuts MM and ML to what is left of the primary record's SEQ, and takes MN away. An ML of another type goes, too.
 * False: all must go. */
static bool cut(struct mods *m, const struct bam_record *primary)
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
    if (!is_whole(mm + HEAD, &n_said) || (has_values && n_said != load_le32(ml + HEAD + 1)))
        return false;
    count_bases(bam_record_seq(primary), 0, m->clip5, t.before);
    memcpy(t.until, t.before, sizeof t.until);
    count_bases(bam_record_seq(primary), m->clip5, (int64_t)load_le32(primary->seq_len) - m->clip3, t.until);
    cut_chains(&t, mm + HEAD);
    *t.to++ = 0;
    size_t n_values = has_values ? (size_t)(t.value_to - (ml + ARRAY)) : 0;
    if (has_values)
        store_le32(ml + HEAD + 1, (uint32_t)n_values);
    close_gaps(m, m->mm + mm_size, (size_t)(t.to - mm), m->ml + ml_size, has_values ? ARRAY + n_values : 0);
    return true;
}

/* -------------------------------------------------------------- the record */

/* Gives the first MN the length of SEQ. It keeps its place, and its bytes if they are enough. */
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
    return BASE_MODS_MENDED;
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
    return !clipped && m->length <= 0 && m->l_seq ? put_length(m) : BASE_MODS_MENDED;
}

static enum base_mods fix_other(struct mods *m, const struct bam_record *primary)
{
    int64_t whole = load_le32(primary->seq_len);
    bool is_whole_read = m->clip5 == 0 && m->clip3 == 0;
    if (m->length == m->l_seq)
        return BASE_MODS_MENDED;
    if (whole != m->l_seq + m->clip5 + m->clip3
        || (!is_whole_read && (m->length < 0 || m->length == whole) && !cut(m, primary))) {
        remove_tags(m);
        return BASE_MODS_MENDED;
    }
    return m->l_seq ? put_length(m) : BASE_MODS_MENDED;
}

/* As above, but for block_size. */
static enum base_mods fix(struct mods *m, const struct bam_record *r, const struct bam_record *primary, bool is_other)
{
    enum base_mods result = BASE_MODS_MENDED;
    if (primary || !is_other) {
        find_tags(m);
        if (!m->mm) {
            remove_tags(m);
            return BASE_MODS_MENDED;
        }
        m->length = said_length(m);
        set_clips(m, r);
        result = primary ? fix_other(m, primary) : fix_primary(m);
    }
    if (result == BASE_MODS_BROKEN || fits(m))
        return result;
    remove_tags(m);
    return BASE_MODS_MENDED;
}

enum base_mods base_mods_fix(struct byte_buffer *record, const struct bam_record *primary, bool is_other)
{
    if (byte_buffer_reserve(record, record->n + LENGTH_MOST) < 0)
        return BASE_MODS_NO_MEMORY;
    struct bam_record *r = (struct bam_record *)record->p;
    struct mods m = {
        .record = record,
        .tags = (size_t)(far_pos_other_tags(r) - record->p),
        .l_seq = load_le32(r->seq_len),
        .seq = bam_record_seq(r),
        .reverse = bam_record_flag(r) & BAM_FREVERSE,
    };
    enum base_mods result = fix(&m, r, primary, is_other);
    store_le32(r->block_size, (uint32_t)(record->n - 4));
    return result;
}

/* ------------------------------------------------------------------- guard */

/* Whether fixmate may take the tag at p away, or put it. */
static bool may_change(const uint8_t *p)
{
    static const char names[][NAME] = {{'M', 'Q'}, {'M', 'C'}, {'c', 't'}, {'m', 's'}, {'N', 'M'}, {'M', 'D'},
                                       {'C', 'G'}, {'S', 'M'}, {0, 0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (memcmp(p, names[i], NAME) == 0)
            return true;
    return which_of(p);
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
    bool sound = p == end;       /* no bytes that are no tag */
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
