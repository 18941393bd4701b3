/* SPDX-License-Identifier: MIT */
/* Keys and comparison for the order by the value of a tag.
 *
 * Records without the tag come first, then by class of type A < B < H and Z < numbers;
 * within: A by byte, H and Z by strcmp, numbers by value whatever their type (an
 * integer meets a float as double), arrays tie. NaN is above every other number
 * and ties with itself (samtools lets it tie with all, which is no order). */
#ifndef TAG_KEY_H
#define TAG_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "order/text_code.h"

enum tag_class { TAG_NONE, TAG_CHAR, TAG_ARRAY, TAG_STRING, TAG_NUMBER };

/* A tag's value as the order sees it. */
struct tag_value {
    enum tag_class class;
    bool is_float;               /* a number, by its type */
    union {
        uint8_t byte;
        struct text text;        /* NUL-ended, in the record */
        double number;
    };
};

/* Read-only once learned. */
struct tag_key {
    char tag[2];
    bool named;                  /* the header has the values: words is made of them */
    double low;                  /* numbers low .. low + n_steps - 1 are told apart... */
    uint64_t n_steps;            /* ...at integers only, n_steps of them; 0: as floats */
    struct word_code words;      /* of few texts; in use when it has words */
    struct text_code text;
};

/* The values of RG are those of the header's @RG lines. tags: zeroed. Returns 0, or -1 when
 * there was no memory. */
int tag_key_init(struct tag_key *tags, const char tag[2], sam_hdr_t *sam);
void tag_key_free(struct tag_key *tags);

/* Returns 0, or -1 when there was no memory: the key may decide less. */
int tag_key_learn(struct tag_key *tags, const struct bam_record *const *records, size_t n);

/* sub: left-aligned key of what decides between records of the same value. */
uint64_t tag_key_make(const struct tag_key *tags, const struct bam_record *r, uint64_t sub);

/* Among records whose keys, or the parts before, are equal: part *number (0, 1, ...) of the
 * value, the next bytes of a text. a before b by value gives part(a) <= part(b); the value has as
 * many parts in all these records. false: it has fewer, and the records the same value; *number
 * becomes that of a part of what comes next. */
bool tag_key_part(const struct tag_key *tags, const struct bam_record *r, unsigned *number, uint64_t *part);

int tag_key_compare(const struct tag_key *tags, const struct bam_record *a, const struct bam_record *b);

#endif
