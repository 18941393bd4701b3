/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "bam/ref_names.h"
#include "base/byte_buffer.h"
#include "base/byte_hash.h"

struct ref_names {
    struct byte_buffer text;     /* the names, each with its NUL */
    struct byte_buffer starts;   /* uint32_t: where each begins in the text; the other names follow those of @SQ */
    struct byte_buffer owners;   /* int32_t: the references of the other names */
    uint32_t *slots;             /* of a hash table: number of the name + 1, 0: free. A name stays in the first free
                                  * slot from that of its hash on */
    size_t mask;                 /* slots - 1 */
    int32_t n_ref;
};

static uint32_t word(const struct byte_buffer *words, uint32_t i)
{
    uint32_t v;
    memcpy(&v, words->p + sizeof v * i, sizeof v);
    return v;
}

static int add_word(struct byte_buffer *words, uint32_t v)
{
    if (byte_buffer_reserve(words, words->n + sizeof v) < 0)
        return -1;
    memcpy(words->p + words->n, &v, sizeof v);
    words->n += sizeof v;
    return 0;
}

static int add_name(struct ref_names *r, const char *name, size_t n)
{
    if (r->text.n + n >= UINT32_MAX || byte_buffer_reserve(&r->text, r->text.n + n + 1) < 0
        || add_word(&r->starts, (uint32_t)r->text.n) < 0)
        return -1;
    memcpy(r->text.p + r->text.n, name, n);
    r->text.p[r->text.n + n] = '\0';
    r->text.n += n + 1;
    return 0;
}

/* ---- what the header holds ---- */

static int add_references(struct ref_names *r, const sam_hdr_t *sam)
{
    size_t size = 1;
    r->n_ref = sam_hdr_nref(sam);
    for (int i = 0; i < r->n_ref; i++)
        size += strlen(sam_hdr_tid2name(sam, i)) + 1;
    if (byte_buffer_reserve(&r->text, size) < 0
        || byte_buffer_reserve(&r->starts, sizeof(uint32_t) * (size_t)r->n_ref + 1) < 0)
        return -1;
    for (int i = 0; i < r->n_ref; i++)
        if (add_name(r, sam_hdr_tid2name(sam, i), strlen(sam_hdr_tid2name(sam, i))) < 0)
            return -1;
    return 0;
}

static int add_list(struct ref_names *r, int32_t owner, const char *list)
{
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n && (add_name(r, list, n) < 0 || add_word(&r->owners, (uint32_t)owner) < 0))
            return -1;
    }
    return 0;
}

/* Few headers have other names, so most are only searched for the tag. */
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
                status = add_list(r, i, ks_str(&list));
    ks_free(&list);
    return status;
}

/* ---- the table ---- */

static const char *name_at(const struct ref_names *r, uint32_t i)
{
    return (const char *)r->text.p + word(&r->starts, i);
}

/* The slot of this name, or the free one where it belongs. */
static size_t slot_of(const struct ref_names *r, const char *name, size_t n)
{
    size_t at = byte_hash((const uint8_t *)name, n, 0) & r->mask;
    for (; r->slots[at]; at = (at + 1) & r->mask) {
        const char *there = name_at(r, r->slots[at] - 1);
        if (strncmp(there, name, n) == 0 && !there[n])
            break;
    }
    return at;
}

/* Where two have one name, the first keeps it. */
static int fill_table(struct ref_names *r)
{
    uint32_t n = (uint32_t)(r->starts.n / sizeof(uint32_t));
    size_t size = 4;
    while (size < (size_t)n + n / 2 + 1)
        size *= 2;
    if (!(r->slots = calloc(size, sizeof *r->slots)))
        return -1;
    r->mask = size - 1;
    for (uint32_t i = 0; i < n; i++) {
        size_t slot = slot_of(r, name_at(r, i), strlen(name_at(r, i)));
        if (!r->slots[slot])
            r->slots[slot] = i + 1;
    }
    return 0;
}

struct ref_names *ref_names_new(sam_hdr_t *sam)
{
    struct ref_names *r = calloc(1, sizeof *r);
    if (r && add_references(r, sam) == 0 && add_other_names(r, sam) == 0 && fill_table(r) == 0)
        return r;
    ref_names_free(r);
    return NULL;
}

void ref_names_free(struct ref_names *r)
{
    if (!r)
        return;
    free(r->text.p);
    free(r->starts.p);
    free(r->owners.p);
    free(r->slots);
    free(r);
}

int32_t ref_names_find(const struct ref_names *r, const char *name, size_t n)
{
    uint32_t found = r->slots[slot_of(r, name, n)];
    if (found == 0)
        return -1;
    return (int32_t)found <= r->n_ref ? (int32_t)found - 1 : (int32_t)word(&r->owners, found - 1 - (uint32_t)r->n_ref);
}

int32_t ref_names_count(const struct ref_names *r)
{
    return r->n_ref;
}
