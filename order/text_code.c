/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "order/key_room.h"
#include "order/name_natural.h"
#include "order/text_code.h"

/* Bits of the range left for the values that the caller adds after the string: read 1 or 2 and so on. 64 bits hold 18
 * digits besides them. */
#define REST_BITS 4.2
/* Bits for the numbers that vary, before numbers of the prefix get any: nine digits for a single one. */
#define LEAST_BITS 29.0
#define LOG2_10 3.3219280948873623

static const uint64_t power10[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000,
    100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000,
    10000000000000000, 100000000000000000, 1000000000000000000,
};
_Static_assert(sizeof power10 / sizeof *power10 == NATURAL_DIGITS + 1, "one per number of digits");

/* The tokens of one column. */
struct tokens {
    bool has[256];               /* bytes; 0 is the end */
    unsigned digits;             /* digits of the longest number; 0: there were no numbers */
};

/* Properties of the sample. */
struct text_probe {
    bool natural;
    size_t start;                /* where the columns begin in the strings */
    size_t min, max;             /* columns of the shortest string and of the longest, end included */
    struct tokens column[TEXT_COLUMNS];
};

static size_t text_length(struct text t)
{
    return strnlen(t.s, t.n);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- looking at the sample ---- */

/* Length of the common prefix of all strings. In natural order it is shortened so that no number is split. */
static size_t common_prefix(bool natural, const struct text *sample, size_t n)
{
    size_t prefix = least(text_length(sample[0]), TEXT_PREFIX);
    for (size_t i = 1; i < n; i++) {
        size_t same = 0;
        while (same < prefix && same < sample[i].n && sample[i].s[same] == sample[0].s[same])
            same++;
        prefix = same;
    }
    while (natural && prefix > 0 && natural_digit(sample[0].s[prefix - 1]))
        prefix--;
    return prefix;
}

static void probe_string(struct text_probe *probe, struct text t)
{
    size_t at = probe->start, length = text_length(t), i = 0;
    for (bool ended = false; i < TEXT_COLUMNS && !ended; i++) {
        struct tokens *tokens = &probe->column[i];
        ended = at == length;
        if (!ended && probe->natural && natural_digit(t.s[at])) {
            const char *s = t.s + at;
            unsigned digits;
            natural_number(&s, &digits);
            at = (size_t)(s - t.s);
            tokens->digits = (unsigned)least(most(tokens->digits, most(digits, 1)), NATURAL_DIGITS);
        } else {
            tokens->has[ended ? 0 : (uint8_t)t.s[at++]] = true;
        }
    }
    probe->min = least(probe->min, i);
    probe->max = most(probe->max, i);
}

/* Reads the columns that begin at start. */
static void probe_take(struct text_probe *probe, bool natural, const struct text *sample, size_t n, size_t start)
{
    memset(probe, 0, sizeof *probe);
    probe->natural = natural;
    probe->start = start;
    probe->min = TEXT_COLUMNS;
    for (size_t i = 0; i < n; i++)
        probe_string(probe, sample[i]);
    /* In the order of strcmp() a place where a digit was seen may have any digit, because a sample from the beginning
     * of a file has only the first lane and tile. */
    for (size_t i = 0; i < probe->max && !natural; i++)
        if (memchr(probe->column[i].has + '0', 1, 10))
            memset(probe->column[i].has + '0', true, 10);
}

/* Number of bytes that have symbols. */
static unsigned tokens_bytes(const struct tokens *tokens)
{
    unsigned n = 0;
    for (unsigned c = 0; c < 256; c++)
        n += tokens->has[c];
    return n;
}

static double tokens_bits(const struct tokens *tokens)
{
    unsigned bytes = tokens_bytes(tokens);
    double value = LOG2_10 * tokens->digits;
    return bytes ? log2(bytes + (tokens->digits ? tokens->digits + 1 : 0)) + value : value;
}

static double probe_bits(const struct text_probe *probe)
{
    double bits = 0;
    for (size_t i = 0; i < probe->max; i++)
        bits += tokens_bits(&probe->column[i]);
    return bits;
}

static double bits_to_spend(uint64_t range)
{
    return log2((double)range) - REST_BITS;
}

bool text_code_fits(bool natural, uint64_t range, const struct text *sample, size_t n)
{
    struct text_probe probe;
    probe_take(&probe, natural, sample, n, common_prefix(natural, sample, n));
    return probe_bits(&probe) <= bits_to_spend(range);
}

/* ---- columns ---- */

/* Adds a column for these tokens. Returns false if the range is used up. */
static bool column_add(struct text_code *code, const struct tokens *tokens)
{
    if (code->n_columns == TEXT_COLUMNS)
        return false;
    uint64_t room = code->n_columns ? code->column[code->n_columns - 1].weight : code->range;
    struct text_column *column = &code->column[code->n_columns];
    unsigned bytes = 0;
    for (unsigned c = 0; c < 256; c++) {
        column->code[c] = (uint16_t)(bytes << 1 | tokens->has[c]);
        bytes += tokens->has[c];
    }
    column->by_length = bytes > 0 || power10[tokens->digits] > room;
    column->numbers = tokens->digits == 0 ? 0 : column->by_length ? tokens->digits + 1 : power10[tokens->digits];
    column->weight = room / (bytes + column->numbers);
    code->n_columns += column->weight > 0;
    return column->weight > 0;
}

/* Adds columns for these tokens until the range is used up. */
static void columns_fill(struct text_code *code, const struct tokens *tokens)
{
    while (column_add(code, tokens))
        ;
}

void text_code_init(struct text_code *code, bool natural, uint64_t range)
{
    struct tokens any = {.digits = natural ? NATURAL_DIGITS : 0};
    memset(any.has, true, sizeof any.has);
    if (natural)
        memset(any.has + '0', false, 10);
    memset(code, 0, sizeof *code);
    code->natural = natural;
    code->range = range;
    columns_fill(code, &any);
}

/* ---- learning ---- */

/* Returns the number of columns that every string will have: all, if all strings of the sample have the same number.
 * Otherwise those before the first column that has neither only numbers or digits nor only one byte. */
static size_t columns_own(const struct text_probe *probe)
{
    size_t own = 0;
    for (; own < probe->max && probe->min < probe->max; own++) {
        const struct tokens *tokens = &probe->column[own];
        unsigned bytes = tokens_bytes(tokens);
        bool digits = bytes == 10 && memchr(tokens->has + '0', 0, 10) == NULL;
        if (tokens->digits ? bytes > 0 : bytes > 1 && !digits)
            return own;
    }
    return probe->max;
}

/* All tokens of the columns from `from` on. */
static struct tokens tokens_behind(const struct text_probe *probe, size_t from)
{
    struct tokens all = {.digits = 0};
    for (size_t i = from; i < probe->max; i++) {
        all.digits = (unsigned)most(all.digits, probe->column[i].digits);
        for (unsigned c = 0; c < 256; c++)
            all.has[c] |= probe->column[i].has[c];
    }
    return all;
}

/* Bits that strings like those of the sample will need. If they do not all have the same columns, any token may be
 * anywhere. */
static double bits_expected(const struct text_probe *probe)
{
    size_t own = columns_own(probe);
    struct tokens behind = tokens_behind(probe, own);
    double bits = own < probe->max ? tokens_bits(&behind) * (double)(probe->max - own) : 0;
    while (own-- > 0)
        bits += tokens_bits(&probe->column[own]);
    return bits;
}

/* Gives one more digit to each number in turn, the last number first, while there are bits, because files often begin
 * with the small numbers. Only natural order has numbers. Returns the bits that are left. */
static double numbers_widen(struct text_probe *probe, size_t first, double bits)
{
    for (size_t i = probe->max; i-- > first;) {
        unsigned *digits = &probe->column[i].digits;
        if (*digits == 0 || *digits == NATURAL_DIGITS || bits < LOG2_10)
            continue;
        ++*digits;
        bits -= LOG2_10;
    }
    return bits;
}

/* Returns where the columns begin: as far before the varying part as there are bits for the digits there. These digits
 * are the same in all of the sample, but a later part of the file has another tile, lane or run. */
static size_t columns_start(const struct text_probe *probe, const char *s, double bits)
{
    size_t start = probe->start;
    for (size_t at = start; at > 0 && probe->start - at < TEXT_COLUMNS / 2;) {
        size_t end = at--;
        if (!natural_digit(s[at]))
            continue;
        while (probe->natural && at > 0 && natural_digit(s[at - 1]))
            at--;
        bits -= LOG2_10 * (double)(end - at);
        if (bits < 0)
            break;
        start = at;
    }
    return start;
}

/* Decides how the bits are used, and moves the probe to where the columns begin. */
static void probe_spend(struct text_probe *probe, const struct text *sample, size_t n, double bits)
{
    size_t columns = probe->max;
    double left = bits - bits_expected(probe), before;
    do {
        before = left;
        left = numbers_widen(probe, 0, left);
    } while (left < before && bits - left < LEAST_BITS);
    probe_take(probe, probe->natural, sample, n, columns_start(probe, sample[0].s, left));
    left = bits - probe_bits(probe);
    do {
        before = left;
        left = numbers_widen(probe, probe->max - columns, left);
    } while (left < before);
}

void text_code_learn(struct text_code *code, bool natural, uint64_t range, const struct text *sample, size_t n)
{
    struct text_probe probe;
    text_code_init(code, natural, range);
    if (n == 0)
        return;
    probe_take(&probe, natural, sample, n, common_prefix(natural, sample, n));
    if (probe.max == 1)
        return;                  /* all are the same: the next string may be anything */
    probe_spend(&probe, sample, n, bits_to_spend(range));
    code->n_prefix = probe.start;
    memcpy(code->prefix, sample[0].s, probe.start);
    code->n_columns = 0;
    size_t own = columns_own(&probe);
    struct tokens behind = tokens_behind(&probe, own);
    for (size_t i = 0; i < own && column_add(code, &probe.column[i]); i++)
        ;
    if (own < probe.max)
        columns_fill(code, &behind);
}

/* ---- keys ---- */

/* Skips the prefix. Returns < 0 if t comes before all strings that begin with it; 0 if t begins with it, and *at is its
 * end; otherwise > 0. */
static inline int prefix_skip(const struct text_code *code, struct text t, size_t *at)
{
    *at = code->n_prefix;
    int order = memcmp(t.s, code->prefix, least(t.n, code->n_prefix));
    if (code->natural && (order || t.n < code->n_prefix)) {
        const char *rest = t.s;
        order = -name_natural_prefix(code->prefix, t.s, &rest);
        *at = (size_t)(rest - t.s);
        return order;
    }
    return order ? order : -(t.n < code->n_prefix);
}

#define INLINE static inline __attribute__((always_inline))

/* A token as a symbol of its column. */
struct symbol {
    uint64_t index;              /* without a symbol: number of symbols below the token */
    bool known;                  /* the token has a symbol */
    uint64_t value;              /* value of a number */
    unsigned digits;
};

/* Reads the number at *at and moves *at past it. */
INLINE struct symbol number_read(const struct text_column *column, const char *s, size_t *at)
{
    struct symbol number;
    const char *p = s + *at;
    number.value = natural_number(&p, &number.digits);
    *at = (size_t)(p - s);
    uint64_t index = column->by_length ? number.digits : number.value;
    number.known = number.digits <= NATURAL_DIGITS && index < column->numbers;
    number.index = (column->code['0'] >> 1) + (number.known ? index : column->numbers);
    return number;
}

/* Adds the value of a number after the symbol for its length, which has *weight keys. Returns the key. The value leaves
 * *weight >> *shift keys to the rest; if that is zero, *weight becomes 0. */
static uint64_t value_key(struct symbol number, uint64_t *weight, unsigned *shift)
{
    unsigned bits = key_bits(power10[number.digits] - 1);
    uint64_t room = *weight;
    *weight >>= bits;
    *shift += bits;
    return *weight ? number.value * *weight : key_nest(room, number.value << (64 - bits));
}

/* The key for the columns whose weight is above `enough`. natural: code->natural, as a constant. */
INLINE uint64_t code_key(const struct text_code *code, struct text t, bool natural, uint64_t enough, uint64_t *room)
{
    *room = 1;
    size_t at;
    int order = prefix_skip(code, t, &at);
    if (order)
        return order < 0 ? 0 : code->range - 1;
    uint64_t key = 0, weight = code->range;
    unsigned shift = 0;          /* bits of the weights used up by values */
    const struct text_column *end = code->column + code->n_columns;
    for (const struct text_column *c = code->column; c < end && weight > enough && c->weight >> shift > 0; c++) {
        uint8_t byte = at < t.n ? (uint8_t)t.s[at] : 0;
        weight = c->weight >> shift;
        if (natural && natural_digit((char)byte)) {
            struct symbol number = number_read(c, t.s, &at);
            if (!number.known)
                return number.index ? key + number.index * weight - 1 : key;
            key += number.index * weight;
            if (c->by_length)
                key += value_key(number, &weight, &shift);
            if (weight == 0)
                return key;
            continue;
        }
        uint64_t index = (c->code[byte] >> 1) + (natural && byte > '9' ? c->numbers : 0);
        if (!(c->code[byte] & 1))
            return index ? key + index * weight - 1 : key;
        key += index * weight;
        if (byte == 0) {
            *room = weight;
            return key;
        }
        at++;
    }
    if (at < t.n && t.s[at])
        return key + weight - 1;
    *room = weight;
    return key;
}

uint64_t text_code_key(const struct text_code *code, struct text t, uint64_t *room)
{
    return code->natural ? code_key(code, t, true, 0, room) : code_key(code, t, false, 0, room);
}

uint64_t text_code_key_top(const struct text_code *code, struct text t, unsigned bits)
{
    uint64_t room;
    return code_key(code, t, false, bits < 64 ? UINT64_MAX >> bits : 0, &room);
}

/* ---- words ---- */

/* At most this many bytes shared with a word are counted. More would cost bits, and no identifier is that long. */
enum { WORD_LONGEST = 255 };

static int by_text(const void *a, const void *b)
{
    const struct text *x = a, *y = b;
    size_t m = text_length(*x), n = text_length(*y);
    int order = memcmp(x->s, y->s, least(m, n));
    return order ? order : (m > n) - (m < n);
}

/* Returns the bytes that other strings may have: all, because a few words show too little. Barcodes are the exception:
 * words in which all four bases occur, and no letters but these and N. Other strings then have the bytes of these
 * words. */
static struct tokens words_alphabet(const struct text *words, size_t n)
{
    struct tokens tokens = {.has = {true}};
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0, length = text_length(words[i]); at < length; at++)
            tokens.has[(uint8_t)words[i].s[at]] = true;
    const bool *has = tokens.has;
    bool bases = has['A'] && has['C'] && has['G'] && has['T'];
    for (unsigned c = 0; c < 256; c++)
        bases = bases && !(has[c] && ((c >= 'A' && c <= 'Z' && !strchr("ACGTN", (int)c)) || c >= 'a'));
    if (!bases)
        memset(tokens.has, true, sizeof tokens.has);
    return tokens;
}

static int words_learn(struct word_code *code, uint64_t range, const struct text *words, size_t n)
{
    code->words = calloc(n, sizeof *code->words);
    for (size_t i = 0; code->words && i < n && (code->words[i] = strndup(words[i].s, words[i].n)); i++) {
        code->longest = least(most(code->longest, strlen(code->words[i])), WORD_LONGEST);
        code->n_words++;
    }
    if (code->n_words < n) {
        word_code_free(code);
        return -1;
    }
    code->slot = range / (2 * n + 1);
    code->step = code->slot / (2 * code->longest + 1);
    struct tokens alphabet = words_alphabet(words, n);
    code->rest.range = code->step;
    columns_fill(&code->rest, &alphabet);
    return 1;
}

int word_code_learn(struct word_code *code, uint64_t range, const struct text *sample, size_t n, size_t most_words)
{
    if (n == 0)
        return 0;
    struct text *words = malloc(n * sizeof *words);
    size_t n_words = 0;
    if (!words)
        return -1;
    memcpy(words, sample, n * sizeof *words);
    qsort(words, n, sizeof *words, by_text);
    for (size_t i = 0; i < n; i++)
        if (n_words == 0 || by_text(&words[i], &words[n_words - 1]))
            words[n_words++] = words[i];
    int learned = n_words <= most_words ? words_learn(code, range, words, n_words) : 0;
    free(words);
    return learned;
}

void word_code_free(struct word_code *code)
{
    for (size_t i = 0; i < code->n_words; i++)
        free(code->words[i]);
    free(code->words);
    memset(code, 0, sizeof *code);
}

static inline uint8_t text_at(struct text t, size_t at)
{
    return at < t.n ? (uint8_t)t.s[at] : 0;
}

/* Binary search. `below` is the number of bytes that t shares with the word below begin, `above` the number that it
 * shares with the word at end. t shares at least the smaller of the two with all words between begin and end.
 *
 * Take the strings of one gap in ascending order. The number of bytes shared with the word below the gap falls to the
 * number that the two words share. After that the number shared with the word above rises from there. So at least one
 * of the two numbers always equals what the two words share, and the difference above - below determines both. The
 * difference grows with the string, and strings with the same difference have the shared bytes in common. */
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
