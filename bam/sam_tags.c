/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "bam/sam_number.h"
#include "bam/sam_scan.h"
#include "bam/sam_tags.h"
#include "base/byte_buffer.h"
#include "base/endian_io.h"

enum { HEAD = 3, VALUE_AT = 5 };     /* bytes of "XY:i:" and of "XYi" */

/* The line being read and the buffer being written. */
struct tags {
    const char *p, *end;         /* *end is '\0' */
    struct byte_buffer *to;
    uint8_t *out, *limit;        /* the end of the bytes written, and of the buffer */
    bool over;                   /* a number was out of range */
};

static bool grow(struct tags *t, size_t n)
{
    size_t used = (size_t)(t->out - t->to->p);
    if (byte_buffer_reserve(t->to, used + n) < 0)
        return false;
    t->out = t->to->p + used;
    t->limit = t->to->p + t->to->max;
    return true;
}

/* Makes room for n more bytes. */
static inline bool room(struct tags *t, size_t n)
{
    return (size_t)(t->limit - t->out) >= n || grow(t, n);
}

static uint8_t *put_real(uint8_t *out, double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    store_le32(out, bits);
    return out + sizeof bits;
}

/* Stores the value in the smallest type that holds it. All four bytes are written and the size of the type is kept, so
 * no branch has to be predicted. */
static inline void take_integer(struct tags *t)
{
    const char *p = t->p, *types = "CS I";
    uint32_t v;
    unsigned wider, widest;
    if (*p == '-') {
        v = (uint32_t)sam_number_signed(&p, INT32_MAX, &t->over);
        wider = (int32_t)v < INT8_MIN;
        widest = (int32_t)v < INT16_MIN;
        types = "cs i";
    } else {
        v = (uint32_t)sam_number_unsigned(&p, UINT32_MAX, &t->over);
        wider = v > UINT8_MAX;
        widest = v > UINT16_MAX;
    }
    wider += 2 * widest;
    *t->out = (uint8_t)types[wider];
    store_le32(t->out + 1, v);
    t->out += 2 + wider;
    t->p = p;
}

static void take_real(struct tags *t, char type)
{
    double v = sam_number_real(&t->p);
    *t->out++ = (uint8_t)type;
    if (type == 'f') {
        t->out = put_real(t->out, v);
    } else {
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        store_le64(t->out, bits);
        t->out += sizeof bits;
    }
}

/* Copies up to SHORT_TEXT characters, eight at a time; most values end among them. Eight bytes more may be overwritten.
 * True: the end of the value is reached. */
static inline bool copy_short(struct tags *t)
{
    enum { SHORT_TEXT = 48 };
    const char *p = t->p;
    uint8_t *out = t->out;
    uint64_t stop = 0;
    for (int i = 0; i < SHORT_TEXT / 8 && t->end - p >= 8; i++) {
        uint64_t v = load_le64((const uint8_t *)p);
        store_le64(out, v);
        stop = sam_scan_stops(v);
        size_t n = stop ? (size_t)__builtin_ctzll(stop) / 8 : 8;
        p += n;
        out += n;
        if (stop)
            break;
    }
    t->p = p;
    t->out = out;
    return stop;
}

static enum sam_line_fault take_text(struct tags *t, char type)
{
    const char *start = t->p;
    *t->out++ = (uint8_t)type;
    bool quick = (size_t)(t->limit - t->out) >= (size_t)(t->end - t->p) + SAM_TAGS_ROOM;
    if (!quick || !copy_short(t)) {
        size_t n = (size_t)(sam_scan_field(t->p, t->end) - t->p);
        if (!room(t, n + SAM_TAGS_ROOM))
            return SAM_LINE_NO_MEMORY;
        memcpy(t->out, t->p, n);
        t->out += n;
        t->p += n;
    }
    *t->out++ = '\0';
    return type == 'H' && (t->p - start) % 2 ? SAM_LINE_TAG : SAM_LINE_OK;
}

static size_t count(const char *p, const char *end, char c)
{
    size_t n = 0;
    while ((p = memchr(p, c, (size_t)(end - p)))) {
        n++;
        p++;
    }
    return n;
}

/* Size of an element by type; all except f are integers, and lower case letters are signed. */
static unsigned element_size(char type)
{
    return type == 'c' || type == 'C' ? 1 : type == 's' || type == 'S' ? 2 : 4;
}

/* A type without a sign does not allow "-", not even in -0. */
static void take_element(struct tags *t, char type, bool *over)
{
    const uint64_t most = UINT64_MAX >> (64 - 8 * element_size(type));
    uint64_t v;
    if (type == 'f') {
        t->out = put_real(t->out, sam_number_real(&t->p));
        return;
    }
    if (type >= 'a') {
        v = (uint64_t)sam_number_signed(&t->p, (int64_t)(most / 2), over);
    } else {
        *over = *over || *t->p == '-';
        t->p += *t->p == '-';
        v = sam_number_unsigned(&t->p, most, over);
    }
    for (unsigned i = 0; i < element_size(type); i++)
        *t->out++ = (uint8_t)(v >> 8 * i);
}

/* Appends type, number and elements. Elements begin before `end`, because strtod() skips tabs. False: a number is out
 * of the type's range. */
static bool take_elements(struct tags *t, const char *end, char type)
{
    uint32_t n = 0;
    bool over = false;
    *t->out++ = 'B';
    *t->out++ = (uint8_t)type;
    uint8_t *size = t->out;
    t->out += sizeof n;
    for (; t->p < end && *t->p == ','; n++) {
        t->p++;
        take_element(t, type, &over);
    }
    store_le32(size, n);
    return !over;
}

/* The smallest type that holds all elements from p on. If the largest one is 255 and none is negative, the type is S,
 * as in samtools. */
static char wider_type(const char *p)
{
    int64_t least = 0, most = 0;
    bool over = false;
    while (*p == ',') {
        p++;
        int64_t v = sam_number_signed(&p, INT64_MAX / 2, &over);
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    if (least < 0)
        return least >= INT8_MIN && most <= INT8_MAX ? 'c' : least >= INT16_MIN && most <= INT16_MAX ? 's' : 'i';
    return most < UINT8_MAX ? 'C' : most <= UINT16_MAX ? 'S' : 'I';
}

/* Takes an array. If a number does not fit into the type of the array, all elements get a wider type. */
static enum sam_line_fault take_array(struct tags *t)
{
    char type = *t->p;
    bool empty = type == 'A' && t->p[1] != ',';  /* samtools accepts it if it has no elements */
    if (type == '\0' || !(strchr("cCsSiIf", type) || empty))
        return SAM_LINE_TAG;
    const char *first = ++t->p, *end = sam_scan_field(first, t->end);
    if (!room(t, 4 * count(first, end, ',') + SAM_TAGS_ROOM))
        return SAM_LINE_NO_MEMORY;
    uint8_t *out = t->out;
    if (!take_elements(t, end, type)) {
        t->out = out;
        t->p = first;
        t->over = !take_elements(t, end, wider_type(first)) || t->over;
    }
    return t->p == end ? SAM_LINE_OK : SAM_LINE_TAG;
}

/* Takes the value after "XY:i:". */
static inline enum sam_line_fault take_value(struct tags *t, char type)
{
    if (type == 'Z' || type == 'H')
        return take_text(t, type);
    if (*t->p <= '\t')
        return SAM_LINE_TAG;
    if (type == 'i' || type == 'I') {
        take_integer(t);
    } else if (type == 'A' || type == 'a' || type == 'c' || type == 'C') {
        *t->out++ = 'A';
        *t->out++ = (uint8_t)*t->p++;
    } else if (type == 'f' || type == 'd') {
        take_real(t, type);
    } else if (type == 'B') {
        return take_array(t);
    } else {
        return SAM_LINE_TAG;
    }
    return SAM_LINE_OK;
}

enum sam_line_fault sam_tags_append(struct byte_buffer *to, const char *p, const char *end, bool *has_cg)
{
    struct tags t = {.p = p, .end = end, .to = to, .out = to->p + to->n, .limit = to->p + to->max};
    while (t.p < end) {
        if (end - t.p < VALUE_AT || t.p[0] < '!' || t.p[1] < '!')
            return SAM_LINE_TAG;
        if (!room(&t, HEAD + SAM_TAGS_ROOM))
            return SAM_LINE_NO_MEMORY;
        char type = t.p[3];
        *has_cg |= t.p[0] == 'C' && t.p[1] == 'G';
        memcpy(t.out, t.p, 2);
        t.out += 2;
        t.p += VALUE_AT;
        enum sam_line_fault fault = take_value(&t, type);
        if (fault)
            return fault;
        while (*t.p > '\t')
            t.p++;
        t.p++;
    }
    to->n = (size_t)(t.out - to->p);
    return t.over ? SAM_LINE_TAG_RANGE : SAM_LINE_OK;
}
