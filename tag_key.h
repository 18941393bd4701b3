/* SPDX-License-Identifier: MIT */
/* Keys and comparison for the order by the value of a tag.
 *
 * Records without the tag come first, then by class of type A < B < H and Z < numbers;
 * within: A by byte, H and Z by strcmp, numbers by value whatever their type (an
 * integer meets a float as double), arrays tie. NaN is above every other number
 * and ties with itself (samtools lets it tie with all, which is no order). */
#ifndef TAG_KEY_H
#define TAG_KEY_H

#include <stddef.h>
#include <stdint.h>
#include "bam_record.h"
#include "text_code.h"

enum tag_class { TAG_NONE, TAG_CHAR, TAG_ARRAY, TAG_STRING, TAG_NUMBER };

/* A tag's value as the order sees it. */
struct tag_value {
    enum tag_class class;
    union {
        uint8_t byte;
        struct text text;        /* NUL-ended, in the record */
        double number;
    };
};

/* Read-only once learned. */
struct tag_key {
    char tag[2];
    double low;                  /* numbers low .. low + n_steps - 1 are told apart... */
    uint64_t n_steps;            /* ...at integers only, n_steps of them; 0: by their bits */
    struct text_code text;
};

void tag_key_init(struct tag_key *tags, const char tag[2]);

/* Returns 0, or -1 when there was no memory, which leaves what init gave. */
int tag_key_learn(struct tag_key *tags, const struct bam_record *const *records, size_t n);

/* sub: left-aligned key of what decides between records of the same value. */
uint64_t tag_key_make(const struct tag_key *tags, const struct bam_record *r, uint64_t sub);
int tag_key_compare(const struct tag_key *tags, const struct bam_record *a, const struct bam_record *b);

#endif
