/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>
#include "key_room.h"
#include "tag_key.h"

/* The key:  63 61 | 60                            0
 *           class | value, then what decides next   */
enum { VALUE_BITS = 61 };
#define VALUE_RANGE ((uint64_t)1 << VALUE_BITS)

/* Numbers a learned range has at least: later ones may be larger than the sample's.
 * 2^24 leaves 37 bits, which hold a coordinate in a human genome. */
#define LEAST_STEPS ((uint64_t)1 << 24)
/* At most: beyond, nothing is left for what decides next. Integers of BAM span less than 2^33. */
#define MOST_STEPS ((uint64_t)1 << 33)

static struct tag_value tag_value(const struct tag_key *tags, const struct bam_record *r)
{
    int bad;                     /* broken tags hide the one we want, as in htslib */
    const uint8_t *end = (const uint8_t *)r + bam_record_size(r);
    const uint8_t *p = bam_aux_find(bam_record_aux(r), end, tags->tag, &bad);
    struct tag_value value = {.class = TAG_NONE};
    if (!p)
        return value;
    switch (*p) {
    case 'A':
        value.class = TAG_CHAR;
        value.byte = p[1];
        break;
    case 'B':
        value.class = TAG_ARRAY;
        break;
    case 'H': case 'Z':
        value.class = TAG_STRING;
        value.text = (struct text){(const char *)p + 1, (size_t)(end - p) - 1};
        break;
    default:
        value.class = TAG_NUMBER;
        value.number = bam_aux2f(p);
    }
    return value;
}

void tag_key_init(struct tag_key *tags, const char tag[2])
{
    memcpy(tags->tag, tag, 2);
    tags->low = INT32_MIN;
    tags->n_steps = MOST_STEPS;
    text_code_init(&tags->text, VALUE_RANGE);
}

/* What the numbers of the sample are like. */
struct number_sight {
    size_t n;
    bool whole;                  /* all are integers */
    double min, max;
};

static void number_look(struct number_sight *sight, double v)
{
    if (!isfinite(v))
        return;
    sight->min = sight->n == 0 || v < sight->min ? v : sight->min;
    sight->max = sight->n == 0 || v > sight->max ? v : sight->max;
    sight->whole = (sight->n++ == 0 || sight->whole) && v == floor(v);
}

static void number_learn(struct tag_key *tags, const struct number_sight *sight)
{
    if (sight->n == 0)
        return;
    double span = sight->max - sight->min + 1;
    tags->n_steps = 0;
    if (!sight->whole || span > (double)MOST_STEPS / 16)
        return;
    tags->low = sight->min >= 0 ? 0 : sight->min - span;
    double steps = sight->max - tags->low + 1 + 15 * span;
    tags->n_steps = steps < (double)LEAST_STEPS ? LEAST_STEPS
                  : steps > (double)MOST_STEPS ? MOST_STEPS : (uint64_t)steps;
}

int tag_key_learn(struct tag_key *tags, const struct bam_record *const *records, size_t n)
{
    struct number_sight sight = {.n = 0};
    size_t n_texts = 0;
    struct text *texts = calloc(n + 1, sizeof *texts);
    if (!texts)
        return -1;
    for (size_t i = 0; i < n; i++) {
        struct tag_value value = tag_value(tags, records[i]);
        if (value.class == TAG_STRING)
            texts[n_texts++] = value.text;
        else if (value.class == TAG_NUMBER)
            number_look(&sight, value.number);
    }
    text_code_learn(&tags->text, VALUE_RANGE, texts, n_texts);
    number_learn(tags, &sight);
    free(texts);
    return 0;
}

/* The bits of a double in its order, -0 as 0. */
static uint64_t number_bits(double v)
{
    uint64_t bits, sign = (uint64_t)1 << 63;
    v += 0.0;
    memcpy(&bits, &v, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

static uint64_t number_key(const struct tag_key *tags, double v, uint64_t sub)
{
    if (isnan(v))
        return VALUE_RANGE - 1;
    if (tags->n_steps == 0)
        return number_bits(v) >> (64 - VALUE_BITS);
    double step = floor(v) - tags->low;
    if (step < 0)
        return 0;
    if (step >= (double)tags->n_steps)
        return VALUE_RANGE - 1;
    uint64_t room = VALUE_RANGE / tags->n_steps, key = (uint64_t)step * room;
    return key + (v == floor(v) ? key_nest(room, sub) : room - 1);
}

static uint64_t text_key(const struct tag_key *tags, struct text text, uint64_t sub)
{
    uint64_t room, key = text_code_key(&tags->text, text, &room);
    return key + key_nest(room, sub);
}

uint64_t tag_key_make(const struct tag_key *tags, const struct bam_record *r, uint64_t sub)
{
    struct tag_value value = tag_value(tags, r);
    uint64_t key = 0;
    switch (value.class) {
    case TAG_NONE: case TAG_ARRAY:
        key = key_nest(VALUE_RANGE, sub);
        break;
    case TAG_CHAR:
        key = (uint64_t)value.byte << (VALUE_BITS - 8) | key_nest(VALUE_RANGE >> 8, sub);
        break;
    case TAG_STRING:
        key = text_key(tags, value.text, sub);
        break;
    case TAG_NUMBER:
        key = number_key(tags, value.number, sub);
    }
    return (uint64_t)value.class << VALUE_BITS | key;
}

static int number_compare(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !!isnan(a) - !!isnan(b);
    return (a > b) - (a < b);
}

int tag_key_compare(const struct tag_key *tags, const struct bam_record *a, const struct bam_record *b)
{
    struct tag_value x = tag_value(tags, a), y = tag_value(tags, b);
    if (x.class != y.class)
        return x.class < y.class ? -1 : 1;
    switch (x.class) {
    case TAG_CHAR:   return x.byte - y.byte;
    case TAG_STRING: return strcmp(x.text.s, y.text.s);
    case TAG_NUMBER: return number_compare(x.number, y.number);
    default:         return 0;
    }
}
