/* SPDX-License-Identifier: MIT */
/* The references of several headers, each name once: the @SQ lines of the first header, then those of the next ones
 * whose names are not there, and so on. A name that an AN of a line before it lists is that line's, as by samtools
 * merge (1.24). Serial. */
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
    uint64_t hash;               /* of these */
};

/* A zero-initialised struct is empty. */
struct ref_union {
    kstring_t lines;             /* each with its newline */
    int32_t n;
    struct ref_names *names;     /* NULL: no header so far has asked for one by name */
    size_t *starts;              /* where lines begin, of the first n_starts, and where the next one does */
    int32_t n_starts;
    kstring_t clash;             /* the first contradiction between two lines with the same name; empty: none */
    struct ref_list *lists;      /* no two are the same; owned */
    size_t n_lists;
    size_t last_list;            /* that of the last header, + 1; 0: it needed none */
};

/* Adds the references of a header. *ids: their numbers in the union, which stay its; NULL: they have the same ones.
 * *rises: each is larger than the one before. -1: out of memory. */
int ref_union_add(struct ref_union *all, sam_hdr_t *sam, const int32_t **ids, bool *rises);

/* Frees all but the lists: nothing will be added. */
void ref_union_end(struct ref_union *all);
void ref_union_free(struct ref_union *all);

#endif
