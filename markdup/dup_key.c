/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include "bam/long_pos.h"
#include "bam/unclipped.h"
#include "markdup/dup_key.h"

/* Bits of kind; the group's number is above them. */
enum { KIND_PAIR = 1, KIND_LEFTMOST = 2, KIND_STRANDS = 2, KIND_GROUP = 4 };

/* The strands of a pair as both its ends see them, the leftmost end first. */
enum strands { FF, FR, RF, RR };

/* Type bytes of the tags that are used; NULL: the record does not have the tag. */
struct dup_tags { const uint8_t *mc, *ms, *barcode, *group; bool elsewhere; };

#define TAG(a, b) ((a) | (b) << 8)

/* Finds the tags in one pass. The first tag of each name is used. A broken tag hides the tags after it, as in
 * htslib. */
static struct dup_tags dup_tags_find(const struct dup_rule *rule, const struct bam_record *r)
{
    struct dup_tags tags = {NULL, NULL, NULL, NULL, bam_record_flag(r) & BAM_FMUNMAP};
    unsigned barcode = load_le16((const uint8_t *)rule->barcode_tag);
    const uint8_t *end = bam_record_end(r), *next;
    for (const uint8_t *p = bam_record_aux(r); end - p >= 3 && (next = bam_record_aux_next(p, end)); p = next) {
        unsigned name = load_le16(p);
        if (name == TAG('M', 'C') && !tags.mc)
            tags.mc = p + 2;
        else if (name == TAG('m', 's') && !tags.ms)
            tags.ms = p + 2;
        else if (name == TAG('R', 'G') && !tags.group)
            tags.group = p + 2;
        else if (name == TAG('S', 'A') || name == TAG('X', 'A'))
            tags.elsewhere = true;
        if (name == barcode && !tags.barcode)
            tags.barcode = p + 2;
    }
    return tags;
}

/* type: type byte of the tag; NULL: the record does not have it. */
static uint32_t group_number_of(const struct dup_rule *rule, const uint8_t *type)
{
    if (!rule->groups || !type || !bam_record_aux_is_text(type))
        return 0;
    const char *id = (const char *)type + 1;
    int32_t number = name_table_find(rule->groups, id, strlen(id));
    return number < 0 ? 0 : (uint32_t)number + 1;
}

static uint32_t barcode_of(const struct dup_rule *rule, const struct bam_record *r, const struct dup_tags *tags,
                           bool *missed)
{
    const char *text = NULL;
    int n = 0;
    *missed = false;
    if (rule->barcode_name) {
        text = dup_barcode_find(rule->barcode_name, rule->barcode_group, bam_record_name(r), &n);
        *missed = !text;
    } else if (rule->barcode_tag[0] && tags->barcode) {
        *missed = !bam_record_aux_is_text(tags->barcode);
        text = *missed ? NULL : (const char *)tags->barcode + 1;
        n = text ? (int)strlen(text) : 0;
    }
    return text ? dup_barcode_hash(text, n) : 0;
}

/* A pair: the record's side and the mate's. */
struct sides {
    const struct bam_record *r;
    const char *mate_cigar;
    bool reverse, mate_reverse, read1;
    int64_t own5, mate5;         /* 1-based unclipped 5' ends */
};

static int64_t own_at(const struct sides *s, bool last)
{
    return unclipped_own(s->r, CLIPS_SOFT_AND_HARD, last) + 1;
}

static int64_t mate_at(const struct sides *s, bool last)
{
    return unclipped_mate(far_next_pos(s->r), s->mate_cigar, CLIPS_SOFT_AND_HARD, last) + 1;
}

static uint32_t pair_kind(bool leftmost, enum strands strands)
{
    return KIND_PAIR | (leftmost ? KIND_LEFTMOST : 0) | (uint32_t)strands << KIND_STRANDS;
}

/* If both reads have the same strand, the key has the start of one and the end of the other. So it differs from the key
 * of a pair at the same two places with its reads exchanged. */
static void key_by_template(const struct sides *s, struct dup_key *key)
{
    bool leftmost = key->ref < key->mate_ref || (key->ref == key->mate_ref && s->own5 <= s->mate5);
    if (s->reverse != s->mate_reverse) {
        key->here = s->own5;
        key->there = s->mate5;
        key->kind = pair_kind(leftmost, s->reverse == leftmost ? RF : FR);
        return;
    }
    bool own_last = !leftmost;
    key->here = own_at(s, own_last);
    key->there = mate_at(s, !own_last);
    key->kind = pair_kind(leftmost, (s->reverse != s->read1) == leftmost ? FF : RR);
}

static void key_by_sequence(const struct sides *s, struct dup_key *key)
{
    int64_t pos = long_pos(s->r), mate_pos = far_next_pos(s->r);
    bool leftmost = key->ref != key->mate_ref ? key->ref < key->mate_ref
                  : s->own5 != s->mate5 ? s->own5 < s->mate5
                  : pos != mate_pos ? pos < mate_pos : s->read1;
    bool swapped = s->reverse == leftmost;
    key->here = s->own5;
    key->there = s->mate5;
    key->kind = pair_kind(leftmost, s->reverse != s->mate_reverse ? (swapped ? RF : FR) : swapped ? RR : FF);
}

static void key_pair(const struct dup_rule *rule, const struct bam_record *r, const char *mate_cigar,
                     struct dup_read *read)
{
    unsigned flag = bam_record_flag(r);
    struct sides s = {.r = r, .mate_cigar = mate_cigar, .reverse = flag & BAM_FREVERSE, .own5 = read->place,
                      .mate_reverse = flag & BAM_FMREVERSE, .read1 = flag & BAM_FREAD1};
    s.mate5 = mate_at(&s, s.mate_reverse);
    read->pair = read->single;
    read->pair.mate_ref = (int32_t)load_le32(r->next_ref_id);
    if (rule->mode == DUP_BY_TEMPLATE)
        key_by_template(&s, &read->pair);
    else
        key_by_sequence(&s, &read->pair);
    read->pair.kind |= read->group << KIND_GROUP;
}

static enum dup_class class_of(const struct dup_rule *rule, const struct bam_record *r)
{
    unsigned flag = bam_record_flag(r);
    if (flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY | BAM_FUNMAP) || (flag & BAM_FQCFAIL && !rule->include_fails))
        return DUP_EXCLUDED;
    bool nowhere = (int32_t)load_le32(r->next_ref_id) == -1 && (int32_t)load_le32(r->next_pos) == -1;
    return flag & BAM_FPAIRED && !(flag & BAM_FMUNMAP) && !nowhere ? DUP_PAIR_END : DUP_SINGLE;
}

uint32_t dup_key_group(const struct dup_rule *rule, const struct bam_record *r)
{
    const uint8_t *end = bam_record_end(r);
    int bad;
    return rule->groups ? group_number_of(rule, bam_record_aux_find(bam_record_aux(r), end, "RG", &bad)) : 0;
}

enum bam_fault dup_key_make(const struct dup_rule *rule, const struct bam_record *r, struct dup_read *read)
{
    bool reverse = bam_record_flag(r) & BAM_FREVERSE;
    struct dup_tags tags = dup_tags_find(rule, r);
    *read = (struct dup_read){.kind = class_of(rule, r), .start = long_pos(r), .place = long_pos(r),
                              .group = group_number_of(rule, tags.group), .elsewhere = tags.elsewhere};
    if (read->kind == DUP_EXCLUDED)
        return BAM_OK;
    read->qc_fail = bam_record_flag(r) & BAM_FQCFAIL;
    read->score = (int64_t)bam_record_score(r);
    read->place = unclipped_own(r, CLIPS_SOFT_AND_HARD, reverse) + 1;
    read->barcode_lacks = rule->barcode_tag[0] && !tags.barcode;
    read->single = (struct dup_key){.here = read->place, .ref = bam_record_ref_id(r),
                                    .barcode = barcode_of(rule, r, &tags, &read->barcode_missed),
                                    .kind = read->group << KIND_GROUP | (uint32_t)reverse << KIND_STRANDS};
    if (read->kind == DUP_SINGLE)
        return BAM_OK;
    if (!tags.mc)
        return BAM_NO_MC;
    if (!bam_record_aux_is_text(tags.mc))
        return BAM_BAD_MC;
    /* samtools reads 32 bits of any integer */
    int32_t mate_score = tags.ms ? (int32_t)bam_record_aux_int(tags.ms, 0) : -1;
    read->has_mate_score = mate_score != -1;
    read->pair_score = read->score + (read->has_mate_score ? mate_score : 0);
    key_pair(rule, r, (const char *)tags.mc + 1, read);
    return BAM_OK;
}
