/* SPDX-License-Identifier: MIT */
/* The tags that fixmate gives a record. Each comes after all others and replaces the first one of its name, as htslib
 * does it. Nothing is moved before the record is written. Serial. */
#ifndef MATE_TAGS_H
#define MATE_TAGS_H

#include <stddef.h>
#include <stdint.h>
#include "base/byte_buffer.h"

enum mate_tag { MATE_MQ, MATE_MC, MATE_CT, MATE_MS, MATE_MN, MATE_TAGS };

/* Zero-initialised: nothing is in use. The owner frees added.p. */
struct mate_tags {
    const uint8_t *begin, *end;  /* the record's tags */
    const uint8_t *first;        /* the first of our tags */
    uint32_t left[MATE_TAGS], gone[MATE_TAGS];   /* number of each name's tags that stay, and of those that are removed:
                                                  * the first ones */
    uint32_t n_added[MATE_TAGS];
    struct byte_buffer added;    /* the new tags, which come after them */
};

/* Begins with the tags [p, end), which the caller owns. No tag is found after a broken one. */
void mate_tags_begin(struct mate_tags *tags, const uint8_t *p, const uint8_t *end);

/* Removes the first tag of that name. */
void mate_tags_drop(struct mate_tags *tags, enum mate_tag which);

/* Puts a number of four bytes (int); a number of as few bytes as possible (small); or a text of n bytes without its
 * NUL. -1: out of memory. */
int mate_tags_put_int(struct mate_tags *tags, enum mate_tag which, uint32_t value);
int mate_tags_put_small(struct mate_tags *tags, enum mate_tag which, uint32_t value);
int mate_tags_put_text(struct mate_tags *tags, enum mate_tag which, const uint8_t *text, size_t n);

/* An upper limit on the bytes that they need. */
static inline size_t mate_tags_most(const struct mate_tags *tags)
{
    return (size_t)(tags->end - tags->begin) + tags->added.n;
}

/* Writes them to `to`, and returns their end. */
uint8_t *mate_tags_write(const struct mate_tags *tags, uint8_t *to);

#endif
