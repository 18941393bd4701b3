/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <htslib/sam.h>
#include "order/group_mark.h"
#include "order/key_room.h"
#include "order/tag_key.h"

/* The key has the class in bits 63 to 61, then the value, then the key of the next criterion. */
enum { VALUE_BITS = 61 };
#define VALUE_RANGE ((uint64_t)1 << VALUE_BITS)

/* The least count of numbers in a learned range: later numbers may be larger than those of the sample. 2^24 leaves 37
 * bits of the value, which hold a coordinate of a human genome. */
#define LEAST_STEPS ((uint64_t)1 << 24)
/* The most numbers in a range: all integers of BAM are among the 2^33 numbers from INT32_MIN on. */
#define MOST_STEPS ((uint64_t)1 << 33)

/* The number of leading bits of a double that determine a float; its other bits are 0. */
enum { FLOAT_BITS = 35, DOUBLE_REST = 64 - FLOAT_BITS };

/* The maximum number of different texts in a sample that is learned as a list of words. */
enum { FEW_WORDS = 16 };
/* The most @RG lines whose names still leave room for a coordinate. */
enum { MOST_GROUPS = 1 << 16 };

/* Finds the tag that the order uses; NULL: none. A CG tag that holds the CIGAR does not count: htslib has moved it to
 * its place. */
static const uint8_t *find_tag(const struct tag_key *tags, const struct bam_record *r)
{
    int bad;                     /* set for broken tags: they hide the tag, as in htslib */
    uint32_t n;
    const uint8_t *end = bam_record_end(r), *cigar;
    const uint8_t *p = bam_record_aux_find(bam_record_aux(r), end, tags->tag, &bad);
    if (!p || memcmp(tags->tag, "CG", 2) != 0)
        return p;
    bam_record_cigar(r, &n, &cigar);
    return cigar ? bam_record_aux_find(bam_record_aux_next(cigar, end), end, tags->tag, &bad) : p;
}

/* The value of a tag whose type byte is at p, in the record or before it; NULL: no tag. */
static struct tag_value tag_value(const uint8_t *p, const struct bam_record *r)
{
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
        value.text = (struct text){(const char *)p + 1, (size_t)(bam_record_end(r) - p) - 1};
        break;
    default:
        value.class = TAG_NUMBER;
        value.is_float = *p == 'f' || *p == 'd';
        value.number = bam_aux2f(p);
    }
    return value;
}

/* Returns the value of the record's tag that the order uses. */
static struct tag_value seen_value(const struct tag_key *tags, const struct bam_record *r)
{
    const uint8_t *p = find_tag(tags, r);
    return tag_value(tags->marked ? group_mark_sees(r, p) : p, r);
}

/* Learns the names of the header's read groups. */
static int learn_group_names(struct tag_key *tags, sam_hdr_t *lines)
{
    int n = sam_hdr_count_lines(lines, "RG"), n_ids = 0;
    if (n <= 0)
        return 0;
    struct text *ids = calloc((size_t)n, sizeof *ids);
    if (!ids)
        return -1;
    for (int i = 0; i < n; i++) {
        const char *id = sam_hdr_line_name(lines, "RG", i);
        if (id)
            ids[n_ids++] = (struct text){id, strlen(id)};
    }
    int learned = word_code_learn(&tags->words, VALUE_RANGE, ids, (size_t)n_ids, MOST_GROUPS);
    tags->named = learned > 0;
    free(ids);
    return learned < 0 ? -1 : 0;
}

int tag_key_init(struct tag_key *tags, const char tag[2], sam_hdr_t *lines)
{
    memcpy(tags->tag, tag, 2);
    tags->low = INT32_MIN;
    tags->n_steps = MOST_STEPS;
    text_code_init(&tags->text, false, VALUE_RANGE);
    return memcmp(tag, "RG", 2) == 0 ? learn_group_names(tags, lines) : 0;
}

void tag_key_free(struct tag_key *tags)
{
    word_code_free(&tags->words);
}

/* The types of the sample's numbers. */
struct number_probe {
    size_t n;
    bool floats;                 /* there are floats, so the next number may not be an integer */
    double min, max;
};

static void number_look(struct number_probe *probe, const struct tag_value *value)
{
    double v = value->number;
    probe->floats |= value->is_float;
    if (!isfinite(v))
        return;
    probe->min = probe->n == 0 || v < probe->min ? v : probe->min;
    probe->max = probe->n == 0 || v > probe->max ? v : probe->max;
    probe->n++;
}

static void number_learn(struct tag_key *tags, const struct number_probe *probe)
{
    double span = probe->max - probe->min + 1;
    if (probe->floats)
        tags->n_steps = 0;
    if (probe->floats || probe->n == 0 || span > (double)MOST_STEPS / 16)
        return;
    tags->low = probe->min >= 0 ? 0 : probe->min - span;
    double steps = probe->max - tags->low + 1 + 15 * span;
    tags->n_steps = steps < (double)LEAST_STEPS ? LEAST_STEPS
                  : steps > (double)MOST_STEPS ? MOST_STEPS : (uint64_t)steps;
}

void tag_key_learn(struct tag_key *tags, const struct bam_record *const *records, struct text *texts, size_t n)
{
    struct number_probe probe = {.n = 0};
    size_t n_texts = 0;
    for (size_t i = 0; i < n; i++) {
        struct tag_value value = tag_value(find_tag(tags, records[i]), records[i]);
        if (value.class == TAG_STRING)
            texts[n_texts++] = value.text;
        else if (value.class == TAG_NUMBER)
            number_look(&probe, &value);
    }
    if (!tags->named && word_code_learn(&tags->words, VALUE_RANGE, texts, n_texts, FEW_WORDS) <= 0)
        text_code_learn(&tags->text, false, VALUE_RANGE, texts, n_texts);
    number_learn(tags, &probe);
}

/* The bits of a double as a number with the same order; -0 as 0. */
static uint64_t number_bits(double v)
{
    uint64_t bits, sign = (uint64_t)1 << 63;
    v += 0.0;
    memcpy(&bits, &v, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

/* A double that is not a float gets the keys of the next float towards 0, but no room for the next criterion. It comes
 * after the doubles equal to that float; below 0, where the order is reversed, before them. */
static uint64_t float_key(double v, uint64_t sub)
{
    const uint64_t rest = ((uint64_t)1 << DOUBLE_REST) - 1, room = VALUE_RANGE >> FLOAT_BITS;
    uint64_t bits = number_bits(v), key = (bits >> DOUBLE_REST) * room;
    if ((bits & rest) == (v < 0 ? rest : 0))
        return key + key_nest(room, sub);
    return v < 0 ? key : key + room - 1;
}

static uint64_t number_key(const struct tag_key *tags, double v, uint64_t sub)
{
    if (isnan(v))
        return VALUE_RANGE - 1;
    if (tags->n_steps == 0)
        return float_key(v, sub);
    double step = floor(v) - tags->low;
    if (step < 0)
        return 0;
    if (step >= (double)tags->n_steps)
        return VALUE_RANGE - 1;
    uint64_t room = VALUE_RANGE / tags->n_steps, key = (uint64_t)step * room;
    return key + (v == floor(v) ? key_nest(room, sub) : room - 1);
}

uint64_t tag_key_make(const struct tag_key *tags, const struct bam_record *r, uint64_t sub)
{
    struct tag_value value = seen_value(tags, r);
    uint64_t key = 0, room;
    switch (value.class) {
    case TAG_NONE: case TAG_ARRAY:
        key = key_nest(VALUE_RANGE, sub);
        break;
    case TAG_CHAR:
        key = (uint64_t)value.byte << (VALUE_BITS - 8) | key_nest(VALUE_RANGE >> 8, sub);
        break;
    case TAG_STRING:
        key = tags->words.n_words ? word_code_key(&tags->words, value.text, &room)
                                  : text_code_key(&tags->text, value.text, &room);
        key += key_nest(room, sub);
        break;
    case TAG_NUMBER:
        key = number_key(tags, value.number, sub);
    }
    return (uint64_t)value.class << VALUE_BITS | key;
}

/* Returns bytes [8 * number, 8 * number + 8) of a text, with zeros from its end on. Returns false after its end. */
static bool text_word(struct text text, unsigned *number, uint64_t *word)
{
    enum { WORD = sizeof *word };
    size_t length = strnlen(text.s, text.n), words = length / WORD + 1;
    if (*number >= words) {
        *number -= (unsigned)words;
        return false;
    }
    *word = 0;
    for (size_t at = (size_t)*number * WORD, i = 0; i < WORD; i++, at++)
        *word = *word << 8 | (at < length ? (uint8_t)text.s[at] : 0);
    return true;
}

bool tag_key_word(const struct tag_key *tags, const struct bam_record *r, unsigned *number, uint64_t *word)
{
    struct tag_value value = seen_value(tags, r);
    switch (value.class) {
    case TAG_STRING:
        return text_word(value.text, number, word);
    case TAG_NUMBER:
        *word = isnan(value.number) ? UINT64_MAX : number_bits(value.number);
        return (*number)-- == 0;
    case TAG_CHAR:
        *word = value.byte;
        return (*number)-- == 0;
    default:
        return false;
    }
}

static int number_compare(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !!isnan(a) - !!isnan(b);
    return (a > b) - (a < b);
}

int tag_key_compare(const struct tag_key *tags, const struct bam_record *a, const struct bam_record *b)
{
    struct tag_value x = seen_value(tags, a), y = seen_value(tags, b);
    if (x.class != y.class)
        return x.class < y.class ? -1 : 1;
    switch (x.class) {
    case TAG_CHAR:   return x.byte - y.byte;
    case TAG_STRING: return strcmp(x.text.s, y.text.s);
    case TAG_NUMBER: return number_compare(x.number, y.number);
    default:         return 0;
    }
}
