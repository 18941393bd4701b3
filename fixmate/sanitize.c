/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "bam/long_pos.h"
#include "fixmate/sanitize.h"

enum { LONGEST = (1 << 28) - 1 };    /* length of a CIGAR operation: lengths have 28 bits */

/* ------------------------------------------------------------- option -z */

static const struct {
    const char *word;
    unsigned what;
    bool alone;                  /* it replaces the words before it */
} words[] = {                    /* a word comes after those that it is a prefix of */
    {"all", SANITIZE_ALL, true}, {"*", SANITIZE_ALL, true}, {"none", 0, true}, {"off", 0, true},
    {"on", SANITIZE_ON, true}, {"pos", SANITIZE_POS, false}, {"mqual", SANITIZE_MAPQ, false},
    {"unmap", SANITIZE_UNMAP, false}, {"cigdup", SANITIZE_CIGAR_JOIN, false}, {"cigarx", SANITIZE_CIGAR_M, false},
    {"cigar", SANITIZE_CIGAR, false}, {"aux", SANITIZE_AUX, false},
};

static int take_word(const char *word, unsigned *what)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(word, words[i].word, strlen(words[i].word)) == 0) {
            *what = words[i].alone ? words[i].what : *what | words[i].what;
            return 0;
        }
    return -1;
}

int sanitize_parse(const char *list, unsigned *what)
{
    *what = 0;
    for (const char *word = list; *word; word += *word == ',') {
        if (take_word(word, what) < 0)
            return -1;
        word += strcspn(word, ",");
    }
    return 0;
}

/* ----------------------------------------------------------------- CIGAR */

/* Gives b this CIGAR. */
static int replace_cigar(bam1_t *b, const struct byte_buffer *cigar)
{
    size_t had = 4 * (size_t)b->core.n_cigar, size = (size_t)b->l_data - had + cigar->n;
    if (size > INT32_MAX)
        return -1;
    if (size > b->m_data) {
        uint8_t *data = realloc(b->data, size);
        if (!data)
            return -1;
        b->data = data;
        b->m_data = (uint32_t)size;
    }
    uint8_t *at = b->data + b->core.l_qname;
    memmove(at + cigar->n, at + had, (size_t)b->l_data - b->core.l_qname - had);
    if (cigar->n)
        memcpy(at, cigar->p, cigar->n);
    b->core.n_cigar = (uint32_t)(cigar->n / 4);
    b->l_data = (int)size;
    return 0;
}

/* Number of reference bases of an operation. */
static int64_t span(uint32_t op)
{
    return bam_cigar_type(bam_cigar_op(op)) & 2 ? bam_cigar_oplen(op) : 0;
}

static int add_op(struct byte_buffer *to, unsigned op, int64_t length)
{
    for (; length > LONGEST; length -= LONGEST) {
        uint32_t most = bam_cigar_gen((uint32_t)LONGEST, op);
        if (byte_buffer_append(to, &most, sizeof most) < 0)
            return -1;
    }
    uint32_t one = bam_cigar_gen((uint32_t)length, op);
    return byte_buffer_append(to, &one, sizeof one);
}

static void unmap(bam1_t *b)
{
    b->core.flag |= BAM_FUNMAP;
}

static bool is_hard(uint32_t op)
{
    return bam_cigar_op(op) == BAM_CHARD_CLIP;
}

/* The operations p[n] are beyond the reference. Appends the clips that they become: one clip for the `clipped` bases
 * and those of p[n], and the hard clips unchanged. */
static int add_clips(struct byte_buffer *to, const uint32_t *p, uint32_t n, int64_t clipped)
{
    for (uint32_t i = 0; i < n; i++)
        clipped += bam_cigar_type(bam_cigar_op(p[i])) & 1 ? bam_cigar_oplen(p[i]) : 0;
    if (clipped > 0 && add_op(to, BAM_CSOFT_CLIP, clipped) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (is_hard(p[i]) && byte_buffer_append(to, &p[i], sizeof p[i]) < 0)
            return -1;
    return 0;
}

/* Appends the clips as samtools does: it also counts deletions and skips as clipped bases, and joins a hard clip that
 * is followed by others with them in a soft clip. */
static int add_clips_as_samtools(struct byte_buffer *to, const uint32_t *p, uint32_t n, int64_t clipped)
{
    unsigned op = BAM_CSOFT_CLIP;
    for (uint32_t i = 0; i < n; i++) {
        if (is_hard(p[i]) && add_op(to, op, clipped) < 0)
            return -1;
        op = is_hard(p[i]) ? BAM_CHARD_CLIP : BAM_CSOFT_CLIP;
        clipped = (is_hard(p[i]) ? 0 : clipped) + bam_cigar_oplen(p[i]);
    }
    return add_op(to, op, clipped);
}

/* Returns whether the CIGAR has as many bases as SEQ, if there is one. */
static bool fits_seq(const bam1_t *b, const struct byte_buffer *cigar)
{
    int64_t bases = 0;
    for (size_t i = 0; i < cigar->n; i += 4) {
        uint32_t op;
        memcpy(&op, cigar->p + i, sizeof op);
        bases += bam_cigar_type(bam_cigar_op(op)) & 1 ? bam_cigar_oplen(op) : 0;
    }
    return b->core.l_qseq == 0 || bases == b->core.l_qseq;
}

/* Clips the part of the alignment that is beyond its reference, as samtools does, unless no program could then read the
 * record. If no operation crosses the end, the read becomes unmapped, as in samtools. */
static int trim(bam1_t *b, int64_t reference_end, struct byte_buffer *to)
{
    const uint32_t *cigar = bam_get_cigar(b);
    uint32_t i = 0, n = b->core.n_cigar;
    int64_t pos = b->core.pos, over;
    while ((over = pos + span(cigar[i]) - reference_end) <= 0)
        pos += span(cigar[i++]);
    if (pos >= reference_end) {
        b->core.flag &= (uint16_t)~BAM_FPROPER_PAIR;
        unmap(b);
        return 0;
    }
    unsigned op = bam_cigar_op(cigar[i++]);
    to->n = 0;
    if (byte_buffer_append(to, cigar, (i - 1) * sizeof *cigar) < 0 || add_op(to, op, reference_end - pos) < 0)
        return -1;
    size_t kept = to->n;
    if (add_clips_as_samtools(to, cigar + i, n - i, over) < 0)
        return -1;
    if (fits_seq(b, to))
        return replace_cigar(b, to);
    to->n = kept;
    return add_clips(to, cigar + i, n - i, bam_cigar_type(op) & 1 ? over : 0) < 0 ? -1 : replace_cigar(b, to);
}

static bool is_match(unsigned op)
{
    return op == BAM_CEQUAL || op == BAM_CDIFF;
}

/* Joins adjacent operations. */
static int join(bam1_t *b, bool to_match, struct byte_buffer *to)
{
    const uint32_t *cigar = bam_get_cigar(b);
    unsigned before = 0;
    int64_t length = 0;
    to->n = 0;
    for (uint32_t i = 0; i < b->core.n_cigar; i++) {
        unsigned op = bam_cigar_op(cigar[i]);
        if (bam_cigar_oplen(cigar[i]) == 0)
            continue;
        op = to_match && is_match(op) ? BAM_CMATCH : op;
        if (op != before && length > 0 && add_op(to, before, length) < 0)
            return -1;
        length = (op == before ? length : 0) + bam_cigar_oplen(cigar[i]);
        before = op;
    }
    return length > 0 && add_op(to, before, length) < 0 ? -1 : replace_cigar(b, to);
}

/* ---------------------------------------------------------------- record */

/* Returns whether the tag describes an alignment. */
static bool is_of_alignment(const uint8_t *tag)
{
    static const char tags[][2] = {{'N', 'M'}, {'M', 'D'}, {'C', 'G'}, {'S', 'M'}};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (memcmp(tag, tags[i], 2) == 0)
            return true;
    return false;
}

/* Removes the tags that describe an alignment. As in samtools, one or two bytes after the last tag belong to it; more
 * bytes that cannot be read are a fault. */
static int drop_tags(bam1_t *b)
{
    uint8_t *to = bam_get_aux(b);
    const uint8_t *from = to, *end = b->data + b->l_data, *next;
    for (; end - from >= 3; from = next) {
        if (!(next = bam_record_aux_skip(from + 2, end))) {
            errno = EBADMSG;
            return -1;
        }
        next = end - next < 3 ? end : next;
        if (is_of_alignment(from))
            continue;
        memmove(to, from, (size_t)(next - from));
        to += next - from;
    }
    b->l_data -= (int)(from - to);
    return 0;
}

static int clean_unmapped(bam1_t *b, unsigned what)
{
    static const struct byte_buffer none;
    if ((what & SANITIZE_CIGAR) && b->core.n_cigar > 0 && replace_cigar(b, &none) < 0)
        return -1;
    if (what & SANITIZE_MAPQ)
        b->core.qual = 0;
    return what & SANITIZE_AUX ? drop_tags(b) : 0;
}

/* Returns whether an operation ends beyond the reference. One of length 0 may do so, too. */
static bool hangs_over(const bam1_t *b, int64_t reference_end)
{
    const uint32_t *cigar = bam_get_cigar(b);
    int64_t pos = b->core.pos;
    for (uint32_t i = 0; i < b->core.n_cigar; i++)
        if (bam_cigar_type(bam_cigar_op(cigar[i])) & 2 && (pos += bam_cigar_oplen(cigar[i])) > reference_end)
            return true;
    return false;
}

/* As in samtools, a missing reference has length 0. */
static int64_t length_of(const int64_t *lengths, int32_t reference)
{
    return reference < 0 ? 0 : lengths[reference];
}

/* Corrects the place of a mapped read. As in samtools, a read that begins beyond its reference and has no base on it
 * stays unchanged without SANITIZE_UNMAP. */
static int place(bam1_t *b, unsigned what, const int64_t *lengths, struct byte_buffer *cigar)
{
    bam1_core_t *c = &b->core;
    if (c->pos < 0 && (what & SANITIZE_UNMAP)) {
        unmap(b);
        return 0;
    }
    int64_t length = length_of(lengths, c->tid);
    if (c->pos >= length && (what & SANITIZE_UNMAP)) {
        unmap(b);
        if (what & SANITIZE_POS)
            c->tid = -1, c->pos = -1;
        return 0;
    }
    return hangs_over(b, length) ? trim(b, length, cigar) : 0;
}

/* ------------------------------------------------ whether it is needed */

static bool has_tags(const struct bam_record *r)
{
    const uint8_t *p = bam_record_aux(r), *end = bam_record_end(r);
    for (const uint8_t *next; end - p >= 3 && (next = bam_record_aux_skip(p + 2, end)); p = next)
        if (is_of_alignment(p))
            return true;
    return end - p >= 3;                         /* they cannot be read */
}

/* Returns whether join() would change the CIGAR. */
static bool is_split(const struct bam_record *r, bool to_match)
{
    uint32_t n;
    const uint8_t *tag, *cigar = bam_record_cigar(r, &n, &tag);
    unsigned before = UINT_MAX;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t one = load_le32(cigar + 4 * (size_t)i);
        if (bam_cigar_oplen(one) == 0 || (to_match && is_match(bam_cigar_op(one))) || bam_cigar_op(one) == before)
            return true;
        before = bam_cigar_op(one);
    }
    return false;
}

static bool is_misplaced(const struct bam_record *r, unsigned what, const int64_t *lengths)
{
    int64_t pos = long_pos(r);
    return (pos < 0 && (what & SANITIZE_UNMAP))
        || pos + bam_record_ref_span(r) > length_of(lengths, bam_record_ref_id(r));
}

bool sanitize_changes(const struct bam_record *r, unsigned what, const int64_t *lengths)
{
    bool is_mapped = !(bam_record_flag(r) & BAM_FUNMAP), has_no_reference = bam_record_ref_id(r) < 0;
    if ((what & SANITIZE_POS) && has_no_reference && (long_pos(r) != -1 || ((what & SANITIZE_UNMAP) && is_mapped)))
        return true;
    if (!is_mapped)
        return ((what & SANITIZE_CIGAR) && load_le16(r->n_cigar)) || ((what & SANITIZE_MAPQ) && r->mapq)
            || ((what & SANITIZE_AUX) && has_tags(r));
    return ((what & SANITIZE_CIGAR) && is_misplaced(r, what, lengths))
        || ((what & (SANITIZE_CIGAR_JOIN | SANITIZE_CIGAR_M)) && is_split(r, what & SANITIZE_CIGAR_M));
}

int sanitize(bam1_t *b, unsigned what, const int64_t *lengths, struct byte_buffer *cigar)
{
    bam1_core_t *c = &b->core;
    if ((what & SANITIZE_POS) && c->tid < 0) {
        c->pos = -1;
        if (what & SANITIZE_UNMAP)
            unmap(b);
    }
    if ((what & SANITIZE_CIGAR) && !(c->flag & BAM_FUNMAP) && place(b, what, lengths, cigar) < 0)
        return -1;
    if (c->flag & BAM_FUNMAP)
        return clean_unmapped(b, what);
    return what & (SANITIZE_CIGAR_JOIN | SANITIZE_CIGAR_M) ? join(b, what & SANITIZE_CIGAR_M, cigar) : 0;
}
