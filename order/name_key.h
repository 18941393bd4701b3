/* SPDX-License-Identifier: MIT */
/* Keys and comparison for the orders by read name, flags included. */
#ifndef NAME_KEY_H
#define NAME_KEY_H

#include <stddef.h>
#include <stdint.h>
#include "bam/bam_record.h"
#include "order/name_groups.h"
#include "order/name_shape.h"
#include "order/sort_key.h"
#include "order/text_code.h"

/* Read-only once learned. */
struct name_key {
    enum sort_by by;             /* one of the SORT_NAME_ orders */
    struct name_groups groups;
    union {                      /* of what follows the group */
        struct name_shape shape; /* of SORT_NAME_NATURAL */
        struct text_code text;   /* of the others */
    };
};

void name_key_init(struct name_key *names, enum sort_by by);

/* sample: the names of some records; used up by the call. */
void name_key_learn(struct name_key *names, struct text *sample, size_t n);

/* Left-aligned: cut to any number of leading bits it is still a key. */
uint64_t name_key_make(const struct name_key *names, const struct bam_record *r);
int name_key_compare(enum sort_by by, const struct bam_record *a, const struct bam_record *b);

static inline struct text bam_record_text(const struct bam_record *r)
{
    return (struct text){bam_record_name(r), r->name_len - 1u};
}

#endif
