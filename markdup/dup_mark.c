/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include "markdup/dup_mark.h"
#include "markdup/dup_name.h"

/* The tags that may change, in the order in which new ones are appended. */
enum { ORIGINAL, TYPE, COUNT, UMI, N_TAGS };

struct tag_request {
    bool drops;                  /* the first existing one is removed */
    bool wanted;                 /* the first one that is left gets the value; if there is none, a new tag is added */
    const char *text;            /* the value, n bytes without NUL; NULL: the value is the number */
    size_t n;
    uint32_t number;
    enum dup_mark_fault otherwise;   /* the fault if the tag has another type; OK: it is left unchanged */
};

/* A record being written to the buffer, which has room for it. */
struct mark_writer {
    uint8_t *at;                 /* where its next byte goes */
    struct tag_request requests[N_TAGS];
};

#define TEXT(fault, text) [fault] = (text),

const char *dup_mark_fault_text(enum dup_mark_fault fault)
{
    static const char *const texts[] = { DUP_MARK_FAULTS(TEXT) };
    return texts[fault];
}

static bool is_cleared(const struct dup_mark_rule *rule, const struct bam_record *record)
{
    return rule->clear && bam_record_flag(record) & BAM_FDUP;
}

unsigned dup_mark_flag(const struct dup_mark_rule *rule, const struct bam_record *record,
                       const struct dup_verdict *verdict)
{
    unsigned flag = bam_record_flag(record);
    if (is_cleared(rule, record))
        flag &= ~(unsigned)BAM_FDUP;
    return verdict && verdict->duplicate ? flag | BAM_FDUP : flag;
}

bool dup_mark_is_flag(const struct dup_mark_rule *rule, const struct bam_record *record,
                      const struct dup_verdict *verdict)
{
    return !is_cleared(rule, record) && !rule->counts && !rule->umi
        && !(verdict && (verdict->original || verdict->type));
}

/* ---- tags ---- */

static void put(struct mark_writer *m, const void *bytes, size_t n)
{
    memcpy(m->at, bytes, n);
    m->at += n;
}

/* Size of an integer tag's value; 0: the tag is not an integer. */
static size_t integer_size(const uint8_t *type)
{
    return *type == 'A' || *type == 'f' || *type == 'd' ? 0 : bam_record_aux_scalar_size(*type);
}

/* Writes the number with `least` bytes, or more if it needs them, as htslib does. */
static void put_typed_number(struct mark_writer *m, uint32_t number, size_t least)
{
    size_t n = number < UINT8_MAX ? 1 : number < UINT16_MAX ? 2 : 4;
    uint8_t bytes[5] = {0};
    n = n < least ? least : n;
    bytes[0] = n == 1 ? 'C' : n == 2 ? 'S' : 'I';
    store_le32(bytes + 1, number);
    put(m, bytes, 1 + n);
}

/* Writes a requested tag. old: type byte of the tag that it replaces; NULL: it is new. */
static void put_tag(struct mark_writer *m, unsigned tag, const uint8_t *old)
{
    static const char names[N_TAGS][3] = {[ORIGINAL] = "do", [TYPE] = "dt", [COUNT] = "dc", [UMI] = "RX"};
    struct tag_request *request = &m->requests[tag];
    request->wanted = false;
    put(m, names[tag], 2);
    if (!request->text) {
        put_typed_number(m, request->number, old ? integer_size(old) : 0);
        return;
    }
    put(m, "Z", 1);
    put(m, request->text, request->n);
    put(m, "", 1);
}

static unsigned tag_of(const uint8_t *p)
{
    if (p[0] == 'd')
        return p[1] == 'o' ? ORIGINAL : p[1] == 't' ? TYPE : p[1] == 'c' ? COUNT : N_TAGS;
    return p[0] == 'R' && p[1] == 'X' ? UMI : N_TAGS;
}

/* Writes the tag in [p, next), or its replacement. */
static enum dup_mark_fault take_tag(struct mark_writer *m, const uint8_t *p, const uint8_t *next)
{
    unsigned tag = tag_of(p);
    struct tag_request *request = tag < N_TAGS ? &m->requests[tag] : NULL;
    if (request && request->drops) {
        request->drops = false;
        return DUP_MARK_OK;
    }
    if (request && request->wanted && (request->text ? p[2] == 'Z' : integer_size(p + 2) > 0)) {
        put_tag(m, tag, p + 2);
        return DUP_MARK_OK;
    }
    if (request && request->wanted && request->otherwise)
        return request->otherwise;
    if (request)
        request->wanted = false;
    put(m, p, (size_t)(next - p));
    return DUP_MARK_OK;
}

/* Writes the bytes [p, end), which are not a tag. htslib meets them when it looks for do, dt and RX if they are at
 * least three; a reader of CRAM reaches neither them nor a new tag after them. */
static enum dup_mark_fault put_others(struct mark_writer *m, const struct dup_mark_rule *rule, const uint8_t *p,
                                      const uint8_t *end)
{
    bool looks = m->requests[ORIGINAL].wanted || m->requests[TYPE].wanted || m->requests[UMI].wanted;
    if (!rule->ends_at_nul || *p || (looks && end - p >= 3))
        return DUP_MARK_BAD_TAGS;
    put(m, p, (size_t)(end - p));
    return DUP_MARK_OK;
}

/* New tags come before the tag that holds the CIGAR, which is the last one (bam_record_fix()). */
static enum dup_mark_fault put_tags(struct mark_writer *m, const struct dup_mark_rule *rule,
                                    const struct bam_record *record)
{
    uint32_t n_cigar;
    const uint8_t *p = bam_record_aux(record), *all = (const uint8_t *)record + bam_record_size(record), *cg;
    bam_record_cigar(record, &n_cigar, &cg);
    const uint8_t *end = cg ? cg : all;
    enum dup_mark_fault fault = DUP_MARK_OK;
    for (const uint8_t *next; !fault && p < end; p = next) {
        next = end - p >= 3 ? bam_record_aux_next(p, end) : NULL;
        if (!next)
            return put_others(m, rule, p, all);
        fault = take_tag(m, p, next);
    }
    for (unsigned tag = 0; !fault && tag < N_TAGS; tag++)
        if (m->requests[tag].wanted)
            put_tag(m, tag, NULL);
    put(m, end, (size_t)(all - end));
    return fault;
}

/* ---- the record ---- */

static struct tag_request request_text(const char *text, size_t n, bool drops, enum dup_mark_fault otherwise)
{
    return (struct tag_request){.drops = drops, .wanted = text, .text = text ? text : "", .n = n,
                                .otherwise = otherwise};
}

/* samtools checks the type of dt only when the chain pass finds that the record is an optical duplicate. */
static enum dup_mark_fault bad_type(const struct dup_mark_rule *rule, const struct bam_record *record,
                                    enum dup_type type)
{
    bool is_other = bam_record_flag(record) & (BAM_FUNMAP | BAM_FSECONDARY | BAM_FSUPPLEMENTARY);
    return rule->pass && type == DUP_TYPE_SEQUENCING && !is_other ? DUP_MARK_BAD_TYPE : DUP_MARK_OK;
}

static void make_requests(struct mark_writer *m, const struct dup_mark_rule *rule, const struct bam_record *record,
                        const struct dup_verdict *verdict)
{
    bool clears = is_cleared(rule, record), stays = !(dup_mark_flag(rule, record, verdict) & BAM_FDUP);
    const char *original = verdict ? verdict->original : NULL;
    enum dup_type type = verdict ? verdict->type : DUP_TYPE_UNKNOWN;
    uint64_t count = verdict ? verdict->count : 1;
    m->requests[ORIGINAL] = request_text(original, original ? strlen(original) : 0, clears, DUP_MARK_BAD_ORIGINAL);
    m->requests[TYPE] = request_text(!type ? NULL : type == DUP_TYPE_SEQUENCING ? "SQ" : "LB", 2, clears,
                                bad_type(rule, record, type));
    m->requests[COUNT] = (struct tag_request){
        .drops = rule->counts && rule->others && !stays,
        .wanted = rule->counts && stays, .number = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count,
    };
    m->requests[UMI] = request_text(NULL, 0, false, DUP_MARK_BAD_UMI);
}

/* Writes the fixed fields and the name, without its UMI if that moves. */
static void put_head(struct mark_writer *m, const struct dup_mark_rule *rule, const struct bam_record *record)
{
    const char *name = bam_record_name(record), *umi = NULL, *from = name + record->name_len, *to = from;
    int n = 0;
    if (rule->umi)
        umi = dup_barcode_find(rule->umi, rule->umi_group, name, &n);
    if (umi) {
        m->requests[UMI] = request_text(umi, (size_t)n, false, DUP_MARK_BAD_UMI);
        from = umi;
        to = umi + n;
        if (rule->umi_separator && from > name && from[-1] == rule->umi_separator)
            from--;
        else if (rule->umi_separator && *to == rule->umi_separator)
            to++;
    }
    put(m, record, BAM_FIXED);
    put(m, name, (size_t)(from - name));
    put(m, to, (size_t)(name + record->name_len - to));
}

enum dup_mark_fault dup_mark_append(const struct dup_mark_rule *rule, struct byte_buffer *to,
                                    const struct bam_record *record, const struct dup_verdict *verdict)
{
    size_t size = bam_record_size(record);
    const uint8_t *from = (const uint8_t *)record, *tags = bam_record_aux(record);
    struct mark_writer m;
    if (byte_buffer_reserve(to, to->n + size + DUP_MARK_ROOM) < 0)
        return DUP_MARK_NO_MEMORY;
    struct bam_record *marked = (struct bam_record *)(to->p + to->n);
    m.at = to->p + to->n;
    if (dup_mark_is_flag(rule, record, verdict)) {
        put(&m, from, size);
    } else {
        make_requests(&m, rule, record, verdict);
        put_head(&m, rule, record);
        const uint8_t *name = (const uint8_t *)marked + BAM_FIXED, *behind = record->data + record->name_len;
        marked->name_len = (uint8_t)(m.at - name);
        put(&m, behind, (size_t)(tags - behind));
        enum dup_mark_fault fault = put_tags(&m, rule, record);
        if (fault)
            return fault;
    }
    size = (size_t)(m.at - (to->p + to->n));
    if (size - 4 > INT32_MAX)
        return DUP_MARK_TOO_LONG;
    store_le32(marked->block_size, (uint32_t)(size - 4));
    store_le16(marked->flag, (uint16_t)dup_mark_flag(rule, record, verdict));
    to->n += size;
    return DUP_MARK_OK;
}
