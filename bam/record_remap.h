/* SPDX-License-Identifier: MIT */
/* The changes that make the records of an input agree with a header joined from several inputs. Serial. Nothing here
 * changes once it is made, so tasks on any thread may use it at once. */
#ifndef RECORD_REMAP_H
#define RECORD_REMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"
#include "base/name_table.h"
#include "bam/bam_record.h"

/* The values of a tag in the input, and their new values. A zero-initialised struct is empty. */
struct tag_values {
    struct name_table from;      /* owned */
    char **to;                   /* new values by number; owned, with the texts */
};

/* Adds a copy of the pair; it replaces a pair with the same `from`. -1: out of memory. */
int tag_values_add(struct tag_values *values, const char *from, const char *to);
void tag_values_free(struct tag_values *values);

/* The new value of a value; NULL if it is unknown. */
const char *tag_values_find(const struct tag_values *values, const char *from, size_t n);

/* A zero-initialised struct changes nothing. record_remap_free() frees it. */
struct record_remap {
    const int32_t *ref_ids;      /* new number of each reference, owned by the header_join; NULL: unchanged */
    struct tag_values groups, programs;    /* values of RG and PG */
    char *group;                 /* each record gets this RG (-r); NULL: it keeps its own. Owned */
    bool leaves_tags;            /* a record whose RG and PG keep their values stays as it is */
    bool drops_unknown;          /* RG and PG with unknown values are removed (merge); otherwise they stay */
};

void record_remap_free(struct record_remap *remap);

/* Returns whether no record is ever changed. */
bool record_remap_is_none(const struct record_remap *remap);

/* Values of RG and PG tags that are unknown, in the order of the records. Each entry is "RG:" or "PG:" and the value,
 * with a NUL, then the name of the record, with a NUL. A value that repeats the last one of its tag is not added again.
 * A zero-initialised struct is empty; its owner frees list.p. */
struct remap_unknown {
    struct byte_buffer list;
    size_t last[2];              /* offset of the last RG and the last PG in it, + 1; 0: none */
};

static inline void remap_unknown_clear(struct remap_unknown *unknown)
{
    unknown->list.n = unknown->last[0] = unknown->last[1] = 0;
}

/* Appends the checked record to `to`, with the reference ids and tags of the joined header. Returns 1 if it was
 * changed, 2 if it was changed and got `group` without having had a known RG, 0 if it was not changed. Below 0 nothing
 * was appended: -1 out of memory; -2 the record would be longer than BAM holds; -3 (only with drops_unknown) its RG or
 * PG is not a string.
 *
 * A known RG, and then a known PG, become the last tags, even if the value stays the same, as in samtools merge (1.24).
 * `group` comes after both: it replaces the second RG if there are two (a known first RG then stays, as in samtools),
 * otherwise the first. With leaves_tags, a record whose RG and PG keep their values is not changed. The first of
 * several equal tags is used. With drops_unknown, an unknown value is removed and added to `unknown`; otherwise
 * `unknown` may be NULL. The bin is not changed. */
int record_remap_append(const struct record_remap *remap, struct byte_buffer *to, const struct bam_record *record,
                        struct remap_unknown *unknown);

/* A result of record_remap_append() below 0, as a phrase that follows "record N". A constant string. */
const char *record_remap_fault(int status);

/* Warns of the values in the list that are not yet in `told`, and adds them to it. Call it for the lists of one file in
 * file order. told: zero-initialised before the first call; name_table_free() frees it. -1: out of memory. */
int remap_unknown_report(const struct remap_unknown *unknown, struct name_table *told, const char *file);

#endif
