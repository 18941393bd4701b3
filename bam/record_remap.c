/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/record_remap.h"
#include "base/endian_io.h"
#include "base/message.h"

enum { RG, PG, NEXT_RG, N_TAGS };
enum { N_MAPPED = PG + 1 };      /* the tags whose values are mapped */
enum { HEAD_SIZE = 3 };          /* bytes of a tag before its value */
static const char heads[N_MAPPED][HEAD_SIZE + 1] = {"RGZ", "PGZ"};

/* ------------------------------------------------------------------ values */

int tag_values_add(struct tag_values *v, const char *from, const char *to)
{
    size_t n = name_table_count(&v->from);
    int32_t there = name_table_find(&v->from, from, strlen(from));
    char *copy = strdup(to), **each = there < 0 ? realloc(v->to, (n + 1) * sizeof *each) : v->to;
    if (each)
        v->to = each;
    if (!copy || !each || (there < 0 && (there = name_table_add(&v->from, from, strlen(from))) < 0)) {
        free(copy);
        return -1;
    }
    if ((size_t)there < n)
        free(each[there]);
    each[there] = copy;
    return 0;
}

void tag_values_free(struct tag_values *v)
{
    for (size_t i = 0; i < name_table_count(&v->from); i++)
        free(v->to[i]);
    free(v->to);
    v->to = NULL;
    name_table_free(&v->from);
}

const char *tag_values_find(const struct tag_values *v, const char *from, size_t n)
{
    int32_t found = name_table_find(&v->from, from, n);
    return found < 0 ? NULL : v->to[found];
}

void record_remap_free(struct record_remap *remap)
{
    tag_values_free(&remap->groups);
    tag_values_free(&remap->programs);
    free(remap->group);
    *remap = (struct record_remap){.ref_ids = NULL};
}

static bool keeps_tags(const struct record_remap *remap)
{
    return !remap->drops_unknown && !remap->group && name_table_count(&remap->groups.from) == 0
        && name_table_count(&remap->programs.from) == 0;
}

bool record_remap_is_none(const struct record_remap *remap)
{
    return !remap->ref_ids && keeps_tags(remap);
}

/* ----------------------------------------------------------- unknown values */

static int add_unknown(struct remap_unknown *unknown, int tag, const char *value, const struct bam_record *r)
{
    struct byte_buffer *list = &unknown->list;
    size_t size = strlen(value) + 1, start = list->n, last = unknown->last[tag];
    if (last && strcmp((const char *)list->p + last - 1 + HEAD_SIZE, value) == 0)
        return 0;
    if (byte_buffer_append(list, heads[tag], 2) < 0 || byte_buffer_append(list, ":", 1) < 0
        || byte_buffer_append(list, value, size) < 0 || byte_buffer_append(list, bam_record_name(r), r->name_len) < 0) {
        list->n = start;
        return -1;
    }
    unknown->last[tag] = start + 1;
    return 0;
}

int remap_unknown_report(const struct remap_unknown *unknown, struct name_table *told, const char *file)
{
    const struct byte_buffer *list = &unknown->list;
    for (size_t at = 0; at < list->n;) {
        const char *value = (const char *)list->p + at, *name = value + strlen(value) + 1;
        at += strlen(value) + 1 + strlen(name) + 1;
        if (name_table_find(told, value, strlen(value)) >= 0)
            continue;
        if (name_table_add(told, value, strlen(value)) < 0)
            return -1;
        message_warning("%s: record %s has the tag %.2s:Z:%s, but its header has no @%.2s line of that ID. The tag is "
                        "left out, here and in all other records of that file", file, name, value,
                        value + HEAD_SIZE, value);
    }
    return 0;
}

/* ----------------------------------------------------------------- records */

/* A tag of the record that is removed, and its replacement; type is NULL if the tag stays. */
struct old_tag {
    const uint8_t *type, *next;  /* its type byte, and one past its end */
    const char *to;              /* NULL: no replacement */
};

/* Finds the first n of the tags. htslib finds no tag after a broken one. */
static void find_group_tags(struct old_tag tags[N_TAGS], int n, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *next;
    for (int left = n; left > 0 && end - p >= HEAD_SIZE; p = next) {
        const uint8_t *type = p + 2;
        if (!(next = bam_record_aux_next(p, end)))
            return;
        if (p[1] != 'G' || (p[0] != 'R' && p[0] != 'P'))
            continue;
        int number = p[0] == 'P' ? PG : tags[RG].type ? NEXT_RG : RG;
        if (number >= n || tags[number].type)
            continue;
        tags[number] = (struct old_tag){type, next, NULL};
        left--;
    }
}

/* Looks up the new value of the tag. */
static int map_tag(const struct record_remap *remap, int number, struct old_tag *tag, const struct bam_record *r,
                   struct remap_unknown *unknown)
{
    const struct tag_values *values = number == RG ? &remap->groups : &remap->programs;
    if (!tag->type)
        return 0;
    const char *value = (const char *)tag->type + 1;
    bool is_text = bam_record_aux_is_text(tag->type);
    if (is_text)
        tag->to = tag_values_find(values, value, (size_t)(tag->next - tag->type) - 2);
    if (tag->to)
        return 0;
    if (remap->drops_unknown)
        return is_text ? add_unknown(unknown, number, value, r) : -3;
    tag->type = NULL;
    return 0;
}

static uint8_t *put(uint8_t *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    return to + n;
}

static uint8_t *put_tag(uint8_t *to, int number, const char *text)
{
    return text ? put(put(to, heads[number], HEAD_SIZE), text, strlen(text) + 1) : to;
}

static size_t text_tag_size(const char *text)
{
    return text ? HEAD_SIZE + strlen(text) + 1 : 0;
}

/* Returns whether the tag is missing or keeps its value. */
static bool is_kept(const struct old_tag *tag)
{
    return !tag->type || (tag->to && strcmp(tag->to, (const char *)tag->type + 1) == 0);
}

/* The first removed tag from `from` on. NULL: none. */
static const struct old_tag *next_removed_tag(const struct old_tag tags[N_TAGS], const uint8_t *from)
{
    const struct old_tag *next = NULL;
    for (const struct old_tag *tag = tags; tag < tags + N_TAGS; tag++)
        if (tag->type && tag->type > from && (!next || tag->type < next->type))
            next = tag;
    return next;
}

/* Appends the record without the old tags and with the new ones. */
static int append_parts(struct byte_buffer *to, const struct bam_record *r, const struct old_tag tags[N_TAGS],
                        const char *group)
{
    const uint8_t *p = (const uint8_t *)r, *end = p + bam_record_size(r);
    size_t size = (size_t)(end - p) + text_tag_size(group);
    for (int i = 0; i < N_TAGS; i++)
        if (tags[i].type)
            size += text_tag_size(tags[i].to) - (size_t)(tags[i].next - (tags[i].type - 2));
    if (size - 4 > INT32_MAX)
        return -2;
    if (byte_buffer_reserve(to, to->n + size) < 0)
        return -1;
    uint8_t *start = to->p + to->n, *at = start;
    for (const struct old_tag *tag; (tag = next_removed_tag(tags, p)); p = tag->next)
        at = put(at, p, (size_t)(tag->type - 2 - p));
    at = put(at, p, (size_t)(end - p));
    put_tag(put_tag(put_tag(at, RG, tags[RG].to), PG, tags[PG].to), RG, group);
    store_le32(start, (uint32_t)(size - 4));
    to->n += size;
    return 0;
}

/* Returns whether it changed the field. */
static int map_ref(uint8_t *field, const int32_t *ref_ids)
{
    int32_t id = (int32_t)load_le32(field);
    if (id < 0 || ref_ids[id] == id)
        return 0;
    store_le32(field, (uint32_t)ref_ids[id]);
    return 1;
}

int record_remap_append(const struct record_remap *remap, struct byte_buffer *to, const struct bam_record *r,
                        struct remap_unknown *unknown)
{
    struct old_tag tags[N_TAGS] = {{NULL, NULL, NULL}};
    size_t start = to->n;
    int status = 0;
    if (!keeps_tags(remap))
        find_group_tags(tags, remap->group ? N_TAGS : N_MAPPED, bam_record_aux(r), bam_record_end(r));
    for (int i = 0; i < N_MAPPED && status == 0; i++)
        status = map_tag(remap, i, &tags[i], r, unknown);
    if (remap->leaves_tags && !remap->group && is_kept(&tags[RG]) && is_kept(&tags[PG]))
        tags[RG] = tags[PG] = (struct old_tag){NULL, NULL, NULL};
    bool brought = !remap->group || tags[RG].to;
    if (remap->group && !tags[NEXT_RG].type)
        tags[RG].to = NULL;                      /* the group takes its place, after PG */
    bool changed = tags[RG].type || tags[PG].type || remap->group;
    if (status == 0)
        status = append_parts(to, r, tags, remap->group);
    if (status == 0 && remap->ref_ids) {
        struct bam_record *copy = (struct bam_record *)(to->p + start);
        changed |= map_ref(copy->ref_id, remap->ref_ids) + map_ref(copy->next_ref_id, remap->ref_ids);
    }
    return status < 0 ? status : brought ? changed : 2;
}

const char *record_remap_fault(int status)
{
    return status == -3 ? "has an RG or PG tag that is not a string. Nothing was written; remove the tag first"
         : status == -2 ? "is too long for the new ID in its RG or PG tag. Nothing was written; rename the @RG and @PG "
                          "lines first"
                        : "needs more memory than is left";
}
