/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <htslib/kstring.h>
#include "bam/long_pos.h"
#include "bam/unclipped.h"
#include "order/coordinate_key.h"
#include "order/group_mark.h"
#include "order/key_room.h"
#include "order/name_key.h"
#include "order/template_key.h"

/* The largest distance before the first base, or after the last one, at which unclipped ends still have their own keys.
 * Ends further out share a key with the last that has one. */
enum { POS_MARGIN = 1 << 10 };

/* Bits for the distance between ends on one reference: 128 kb span most introns. Longer distances share a key. */
enum { SPAN_BITS = 17 };

/* Fewer bits than this decide little between names, and cost a walk over the name. */
enum { TEXT_BITS_LEAST = 14 };

/* One end of a template. */
struct template_end {
    int64_t pos;                 /* unclipped 5' end, counted from 0; unused without reference */
    int32_t ref;                 /* INT32_MAX: not mapped */
    bool reverse;
};

/* The record as the order sees it. */
struct template_view {
    struct template_end end[2];  /* the earlier one first */
    bool upper;                  /* this record is the second end */
    struct text group;           /* read group, which gives the library; s is NULL if there is none */
    struct text cell, molecule, name;   /* empty if there is no such tag */
};

/* Location of the value of a tag; NULL, NULL if the record does not have the tag. */
struct template_tag { const uint8_t *type, *end; };

/* The tags that the order uses. */
struct template_tags { struct template_tag mc, rg, cb, mi; };

/* ---- tags ---- */

/* Finds all of them in one pass. The first tag of each name is used. A broken tag hides the tags after it, as in
 * htslib. */
static struct template_tags template_tags_find(const struct bam_record *r)
{
    enum { MC = 'M' | 'C' << 8, RG = 'R' | 'G' << 8, CB = 'C' | 'B' << 8, MI = 'M' | 'I' << 8 };
    struct template_tags tags = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    const uint8_t *end = bam_record_end(r), *next;
    for (const uint8_t *p = bam_record_aux(r); end - p >= 3; p = next) {
        const uint8_t *type = p + 2;
        next = bam_record_aux_skip(type, end);
        if (!next)
            break;
        struct template_tag *slot;
        switch (load_le16(p)) {
        case MC: slot = &tags.mc; break;
        case RG: slot = &tags.rg; break;
        case CB: slot = &tags.cb; break;
        case MI: slot = &tags.mi; break;
        default: continue;
        }
        if (!slot->type && bam_record_aux_is_closed(type, next))
            *slot = (struct template_tag){type, next};
    }
    return tags;
}

/* Returns the string of a tag. The record must have the tag, and its value must be a string. */
static struct text tag_text(struct template_tag tag)
{
    return (struct text){(const char *)tag.type + 1, (size_t)(tag.end - tag.type) - 2};
}

/* The RG tag that the order uses for a record with a mark. */
static struct template_tag marked_group(const struct bam_record *r, struct template_tag own)
{
    const uint8_t *type = group_mark_sees(r, own.type);
    bool is_own = !type || type == own.type;
    return (struct template_tag){type, is_own ? own.end : bam_record_aux_skip(type, (const uint8_t *)r)};
}

/* The molecule. "12/A" and "12/B" are its two strands. */
static struct text molecule_text(struct template_tag tag)
{
    struct text mi = tag_text(tag);
    if (mi.n >= 2 && mi.s[mi.n - 2] == '/')
        mi.n -= 2;
    return mi;
}

/* ---- ends ---- */

static bool template_end_before(const struct template_end *a, const struct template_end *b)
{
    if (a->ref != b->ref)
        return a->ref < b->ref;
    if (a->pos != b->pos)
        return a->pos < b->pos;
    return !a->reverse;
}

static int compare_group_id(const void *id, const void *group)
{
    return strcmp(id, ((const struct template_group *)group)->id);
}

static unsigned library_of(const struct template_key *rule, struct text group)
{
    const struct template_group *found = !group.s ? NULL
        : bsearch(group.s, rule->groups, rule->n_groups, sizeof *rule->groups, compare_group_id);
    return found ? found->rank : 0;
}

static enum bam_fault view_make(const struct template_key *rule, const struct bam_record *r,
                                struct template_view *view)
{
    static const struct template_end nowhere = {0, INT32_MAX, false};
    static const struct text empty = {"", 0}, nothing = {NULL, 0};
    struct template_tags tags = template_tags_find(r);
    struct template_end own = nowhere, mate = nowhere;
    unsigned flag = bam_record_flag(r);
    if (!(flag & BAM_FUNMAP))
        own = (struct template_end){unclipped_own(r, CLIPS_SOFT, flag & BAM_FREVERSE), bam_record_ref_id(r),
                                    flag & BAM_FREVERSE};
    if ((flag & BAM_FPAIRED) && !(flag & BAM_FMUNMAP)) {
        if (!tags.mc.type)
            return flag & BAM_FSECONDARY ? BAM_NO_MC_SECONDARY
                 : flag & BAM_FSUPPLEMENTARY ? BAM_NO_MC_SUPPLEMENTARY : BAM_NO_MC;
        if (!bam_record_aux_is_text(tags.mc.type))
            return BAM_BAD_MC;
        mate.ref = (int32_t)load_le32(r->next_ref_id);
        mate.reverse = flag & BAM_FMREVERSE;
        mate.pos = unclipped_mate(far_next_pos(r), (const char *)tags.mc.type + 1, CLIPS_SOFT, mate.reverse);
    }
    if (tags.cb.type && !bam_record_aux_is_text(tags.cb.type))
        return BAM_BAD_CB;
    if (tags.mi.type && !bam_record_aux_is_text(tags.mi.type))
        return BAM_BAD_MI;
    if (rule->marked)
        tags.rg = marked_group(r, tags.rg);
    view->upper = !template_end_before(&own, &mate);
    view->end[view->upper] = own;
    view->end[!view->upper] = mate;
    bool has_group = tags.rg.type && *tags.rg.type == 'Z';
    view->group = has_group ? tag_text(tags.rg) : nothing;
    view->cell = tags.cb.type ? tag_text(tags.cb) : empty;
    view->molecule = tags.mi.type ? molecule_text(tags.mi) : empty;
    view->name = (struct text){bam_record_name(r), r->name_len - 1u};
    return BAM_OK;
}

/* ---- comparison ---- */

static int text_compare(struct text a, struct text b)
{
    int order = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
    return order ? order : key_compare(a.n, b.n);
}

/* Unlike strcmp() this reads nothing after the texts, where the bytes may not be in the cache. */
static bool text_equal(struct text a, struct text b)
{
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* Usually both have the same read group; then no search is needed. */
static int library_compare(const struct template_key *rule, struct text a, struct text b)
{
    if (a.s && b.s ? text_equal(a, b) : a.s == b.s)
        return 0;
    return key_compare_signed(library_of(rule, a), library_of(rule, b));
}

static int view_compare(const struct template_key *rule, const struct template_view *a, const struct template_view *b)
{
    int order = 0;
    for (int i = 0; i < 2 && !order; i++)
        order = key_compare_signed(a->end[i].ref, b->end[i].ref);
    for (int i = 0; i < 2 && !order; i++)
        order = key_compare_signed(a->end[i].pos, b->end[i].pos);
    for (int i = 0; i < 2 && !order; i++)
        order = b->end[i].reverse - a->end[i].reverse;
    if (!order) order = library_compare(rule, a->group, b->group);
    if (!order) order = text_compare(a->cell, b->cell);
    if (!order) order = text_compare(a->molecule, b->molecule);
    if (!order && !text_equal(a->name, b->name)) order = strcmp(a->name.s, b->name.s);
    return order ? order : a->upper - b->upper;
}

int template_key_compare(const struct template_key *rule, const struct bam_record *a, const struct bam_record *b)
{
    struct template_view x, y;
    if (view_make(rule, a, &x) || view_make(rule, b, &y))
        return 0;                /* such records have no key and are never sorted */
    return view_compare(rule, &x, &y);
}

/* ---- keys ---- */

/* The place of a reference in the order: -1 first, "not mapped" last. (In samtools the comparison of -1, for a read
 * that claims to be mapped, with "not mapped" overflows. So its order is circular there; ours is not.) */
static uint64_t ref_rank(const struct template_key *rule, int32_t ref)
{
    return ref == INT32_MAX ? (uint64_t)rule->n_ref + 1 : (uint64_t)(ref + 1);
}

/* Appends to - from in n bits. Returns false if that is outside [0, max]; then the key is complete. */
static bool put_distance(struct key_fill *fill, int64_t from, int64_t to, int64_t max, unsigned n)
{
    uint64_t distance = (uint64_t)to - (uint64_t)from;
    if (to < from || distance > (uint64_t)max) {
        if (to >= from)
            key_put_ones(fill);
        fill->room = 0;
        return false;
    }
    key_put(fill, distance, n);
    return true;
}

/* Appends the places of the ends. Returns false if the key is complete. */
static bool put_ends(struct key_fill *fill, const struct template_key *rule, const struct template_end end[2])
{
    bool together = end[0].ref == end[1].ref;
    key_put(fill, ref_rank(rule, end[0].ref), rule->ref_bits);
    key_put(fill, !together, 1);
    if (!together)
        key_put(fill, ref_rank(rule, end[1].ref), rule->ref_bits);
    if (end[0].ref == INT32_MAX)
        return fill->room > 0;
    if (!put_distance(fill, -POS_MARGIN, end[0].pos, rule->max_pos, rule->pos_bits))
        return false;
    if (together && !put_distance(fill, end[0].pos, end[1].pos, (1 << SPAN_BITS) - 1, SPAN_BITS))
        return false;
    if (!together && end[1].ref != INT32_MAX
        && !put_distance(fill, -POS_MARGIN, end[1].pos, rule->max_pos, rule->pos_bits))
        return false;
    key_put(fill, !end[0].reverse, 1);
    key_put(fill, !end[1].reverse, 1);
    return fill->room > 0;
}

/* A rank in n bits. Without cell and molecule: 0, then the name. Otherwise: 1, then the cell. */
static uint64_t text_rank(const struct template_key *rule, const struct template_view *view, unsigned n)
{
    bool named = view->cell.n == 0 && view->molecule.n == 0;
    uint64_t rank = named ? text_code_key_top(&rule->name, view->name, n - 1)
                          : text_code_key_top(&rule->cell, view->cell, n - 1);
    return ((uint64_t)!named << 63 | rank >> 1) >> (64 - n);
}

enum bam_fault template_key_make(const struct template_key *rule, const struct bam_record *r, uint64_t *key)
{
    struct template_view view;
    struct key_fill fill = {0, 64};
    enum bam_fault fault = view_make(rule, r, &view);
    if (fault)
        return fault;
    if (put_ends(&fill, rule, view.end)) {
        key_put(&fill, library_of(rule, view.group), rule->library_bits);
        if (fill.room >= TEXT_BITS_LEAST)
            fill.key |= text_rank(rule, &view, fill.room);
    }
    *key = fill.key;
    return BAM_OK;
}

/* ---- libraries ---- */

static int by_library(const void *a, const void *b)
{
    return strcmp(((const struct template_group *)a)->library, ((const struct template_group *)b)->library);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct template_group *)a)->id, ((const struct template_group *)b)->id);
}

/* The library of the read group at line i; "" if it has none. NULL: out of memory. */
static char *library_name(sam_hdr_t *lines, int i)
{
    kstring_t lb = KS_INITIALIZE;
    if (sam_hdr_find_tag_pos(lines, "RG", i, "LB", &lb) < 0 || !lb.s) {
        ks_free(&lb);
        return strdup("");
    }
    return ks_release(&lb);
}

/* Reads the @RG lines and ranks their libraries. Returns 0, or -1 if out of memory. */
static int learn_libraries(struct template_key *rule, sam_hdr_t *lines)
{
    int n = sam_hdr_count_lines(lines, "RG");
    unsigned rank = 0;
    rule->groups = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *rule->groups);
    for (int i = 0; rule->groups && i < n; i++) {
        struct template_group *group = &rule->groups[rule->n_groups++];
        const char *id = sam_hdr_line_name(lines, "RG", i);
        group->id = id ? strdup(id) : NULL;
        group->library = library_name(lines, i);
        if (!group->id || !group->library)
            return -1;
    }
    if (!rule->groups)
        return -1;
    qsort(rule->groups, rule->n_groups, sizeof *rule->groups, by_library);
    for (size_t i = 0; i < rule->n_groups; i++) {
        rank += i > 0 ? by_library(&rule->groups[i - 1], &rule->groups[i]) != 0 : *rule->groups[i].library != 0;
        rule->groups[i].rank = rank;
    }
    rule->library_bits = key_bits(rank);
    qsort(rule->groups, rule->n_groups, sizeof *rule->groups, by_id);
    return 0;
}

int template_key_init(struct template_key *rule, sam_hdr_t *sam, sam_hdr_t *lines)
{
    memset(rule, 0, sizeof *rule);
    rule->n_ref = sam_hdr_nref(sam);
    rule->ref_bits = key_bits((uint64_t)rule->n_ref + 1);
    rule->max_pos = long_pos_longest(sam) + 2 * POS_MARGIN;
    rule->pos_bits = key_bits((uint64_t)rule->max_pos);
    text_code_init(&rule->name, false, UINT64_MAX);
    text_code_init(&rule->cell, false, UINT64_MAX);
    return learn_libraries(rule, lines);
}

void template_key_free(struct template_key *rule)
{
    for (size_t i = 0; i < rule->n_groups; i++) {
        free(rule->groups[i].id);
        free(rule->groups[i].library);
    }
    free(rule->groups);
}

void template_key_learn(struct template_key *rule, const struct bam_record *const *records, struct text *texts,
                        size_t n)
{
    size_t n_cells = 0;
    for (size_t i = 0; i < n; i++) {
        struct template_tag cb = template_tags_find(records[i]).cb;
        if (cb.type && bam_record_aux_is_text(cb.type))
            texts[n_cells++] = tag_text(cb);
    }
    text_code_learn(&rule->cell, false, UINT64_MAX, texts, n_cells);
    for (size_t i = 0; i < n; i++)
        texts[i] = bam_record_text(records[i]);
    text_code_learn(&rule->name, false, UINT64_MAX, texts, n);
}
