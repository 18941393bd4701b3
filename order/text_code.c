/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "order/text_code.h"

/* What follows a symbol. */
enum {
    GO_ON,                       /* the next column */
    ABOVE,                       /* the byte is above the symbol and below the next one */
    BELOW,                       /* the byte is below every symbol */
    ENDED,                       /* the symbol is the end of the string */
};

/* Columns may be added in front of the part that varies until the whole has this many bits. The rest of
 * the 64 bits is for what the caller puts behind the string (read 1 or 2 and so on). If strings of one
 * length take more, a place is given all ten digits only where two digits were seen. */
#define SPEND_BITS 58.0

struct byte_set { bool has[256]; };

/* What the sample looks like. */
struct text_sight {
    size_t prefix;               /* number of bytes that all strings begin with */
    size_t min, max;             /* lengths of the shortest and the longest */
};

static size_t text_length(struct text t)
{
    return strnlen(t.s, t.n);
}

static struct text_sight text_look(const struct text *sample, size_t n)
{
    size_t first = text_length(sample[0]);
    struct text_sight sight = {first, first, first};
    for (size_t i = 1; i < n; i++) {
        size_t length = text_length(sample[i]), same = 0;
        while (same < sight.prefix && same < length && sample[i].s[same] == sample[0].s[same])
            same++;
        sight.prefix = same;
        sight.min = length < sight.min ? length : sight.min;
        sight.max = length > sight.max ? length : sight.max;
    }
    return sight;
}

static bool is_digit(unsigned c)
{
    return c - '0' < 10;
}

/* If at least `from` different digits were seen, adds all ten: a sample from the beginning of a file has
 * only the first lane and tile. */
static void set_add_digits(struct byte_set *set, int from)
{
    int n = 0;
    for (unsigned c = '0'; c <= '9'; c++)
        n += set->has[c];
    if (n >= from)
        memset(set->has + '0', true, 10);
}

static double set_bits(const struct byte_set *set)
{
    int n = 0;
    for (unsigned c = 0; c < 256; c++)
        n += set->has[c];
    return log2(n);
}

/* The bytes at one place of the strings, none of which is shorter. */
static struct byte_set set_at(const struct text *sample, size_t n, size_t at, int digits_from)
{
    struct byte_set set = {{false}};
    for (size_t i = 0; i < n; i++)
        set.has[(uint8_t)sample[i].s[at]] = true;
    set_add_digits(&set, digits_from);
    return set;
}

/* The bytes at all places from `from` on, and the end. */
static struct byte_set set_behind(const struct text *sample, size_t n, size_t from)
{
    struct byte_set set = {{true}};
    for (size_t i = 0; i < n; i++)
        for (size_t at = from, length = text_length(sample[i]); at < length; at++)
            set.has[(uint8_t)sample[i].s[at]] = true;
    set_add_digits(&set, 2);
    return set;
}

/* Writes the codes of one table. Returns how many symbols it has. */
static unsigned table_fill(uint16_t table[256], const struct byte_set *set)
{
    unsigned n = 0;
    for (unsigned c = 0; c < 256; c++) {
        if (set->has[c])
            table[c] = (uint16_t)(n++ << 2 | (c == 0 ? ENDED : GO_ON));
        else
            table[c] = (uint16_t)(n == 0 ? BELOW : (n - 1) << 2 | ABOVE);
    }
    return n;
}

/* Adds a column that a table of n symbols serves. Returns false if the range is used up. */
static bool column_add(struct text_code *code, size_t table, unsigned n)
{
    uint64_t room = code->n_columns ? code->weight[code->n_columns - 1] : code->range;
    if (code->n_columns == TEXT_COLUMNS || room / n == 0)
        return false;
    code->table[code->n_columns] = (uint8_t)table;
    code->weight[code->n_columns++] = room / n;
    return true;
}

static void columns_add_shared(struct text_code *code, const struct byte_set *set)
{
    size_t table = code->n_columns;
    if (table == TEXT_COLUMNS)
        return;
    unsigned n = table_fill(code->code[table], set);
    while (column_add(code, table, n))
        ;
}

void text_code_init(struct text_code *code, uint64_t range)
{
    struct byte_set all;
    memset(all.has, true, sizeof all.has);
    memset(code, 0, sizeof *code);
    code->range = range;
    columns_add_shared(code, &all);
}

/* Where the columns begin: as far in front of `prefix` as there are bits for the digits there. These
 * digits are the same in the whole sample, but a later part of the file has another tile or lane. */
static size_t columns_start(const char *s, size_t prefix, double bits)
{
    size_t start = prefix;
    for (size_t at = prefix; at > 0 && prefix - at < TEXT_COLUMNS / 2; at--) {
        if (!is_digit((uint8_t)s[at - 1]))
            continue;
        bits += log2(10);
        if (bits > SPEND_BITS)
            break;
        start = at - 1;
    }
    return start > TEXT_PREFIX ? TEXT_PREFIX : start;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bits that the columns behind the prefix take if all strings have one length. */
static double fixed_bits(const struct text *sample, size_t n, struct text_sight sight, int digits_from)
{
    double bits = 0;
    for (size_t at = sight.prefix; at < least(sight.max, sight.prefix + TEXT_COLUMNS); at++) {
        struct byte_set set = set_at(sample, n, at, digits_from);
        bits += set_bits(&set);
    }
    return bits;
}

/* Adds columns for the places [from, to), each with a table of its own. */
static void columns_add_own(struct text_code *code, const struct text *sample, size_t n,
                            size_t from, size_t to, int digits_from)
{
    for (size_t at = from; at < to && code->n_columns < TEXT_COLUMNS; at++) {
        struct byte_set set = set_at(sample, n, at, digits_from);
        unsigned symbols = table_fill(code->code[code->n_columns], &set);
        if (!column_add(code, code->n_columns, symbols))
            return;
    }
}

void text_code_learn(struct text_code *code, uint64_t range, const struct text *sample, size_t n)
{
    text_code_init(code, range);
    if (n == 0)
        return;
    struct text_sight sight = text_look(sample, n);
    if (sight.prefix == sight.max)
        return;                  /* all are the same: the next string may be anything */

    bool fixed = sight.min == sight.max;
    struct byte_set rest = {{false}};
    int digits_from = 1;
    double bits;
    if (fixed) {
        bits = fixed_bits(sample, n, sight, digits_from);
        if (bits > SPEND_BITS)
            bits = fixed_bits(sample, n, sight, digits_from = 2);
    } else {
        rest = set_behind(sample, n, sight.prefix);
        bits = set_bits(&rest) * (double)(sight.max - sight.prefix);
    }
    size_t start = columns_start(sample[0].s, sight.prefix, bits);
    code->n_columns = 0;
    code->n_prefix = start;
    memcpy(code->prefix, sample[0].s, start);
    columns_add_own(code, sample, n, start, sight.prefix, 1);
    if (fixed)
        columns_add_own(code, sample, n, sight.prefix, sight.max, digits_from);
    else
        columns_add_shared(code, &rest);
}

/* Compares the start of t with the prefix: < 0, 0 if t begins with it, > 0. */
static int prefix_compare(const struct text_code *code, struct text t)
{
    if (t.n >= code->n_prefix)
        return memcmp(t.s, code->prefix, code->n_prefix);
    int order = memcmp(t.s, code->prefix, t.n);
    return order ? order : -1;
}

/* The key as far as the columns go whose weight is above `least`. */
static inline uint64_t code_key(const struct text_code *code, struct text t, uint64_t least, uint64_t *room)
{
    *room = 1;
    int order = prefix_compare(code, t);
    if (order)
        return order < 0 ? 0 : code->range - 1;
    uint64_t key = 0, weight = code->range;
    size_t at = code->n_prefix;
    for (size_t i = 0; i < code->n_columns && weight > least; i++, at++) {
        unsigned symbol = code->code[code->table[i]][at < t.n ? (uint8_t)t.s[at] : 0];
        weight = code->weight[i];
        key += (symbol >> 2) * weight;
        if ((symbol & 3) == GO_ON)
            continue;
        if ((symbol & 3) == ENDED)
            *room = weight;
        return (symbol & 3) == ABOVE ? key + weight - 1 : key;
    }
    if (at < t.n && t.s[at])
        return key + weight - 1;
    *room = weight;
    return key;
}

uint64_t text_code_key(const struct text_code *code, struct text t, uint64_t *room)
{
    return code_key(code, t, 0, room);
}

uint64_t text_code_key_top(const struct text_code *code, struct text t, unsigned bits)
{
    uint64_t room;
    return code_key(code, t, bits < 64 ? UINT64_MAX >> bits : 0, &room);
}

/* ---- words ---- */

/* Bytes shared with a word count up to this many. More would cost bits, and no identifier is that long. */
enum { WORD_LONGEST = 255 };

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int text_compare(const void *a, const void *b)
{
    const struct text *x = a, *y = b;
    size_t m = text_length(*x), n = text_length(*y);
    int order = memcmp(x->s, y->s, least(m, n));
    return order ? order : (m > n) - (m < n);
}

/* Sorts the texts and keeps one of each. Returns how many are left. */
static size_t texts_unique(struct text *texts, size_t n)
{
    size_t kept = 0;
    qsort(texts, n, sizeof *texts, text_compare);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || text_compare(&texts[i], &texts[kept - 1]))
            texts[kept++] = texts[i];
    return kept;
}

/* The bytes that other strings may have. A few words do not tell, except that words in which all four
 * bases occur and no letters but these and N are barcodes. */
static struct byte_set words_alphabet(const struct text *words, size_t n)
{
    struct byte_set set = set_behind(words, n, 0);
    bool bases = set.has['A'] && set.has['C'] && set.has['G'] && set.has['T'];
    for (unsigned c = 0; c < 256; c++)
        bases = bases && !(set.has[c] && ((c >= 'A' && c <= 'Z' && !strchr("ACGTN", (int)c)) || c >= 'a'));
    if (!bases)
        memset(set.has, true, sizeof set.has);
    return set;
}

/* Copies the words: the pointers, and behind them the bytes. */
static char **words_copy(const struct text *words, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += text_length(words[i]) + 1;
    char **copy = malloc(n * sizeof *copy + size);
    if (!copy)
        return NULL;
    char *to = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        size_t length = text_length(words[i]);
        copy[i] = memcpy(to, words[i].s, length);
        to[length] = 0;
        to += length + 1;
    }
    return copy;
}

static int words_learn(struct word_code *code, uint64_t range, const struct text *words, size_t n)
{
    char **copy = words_copy(words, n);
    if (!copy)
        return -1;
    word_code_free(code);
    code->words = copy;
    code->n_words = n;
    for (size_t i = 0; i < n; i++)
        code->longest = most(code->longest, text_length(words[i]));
    code->longest = least(code->longest, WORD_LONGEST);
    code->slot = range / (2 * n + 1);
    code->step = code->slot / (2 * code->longest + 1);
    struct byte_set alphabet = words_alphabet(words, n);
    code->rest.range = code->step;
    columns_add_shared(&code->rest, &alphabet);
    return 1;
}

int word_code_learn(struct word_code *code, uint64_t range, const struct text *sample, size_t n, size_t most_words)
{
    if (n == 0)
        return 0;
    struct text *words = malloc(n * sizeof *words);
    if (!words)
        return -1;
    memcpy(words, sample, n * sizeof *words);
    size_t n_words = texts_unique(words, n);
    int learned = n_words <= most_words ? words_learn(code, range, words, n_words) : 0;
    free(words);
    return learned;
}

void word_code_free(struct word_code *code)
{
    free(code->words);
    memset(code, 0, sizeof *code);
}

static inline uint8_t text_at(struct text t, size_t at)
{
    return at < t.n ? (uint8_t)t.s[at] : 0;
}

/* Binary search. `below` is the number of bytes that t shares with the word below begin, `above` the
 * number that it shares with the word at end. With all words between begin and end it shares at least the
 * smaller of the two.
 *
 * Take the strings of one gap in ascending order. The number of bytes shared with the word below the gap
 * falls, as far as to the number that the two words share. After that the number shared with the word
 * above rises from there. So at least one of them is always that number, and their difference above -
 * below says what both are. The difference grows with the string, and strings with the same difference
 * have the shared bytes in common. */
uint64_t word_code_key(const struct word_code *code, struct text t, uint64_t *room)
{
    size_t begin = 0, end = code->n_words, below = 0, above = 0;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2, same = least(below, above);
        const uint8_t *word = (const uint8_t *)code->words[middle];
        while (word[same] && word[same] == text_at(t, same))
            same++;
        if (word[same] == text_at(t, same)) {
            *room = code->slot;
            return (2 * middle + 1) * code->slot;
        }
        if (word[same] < text_at(t, same)) {
            begin = middle + 1;
            below = same;
        } else {
            end = middle;
            above = same;
        }
    }
    below = least(below, code->longest);
    above = least(above, code->longest);
    size_t left = most(below, above);
    uint64_t key = 2 * begin * code->slot + (code->longest + above - below) * code->step;
    return key + text_code_key(&code->rest, (struct text){t.s + left, t.n - left}, room);
}
