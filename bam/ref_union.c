/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/plain_header.h"
#include "bam/ref_names.h"
#include "bam/ref_union.h"
#include "bam/sq_lines.h"
#include "base/byte_hash.h"

/* ---- the union ---- */

static int name_reference(struct ref_names *names, const char *line, size_t n)
{
    size_t size;
    const char *name = sq_lines_field(line, n, "\tSN:", &size);
    if (!name || ref_names_add(names, name, size) < 0)
        return -1;
    const char *others = sq_lines_field(line, n, "\tAN:", &size);
    return others ? ref_names_add_others(names, ref_names_count(names) - 1, others, size) : 0;
}

/* Adds the names of all lines so far to the table. */
static int name_references(struct ref_union *all)
{
    const char *p = all->lines.s;
    all->names = ref_names_new(NULL);
    for (int32_t i = 0; all->names && i < all->n; i++) {
        size_t n = strcspn(p, "\n");
        if (name_reference(all->names, p, n) < 0)
            return -1;
        p += n + 1;
    }
    return all->names ? 0 : -1;
}

static int add_reference_line(struct ref_union *all, const char *line, size_t n)
{
    if (kputsn(line, n, &all->lines) < 0 || kputc('\n', &all->lines) < 0)
        return -1;
    all->n++;
    return all->names ? name_reference(all->names, line, n) : 0;
}

/* The start of line i of the union. NULL: out of memory. */
static const char *line_at(struct ref_union *all, int32_t i)
{
    size_t *starts = all->starts;
    if (all->n_starts < all->n && !(starts = realloc(starts, ((size_t)all->n + 1) * sizeof *starts)))
        return NULL;
    all->starts = starts;
    for (size_t at = all->n_starts ? starts[all->n_starts] : 0; all->n_starts < all->n; all->n_starts++) {
        starts[all->n_starts] = at;
        at += strcspn(all->lines.s + at, "\n") + 1;
        starts[all->n_starts + 1] = at;
    }
    return all->lines.s + starts[i];
}

/* Notes the first line that contradicts the one already in the union. */
static int look_for_clash(struct ref_union *all, int32_t i, const struct sq_lines *sq)
{
    const char *there = all->clash.l ? NULL : line_at(all, i);
    if (!there)
        return all->clash.l ? 0 : -1;
    return sq_lines_clash(sq->line, sq->n, there, strcspn(there, "\n"), &all->clash) < 0 ? -1 : 0;
}

/* Returns whether the line of the union at *at, the next one, is this line. */
static bool is_next(const struct ref_union *all, size_t *at, const struct sq_lines *sq)
{
    if (all->lines.l - *at <= sq->n)
        return false;
    const char *there = all->lines.s + *at;
    if (there[sq->n] != '\n' || memcmp(there, sq->line, sq->n) != 0)
        return false;
    *at += sq->n + 1;
    return true;
}

/* The number of reference i of a header, which is added if it is new; `last`: the number of the reference before it,
 * because consecutive headers often have the same references. -1: out of memory. */
static int32_t find_or_add(struct ref_union *all, int32_t i, int32_t last, const struct sq_lines *sq)
{
    const char *name = sam_hdr_tid2name(sq->sam, i);
    const struct ref_list *before = all->last_list ? &all->lists[all->last_list - 1] : NULL;
    if (!all->names && name_references(all) < 0)
        return -1;
    int32_t likely = before && i < before->n ? before->ids[i] : last + 1;
    int32_t found = ref_names_find_near(all->names, likely, name, strlen(name));
    if (found >= 0)
        return look_for_clash(all, found, sq) < 0 ? -1 : found;
    return add_reference_line(all, sq->line, sq->n) < 0 ? -1 : all->n - 1;
}

/* Fills ids[n]. Sets *rises, and sets *same to whether the numbers are 0 .. n - 1. Most headers have the lines of the
 * first one, so lines are compared before names are looked up. The names of a plain header all differ. */
static int number_references(struct ref_union *all, struct sq_lines *sq, int32_t *ids, int32_t n, bool *rises,
                             bool *same)
{
    bool first = all->n == 0 && plain_header_is(sq->sam), follows = true;
    size_t at = 0;
    *rises = *same = true;
    for (int32_t i = 0, last = -1; i < n; last = ids[i++]) {
        if (!sq_lines_next(sq, i))
            return -1;
        follows = follows && !first && is_next(all, &at, sq);
        if (first || follows)
            ids[i] = first && add_reference_line(all, sq->line, sq->n) < 0 ? -1 : i;
        else
            ids[i] = find_or_add(all, i, last, sq);
        if (ids[i] < 0)
            return -1;
        *rises &= ids[i] > last;
        *same &= ids[i] == i;
    }
    return 0;
}

/* ---- lists ---- */

/* Takes ownership of the list, unless an equal one is kept already. It becomes the last list. -1: out of memory. */
static int keep_list(struct ref_union *all, int32_t *ids, int32_t n)
{
    size_t size = sizeof *ids * (size_t)n, i = 0;
    uint64_t hash = byte_hash((const uint8_t *)ids, size, 0);
    while (i < all->n_lists && (all->lists[i].hash != hash || all->lists[i].n != n
                                || memcmp(all->lists[i].ids, ids, size) != 0))
        i++;
    all->last_list = i + 1;
    if (i < all->n_lists) {
        free(ids);
        return 0;
    }
    struct ref_list *lists = realloc(all->lists, (i + 1) * sizeof *lists);
    if (!lists) {
        free(ids);
        return -1;
    }
    all->lists = lists;
    lists[all->n_lists++] = (struct ref_list){ids, n, hash};
    return 0;
}

int ref_union_add(struct ref_union *all, sam_hdr_t *sam, const int32_t **ids, bool *rises)
{
    struct sq_lines sq = {.sam = sam};
    int32_t n = sam_hdr_nref(sam), *list = malloc(sizeof *list * (size_t)n + 1);
    bool same;
    int status = list && number_references(all, &sq, list, n, rises, &same) == 0 ? 0 : -1;
    ks_free(&sq.parsed);
    all->last_list = 0;
    if (status < 0 || same)
        free(list);
    else
        status = keep_list(all, list, n);
    *ids = status == 0 && !same ? all->lists[all->last_list - 1].ids : NULL;
    return status;
}

void ref_union_end(struct ref_union *all)
{
    ref_names_free(all->names);
    all->names = NULL;
    ks_free(&all->lines);
    ks_free(&all->clash);
    free(all->starts);
    all->starts = NULL;
}

void ref_union_free(struct ref_union *all)
{
    ref_union_end(all);
    for (size_t i = 0; i < all->n_lists; i++)
        free(all->lists[i].ids);
    free(all->lists);
}
