/* SPDX-License-Identifier: MIT */
/* Keys and comparison for the orders by read name. Flags count among records of the same name. */
#ifndef NAME_KEY_H
#define NAME_KEY_H

#include "bam/bam_record.h"
#include "order/name_groups.h"
#include "base/sort_order.h"
#include "order/text_code.h"

/* Read-only once learned. */
struct name_key {
    enum sort_by by;             /* one of the SORT_NAME_ orders */
    struct name_groups groups;
    struct text_code rest;       /* for the part of the name behind its group */
};

/* Prepares keys for names of which nothing is known. */
void name_key_init(struct name_key *names, enum sort_by by);

/* Learns from the names of some records. The call changes the array sample, which is of no use afterwards. */
void name_key_learn(struct name_key *names, struct text *sample, size_t n);

/* The key of a record. It is left-aligned: any number of its leading bits is a key, too. */
uint64_t name_key_make(const struct name_key *names, const struct bam_record *r);
/* Compares the names, then the flags; in Picard's order also the HI tags. Returns < 0, 0 or > 0. */
int name_key_compare(enum sort_by by, const struct bam_record *a, const struct bam_record *b);

static inline struct text bam_record_text(const struct bam_record *r)
{
    return (struct text){bam_record_name(r), r->name_len - 1u};
}

#endif
