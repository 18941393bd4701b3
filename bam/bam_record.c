/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>
#include "bam/bam_magic.h"
#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#ifdef __x86_64__
#include <emmintrin.h>
#endif

/* Length of the longest operation: a length is a 28-bit number. */
#define CIGAR_LONGEST ((1 << 28) - 1)

struct cigar_span { int64_t ref, query; };

static inline struct cigar_span cigar_span(const uint8_t *cigar, uint32_t n)
{
    struct cigar_span span = {0, 0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = load_le32(cigar + 4 * (size_t)i);
        int64_t len = bam_cigar_oplen(op);
        int type = bam_cigar_type(bam_cigar_op(op));
        if (type & 1) span.query += len;
        if (type & 2) span.ref += len;
    }
    return span;
}

static const uint8_t *inline_cigar(const struct bam_record *r)
{
    return r->data + r->name_len;
}

const uint8_t *bam_record_aux(const struct bam_record *r)
{
    size_t l_seq = load_le32(r->seq_len);
    return inline_cigar(r) + 4 * (size_t)load_le16(r->n_cigar) + (l_seq + 1) / 2 + l_seq;
}

int64_t bam_record_aux_int(const uint8_t *type, int64_t none)
{
    const uint8_t *p = type + 1;
    switch (*type) {
    case 'c': return (int8_t)*p;
    case 'C': return *p;
    case 's': return (int16_t)load_le16(p);
    case 'S': return load_le16(p);
    case 'i': return (int32_t)load_le32(p);
    case 'I': return load_le32(p);
    default: return none;
    }
}

/* As in htslib, an unmapped read, or one without reference bases, covers one base. */
static int64_t covered(const struct bam_record *r, int64_t ref_span)
{
    return (bam_record_flag(r) & BAM_FUNMAP) || ref_span == 0 ? 1 : ref_span;
}

static uint16_t record_bin(const struct bam_record *r, int64_t ref_span)
{
    int64_t pos = bam_record_pos(r);
    return (uint16_t)hts_reg2bin(pos, pos + covered(r, ref_span), 14, 5);
}

const uint8_t *bam_record_aux_find(const uint8_t *p, const uint8_t *end, const char tag[2], int *bad)
{
    *bad = 0;
    while (p && end - p >= 3) {
        const uint8_t *type = p + 2;
        const uint8_t *next = bam_record_aux_skip(type, end);
        if (next && p[0] == (uint8_t)tag[0] && p[1] == (uint8_t)tag[1])
            return bam_record_aux_is_closed(type, next) ? type : (*bad = 1, NULL);
        p = next;
    }
    *bad = !p;                   /* one or two bytes at the end are not a tag, and are allowed */
    return NULL;
}

static bool is_placeholder(const uint8_t *op, uint32_t l_seq)
{
    return bam_cigar_op(load_le32(op)) == BAM_CSOFT_CLIP && bam_cigar_oplen(load_le32(op)) == l_seq;
}

/* Finds the CG tag that holds the real CIGAR of r. Returns its type byte, or NULL. The conditions are those under which
 * htslib moves that CIGAR (SAMv1 section 4.2.2). */
static inline const uint8_t *real_cigar(const struct bam_record *r, uint32_t *n, int *bad)
{
    uint32_t n_cigar = load_le16(r->n_cigar), l_seq = load_le32(r->seq_len);
    *bad = 0;
    if (n_cigar == 0 || bam_record_ref_id(r) < 0 || bam_record_pos(r) < 0)
        return NULL;
    if (!is_placeholder(inline_cigar(r), l_seq))
        return NULL;
    const uint8_t *end = bam_record_end(r);
    const uint8_t *cg = bam_record_aux_find(bam_record_aux(r), end, "CG", bad);
    if (!cg || cg[0] != 'B' || (cg[1] != 'I' && cg[1] != 'i'))
        return NULL;
    *n = load_le32(cg + 2);
    return *n >= n_cigar && *n < 1u << 29 ? cg : NULL;
}

const uint8_t *bam_record_cigar(const struct bam_record *r, uint32_t *n, const uint8_t **tag)
{
    int bad;
    const uint8_t *cg = real_cigar(r, n, &bad);
    *tag = cg ? cg - 2 : NULL;
    if (cg)
        return cg + 6;
    *n = load_le16(r->n_cigar);
    return inline_cigar(r);
}

int64_t bam_record_ref_span(const struct bam_record *r)
{
    uint32_t n;
    const uint8_t *tag, *cigar = bam_record_cigar(r, &n, &tag);
    return covered(r, cigar_span(cigar, n).ref);
}

/* Returns whether r will be read with the same CIGAR again once the n operations of the CG tag at cg are where they
 * belong. If they are too many for the CIGAR field, or look like a placeholder, a reader looks for CG again. Then it
 * must find neither another CG nor a tag that cannot be read. (htslib writes such a record and then cannot read it.) */
static bool is_normal_after(const struct bam_record *r, const uint8_t *cg, uint32_t n)
{
    const uint8_t *p = cg + 6 + 4 * (size_t)n, *end = bam_record_end(r);
    if (n <= BAM_INLINE_OPS_MAX && !is_placeholder(cg + 6, load_le32(r->seq_len)))
        return true;
    while (p && end - p >= 3 && (p[0] != 'C' || p[1] != 'G'))
        p = bam_record_aux_next(p, end);
    return p == end;
}

int bam_record_close(struct byte_buffer *to, const uint8_t *record)
{
    const struct bam_record *r = bam_record_at(record);
    size_t start = to->n, name_end = BAM_FIXED + (size_t)r->name_len, size = bam_record_size(r);
    if (byte_buffer_reserve(to, start + size + 1) < 0)
        return -1;
    struct bam_record *made = (struct bam_record *)(to->p + start);
    memcpy(made, record, name_end);
    to->p[start + name_end] = 0;
    memcpy(to->p + start + name_end + 1, record + name_end, size - name_end);
    made->name_len++;
    store_le32(made->block_size, (uint32_t)(size + 1 - 4));
    to->n += size + 1;
    return 0;
}

static struct bam_verdict check(const uint8_t *p, size_t avail, int32_t n_ref)
{
    const struct bam_record *r = bam_record_at(p);
    struct bam_verdict v = {BAM_CUT, 0};
    if (avail < BAM_FIXED)
        return v;
    uint64_t body = load_le32(r->block_size);
    uint32_t n_cigar = load_le16(r->n_cigar), l_seq = load_le32(r->seq_len);
    int32_t ref = bam_record_ref_id(r), next = (int32_t)load_le32(r->next_ref_id);
    v.fault = BAM_BAD_SIZE;
    if (body < BAM_MIN_RECORD - 4 || body > INT32_MAX)
        return v;
    v.fault = BAM_BAD_REF;
    if (ref < -1 || ref >= n_ref)
        return v;
    v.fault = BAM_BAD_NEXT_REF;
    if (next < -1 || next >= n_ref)
        return v;
    v.fault = BAM_BAD_LENGTHS;
    uint64_t need = BAM_FIXED - 4 + (uint64_t)r->name_len + 4 * (uint64_t)n_cigar
                  + ((uint64_t)l_seq + 1) / 2 + l_seq;
    if (r->name_len < 1 || l_seq > INT32_MAX || need > body)
        return v;
    v.fault = BAM_CUT;
    if (body + 4 > avail)
        return v;
    v.fault = BAM_BAD_NAME;
    if (r->data[r->name_len - 1] != 0)
        return v;
    v.fault = BAM_OK;
    if (n_cigar == 0)
        return v;

    const uint8_t *cigar = inline_cigar(r);
    uint32_t n_real = n_cigar;
    int bad;
    const uint8_t *cg = real_cigar(r, &n_real, &bad);
    if (cg)
        cigar = cg + 6;
    else
        n_real = n_cigar;
    struct cigar_span span = cigar_span(cigar, n_real);
    if (bad || (cg && !is_normal_after(r, cg, n_real))
        || (n_real > BAM_INLINE_OPS_MAX && (n_cigar < 2 || span.ref > CIGAR_LONGEST)))
        v.fault = BAM_BAD_CG;   /* n_cigar < 2: bam_record_fix() would make the record grow */
    else if (l_seq > 0 && !(bam_record_flag(r) & BAM_FUNMAP) && span.query != l_seq)
        v.fault = BAM_BAD_CIGAR;
    v.needs_fix = cg || record_bin(r, span.ref) != load_le16(r->bin);
    return v;
}

/* Returns whether a BAM header begins at p. Its first bytes, read as block_size, are 21,840,194. Its text, if there is
 * any, begins with @. */
static bool is_header(const uint8_t *p, size_t avail)
{
    enum { SIZE = BAM_HEADER_MAGIC_SIZE, TEXT = SIZE + 4 };
    return avail > TEXT && memcmp(p, BAM_HEADER_MAGIC, SIZE) == 0 && (load_le32(p + SIZE) == 0 || p[TEXT] == '@');
}

struct bam_verdict bam_record_check(const uint8_t *p, size_t avail, int32_t n_ref)
{
    struct bam_verdict v = check(p, avail, n_ref);
    if (v.fault && is_header(p, avail))
        v.fault = BAM_HEADER;
    return v;
}

/* Moves the n operations of the CG tag whose type byte is cg to where they belong: into the CIGAR field if they fit;
 * otherwise to the end of the tags, with "<l_seq>S<span>N" in the CIGAR field. Either way the record does not grow.
 * Returns 0, or -1 if out of memory. */
static int move_real_cigar(struct bam_record *r, const uint8_t *cg, uint32_t n)
{
    size_t ops = 4 * (size_t)n;
    uint8_t *real = malloc(ops + 1), *start = (uint8_t *)r;
    if (!real)
        return -1;
    memcpy(real, cg + 6, ops);
    uint8_t *end = start + bam_record_size(r);
    uint8_t *tag = (uint8_t *)(uintptr_t)cg - 2, *tag_end = tag + 8 + ops;
    uint8_t *cigar = r->data + r->name_len;
    uint8_t *seq = cigar + 4 * (size_t)load_le16(r->n_cigar);

    memmove(tag, tag_end, (size_t)(end - tag_end));
    end -= tag_end - tag;
    int fits = n <= BAM_INLINE_OPS_MAX;
    uint8_t *new_seq = cigar + (fits ? ops : 8);
    memmove(new_seq, seq, (size_t)(end - seq));
    end += new_seq - seq;
    if (fits) {
        memcpy(cigar, real, ops);
        store_le16(r->n_cigar, (uint16_t)n);
    } else {
        uint32_t l_seq = load_le32(r->seq_len);
        store_le32(cigar, l_seq << BAM_CIGAR_SHIFT | BAM_CSOFT_CLIP);
        store_le32(cigar + 4, (uint32_t)cigar_span(real, n).ref << BAM_CIGAR_SHIFT | BAM_CREF_SKIP);
        store_le16(r->n_cigar, 2);
        memcpy(end, "CGBI", 4);
        store_le32(end + 4, n);
        memcpy(end + 8, real, ops);
        end += 8 + ops;
    }
    store_le32(r->block_size, (uint32_t)(end - start - 4));
    free(real);
    return 0;
}

int bam_record_fix(struct bam_record *r)
{
    uint32_t n;
    const uint8_t *tag, *cigar = bam_record_cigar(r, &n, &tag);
    store_le16(r->bin, record_bin(r, cigar_span(cigar, n).ref));
    return tag ? move_real_cigar(r, tag + 2, n) : 0;
}

enum { LEAST_SCORE = 15 };

#ifdef __x86_64__

/* The sum of the bytes that are 15 or more, in two parts. */
static __m128i good_sums(__m128i v)
{
    __m128i counts = _mm_cmpeq_epi8(_mm_max_epu8(v, _mm_set1_epi8(LEAST_SCORE)), v);
    return _mm_sad_epu8(_mm_and_si128(v, counts), _mm_setzero_si128());
}

/* The last vector begins before the qualities; its first bytes, of other fields, are not counted. */
static uint64_t score(const uint8_t *p, const uint8_t *end)
{
    enum { WIDE = sizeof(__m128i) };
    static const uint8_t mask[2 * WIDE] = {[WIDE] = 255, 255, 255, 255, 255, 255, 255, 255,
                                           255, 255, 255, 255, 255, 255, 255, 255};
    __m128i sums = _mm_setzero_si128();
    for (; end - p >= WIDE; p += WIDE)
        sums = _mm_add_epi64(sums, good_sums(_mm_loadu_si128((const void *)p)));
    __m128i last = _mm_loadu_si128((const void *)(end - WIDE));
    __m128i counts = _mm_loadu_si128((const void *)(mask + (end - p)));
    sums = _mm_add_epi64(sums, good_sums(_mm_and_si128(last, counts)));
    return (uint64_t)_mm_cvtsi128_si64(sums) + (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
}

#else

static uint64_t score(const uint8_t *p, const uint8_t *end)
{
    uint64_t sum = 0;
    for (; p < end; p++)
        sum += *p >= LEAST_SCORE ? *p : 0;
    return sum;
}

#endif

uint64_t bam_record_score(const struct bam_record *r)
{
    const uint8_t *end = bam_record_aux(r);
    return score(end - load_le32(r->seq_len), end);
}

const char *bam_fault_text(enum bam_fault fault)
{
#define FAULT_TEXT(fault, text) [fault] = (text),
    static const char *const texts[] = {BAM_FAULTS(FAULT_TEXT)};
    return (size_t)fault < sizeof texts / sizeof *texts ? texts[fault] : "unknown fault";
}
