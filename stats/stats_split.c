/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/latch.h"
#include "stats/stats_mates.h"
#include "stats/stats_part.h"
#include "stats/stats_settings.h"
#include "stats/stats_split.h"
#include "stats/stats_text.h"
#include "stats/stats_values.h"

struct split_sums {
    struct stats_sums all;
    struct stats_values values;  /* a struct stats_sums for each value */
};

struct split_part {
    struct stats_part *all;
    struct stats_values values;  /* a struct stats_part for each value; it numbers records as `all` does */
    struct mate_table table;     /* with -p, shared by all of them, as in samtools: this affects the counts */
};

/* -------------------------------------------------------------------- sums */

static void *open_sums(const void *settings)
{
    (void)settings;
    return calloc(1, sizeof(struct split_sums));
}

static const struct stats_values_kind kind_of_sums = {stats_sums_open, stats_sums_close};

static void close_sums(void *sums)
{
    struct split_sums *s = sums;
    if (s) {
        stats_sums_free(&s->all);
        stats_values_free(&s->values, &kind_of_sums);
    }
    free(s);
}

static struct stats_sums *sums_of(struct split_sums *s, const char *value)
{
    return stats_values_take(&s->values, value, &kind_of_sums, NULL);
}

static int join_sums(void *left, void *right)
{
    struct split_sums *to = left, *from = right;
    for (size_t i = 0; i < from->values.n; i++) {
        const struct stats_value *value = &from->values.each[i];
        struct stats_sums *sums = sums_of(to, value->text);
        if (!sums || stats_sums_join(sums, value->kept) < 0)
            return -1;
    }
    return stats_sums_join(&to->all, &from->all);
}

/* -------------------------------------------------------------------- part */

static void *open_value_part(const void *arg)
{
    const struct split_part *p = arg;
    struct stats_part *part = stats_part_open(p->all->settings->value);
    if (part)
        part->table = p->all->table;
    return part;
}

static void close_value_part(void *part)
{
    stats_part_close(part);
}

static const struct stats_values_kind kind_of_parts = {open_value_part, close_value_part};

static struct stats_part *part_of(struct split_part *p, const char *value)
{
    return stats_values_take(&p->values, value, &kind_of_parts, p);
}

static void close_part(void *part)
{
    struct split_part *p = part;
    if (p) {
        stats_part_close(p->all);
        stats_values_free(&p->values, &kind_of_parts);
        mate_table_free(&p->table);
    }
    free(p);
}

static void *open_part(const void *settings)
{
    struct split_part *p = calloc(1, sizeof *p);
    if (p && (p->all = stats_part_open(settings))) {
        p->all->table = p->all->settings->overlaps ? &p->table : NULL;
        return p;
    }
    close_part(p);
    return NULL;
}

static int join_parts(void *left, void *right)
{
    struct split_part *to = left, *from = right;
    for (size_t i = 0; i < from->values.n; i++) {
        const struct stats_value *value = &from->values.each[i];
        struct stats_part *part = part_of(to, value->text);
        if (!part)
            return -1;
        stats_part_follow(part, to->all);
        if (stats_part_join(part, value->kept) < 0)
            return -1;
    }
    return stats_part_join(to->all, from->all);
}

static const char *fault(const void *part, uint64_t *record)
{
    const struct split_part *p = part;
    const struct stats_fault *first = stats_part_fault(p->all);
    for (size_t i = 0; i < p->values.n; i++) {
        const struct stats_fault *found = stats_part_fault(p->values.each[i].kept);
        if (found && (!first || found->record < first->record))
            first = found;
    }
    if (!first)
        return NULL;
    *record = first->record;
    return first->text;
}

/* ------------------------------------------------------------------- count */

/* Returns the value of the tag, or NULL if the record has none; the part keeps this as its fault. */
static const char *value_of(struct split_part *p, const uint8_t *record)
{
    const struct bam_record *r = (const struct bam_record *)record;
    const char name[] = {p->all->settings->split_tag[0], p->all->settings->split_tag[1], 0};
    int bad;
    const uint8_t *tag = bam_record_aux_find(bam_record_aux(r), bam_record_end(r), name, &bad);
    if (tag && bam_record_aux_is_text(tag))
        return (const char *)tag + 1;
    stats_part_refuse(p->all, tag ? "the value of tag " : "there is no tag ", name,
                      tag ? " is not text; -S needs a tag of type Z" : "; -S needs a tag that all records have");
    return NULL;
}

/* Counts the record for its value first, then for all records. */
static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    struct split_part *p = part;
    (void)size;
    if (*p->all->fault.text)
        return -1;
    const char *value = value_of(p, record);
    if (!value)
        return -1;
    struct stats_sums *value_sums = sums_of(sums, value);
    struct stats_part *value_part = value_sums ? part_of(p, value) : NULL;
    if (!value_part)
        return stats_part_refuse(p->all, "out of memory", "", "");
    stats_part_follow(value_part, p->all);
    int result = stats_part_add(value_part, value_sums, record);
    return stats_part_add(p->all, &((struct split_sums *)sums)->all, record) < 0 ? -1 : result;
}

/* ------------------------------------------------------------------- print */

static int print(void *sums, void *part, FILE *out, struct latch *latch)
{
    return stats_text_print(((struct split_part *)part)->all, &((struct split_sums *)sums)->all, NULL, out, latch);
}

static size_t n_files(const void *sums)
{
    return ((const struct split_sums *)sums)->values.n;
}

static char *file_path(const void *settings, const void *sums, size_t i)
{
    const struct stats_settings *s = settings;
    const char *value = ((const struct split_sums *)sums)->values.each[i].text;
    char *path;
    return asprintf(&path, "%s_%s.bamstat", s->split_prefix ? s->split_prefix : s->input, value) < 0 ? NULL : path;
}

static int print_file(void *sums, void *part, size_t i, FILE *out, struct latch *latch)
{
    const struct stats_value *value = &((struct split_sums *)sums)->values.each[i];
    struct stats_part *of_value = part_of(part, value->text);
    return of_value ? stats_text_print(of_value, value->kept, value->text, out, latch)
                    : latch_fail(latch, "out of memory");
}

static void numbers(const void *sums, struct counter_numbers *found)
{
    stats_text_numbers(&((const struct split_sums *)sums)->all, found);
}

struct counter stats_split_counter(struct counter c)
{
    c.sums.open = open_sums;
    c.sums.join = join_sums;
    c.sums.close = close_sums;
    c.part.open = open_part;
    c.part.join = join_parts;
    c.pair = NULL;
    c.part.close = close_part;
    c.add = add;
    c.fault = fault;
    c.print = print;
    c.numbers = numbers;
    c.files = (struct counter_files){n_files, file_path, print_file};
    return c;
}
