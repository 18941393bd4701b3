/* SPDX-License-Identifier: MIT */
/* The references of several headers, each name once: the @SQ lines of the first header, then the lines of the next one
 * whose names are new, and so on. A name in the AN list of an earlier line belongs to that line, as in samtools merge
 * (1.24). Serial. */
#ifndef REF_UNION_H
#define REF_UNION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>

struct ref_names;

/* The numbers that the references of some headers have in the union. */
struct ref_list {
    int32_t *ids, n;             /* owned */
    uint64_t hash;               /* hash of the list */
};

/* A zero-initialised struct is empty. */
struct ref_union {
    kstring_t lines;             /* each with its newline */
    int32_t n;
    struct ref_names *names;     /* NULL: no header so far needed a lookup by name */
    size_t *starts;              /* where the first n_starts lines begin, and where the next one does */
    int32_t n_starts;
    kstring_t clash;             /* the first contradiction between two lines with the same name; empty: none */
    struct ref_list *lists;      /* all different; owned */
    size_t n_lists;
    size_t last_list;            /* the list of the last header, + 1; 0: it needed none */
};

/* Adds the references of a header. *ids: their numbers in the union, owned by the union; NULL: the numbers are the
 * same. *rises: each number is larger than the one before. -1: out of memory. */
int ref_union_add(struct ref_union *all, sam_hdr_t *sam, const int32_t **ids, bool *rises);

/* Frees everything except the lists. Call it after the last header. */
void ref_union_end(struct ref_union *all);
void ref_union_free(struct ref_union *all);

#endif
