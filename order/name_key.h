/* SPDX-License-Identifier: MIT */
/* Keys and comparison for the orders by read name. Flags count among records of the same name. Names from different
 * runs share nothing, but all names of one run begin alike:
 *
 *   A00217:77:HFJWFDSXX:2:2510:22435:25191
 *   | group           || rest               |
 *
 * Every group has a range of keys. A name in no group gets the one key between the ranges of the groups around it. */
#ifndef NAME_KEY_H
#define NAME_KEY_H

#include "bam/bam_record.h"
#include "base/sort_order.h"
#include "order/text_code.h"

/* The maximum number of groups, and of bytes that their names may have together. */
enum { GROUPS_MAX = 64, GROUPS_POOL = 4096 };

struct name_groups {
    bool natural;                /* true: natural order; false: that of strcmp() */
    size_t n;                    /* 0: no groups are used, and all names are in one group with an empty name */
    uint64_t range;              /* keys per group */
    const char *name[GROUPS_MAX];   /* in their order; point into pool[] */
    char pool[GROUPS_POOL];
};

/* Read-only once learned. */
struct name_key {
    enum sort_by by;             /* one of the SORT_NAME_ orders */
    struct name_groups groups;
    struct text_code rest;       /* for the part of the name after its group */
};

/* Prepares keys for names of any form. */
void name_key_init(struct name_key *names, enum sort_by by);

/* Learns from the names of some records. The call changes the array sample, which must not be used afterwards. */
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
