/* SPDX-License-Identifier: MIT */
/* The changes that make the records of an input agree with a header that was joined of several. Serial; nothing here
 * changes once it is made, so that tasks of any thread may use it at once. */
#ifndef RECORD_REMAP_H
#define RECORD_REMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"
#include "base/name_table.h"
#include "bam/bam_record.h"

/* The values of a tag in the input, and what they become. A zero-initialised struct is empty. */
struct tag_values {
    struct name_table from;      /* owned */
    char **to;                   /* by number; owned, with the texts */
};

/* Adds a copy of the pair, in place of one of the same `from`. -1: out of memory. */
int tag_values_add(struct tag_values *values, const char *from, const char *to);
void tag_values_free(struct tag_values *values);

/* The new value of a value; NULL if it is unknown. */
const char *tag_values_find(const struct tag_values *values, const char *from, size_t n);

/* One of all zeros changes nothing. record_remap_free() frees it. */
struct record_remap {
    const int32_t *ref_ids;      /* by the reference's number in the input; NULL: the same. The header_join's */
    struct tag_values groups, programs;    /* values of RG and PG */
    char *group;                 /* each record gets this RG (-r); NULL: it has its own. Owned */
    bool leaves_tags;            /* a record whose RG and PG keep their values stays as it is */
    bool drops_unknown;          /* RG and PG of unknown values are taken away (merge); else they stay as they are */
};

void record_remap_free(struct record_remap *remap);

/* Whether no record is ever changed. */
bool record_remap_is_none(const struct record_remap *remap);

/* Values of RG and PG tags that are unknown, in the order of the records: for each "RG:" or "PG:" and the value, with a
 * NUL; the name of the record, with its NUL. A value that follows itself stands there once. A zero-initialised struct
 * is empty; its owner frees list.p. */
struct remap_unknown {
    struct byte_buffer list;
    size_t last[2];              /* where the last RG and the last PG stand in it, + 1; 0: there is none */
};

static inline void remap_unknown_clear(struct remap_unknown *unknown)
{
    unknown->list.n = unknown->last[0] = unknown->last[1] = 0;
}

/* Appends the record, which was checked, to `to`, with the reference ids and tags of the joined header. A known RG, and
 * then a known PG, become the last tags, also if the value stays, as by samtools merge (1.24); `group` comes behind
 * both, in the place of a second RG if there is one (then a known first one stays, as in samtools), else of the first.
 * With leaves_tags nothing is done to them if neither value changes. Of several equal tags the first one counts. With
 * drops_unknown, a value that is unknown is taken away and added to `unknown`, which else may be NULL. Bin stays. 1:
 * changed; 2: changed, and it brought no known RG, but got `group`; 0: not changed; -1: out of memory; -2: the record
 * would be longer than BAM holds; -3, with drops_unknown: its RG or PG is no string. Below 0 nothing was appended. */
int record_remap_append(const struct record_remap *remap, struct byte_buffer *to, const struct bam_record *record,
                        struct remap_unknown *unknown);

/* What record_remap_append() returned, below 0, in words that follow "record N". A constant string. */
const char *record_remap_fault(int status);

/* Warns of the values that are in the list and not yet in `told`, and adds them to that. Call it for the lists of one
 * file in file order. told: of all zeros before the first; name_table_free() frees it. -1: out of memory. */
int remap_unknown_report(const struct remap_unknown *unknown, struct name_table *told, const char *file);

#endif
