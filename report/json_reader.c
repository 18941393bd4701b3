/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/json_reader.h"

struct json_reader {
    const char *p, *end;
    char *text;                  /* of the string that was read last; as large as the input */
    char path[JSON_PATH];
    size_t path_size;
    int depth;
    json_value_fn *value;
    void *arg;
};

static int read_value(struct json_reader *j);

static void skip_space(struct json_reader *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r'))
        j->p++;
}

/* Takes the character if it is the next one. */
static int take(struct json_reader *j, char c)
{
    if (j->p == j->end || *j->p != c)
        return 0;
    j->p++;
    return 1;
}

static int take_word(struct json_reader *j, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0)
        return -1;
    j->p += n;
    return 0;
}

/* ----------------------------------------------------------------- strings */

static int hex_digits(struct json_reader *j, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, j->p++) {
        if (j->p == j->end)
            return -1;
        char c = *j->p;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0)
            return -1;
        *code = *code * 16 + (unsigned)digit;
    }
    return 0;
}

/* A pair of surrogates stands for one character; a single one for none. */
static int read_code(struct json_reader *j, unsigned *code)
{
    unsigned low;
    if (hex_digits(j, code) < 0)
        return -1;
    if (*code < 0xd800 || *code > 0xdfff)
        return 0;
    if (*code > 0xdbff || take_word(j, "\\u") < 0 || hex_digits(j, &low) < 0 || low < 0xdc00 || low > 0xdfff)
        return -1;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return 0;
}

/* At most as many bytes as the escape had. */
static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        if (code < 0x10000) {
            *to++ = (char)(0xe0 | code >> 12);
        } else {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static int read_escape(struct json_reader *j, char **to)
{
    static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    unsigned code;
    if (j->p == j->end)
        return -1;
    char c = *j->p++;
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        *(*to)++ = means[known - from];
        return 0;
    }
    if (c != 'u' || read_code(j, &code) < 0)
        return -1;
    *to = put_utf8(*to, code);
    return 0;
}

static int read_text(struct json_reader *j)
{
    char *to = j->text;
    if (!take(j, '"'))
        return -1;
    while (j->p < j->end && *j->p != '"') {
        if ((unsigned char)*j->p < ' ')
            return -1;
        if (*j->p != '\\')
            *to++ = *j->p++;
        else if (j->p++, read_escape(j, &to) < 0)
            return -1;
    }
    *to = 0;
    return take(j, '"') ? 0 : -1;
}

/* ----------------------------------------------------------------- numbers */

/* Returns how many there are. */
static int digits(struct json_reader *j)
{
    int n = 0;
    for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
        n += n < 2;
    return n;
}

static int read_number(struct json_reader *j, double *number)
{
    enum { LONGEST = 64 };
    char text[LONGEST];
    const char *begin = j->p;
    take(j, '-');
    int zero = j->p < j->end && *j->p == '0', n = digits(j);
    if (n == 0 || (zero && n > 1) || (take(j, '.') && digits(j) == 0))
        return -1;
    if (take(j, 'e') || take(j, 'E')) {
        if (!take(j, '-'))
            take(j, '+');
        if (digits(j) == 0)
            return -1;
    }
    size_t size = (size_t)(j->p - begin);
    if (size >= LONGEST)
        return -1;
    memcpy(text, begin, size);
    text[size] = 0;
    *number = strtod(text, NULL);
    return isfinite(*number) ? 0 : -1;
}

/* ------------------------------------------------------------------ values */

/* Adds a key to the path. Returns the size of the path before; SIZE_MAX: it does not fit. */
static size_t enter(struct json_reader *j, const char *key)
{
    size_t before = j->path_size, room = sizeof j->path - before;
    int n = snprintf(j->path + before, room, "%s%s", before ? "/" : "", key);
    if (n < 0 || (size_t)n >= room)
        return SIZE_MAX;
    j->path_size += (size_t)n;
    return before;
}

static int read_member(struct json_reader *j, const char *key)
{
    size_t before = enter(j, key);
    if (before == SIZE_MAX || read_value(j) < 0)
        return -1;
    j->path_size = before;
    j->path[before] = 0;
    return 0;
}

static int read_object(struct json_reader *j)
{
    skip_space(j);
    if (take(j, '}'))
        return 0;
    do {
        skip_space(j);
        if (read_text(j) < 0)
            return -1;
        skip_space(j);
        if (!take(j, ':') || read_member(j, j->text) < 0)
            return -1;
    } while (take(j, ','));
    return take(j, '}') ? 0 : -1;
}

static int read_array(struct json_reader *j)
{
    char key[24];
    unsigned long i = 0;
    skip_space(j);
    if (take(j, ']'))
        return 0;
    do {
        snprintf(key, sizeof key, "%lu", i++);
        if (read_member(j, key) < 0)
            return -1;
    } while (take(j, ','));
    return take(j, ']') ? 0 : -1;
}

static int read_scalar(struct json_reader *j)
{
    struct json_value v = {.path = j->path};
    char c = j->p < j->end ? *j->p : 0;
    int result = -1;
    if (c == '"')
        v.kind = JSON_TEXT, result = read_text(j), v.text = j->text;
    else if (c == 'n')
        v.kind = JSON_NULL, result = take_word(j, "null");
    else if (c == 't')
        v.kind = JSON_TRUE, result = take_word(j, "true");
    else if (c == 'f')
        v.kind = JSON_FALSE, result = take_word(j, "false");
    else
        v.kind = JSON_NUMBER, result = read_number(j, &v.number);
    if (result == 0)
        j->value(j->arg, &v);
    return result;
}

/* Takes the space around the value, too. */
static int read_value(struct json_reader *j)
{
    int result = -1;
    skip_space(j);
    if (j->p == j->end || ((*j->p == '{' || *j->p == '[') && j->depth == JSON_DEPTH))
        return -1;
    j->depth++;
    if (take(j, '{'))
        result = read_object(j);
    else if (take(j, '['))
        result = read_array(j);
    else
        result = read_scalar(j);
    j->depth--;
    skip_space(j);
    return result;
}

int json_reader_run(const char *json, size_t size, json_value_fn *value, void *arg)
{
    char *text = malloc(size + 1);
    struct json_reader j = {.p = json, .end = json + size, .text = text, .value = value, .arg = arg};
    int result = text && read_value(&j) == 0 && j.p == j.end ? 0 : -1;
    free(text);
    return result;
}
