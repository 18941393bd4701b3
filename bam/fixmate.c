/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam1_bytes.h"
#include "bam/bam_record.h"
#include "bam/fixmate.h"
#include "bam/sanitize.h"

enum {
    KEPT = 16,                   /* primary records whose memory is kept from one template to the next */
    QUALITY_MIN = 15,            /* of a base that counts for ms */
};

static void free_primaries(struct fixmate *f, size_t from)
{
    while (f->max > from)
        free(f->primaries[--f->max].data);
}

void fixmate_free(struct fixmate *f)
{
    free_primaries(f, 0);
    free(f->primaries);
    free(f->other.data);
    free(f->text.p);
    free(f->cigar.p);
    *f = (struct fixmate){.n = 0};
}

/* ------------------------------------------------------------------ tags */

/* Puts a tag behind the others, in place of the first one of that name. */
static int put_tag(bam1_t *b, const char tag[2], char type, size_t size, const uint8_t *value)
{
    uint8_t *old = bam_aux_get(b, tag);
    if (old)
        bam_aux_del(b, old);
    if ((size_t)b->l_data + size > INT32_MAX - 3) {
        errno = EOVERFLOW;
        return -1;
    }
    return bam_aux_append(b, tag, type, (int)size, value);
}

static int put_int(bam1_t *b, const char tag[2], uint32_t value)
{
    uint8_t bytes[4];
    store_le32(bytes, value);
    return put_tag(b, tag, 'i', sizeof bytes, bytes);
}

static int add_text(struct fixmate *f, const char *text)
{
    return byte_buffer_append(&f->text, text, strlen(text));
}

static int add_cigar(struct fixmate *f, const bam1_t *b)
{
    const uint32_t *cigar = bam_get_cigar(b);
    char op[16];
    for (uint32_t i = 0; i < b->core.n_cigar; i++) {
        snprintf(op, sizeof op, "%u%c", (unsigned)bam_cigar_oplen(cigar[i]), bam_cigar_opchr(cigar[i]));
        if (add_text(f, op) < 0)
            return -1;
    }
    return b->core.n_cigar ? 0 : add_text(f, "*");
}

/* The text, with its NUL. */
static int put_text(struct fixmate *f, bam1_t *b, const char tag[2])
{
    return byte_buffer_append(&f->text, "", 1) < 0 ? -1 : put_tag(b, tag, 'Z', f->text.n, f->text.p);
}

/* ------------------------------------------------- what a record is to know */

static bool is_mapped(const bam1_t *b)
{
    return !(b->core.flag & BAM_FUNMAP);
}

static void set_flag(bam1_t *b, unsigned flag, bool value)
{
    b->core.flag = (uint16_t)(value ? b->core.flag | flag : b->core.flag & ~flag);
}

/* Where the read begins, 0-based: its end if it is reverse. */
static int64_t five_prime(const bam1_t *b)
{
    return bam_is_rev(b) ? bam_endpos(b) : b->core.pos;
}

/* RNEXT, PNEXT, flags. MUNMAP is never taken away, as in samtools. */
static void tell_place(bam1_t *b, const bam1_t *mate)
{
    b->core.mtid = mate->core.tid;
    b->core.mpos = mate->core.pos;
    set_flag(b, BAM_FMREVERSE, bam_is_rev(mate));
    if (!is_mapped(mate))
        set_flag(b, BAM_FMUNMAP, true);
}

/* MQ and MC. */
static int tell_alignment(struct fixmate *f, bam1_t *b, const bam1_t *mate)
{
    if (is_mapped(mate) && put_int(b, "MQ", mate->core.qual) < 0)
        return -1;
    if (!is_mapped(mate) && !is_mapped(b))
        return 0;
    f->text.n = 0;
    return add_cigar(f, mate) < 0 ? -1 : put_text(f, b, "MC");
}

/* ------------------------------------------------------------------ pairs */

/* An unmapped read lies where its mate does. */
static void settle_place(bam1_t *a, bam1_t *b)
{
    if (is_mapped(a) == is_mapped(b))
        return;
    const bam1_t *from = is_mapped(a) ? a : b;
    bam1_t *to = is_mapped(a) ? b : a;
    to->core.tid = from->core.tid;
    to->core.pos = from->core.pos;
}

static void settle_length(bam1_t *a, bam1_t *b)
{
    const unsigned none = BAM_FUNMAP | BAM_FMUNMAP;
    bool known = a->core.tid == b->core.tid && !((a->core.flag | b->core.flag) & none);
    a->core.isize = known ? five_prime(b) - five_prime(a) : 0;
    b->core.isize = -a->core.isize;
}

static bool is_plausible(const bam1_t *a, const bam1_t *b)
{
    bool a_is_first = five_prime(a) <= five_prime(b);
    const bam1_t *first = a_is_first ? a : b, *second = a_is_first ? b : a;
    return is_mapped(a) && is_mapped(b) && a->core.tid == b->core.tid && !bam_is_rev(first) && bam_is_rev(second);
}

static void drop_tag(bam1_t *b, const char tag[2])
{
    uint8_t *type = bam_aux_get(b, tag);
    if (type)
        bam_aux_del(b, type);
}

static int add_end(struct fixmate *f, const bam1_t *b)
{
    char text[8];
    snprintf(text, sizeof text, "%c%c", b->core.flag & BAM_FREAD1 ? '1' : '2', bam_is_rev(b) ? 'R' : 'F');
    return add_text(f, text) < 0 ? -1 : add_cigar(f, b);
}

/* Tag ct of the first read: both ends and the bases between them. */
static int put_template_cigar(struct fixmate *f, bam1_t *a, bam1_t *b)
{
    bam1_t *first = a->core.pos <= b->core.pos ? a : b, *second = first == a ? b : a;
    char between[24];
    if (!is_mapped(a) || !is_mapped(b) || a->core.tid != b->core.tid || a->core.tid < 0 || first->core.pos < 0)
        return 0;
    f->text.n = 0;
    snprintf(between, sizeof between, "%lldT", (long long)(second->core.pos - bam_endpos(first)));
    drop_tag(second, "ct");
    return add_end(f, first) < 0 || add_text(f, between) < 0 || add_end(f, second) < 0 ? -1 : put_text(f, first, "ct");
}

static uint32_t score(const bam1_t *b)
{
    const uint8_t *quality = bam_get_qual(b);
    uint32_t sum = 0;
    for (int32_t i = 0; i < b->core.l_qseq; i++)
        sum += quality[i] >= QUALITY_MIN ? quality[i] : 0;
    return sum;
}

static void forget_dropped(bam1_t *b, const bam1_t *mate)
{
    if (!is_mapped(mate))
        set_flag(b, BAM_FMREVERSE | BAM_FPROPER_PAIR, false);
}

static int fix_pair(struct fixmate *f, const struct fixmate_rules *rules, bam1_t *a, bam1_t *b)
{
    set_flag(a, BAM_FPAIRED, true);
    set_flag(b, BAM_FPAIRED, true);
    settle_place(a, b);
    tell_place(a, b);
    tell_place(b, a);
    if (tell_alignment(f, a, b) < 0 || tell_alignment(f, b, a) < 0)
        return -1;
    settle_length(a, b);
    if (rules->template_cigar && put_template_cigar(f, a, b) < 0)
        return -1;
    if (!rules->keeps_proper && !is_plausible(a, b)) {
        set_flag(a, BAM_FPROPER_PAIR, false);
        set_flag(b, BAM_FPROPER_PAIR, false);
    }
    if (rules->mate_score && (put_int(b, "ms", score(a)) < 0 || put_int(a, "ms", score(b)) < 0))
        return -1;
    if (rules->drops) {
        forget_dropped(a, b);
        forget_dropped(b, a);
    }
    return 0;
}

static void fix_orphan(bam1_t *b)
{
    b->core.mtid = -1;
    b->core.mpos = -1;
    b->core.isize = 0;
    set_flag(b, BAM_FMREVERSE | BAM_FPROPER_PAIR, false);
}

/* -------------------------------------------------------------- templates */

static const struct bam_record *record_at(const uint8_t *p)
{
    return (const struct bam_record *)p;
}

static bool is_primary(const struct bam_record *r)
{
    return !(bam_record_flag(r) & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY));
}

static int load(struct fixmate *f, const struct fixmate_rules *rules, bam1_t *b, const struct bam_record *r)
{
    return bam1_from_record(b, r) < 0 ? -1 : sanitize(b, rules->sanitize, rules->lengths, &f->cigar);
}

static int load_primary(struct fixmate *f, const struct fixmate_rules *rules, const struct bam_record *r)
{
    if (f->n == f->max) {
        size_t max = f->max < KEPT ? KEPT : 2 * f->max;
        bam1_t *primaries = realloc(f->primaries, max * sizeof *primaries);
        if (!primaries)
            return -1;
        memset(primaries + f->max, 0, (max - f->max) * sizeof *primaries);
        f->primaries = primaries;
        f->max = max;
    }
    return load(f, rules, &f->primaries[f->n++], r);
}

/* Pairs each further primary record with the first one, in turn. */
static int fix_primaries(struct fixmate *f, const struct fixmate_rules *rules, const uint8_t *p, size_t n)
{
    f->n = 0;
    for (size_t at = 0; at < n; at += bam_record_size(record_at(p + at))) {
        if (!is_primary(record_at(p + at)))
            continue;
        if (load_primary(f, rules, record_at(p + at)) < 0)
            return -1;
        if (f->n > 1 && fix_pair(f, rules, &f->primaries[0], &f->primaries[f->n - 1]) < 0)
            return -1;
    }
    if (f->n == 1)
        fix_orphan(&f->primaries[0]);
    return 0;
}

/* The last primary record with READ2, or without. */
static const bam1_t *last_primary(const struct fixmate *f, bool read2)
{
    for (size_t i = f->n; i > 0; i--)
        if (!(f->primaries[i - 1].core.flag & BAM_FREAD2) == !read2)
            return &f->primaries[i - 1];
    return NULL;
}

static int fix_other(struct fixmate *f, const struct fixmate_rules *rules, const struct bam_record *r,
                     const bam1_t *const last[2])
{
    bam1_t *b = &f->other;
    if (load(f, rules, b, r) < 0)
        return -1;
    const bam1_t *mate = last[!(b->core.flag & BAM_FREAD2)];
    if (!(b->core.flag & BAM_FSUPPLEMENTARY) || !(b->core.flag & BAM_FPAIRED) || !mate)
        return 0;
    tell_place(b, mate);
    return tell_alignment(f, b, mate);
}

static int put_record(const struct fixmate_rules *rules, const bam1_t *b, struct byte_buffer *to, uint64_t *dropped)
{
    size_t start = to->n;
    if (rules->drops && (!is_mapped(b) || (b->core.flag & BAM_FSECONDARY))) {
        ++*dropped;
        return 0;
    }
    if (bam1_bytes_append(to, b) < 0)
        return -1;
    struct bam_record *made = (struct bam_record *)(to->p + start);
    int result = bam_record_fix(made);
    to->n = start + bam_record_size(made);
    return result;
}

static int put_records(struct fixmate *f, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                       struct byte_buffer *to, uint64_t *dropped)
{
    const bam1_t *const last[] = {last_primary(f, false), last_primary(f, true)};
    const bam1_t *next = f->primaries;
    for (size_t at = 0; at < n; at += bam_record_size(record_at(p + at))) {
        bool primary = is_primary(record_at(p + at));
        if (!primary && fix_other(f, rules, record_at(p + at), last) < 0)
            return -1;
        if (put_record(rules, primary ? next++ : &f->other, to, dropped) < 0)
            return -1;
    }
    return 0;
}

int fixmate_template(struct fixmate *f, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                     struct byte_buffer *to, uint64_t *dropped)
{
    errno = 0;
    int result = fix_primaries(f, rules, p, n) < 0 ? -1 : put_records(f, rules, p, n, to, dropped);
    if (f->max > KEPT)
        free_primaries(f, KEPT);
    return result;
}
