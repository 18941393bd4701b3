/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "bam/ref_names.h"
#include "base/name_table.h"

struct ref_names {
    struct name_table table;     /* all names */
    struct byte_buffer owners;   /* int32_t: the reference of each name; empty while name i is that of reference i */
    int32_t n_ref;
};

int ref_names_add(struct ref_names *r, const char *name, size_t n)
{
    int32_t ref = r->n_ref;
    if (name_table_add(&r->table, name, n) < 0 || (r->owners.n && byte_buffer_append(&r->owners, &ref, sizeof ref) < 0))
        return -1;
    r->n_ref++;
    return 0;
}

/* Starts the list of owners: from here on each name has an entry in it. */
static int list_owners(struct ref_names *r)
{
    int status = 0;
    for (int32_t i = 0; i < r->n_ref && status == 0; i++)
        status = byte_buffer_append(&r->owners, &i, sizeof i);
    return status;
}

static int add_other(struct ref_names *r, int32_t ref, const char *name, size_t n)
{
    return (!r->owners.n && list_owners(r) < 0) || name_table_add(&r->table, name, n) < 0
        || byte_buffer_append(&r->owners, &ref, sizeof ref) < 0 ? -1 : 0;
}

int ref_names_add_others(struct ref_names *r, int32_t ref, const char *list, size_t size)
{
    const char *end = list + size;
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t n = (size_t)((comma ? comma : end) - list);
        if (n && ref_names_find(r, list, n) < 0 && add_other(r, ref, list, n) < 0)
            return -1;
        list += n + 1;
    }
    return 0;
}

/* ---- what a header holds ---- */

static int add_references(struct ref_names *r, const sam_hdr_t *sam)
{
    int n = sam_hdr_nref(sam), status = 0;
    size_t size = 0;
    for (int i = 0; i < n; i++)
        size += strlen(sam_hdr_tid2name(sam, i));
    if (name_table_reserve(&r->table, (size_t)n, size) < 0)
        return -1;
    for (int i = 0; i < n && status == 0; i++)
        status = ref_names_add(r, sam_hdr_tid2name(sam, i), strlen(sam_hdr_tid2name(sam, i)));
    return status;
}

/* Few headers have other names, so the text is searched for the tag first. */
static int add_other_names(struct ref_names *r, sam_hdr_t *sam)
{
    kstring_t list = KS_INITIALIZE;
    int status = 0;
    const char *text = sam_hdr_str(sam);
    if (!text)
        return -1;
    if (strstr(text, "\tAN:"))
        for (int i = 0; i < r->n_ref && status == 0; i++)
            if (sam_hdr_find_tag_pos(sam, "SQ", i, "AN", &list) == 0)
                status = ref_names_add_others(r, i, list.s, list.l);
    ks_free(&list);
    return status;
}

struct ref_names *ref_names_new(sam_hdr_t *sam)
{
    struct ref_names *r = calloc(1, sizeof *r);
    if (r && (!sam || (add_references(r, sam) == 0 && add_other_names(r, sam) == 0)))
        return r;
    ref_names_free(r);
    return NULL;
}

void ref_names_free(struct ref_names *r)
{
    if (!r)
        return;
    name_table_free(&r->table);
    free(r->owners.p);
    free(r);
}

int32_t ref_names_find(const struct ref_names *r, const char *name, size_t n)
{
    int32_t found = name_table_find(&r->table, name, n);
    if (found >= 0 && r->owners.n)
        memcpy(&found, r->owners.p + sizeof found * (size_t)found, sizeof found);
    return found;
}

int32_t ref_names_find_near(const struct ref_names *r, int32_t ref, const char *name, size_t n)
{
    const char *there = !r->owners.n && ref >= 0 && ref < r->n_ref ? name_table_at(&r->table, (size_t)ref) : NULL;
    return there && strncmp(there, name, n) == 0 && !there[n] ? ref : ref_names_find(r, name, n);
}

int32_t ref_names_count(const struct ref_names *r)
{
    return r->n_ref;
}
