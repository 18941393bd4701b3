/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "order/key_room.h"
#include "order/name_natural.h"

/* Most decimal digits that the numbers of a key may have. 2^64 / 10^18 is 18, so with 18 digits each value
 * still has 18 keys for the flags. */
enum { KEY_DIGITS = 18 };

/* Keys to reserve for what follows the fields: the flags, or a tail. */
static const uint64_t room_flags = 16, room_tail = 1 << 20;

static const uint64_t power10[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000,
    100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000,
    10000000000000000, 100000000000000000, 1000000000000000000,
};
_Static_assert(sizeof power10 / sizeof *power10 == KEY_DIGITS + 1, "one per number of digits");
_Static_assert((int)TAIL_DIGITS <= (int)KEY_DIGITS, "values in the tail use the same table");

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* ---- the order ---- */

/* Reads the number at *s and moves *s behind it. *digits is the number of significant digits; with more
 * than KEY_DIGITS of them the value is of no use. */
static inline uint64_t number_read(const char **s, unsigned *digits)
{
    const char *p = *s;
    while (*p == '0')
        p++;
    const char *first = p;
    uint64_t value = 0;
    for (; is_digit(*p); p++)
        value = value * 10 + (uint64_t)(*p - '0');
    *digits = (unsigned)(p - first);
    *s = p;
    return value;
}

/* Compares the runs of digits at *a and *b and moves both pointers behind them. */
static int number_compare(const char **a, const char **b)
{
    const char *p = *a, *q = *b;
    while (*p == '0') p++;
    while (*q == '0') q++;
    int order = 0;
    for (; is_digit(*p) && is_digit(*q); p++, q++)
        if (order == 0)
            order = *p - *q;
    if (is_digit(*p) || is_digit(*q))
        order = is_digit(*p) ? 1 : -1;
    *a = p;
    *b = q;
    return order;
}

/* Compares token by token. Both must be at the start of one. */
int name_natural_prefix(const char *a, const char *b, const char **rest)
{
    while (*a) {
        if (is_digit(*a) && is_digit(*b)) {
            int order = number_compare(&a, &b);
            if (order)
                return order;
        } else if (*a != *b) {
            return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    *rest = b;
    return 0;
}

/* Number of bytes that both begin with, up to a NUL, which does not count. size bounds both. */
static size_t common_length(const char *a, const char *b, size_t size)
{
    const uint64_t ones = 0x0101010101010101u;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t x, y;
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        if (x != y || ((x - ones) & ~x & ones << 7))
            break;
    }
    while (i < size && a[i] == b[i] && a[i])
        i++;
    return i;
}

int name_natural_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t at = common_length(a, b, a_size < b_size ? a_size : b_size);
    if (a[at] == 0 && b[at] == 0)
        return 0;
    while (at > 0 && is_digit(a[at - 1]))
        at--;
    const char *rest;
    int order = name_natural_prefix(a + at, b + at, &rest);
    return order ? order : -(*rest != 0);
}

/* ---- keys ---- */

static uint64_t tail_key(const struct name_shape *shape, const char *s, uint64_t sub)
{
    struct key_fill fill = {0, 64};
    while (fill.room > 0) {
        if (is_digit(*s)) {
            unsigned digits;
            uint64_t value = number_read(&s, &digits);
            bool wide = digits > shape->tail_digits;
            key_put(&fill, shape->number_symbol + (wide ? shape->tail_digits : digits), shape->tail_bits);
            if (wide)
                key_put_ones(&fill);
            else
                key_put(&fill, value, key_bits(power10[digits] - 1));
        } else {
            unsigned symbol = shape->symbol[(uint8_t)*s];
            key_put(&fill, symbol >> 1, shape->tail_bits);
            if (symbol & 1)
                key_put_ones(&fill);
            if (*s++ == 0)
                break;
        }
    }
    return fill.room == 0 ? fill.key : fill.key | sub >> (64 - fill.room);
}

/* Skips the prefix. Returns where to go on, or NULL if the name does not have the prefix; then *key is its
 * key. */
static const char *prefix_skip(const struct name_shape *shape, const char *name, size_t size, uint64_t *key)
{
    if (size > shape->n_prefix && memcmp(name, shape->prefix, shape->n_prefix) == 0)
        return name + shape->n_prefix;
    char prefix[SHAPE_PREFIX + 1];
    memcpy(prefix, shape->prefix, shape->n_prefix);
    prefix[shape->n_prefix] = 0;
    const char *rest;
    int order = name_natural_prefix(prefix, name, &rest);
    *key = order > 0 ? 0 : shape->range - 1;
    return order ? NULL : rest;
}

/* Compares the start of s with the literal: < 0, 0 if s begins with it, > 0. */
static inline int literal_compare(const char *s, const struct name_field *field)
{
    for (size_t i = 0; i < field->n_literal; i++)
        if (s[i] != field->literal[i])
            return (uint8_t)s[i] < (uint8_t)field->literal[i] ? -1 : 1;
    return 0;
}

uint64_t name_shape_key(const struct name_shape *shape, const char *name, size_t size, uint64_t sub)
{
    uint64_t key = 0, room = shape->range;
    const char *s = prefix_skip(shape, name, size, &key);
    if (!s)
        return key;
    for (const struct name_field *f = shape->field; f < shape->field + shape->n_fields; f++) {
        if (!is_digit(*s))
            return (uint8_t)*s < '0' ? key : key + room - 1;
        unsigned digits;
        uint64_t value = number_read(&s, &digits);
        if (digits > KEY_DIGITS || value >= f->radix)
            return key + room - 1;
        key += value * f->weight;
        room = f->weight;
        int order = literal_compare(s, f);
        if (order)
            return order < 0 ? key : key + room - 1;
        s += f->n_literal;
    }
    if (shape->has_tail)
        return key + key_nest(room, tail_key(shape, s, sub));
    return key + (*s ? room - 1 : key_nest(room, sub));
}

/* ---- learning ---- */

struct byte_set { bool has[256]; };

/* Numbers the symbols: the end, the non-digits of the set, and numbers of up to max_digits digits. */
static void tail_fill(struct name_shape *shape, const struct byte_set *set, unsigned max_digits)
{
    unsigned n = 1;
    memset(shape->symbol, 0, sizeof shape->symbol);
    shape->tail_digits = max_digits;
    for (unsigned c = 1; c < 256; c++) {
        if (c == '0') {
            shape->number_symbol = (uint16_t)n;
            n += max_digits + 1;
        }
        if (is_digit((char)c))
            continue;
        if (set->has[c])
            n++;
        shape->symbol[c] = (uint16_t)((n - 1) << 1 | !set->has[c]);
    }
    shape->tail_bits = key_bits(n - 1);
}

void name_shape_init(struct name_shape *shape, uint64_t range)
{
    struct byte_set all;
    memset(all.has, true, sizeof all.has);
    memset(shape, 0, sizeof *shape);
    shape->has_tail = true;
    shape->range = shape->room = range;
    tail_fill(shape, &all, TAIL_DIGITS);
}

/* What the sample teaches. What the key is spent on is decided after that. */
struct shape_sight {
    size_t prefix;
    size_t n_fields;
    bool has_tail;
    size_t at[SHAPE_FIELDS], n_literal[SHAPE_FIELDS];   /* literals, as places in sample[0] */
    unsigned digits[SHAPE_FIELDS];                      /* most digits that the number had */
};

/* Number of bytes that all names begin with, cut back so that they end in a non-digit. */
static size_t common_prefix(const struct text *sample, size_t n)
{
    size_t same = strlen(sample[0].s);
    for (size_t i = 1; i < n; i++) {
        size_t j = 0;
        while (j < same && sample[i].s[j] == sample[0].s[j])
            j++;
        same = j;
    }
    while (same > 0 && is_digit(sample[0].s[same - 1]))
        same--;
    return same < SHAPE_PREFIX ? same : 0;
}

/* Takes the fields of the first name. They are cut later to those that the other names have, too. */
static void sight_begin(struct shape_sight *sight, const char *name)
{
    const char *s = name + sight->prefix;
    while (sight->n_fields < SHAPE_FIELDS && is_digit(*s)) {
        size_t i = sight->n_fields++;
        number_read(&s, &sight->digits[i]);
        sight->at[i] = (size_t)(s - name);
        while (*s && !is_digit(*s))
            s++;
        sight->n_literal[i] = (size_t)(s - name) - sight->at[i];
    }
    sight->has_tail = *s != 0;
}

static void sight_cut(struct shape_sight *sight, size_t n_fields)
{
    sight->n_fields = n_fields;
    sight->has_tail = true;
}

/* Walks another name along the fields and cuts them to what it has. Returns where in the name the last
 * field ends. */
static const char *sight_name(struct shape_sight *sight, const char *first, const char *name)
{
    const char *s = name + sight->prefix;
    for (size_t i = 0; i < sight->n_fields; i++) {
        if (!is_digit(*s)) {
            sight_cut(sight, i);
            return s;
        }
        unsigned digits;
        number_read(&s, &digits);
        if (digits > sight->digits[i])
            sight->digits[i] = digits;
        size_t same = 0;
        while (same < sight->n_literal[i] && s[same] == first[sight->at[i] + same])
            same++;
        s += same;
        if (same < sight->n_literal[i]) {
            sight->n_literal[i] = same;
            sight_cut(sight, i + 1);
        }
    }
    if (*s)
        sight->has_tail = true;
    return s;
}

static void tail_learn(struct name_shape *shape, struct shape_sight *sight, const struct text *sample, size_t n)
{
    struct byte_set set = {{false}};
    unsigned max_digits = 0;
    for (size_t i = 0; i < n; i++) {
        const char *s = sight_name(sight, sample[0].s, sample[i].s);
        while (*s) {
            unsigned digits = 0;
            if (is_digit(*s))
                number_read(&s, &digits);
            else
                set.has[(uint8_t)*s++] = true;
            max_digits = digits > max_digits ? digits : max_digits;
        }
    }
    tail_fill(shape, &set, max_digits < TAIL_DIGITS ? max_digits + 1 : TAIL_DIGITS);
}

static unsigned sum(const unsigned *v, size_t n)
{
    unsigned total = 0;
    while (n-- > 0)
        total += v[n];
    return total;
}

/* Gives one more digit to each number in turn, the last number first, as long as there is room. */
static void digits_widen(unsigned *digits, size_t n, unsigned most)
{
    for (size_t i = n; i-- > 0 && sum(digits, n) < most;)
        digits[i]++;
}

/* Turns the last number of the prefix into a field: all names of the sample have the same number there,
 * but later in the file there is another lane, tile or run. Returns false if the prefix has no number or
 * there is no room for it. */
static bool sight_take_prefix(struct shape_sight *sight, const char *first, unsigned room)
{
    size_t end = sight->prefix;
    while (end > 0 && !is_digit(first[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && is_digit(first[start - 1]))
        start--;
    if (start == end || sight->n_fields == SHAPE_FIELDS)
        return false;
    const char *s = first + start;
    unsigned digits;
    number_read(&s, &digits);
    digits += digits == 0;
    if (digits > room)
        return false;
    size_t n = sight->n_fields++;
    memmove(sight->at + 1, sight->at, n * sizeof *sight->at);
    memmove(sight->n_literal + 1, sight->n_literal, n * sizeof *sight->n_literal);
    memmove(sight->digits + 1, sight->digits, n * sizeof *sight->digits);
    sight->at[0] = end;
    sight->n_literal[0] = sight->prefix - end;
    sight->digits[0] = digits;
    sight->prefix = start;
    return true;
}

/* Decides how many digits every number gets. First, what the sample needs. Then one more each,
 * because files often begin with the small numbers. Then numbers of the prefix. What is left goes
 * to the numbers that vary. */
static void sight_spend(struct shape_sight *sight, const char *first, uint64_t range)
{
    unsigned used = 0, most = 0;
    range /= sight->has_tail ? room_tail : room_flags;
    while (most < KEY_DIGITS && power10[most + 1] <= range)
        most++;
    for (size_t i = 0; i < sight->n_fields; i++) {
        sight->digits[i] += sight->digits[i] == 0;
        if (used + sight->digits[i] > most) {
            sight_cut(sight, i);
            break;
        }
        used += sight->digits[i];
    }
    size_t vary = sight->n_fields;
    digits_widen(sight->digits, vary, most);
    while (sight_take_prefix(sight, first, most - sum(sight->digits, sight->n_fields)))
        ;
    used = sum(sight->digits, sight->n_fields);
    unsigned *varying = sight->digits + (sight->n_fields - vary);
    for (unsigned left = most - used; vary > 0 && left > 0;) {
        unsigned before = sum(varying, vary);
        digits_widen(varying, vary, before + left);
        left -= sum(varying, vary) - before;
    }
}

static void shape_set(struct name_shape *shape, const struct shape_sight *sight, const char *first)
{
    size_t used = 0;
    shape->n_prefix = sight->prefix;
    memcpy(shape->prefix, first, sight->prefix);
    shape->has_tail = sight->has_tail;
    shape->n_fields = sight->n_fields;
    for (size_t i = 0; i < sight->n_fields; i++) {
        struct name_field *f = &shape->field[i];
        f->radix = power10[sight->digits[i]];
        f->weight = shape->room /= f->radix;
        f->literal = shape->literals + used;
        f->n_literal = sight->n_literal[i];
        memcpy(shape->literals + used, first + sight->at[i], f->n_literal);
        used += f->n_literal;
    }
}

static struct shape_sight sight_of(const struct text *sample, size_t n)
{
    struct shape_sight sight = {.prefix = common_prefix(sample, n)};
    sight_begin(&sight, sample[0].s);
    for (size_t i = 0; i < n; i++)
        sight_name(&sight, sample[0].s, sample[i].s);
    return sight;
}

bool name_shape_regular(const struct text *sample, size_t n)
{
    struct shape_sight sight = sight_of(sample, n);
    return sight.n_fields > 0 && !sight.has_tail;
}

void name_shape_learn(struct name_shape *shape, uint64_t range, const struct text *sample, size_t n)
{
    name_shape_init(shape, range);
    if (n == 0)
        return;
    struct shape_sight sight = sight_of(sample, n);
    sight_spend(&sight, sample[0].s, range);
    if (sight.n_fields == 0 && !sight.has_tail)
        return;                  /* one name, without a number: the next name may be anything */
    shape_set(shape, &sight, sample[0].s);
    if (sight.has_tail)
        tail_learn(shape, &sight, sample, n);
}
