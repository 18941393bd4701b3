/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hts/bam1_bytes.h"
#include "bam/bam_record.h"
#include "fixmate/base_mods.h"
#include "fixmate/fixmate.h"
#include "fixmate/sanitize.h"

enum { KEPT = 16 };              /* primary records whose memory is kept from one template to the next */

static void free_read(struct fixmate_read *b)
{
    free(b->normalised.p);
    free(b->tags.added.p);
}

static void free_primaries(struct fixmate *f, size_t from)
{
    while (f->max > from)
        free_read(&f->primaries[--f->max]);
}

void fixmate_free(struct fixmate *f)
{
    free_primaries(f, 0);
    free(f->primaries);
    free_read(&f->other);
    free(f->b.data);
    free(f->text.p);
    free(f->cigar.p);
    *f = (struct fixmate){.n = 0};
}

/* ------------------------------------------------------------------- text */

static int add_text(struct fixmate *f, const char *text)
{
    return byte_buffer_append(&f->text, text, strlen(text));
}

static uint8_t *put_number(uint8_t *to, uint32_t number)
{
    uint8_t digits[10], *p = digits + sizeof digits;
    do
        *--p = (uint8_t)('0' + number % 10);
    while (number /= 10);
    while (p < digits + sizeof digits)
        *to++ = *p++;
    return to;
}

/* Adds the CIGAR as text; nothing for a read without one. */
static int add_cigar(struct fixmate *f, const struct fixmate_read *b)
{
    enum { OP_SIZE = 10 };       /* size of an operation: nine digits and a letter, because lengths have 28 bits */
    if (byte_buffer_reserve(&f->text, f->text.n + OP_SIZE * (size_t)b->n_cigar) < 0)
        return -1;
    uint8_t *p = f->text.p + f->text.n;
    for (uint32_t i = 0; i < b->n_cigar; i++) {
        uint32_t op = load_le32(b->cigar + 4 * (size_t)i);
        p = put_number(p, bam_cigar_oplen(op));
        *p++ = (uint8_t)bam_cigar_opchr(op);
    }
    f->text.n = (size_t)(p - f->text.p);
    return 0;
}

/* ------------------------------------------------- what a record is to know */

static bool is_mapped(const struct fixmate_read *b)
{
    return !(b->flag & BAM_FUNMAP);
}

static bool is_reverse(const struct fixmate_read *b)
{
    return b->flag & BAM_FREVERSE;
}

static int64_t aligned_end(const struct fixmate_read *b)
{
    return b->at.pos + b->span;
}

static void set_flag(struct fixmate_read *b, unsigned flag, bool value)
{
    b->flag = (uint16_t)(value ? b->flag | flag : b->flag & ~flag);
}

/* Returns where the read begins, counted from 0: its end if it is reverse. */
static int64_t five_prime(const struct fixmate_read *b)
{
    return is_reverse(b) ? aligned_end(b) : b->at.pos;
}

/* Sets RNEXT, PNEXT and flags. MUNMAP is never removed, as in samtools. */
static void set_mate_place(struct fixmate_read *b, const struct fixmate_read *mate)
{
    b->next_ref_id = mate->ref_id;
    b->at.next_pos = mate->at.pos;
    set_flag(b, BAM_FMREVERSE, is_reverse(mate));
    if (!is_mapped(mate))
        set_flag(b, BAM_FMUNMAP, true);
}

/* Sets MQ and MC. */
static int set_mate_alignment(struct fixmate *f, struct fixmate_read *b, const struct fixmate_read *mate)
{
    if (is_mapped(mate) && mate_tags_put_int(&b->tags, MATE_MQ, mate->record->mapq) < 0)
        return -1;
    if (!is_mapped(mate) && !is_mapped(b))
        return 0;
    f->text.n = 0;
    return (mate->n_cigar > 0 ? add_cigar(f, mate) : add_text(f, "*")) < 0 ? -1
         : mate_tags_put_text(&b->tags, MATE_MC, f->text.p, f->text.n);
}

/* ------------------------------------------------------------------ pairs */

/* Puts an unmapped read where its mate is. */
static void settle_place(struct fixmate_read *a, struct fixmate_read *b)
{
    if (is_mapped(a) == is_mapped(b))
        return;
    const struct fixmate_read *from = is_mapped(a) ? a : b;
    struct fixmate_read *to = is_mapped(a) ? b : a;
    to->ref_id = from->ref_id;
    to->at.pos = from->at.pos;
}

static void settle_length(struct fixmate_read *a, struct fixmate_read *b)
{
    const unsigned none = BAM_FUNMAP | BAM_FMUNMAP;
    bool known = a->ref_id == b->ref_id && !((a->flag | b->flag) & none);
    a->at.tlen = known ? five_prime(b) - five_prime(a) : 0;
    b->at.tlen = -a->at.tlen;
}

static bool is_plausible(const struct fixmate_read *a, const struct fixmate_read *b)
{
    bool a_is_first = five_prime(a) <= five_prime(b);
    const struct fixmate_read *first = a_is_first ? a : b, *second = a_is_first ? b : a;
    return is_mapped(a) && is_mapped(b) && a->ref_id == b->ref_id && !is_reverse(first) && is_reverse(second);
}

static int add_end(struct fixmate *f, const struct fixmate_read *b)
{
    char text[8];
    snprintf(text, sizeof text, "%c%c", b->flag & BAM_FREAD1 ? '1' : '2', is_reverse(b) ? 'R' : 'F');
    return add_text(f, text) < 0 ? -1 : add_cigar(f, b);
}

/* Puts the tag ct of the first read: both ends and the bases between them. */
static int put_template_cigar(struct fixmate *f, struct fixmate_read *a, struct fixmate_read *b)
{
    struct fixmate_read *first = a->at.pos <= b->at.pos ? a : b, *second = first == a ? b : a;
    char between[24];
    if (!is_mapped(a) || !is_mapped(b) || a->ref_id != b->ref_id || a->ref_id < 0 || first->at.pos < 0)
        return 0;
    f->text.n = 0;
    snprintf(between, sizeof between, "%lldT", (long long)(second->at.pos - aligned_end(first)));
    mate_tags_drop(&second->tags, MATE_CT);
    return add_end(f, first) < 0 || add_text(f, between) < 0 || add_end(f, second) < 0 ? -1
         : mate_tags_put_text(&first->tags, MATE_CT, f->text.p, f->text.n);
}

static int put_score(struct fixmate_read *b, const struct fixmate_read *mate)
{
    return mate_tags_put_int(&b->tags, MATE_MS, (uint32_t)bam_record_score(mate->record));
}

static void forget_dropped(struct fixmate_read *b, const struct fixmate_read *mate)
{
    if (!is_mapped(mate))
        set_flag(b, BAM_FMREVERSE | BAM_FPROPER_PAIR, false);
}

static int fix_pair(struct fixmate *f, const struct fixmate_rules *rules, struct fixmate_read *a,
                    struct fixmate_read *b)
{
    set_flag(a, BAM_FPAIRED, true);
    set_flag(b, BAM_FPAIRED, true);
    settle_place(a, b);
    set_mate_place(a, b);
    set_mate_place(b, a);
    if (set_mate_alignment(f, a, b) < 0 || set_mate_alignment(f, b, a) < 0)
        return -1;
    settle_length(a, b);
    if (rules->template_cigar && put_template_cigar(f, a, b) < 0)
        return -1;
    if (!rules->keeps_proper && !is_plausible(a, b)) {
        set_flag(a, BAM_FPROPER_PAIR, false);
        set_flag(b, BAM_FPROPER_PAIR, false);
    }
    if (rules->mate_score && (put_score(b, a) < 0 || put_score(a, b) < 0))
        return -1;
    if (rules->drops) {
        forget_dropped(a, b);
        forget_dropped(b, a);
    }
    return 0;
}

static void fix_orphan(struct fixmate_read *b)
{
    b->next_ref_id = -1;
    b->at.next_pos = -1;
    b->at.tlen = 0;
    set_flag(b, BAM_FMREVERSE | BAM_FPROPER_PAIR, false);
}

/* -------------------------------------------------------------- templates */

static bool is_primary(const struct bam_record *r)
{
    return !(bam_record_flag(r) & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY));
}

/* Puts the record into b->normalised as sanitize() leaves it. */
static int normalise_as(struct fixmate *f, const struct fixmate_rules *rules, struct fixmate_read *b,
                        const struct bam_record *r, unsigned what)
{
    b->normalised.n = 0;
    if (bam1_from_record(&f->b, r) < 0 || sanitize(&f->b, what, rules->lengths, &f->cigar) < 0
        || bam1_bytes_append(&b->normalised, &f->b) < 0)
        return -1;
    b->record = bam_record_at(b->normalised.p);
    return 0;
}

/* If operations were joined, the CIGAR may look like one that refers to the tag CG. If CG does not fit, no program
 * could read the record, so the operations are not joined. */
static int normalise(struct fixmate *f, const struct fixmate_rules *rules, struct fixmate_read *b,
                     const struct bam_record *r)
{
    const unsigned joins = SANITIZE_CIGAR_JOIN | SANITIZE_CIGAR_M;
    if (normalise_as(f, rules, b, r, rules->sanitize) < 0)
        return -1;
    if (!(rules->sanitize & joins) || !bam_record_check(b->normalised.p, b->normalised.n, INT32_MAX).fault)
        return 0;
    return normalise_as(f, rules, b, r, rules->sanitize & ~joins);
}

/* Puts the record into b->normalised with tags of base modifications that fit its SEQ. 1: MN must be appended after all
 * other tags; -1: failed. */
static int normalise_mods(struct fixmate_read *b, const struct fixmate_read *primary)
{
    const struct bam_record *r = b->record;
    if (!base_mods_any(long_pos_other_tags(r), bam_record_end(r)))
        return 0;
    if ((const uint8_t *)r != b->normalised.p) {
        b->normalised.n = 0;
        if (byte_buffer_append(&b->normalised, r, bam_record_size(r)) < 0)
            return -1;
    }
    enum base_mods result = base_mods_fix(&b->normalised, primary ? primary->record : NULL);
    b->record = bam_record_at(b->normalised.p);
    bool failed = result == BASE_MODS_NO_MEMORY || (result == BASE_MODS_BROKEN && is_primary(b->record));
    if (failed)
        errno = result == BASE_MODS_BROKEN ? EINVAL : ENOMEM;
    return failed ? -1 : result == BASE_MODS_WITHOUT_LENGTH;
}

static int put_length(struct fixmate_read *b)
{
    return mate_tags_put_small(&b->tags, MATE_MN, load_le32(b->record->seq_len));
}

/* Loads the record into b. Also moves a CIGAR in the tag CG to its place. primary: the primary record of a record that
 * is not primary; NULL: none. 1: call put_length() at the end; -1: failed. */
static int load(struct fixmate *f, const struct fixmate_rules *rules, struct fixmate_read *b,
                const struct bam_record *r, const struct fixmate_read *primary)
{
    const uint8_t *tag;
    b->record = r;
    b->cigar = bam_record_cigar(r, &b->n_cigar, &tag);
    if ((tag || sanitize_changes(r, rules->sanitize, rules->lengths)) && normalise(f, rules, b, r) < 0)
        return -1;
    int lacks_length = rules->base_mods ? normalise_mods(b, primary) : 0;
    if (lacks_length < 0)
        return -1;
    if (b->record != r)
        b->cigar = bam_record_cigar(b->record, &b->n_cigar, &tag);
    r = b->record;
    b->span = bam_record_ref_span(r);
    b->ref_id = bam_record_ref_id(r);
    b->next_ref_id = (int32_t)load_le32(r->next_ref_id);
    b->at = long_pos_get(r);
    b->flag = bam_record_flag(r);
    mate_tags_begin(&b->tags, long_pos_other_tags(r), bam_record_end(r));
    return lacks_length;
}

static int load_primary(struct fixmate *f, const struct fixmate_rules *rules, const struct bam_record *r)
{
    if (f->n == f->max) {
        size_t max = f->max < KEPT ? KEPT : 2 * f->max;
        struct fixmate_read *primaries = realloc(f->primaries, max * sizeof *primaries);
        if (!primaries)
            return -1;
        memset(primaries + f->max, 0, (max - f->max) * sizeof *primaries);
        f->primaries = primaries;
        f->max = max;
    }
    struct fixmate_read *b = &f->primaries[f->n++];
    int loaded = load(f, rules, b, r, NULL);
    return loaded > 0 ? put_length(b) : loaded;
}

/* Pairs each further primary record with the first one, in turn. */
static int fix_primaries(struct fixmate *f, const struct fixmate_rules *rules, const uint8_t *p, size_t n)
{
    f->n = 0;
    for (size_t at = 0; at < n; at += bam_record_size(bam_record_at(p + at))) {
        if (!is_primary(bam_record_at(p + at)))
            continue;
        if (load_primary(f, rules, bam_record_at(p + at)) < 0)
            return -1;
        if (f->n > 1 && fix_pair(f, rules, &f->primaries[0], &f->primaries[f->n - 1]) < 0)
            return -1;
    }
    if (f->n == 1)
        fix_orphan(&f->primaries[0]);
    return 0;
}

/* The last primary record with READ2, or without. */
static const struct fixmate_read *last_primary(const struct fixmate *f, bool read2)
{
    for (size_t i = f->n; i > 0; i--)
        if (!(f->primaries[i - 1].flag & BAM_FREAD2) == !read2)
            return &f->primaries[i - 1];
    return NULL;
}

static int fix_other(struct fixmate *f, const struct fixmate_rules *rules, const struct bam_record *r,
                     const struct fixmate_read *const last[2])
{
    struct fixmate_read *b = &f->other;
    bool read2 = bam_record_flag(r) & BAM_FREAD2;
    const struct fixmate_read *mate = last[!read2];
    int loaded = load(f, rules, b, r, last[read2]);
    if (loaded < 0)
        return -1;
    if ((b->flag & BAM_FSUPPLEMENTARY) && (b->flag & BAM_FPAIRED) && mate) {
        set_mate_place(b, mate);
        if (set_mate_alignment(f, b, mate) < 0)
            return -1;
    }
    return loaded ? put_length(b) : 0;
}

static void put_fields(struct bam_record *made, const struct fixmate_read *b)
{
    store_le32(made->ref_id, (uint32_t)b->ref_id);
    store_le32(made->pos, (uint32_t)b->at.pos);
    store_le16(made->flag, b->flag);
    store_le32(made->next_ref_id, (uint32_t)b->next_ref_id);
    store_le32(made->next_pos, (uint32_t)b->at.next_pos);
    store_le32(made->tlen, (uint32_t)b->at.tlen);
}

static int put_record(const struct fixmate_rules *rules, const struct fixmate_read *b, struct byte_buffer *to,
                      uint64_t *dropped)
{
    if (rules->drops && (!is_mapped(b) || (b->flag & BAM_FSECONDARY))) {
        ++*dropped;
        return 0;
    }
    const uint8_t *from = (const uint8_t *)b->record;
    size_t start = to->n, kept = (size_t)(bam_record_aux(b->record) - from);
    if (byte_buffer_reserve(to, start + kept + LONG_POS_SIZE + mate_tags_most(&b->tags)) < 0)
        return -1;
    uint8_t *tags = to->p + start + kept;
    struct bam_record *made = (struct bam_record *)(to->p + start);
    memcpy(made, from, kept);
    put_fields(made, b);
    if (long_pos_needed(&b->at)) {
        long_pos_put(made, tags, &b->at);
        tags += LONG_POS_SIZE;
    }
    size_t size = (size_t)(mate_tags_write(&b->tags, tags) - (to->p + start));
    if (size > INT32_MAX) {
        errno = EOVERFLOW;
        return -1;
    }
    store_le32(made->block_size, (uint32_t)(size - 4));
    int result = bam_record_fix(made);
    to->n = start + bam_record_size(made);
    return result;
}

static int put_records(struct fixmate *f, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                       struct byte_buffer *to, uint64_t *dropped)
{
    const struct fixmate_read *const last[] = {last_primary(f, false), last_primary(f, true)};
    const struct fixmate_read *next = f->primaries;
    for (size_t at = 0; at < n; at += bam_record_size(bam_record_at(p + at))) {
        bool primary = is_primary(bam_record_at(p + at));
        if (!primary && fix_other(f, rules, bam_record_at(p + at), last) < 0)
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
