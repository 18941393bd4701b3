/* SPDX-License-Identifier: MIT */
/* The order by the value of a tag. Records without it come first, then A < B < H and Z < numbers. A is ordered by byte,
 * H and Z by strcmp(), numbers by value, an integer and a float as doubles; arrays tie. NaN is above every other number
 * and ties with itself (in samtools it ties with all numbers, which is not an order). */
#ifndef TAG_KEY_H
#define TAG_KEY_H

#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "order/text_code.h"

enum tag_class { TAG_NONE, TAG_CHAR, TAG_ARRAY, TAG_STRING, TAG_NUMBER };

/* The value of a tag as the order uses it. */
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
    bool marked;                 /* records have marks (group_mark.h), except those learned from */
    bool named;                  /* `words` was made from the header's @RG lines */
    double low;                  /* the key distinguishes the numbers low .. low + n_steps - 1 ... */
    uint64_t n_steps;            /* ... if they are integers; 0: all numbers are treated as floats */
    struct word_code words;      /* code for a small number of texts; in use if it has words */
    struct text_code text;
};

/* Prepares the order by tag; *tags must be zero-initialised. If the tag is RG, its values are taken from the @RG lines.
 * Returns 0, or -1 if out of memory. */
int tag_key_init(struct tag_key *tags, const char tag[2], sam_hdr_t *lines);
void tag_key_free(struct tag_key *tags);

/* Learns from n records. texts: room for n. If out of memory, the key may decide less. */
void tag_key_learn(struct tag_key *tags, const struct bam_record *const *records, struct text *texts, size_t n);

/* The key of a checked record. sub is the left-aligned key of the next criterion, for records of the same value. */
uint64_t tag_key_make(const struct tag_key *tags, const struct bam_record *r, uint64_t sub);

/* sort_key_word() of the value; the words of a text are its next bytes. Returns false if it has no such word: then all
 * of these records have the same value, and *number becomes the number of a word of the next criterion. */
bool tag_key_word(const struct tag_key *tags, const struct bam_record *r, unsigned *number, uint64_t *word);

/* Compares the values of two records: returns < 0, 0 or > 0. */
int tag_key_compare(const struct tag_key *tags, const struct bam_record *a, const struct bam_record *b);

#endif
