/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "bam/long_pos.h"
#include "bam/ref_names.h"
#include "bam/sam_line.h"
#include "bam/sam_number.h"
#include "bam/sam_scan.h"
#include "bam/sam_tags.h"
#include "base/byte_buffer.h"

enum {
    PLACEHOLDER = 2,             /* operations that replace a CIGAR of more than BAM_INLINE_OPS_MAX */
    OP_LENGTH_MAX = (1 << 28) - 1,
    FIRST_OPS = 16,
    CG_HEAD = 8,                 /* bytes of the CG tag before its operations */
    SHORT = 1 << 16,             /* up to this many bytes of tags get room for the largest result */
    QUAL_OFFSET = 33, QUAL_NONE = 0xff,
};
#define POSITION_MAX ((INT64_C(1) << 62) - 1)

const char *sam_line_fault_text(enum sam_line_fault fault)
{
    #define FAULT_TEXT(number, text) [number] = (text),
    static const char *const texts[] = {SAM_LINE_FAULTS(FAULT_TEXT)};
    return texts[fault];
}

const char *sam_line_note_text(enum sam_line_note note)
{
    static const char *const texts[] = {SAM_LINE_NOTES(FAULT_TEXT)};
    return texts[note];
}

/* The line being parsed. */
struct parse {
    const char *p, *end;         /* the text that is left; *end is '\0' */
    const struct ref_names *names;
    struct long_pos far;
    const char *name, *cigar;    /* where these fields begin */
    uint32_t n_cigar;
    uint32_t first_ops[FIRST_OPS];   /* the first CIGAR operations; few lines have more, which are parsed again */
    int64_t ref_span, query_span;    /* bases that the CIGAR covers */
    struct sam_line found;
    struct bam_record fixed;     /* all fields except block_size; last, because it ends with data[] */
};

static bool fail(struct parse *l, enum sam_line_fault fault)
{
    l->found.fault = fault;
    return false;
}

static void note_seen(struct parse *l, enum sam_line_note what)
{
    l->found.notes |= 1u << what;
}

/* ---- fields: each function takes one, with the tab after it. False: the line is refused ---- */

/* Takes the text up to the next tab. False: there is no tab. */
static bool take_text(struct parse *l, const char **text, size_t *n)
{
    const char *tab = sam_scan_field(l->p, l->end);
    if (*tab != '\t')
        return fail(l, SAM_LINE_CUT);
    *text = l->p;
    *n = (size_t)(tab - l->p);
    l->p = tab + 1;
    return true;
}

/* Takes the tab after a number; `over`: the number is out of range. */
static bool take_tab(struct parse *l, bool over, enum sam_line_fault fault)
{
    if (over || *l->p != '\t')
        return fail(l, *l->p == '\0' && !over ? SAM_LINE_CUT : fault);
    l->p++;
    return true;
}

static bool take_name(struct parse *l)
{
    size_t n;
    if (!take_text(l, &l->name, &n))
        return false;
    if (n >= BAM_NAME_SIZE_MAX)
        return fail(l, SAM_LINE_NAME);
    if (n == 0)
        note_seen(l, SAM_LINE_NO_NAME);
    l->fixed.name_len = (uint8_t)(n + 1);
    return true;
}

static bool take_flag(struct parse *l, uint16_t *flag)
{
    bool over = false;
    *flag = (uint16_t)sam_number_flag(&l->p, &over);
    return take_tab(l, over, SAM_LINE_FLAG);
}

/* Takes the name of a reference. same: the reference that '=' stands for; NULL: '=' is a name. */
static bool take_ref(struct parse *l, int32_t *ref, enum sam_line_note unknown, const int32_t *same)
{
    const char *name;
    size_t n;
    if (!take_text(l, &name, &n))
        return false;
    *ref = -1;
    if (n == 1 && *name == '*')
        return true;
    if (same && n == 1 && *name == '=') {
        *ref = *same;
        return true;
    }
    if (!same && ref_names_count(l->names) == 0)
        return fail(l, SAM_LINE_NO_REFS);
    *ref = ref_names_find(l->names, name, n);
    if (*ref < 0)
        note_seen(l, unknown);
    return true;
}

/* Takes a position, which counts from 1, and converts it to count from 0. A reference with position 0 has none. */
static bool take_pos(struct parse *l, int64_t *pos, int32_t *ref, enum sam_line_note none, enum sam_line_fault fault)
{
    bool over = false;
    *pos = (int64_t)sam_number_unsigned(&l->p, POSITION_MAX, &over) - 1;
    if (!take_tab(l, over, fault))
        return false;
    if (*pos < 0 && *ref >= 0) {
        note_seen(l, none);
        *ref = -1;
    }
    return true;
}

static bool take_mapq(struct parse *l)
{
    bool over = false;
    l->fixed.mapq = (uint8_t)sam_number_unsigned(&l->p, UINT8_MAX, &over);
    return take_tab(l, over, SAM_LINE_MAPQ);
}

/* The operation of a letter, + 1; 0: the letter has none. */
static const uint8_t operations[256] = {
    ['M'] = BAM_CMATCH + 1, ['I'] = BAM_CINS + 1, ['D'] = BAM_CDEL + 1, ['N'] = BAM_CREF_SKIP + 1,
    ['S'] = BAM_CSOFT_CLIP + 1, ['H'] = BAM_CHARD_CLIP + 1, ['P'] = BAM_CPAD + 1, ['='] = BAM_CEQUAL + 1,
    ['X'] = BAM_CDIFF + 1, ['B'] = BAM_CBACK + 1,
};

/* The operation at *p; UINT32_MAX: it cannot be read. */
static uint32_t take_operation(const char **p)
{
    bool over = false;
    const char *start = *p;
    uint32_t length = (uint32_t)sam_number_digits(p, OP_LENGTH_MAX, &over), code = operations[(uint8_t)**p];
    if (over || *p == start || code == 0)
        return UINT32_MAX;
    ++*p;
    return length << BAM_CIGAR_SHIFT | (code - 1);
}

/* Counts operations and bases; put_cigar() makes the operations. */
static bool take_cigar(struct parse *l, uint16_t *flag)
{
    size_t n;
    l->cigar = l->p;
    if (*l->p == '*') {
        if (!(*flag & BAM_FUNMAP))
            note_seen(l, SAM_LINE_NO_CIGAR);
        *flag |= BAM_FUNMAP;
        return take_text(l, &l->cigar, &n);
    }
    do {
        uint32_t op = take_operation(&l->p);
        if (op == UINT32_MAX)
            return fail(l, SAM_LINE_CIGAR);
        int type = bam_cigar_type(bam_cigar_op(op));
        l->query_span += type & 1 ? bam_cigar_oplen(op) : 0;
        l->ref_span += type & 2 ? bam_cigar_oplen(op) : 0;
        if (l->n_cigar < FIRST_OPS)
            l->first_ops[l->n_cigar] = op;
        l->n_cigar++;
    } while (*l->p != '\t');
    l->p++;
    return true;
}

static bool take_tlen(struct parse *l)
{
    bool over = false;
    l->far.tlen = sam_number_signed(&l->p, POSITION_MAX, &over);
    return take_tab(l, over, SAM_LINE_TLEN);
}

/* Takes the fields before SEQ. */
static bool take_fixed(struct parse *l)
{
    uint16_t flag;
    int32_t ref, next;
    if (!take_name(l) || !take_flag(l, &flag) || !take_ref(l, &ref, SAM_LINE_UNKNOWN_REF, NULL)
        || !take_pos(l, &l->far.pos, &ref, SAM_LINE_NO_POS, SAM_LINE_POS))
        return false;
    if (ref < 0)
        flag |= BAM_FUNMAP;
    if (!take_mapq(l) || !take_cigar(l, &flag))
        return false;
    int64_t covered = flag & BAM_FUNMAP || l->ref_span == 0 ? 1 : l->ref_span;
    if (!take_ref(l, &next, SAM_LINE_UNKNOWN_MATE, &ref)
        || !take_pos(l, &l->far.next_pos, &next, SAM_LINE_NO_MATE_POS, SAM_LINE_NEXT_POS) || !take_tlen(l))
        return false;
    store_le32(l->fixed.ref_id, (uint32_t)ref);
    store_le32(l->fixed.pos, (uint32_t)l->far.pos);
    store_le16(l->fixed.bin, (uint16_t)hts_reg2bin(l->far.pos, l->far.pos + covered, 14, 5));
    store_le16(l->fixed.n_cigar, (uint16_t)(l->n_cigar > BAM_INLINE_OPS_MAX ? PLACEHOLDER : l->n_cigar));
    store_le16(l->fixed.flag, flag);
    store_le32(l->fixed.next_ref_id, (uint32_t)next);
    store_le32(l->fixed.next_pos, (uint32_t)l->far.next_pos);
    store_le32(l->fixed.tlen, (uint32_t)l->far.tlen);
    l->found.far = long_pos_needed(&l->far);
    return true;
}

/* ---- the fields after them ---- */

/* SEQ and QUAL as they stand in the line. */
struct bases {
    const char *seq, *qual;      /* qual is NULL if it is '*' */
    size_t n;
};

static bool take_bases(struct parse *l, struct bases *b)
{
    if (!take_text(l, &b->seq, &b->n))
        return false;
    if (b->n == 1 && *b->seq == '*')
        b->n = 0;
    else if (l->n_cigar && l->query_span != (int64_t)b->n)
        return fail(l, SAM_LINE_SEQ);
    b->qual = l->p;
    if (*l->p == '*' && (l->p[1] == '\t' || l->p[1] == '\0')) {
        b->qual = NULL;
        l->p++;
    } else if ((size_t)(l->end - l->p) < b->n || (l->p[b->n] != '\t' && l->p[b->n] != '\0')) {
        return fail(l, SAM_LINE_QUAL);
    } else {
        l->p += b->n;
    }
    l->p += l->p < l->end;
    return true;
}

/* The codes of bases (SAMv1 section 4.2.3), each XORed with the code of N, which all other characters get. */
static const uint8_t base_codes[256] = {
    #define BASE(upper, lower, code) [upper] = (code) ^ 15, [lower] = (code) ^ 15
    ['='] = 0x0 ^ 15, ['0'] = 0x1 ^ 15, ['1'] = 0x2 ^ 15, ['2'] = 0x4 ^ 15, ['3'] = 0x8 ^ 15,
    BASE('A', 'a', 1), BASE('C', 'c', 2), BASE('M', 'm', 3), BASE('G', 'g', 4), BASE('R', 'r', 5), BASE('S', 's', 6),
    BASE('V', 'v', 7), BASE('T', 't', 8), BASE('U', 'u', 8), BASE('W', 'w', 9), BASE('Y', 'y', 10), BASE('H', 'h', 11),
    BASE('K', 'k', 12), BASE('D', 'd', 13), BASE('B', 'b', 14),
};

static uint8_t *put_any_bases(uint8_t *to, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        *to++ = (uint8_t)~(base_codes[s[2 * i]] << 4 | base_codes[s[2 * i + 1]]);
    if (n % 2)
        *to++ = (uint8_t)((base_codes[s[n - 1]] ^ 15) << 4);
    return to;
}

typedef uint8_t bytes_16 __attribute__((vector_size(16)));
enum { VECTOR = sizeof(bytes_16) };

/* Packs the low nibbles of the eight bytes of v into four bytes. The first base is in the lowest byte of v. */
static void put_nibbles(uint8_t *to, uint64_t v)
{
    v = (v << 4 | v >> 8) & 0x00ff00ff00ff00ff;
    v = (v | v >> 8) & 0x0000ffff0000ffff;
    store_le32(to, (uint32_t)(v | v >> 16));
}

/* Packs sixteen bases that are A, C, G, T or N; false: another one is among them. Compilers vectorise it. */
static bool put_common_bases(uint8_t *to, const uint8_t *s)
{
    bytes_16 v, code;
    uint8_t codes[VECTOR];
    memcpy(&v, s, VECTOR);
    v |= 0x20;                                   /* small letters */
    code = ((bytes_16)(v == 'a') & 1) | ((bytes_16)(v == 'c') & 2) | ((bytes_16)(v == 'g') & 4)
         | ((bytes_16)(v == 't') & 8) | ((bytes_16)(v == 'n') & 15);
    bytes_16 none = (bytes_16)(code == 0);
    uint64_t any[2];
    memcpy(any, &none, VECTOR);
    if (any[0] | any[1])
        return false;
    memcpy(codes, &code, VECTOR);
    put_nibbles(to, load_le64(codes));
    put_nibbles(to + VECTOR / 4, load_le64(codes + VECTOR / 2));
    return true;
}

static uint8_t *put_seq(uint8_t *to, const char *seq, size_t n)
{
    const uint8_t *s = (const uint8_t *)seq;
    for (; n >= VECTOR; n -= VECTOR, s += VECTOR, to += VECTOR / 2)
        if (!put_common_bases(to, s))
            put_any_bases(to, s, VECTOR);
    return put_any_bases(to, s, n);
}

/* Converts eight qualities at a time. The loops test no character by itself, only whether all were valid. NULL: one was
 * not. */
static uint8_t *put_qual(uint8_t *to, const char *qual, size_t n)
{
    const uint8_t *q = (const uint8_t *)qual;
    uint64_t wrong = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t v = load_le64(q + i);
        store_le64(to + i, v - QUAL_OFFSET * 0x0101010101010101u);
        wrong |= (v - QUAL_OFFSET * 0x0101010101010101u) & 0x8080808080808080u;
    }
    for (; i < n; i++) {
        to[i] = (uint8_t)(q[i] - QUAL_OFFSET);
        wrong |= to[i] & 0x80;
    }
    return wrong ? NULL : to + n;
}

static uint8_t *put_operations(uint8_t *to, const char *cigar, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, to += 4)
        store_le32(to, take_operation(&cigar));
    return to;
}

static uint8_t *put_cigar(uint8_t *to, const struct parse *l, size_t n_bases)
{
    if (l->n_cigar <= FIRST_OPS) {
        for (uint32_t i = 0; i < l->n_cigar; i++, to += 4)
            store_le32(to, l->first_ops[i]);
        return to;
    }
    if (l->n_cigar <= BAM_INLINE_OPS_MAX)
        return put_operations(to, l->cigar, l->n_cigar);
    store_le32(to, (uint32_t)n_bases << BAM_CIGAR_SHIFT | BAM_CSOFT_CLIP);
    store_le32(to + 4, (uint32_t)l->ref_span << BAM_CIGAR_SHIFT | BAM_CREF_SKIP);
    return to + 8;
}

/* Appends everything except the tags to the buffer after its n bytes. */
static bool put_body(struct byte_buffer *to, struct parse *l, const struct bases *b)
{
    size_t ops = l->n_cigar > BAM_INLINE_OPS_MAX ? PLACEHOLDER : l->n_cigar, tags = (size_t)(l->end - l->p);
    size_t size = BAM_FIXED + l->fixed.name_len + 4 * ops + (b->n + 1) / 2 + b->n + LONG_POS_SIZE;
    if (b->n > INT32_MAX)
        return fail(l, SAM_LINE_LONG);
    if (byte_buffer_reserve(to, to->n + size + (tags < SHORT ? 2 * tags : tags) + SAM_TAGS_ROOM) < 0)
        return fail(l, SAM_LINE_NO_MEMORY);
    struct bam_record *r = (struct bam_record *)(to->p + to->n);
    store_le32(l->fixed.seq_len, (uint32_t)b->n);
    memcpy(r, &l->fixed, BAM_FIXED);
    uint8_t *p = r->data;
    memcpy(p, l->name, l->fixed.name_len - 1u);
    p[l->fixed.name_len - 1] = '\0';
    p = put_cigar(p + l->fixed.name_len, l, b->n);
    p = put_seq(p, b->seq, b->n);
    if (!b->qual)
        p = (uint8_t *)memset(p, QUAL_NONE, b->n) + b->n;
    else if (!(p = put_qual(p, b->qual, b->n)))
        return fail(l, SAM_LINE_QUAL_VALUE);
    if (l->found.far) {
        long_pos_put(r, p, &l->far);
        p += LONG_POS_SIZE;
    }
    to->n = (size_t)(p - to->p);
    return true;
}

/* Appends CG, the tag that holds a CIGAR with more operations than fit into its field. */
static bool put_cg(struct byte_buffer *to, struct parse *l)
{
    if (l->n_cigar <= BAM_INLINE_OPS_MAX)
        return true;
    size_t size = CG_HEAD + 4 * (size_t)l->n_cigar;
    if (byte_buffer_reserve(to, to->n + size) < 0)
        return fail(l, SAM_LINE_NO_MEMORY);
    uint8_t *p = to->p + to->n;
    memcpy(p, "CGBI", 4);
    store_le32(p + 4, l->n_cigar);
    put_operations(p + CG_HEAD, l->cigar, l->n_cigar);
    to->n += size;
    return true;
}

/* Sets the size of the record, and checks that readers of BAM can read it. This is not certain if the record has a CG
 * tag, from the line or made here. */
static bool readable(const struct byte_buffer *to, size_t start, struct parse *l, bool has_cg)
{
    size_t size = to->n - start;
    if (size > INT32_MAX)
        return fail(l, SAM_LINE_LONG);
    store_le32(((struct bam_record *)(to->p + start))->block_size, (uint32_t)(size - 4));
    if ((has_cg || l->n_cigar > BAM_INLINE_OPS_MAX)
        && bam_record_check(to->p + start, size, ref_names_count(l->names)).fault == BAM_BAD_CG)
        return fail(l, SAM_LINE_CG);
    return true;
}

struct sam_line sam_line_append(struct byte_buffer *to, const struct ref_names *names, const char *line, size_t n)
{
    struct parse l;              /* only part of it is zeroed: zeroing all would take a tenth of the time */
    struct bases bases;
    size_t start = to->n;
    bool has_cg = false;
    l.p = line;
    l.end = line + n;
    l.names = names;
    l.n_cigar = 0;
    l.ref_span = l.query_span = 0;
    l.found = (struct sam_line){SAM_LINE_OK, 0, false};
    if (take_fixed(&l) && take_bases(&l, &bases) && put_body(to, &l, &bases)) {
        l.found.fault = sam_tags_append(to, l.p, l.end, &has_cg);
        if (!l.found.fault && put_cg(to, &l) && readable(to, start, &l, has_cg))
            return l.found;
    }
    to->n = start;
    return l.found;
}
