/* SPDX-License-Identifier: MIT */
/* The order by the value of a tag. Records without it come first, then A < B < H and Z < numbers. A is ordered by byte,
 * H and Z by strcmp(), numbers by value, an integer and a float as doubles; arrays tie. NaN is above every other number
 * and ties with itself (samtools lets it tie with all numbers, which is no order). */
#ifndef TAG_KEY_H
#define TAG_KEY_H

#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "order/text_code.h"

enum tag_class { TAG_NONE, TAG_CHAR, TAG_ARRAY, TAG_STRING, TAG_NUMBER };

/* The value of a tag as the order sees it. */
struct tag_value {
    enum tag_class class;
    bool is_float;               /* the type of the number is a float type */
    union {
        uint8_t byte;
        struct text text;        /* in the record; NUL-ended */
        double number;
    };
};

/* Read-only once learned. */
struct tag_key {
    char tag[2];
    bool marked;                 /* records have marks (group_mark.h), but not those that are learned from */
    bool named;                  /* `words` was made from the header's @RG lines */
    double low;                  /* the key tells the numbers low .. low + n_steps - 1 apart... */
    uint64_t n_steps;            /* ...if they are integers; 0: all numbers are treated as floats */
    struct word_code words;      /* code for few different texts; in use if it has words */
    struct text_code text;
};

/* Prepares the order by tag; *tags must be zeroed. If the tag is RG, its values are taken from the @RG lines. Returns
 * 0, or -1 if there is no memory. */
int tag_key_init(struct tag_key *tags, const char tag[2], sam_hdr_t *lines);
void tag_key_free(struct tag_key *tags);

/* Learns from n records. texts: room for n. Without memory the key may decide less. */
void tag_key_learn(struct tag_key *tags, const struct bam_record *const *records, struct text *texts, size_t n);

/* The key of a checked record. sub is the left-aligned key of what decides between records of the same value. */
uint64_t tag_key_make(const struct tag_key *tags, const struct bam_record *r, uint64_t sub);

/* sort_key_word() of the value; the words of a text are its next bytes. Returns false if it has no such word: then all
 * of these records have the same value, and *number becomes the number of a word of what decides next. */
bool tag_key_word(const struct tag_key *tags, const struct bam_record *r, unsigned *number, uint64_t *word);

/* Compares the values of two records: < 0, 0 or > 0. */
int tag_key_compare(const struct tag_key *tags, const struct bam_record *a, const struct bam_record *b);

#endif
