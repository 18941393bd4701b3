/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/plain_header.h"
#include "base/ascii.h"
#include "base/byte_buffer.h"
#include "base/byte_hash.h"
#include "base/endian_io.h"

/* ---- lines ---- */

/* A line of the text; n without its newline. */
struct header_line {
    const char *p;
    size_t n;
};

/* The line at *at, which moves past it. False: no line with a newline is left. */
static bool next_line(const char *text, size_t n, size_t *at, struct header_line *line)
{
    const char *newline = *at < n ? memchr(text + *at, '\n', n - *at) : NULL;
    if (!newline)
        return false;
    *line = (struct header_line){text + *at, (size_t)(newline - text) - *at};
    *at += line->n + 1;
    return true;
}

static bool is_type(const struct header_line *line, const char *type)
{
    return line->n >= 3 && memcmp(line->p, type, 3) == 0 && (line->n == 3 || line->p[3] == '\t');
}

/* ---- @SQ ---- */

/* A reference: its name in the text, and its length. */
struct reference {
    const char *name;
    size_t n;
    uint32_t length;
};

/* SAMv1 section 1.2.1. */
static bool name_fits(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_letter(name[i]) && !ascii_is_digit(name[i]) && !memchr("!#$%&+./:;?@^_|~-", name[i], 17)
            && (i == 0 || (name[i] != '*' && name[i] != '=')))
            return false;
    return n > 0;
}

static bool read_length(const char *p, size_t n, uint32_t *length)
{
    enum { DIGITS_MOST = 10 };
    uint64_t value = 0;
    if (n == 0 || n > DIGITS_MOST || *p == '0')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!ascii_is_digit(p[i]))
            return false;
        value = 10 * value + (uint64_t)(p[i] - '0');
    }
    *length = (uint32_t)value;
    return value <= INT32_MAX;
}

/* Takes a field of n bytes, TAG:VALUE. */
static bool take_field(struct reference *r, const char *field, size_t n)
{
    if (n < 4 || !ascii_is_letter(field[0]) || (!ascii_is_letter(field[1]) && !ascii_is_digit(field[1]))
        || field[2] != ':')
        return false;
    if (memcmp(field, "SN", 2) == 0) {
        r->name = field + 3;
        r->n = n - 3;
        return name_fits(r->name, r->n);
    }
    if (memcmp(field, "LN", 2) == 0)
        return read_length(field + 3, n - 3, &r->length);
    return memcmp(field, "AN", 2) != 0;
}

static bool read_reference(const struct header_line *line, struct reference *r)
{
    enum { FIELDS_MOST = 12 };
    const char *fields[FIELDS_MOST], *p = line->p + 3, *end = line->p + line->n;
    size_t n = 0;
    *r = (struct reference){NULL, 0, 0};
    while (p < end) {
        const char *field = p + 1, *tab = memchr(field, '\t', (size_t)(end - field));
        p = tab ? tab : end;
        if (n == FIELDS_MOST || !take_field(r, field, (size_t)(p - field)))
            return false;
        for (size_t i = 0; i < n; i++)
            if (memcmp(fields[i], field, 2) == 0)
                return false;
        fields[n++] = field;
    }
    return r->name && r->length;
}

/* ---- all references ---- */

static int set_reference(sam_hdr_t *sam, int32_t i, const struct reference *r)
{
    char *name = sam->target_name[i] = malloc(r->n + 1);
    if (!name)
        return -1;
    memcpy(name, r->name, r->n);
    name[r->n] = '\0';
    sam->target_len[i] = r->length;
    return 0;
}

/* Returns whether the next entry of BAM's list of references is this one: size of the name with its NUL, name,
 * length. */
static bool take_entry(const uint8_t **p, const uint8_t *end, const struct reference *r)
{
    if ((size_t)(end - *p) < 8 + r->n + 1 || load_le32(*p) != r->n + 1 || memcmp(*p + 4, r->name, r->n) != 0
        || (*p)[4 + r->n] || load_le32(*p + 4 + r->n + 1) != r->length)
        return false;
    *p += 8 + r->n + 1;
    return true;
}

/* Returns whether all references have different names. The hash table holds their numbers + 1; a name is in the first
 * free slot from its hash on. */
static bool names_differ(const sam_hdr_t *sam)
{
    size_t size = 4;
    while (size < (size_t)sam->n_targets + (size_t)sam->n_targets / 2)
        size *= 2;
    uint32_t *slots = calloc(size, sizeof *slots);
    bool differ = slots != NULL;
    for (int32_t i = 0; differ && i < sam->n_targets; i++) {
        const char *name = sam->target_name[i];
        size_t at = byte_hash((const uint8_t *)name, strlen(name), 0) & (size - 1);
        for (; slots[at] && differ; at = (at + 1) & (size - 1))
            differ = strcmp(sam->target_name[slots[at] - 1], name) != 0;
        slots[at] = (uint32_t)i + 1;
    }
    free(slots);
    return differ;
}

/* Takes the references of the text. They must be those in the n bytes of `dictionary` unless that is NULL. */
static bool take_references(sam_hdr_t *sam, const uint8_t *dictionary, size_t n)
{
    const uint8_t *entry = dictionary, *end = dictionary ? dictionary + n : NULL;
    struct header_line line;
    struct reference r;
    int32_t i = 0;
    for (size_t at = 0; next_line(sam->text, sam->l_text, &at, &line);) {
        if (!is_type(&line, "@SQ"))
            continue;
        if (!read_reference(&line, &r) || (dictionary && !take_entry(&entry, end, &r)) || set_reference(sam, i, &r) < 0)
            return false;
        i++;
    }
    return entry == end && names_differ(sam);
}

/* Counts the @SQ lines. -1: the text is not made of header lines, or @HD is not the first of them. */
static int64_t count_references(const char *text, size_t n)
{
    struct header_line line;
    size_t at = 0;
    int64_t found = 0;
    if (memchr(text, '\0', n) || memchr(text, '\r', n))
        return -1;
    while (next_line(text, n, &at, &line)) {
        if (line.n < 3 || line.p[0] != '@' || (line.p != text && is_type(&line, "@HD")))
            return -1;
        found += is_type(&line, "@SQ");
    }
    return at == n && found <= INT32_MAX ? found : -1;
}

bool plain_header_reference(const sam_hdr_t *sam, size_t *at, const char **line, size_t *n)
{
    struct header_line next;
    while (next_line(sam->text, sam->l_text, at, &next))
        if (is_type(&next, "@SQ")) {
            *line = next.p;
            *n = next.n;
            return true;
        }
    return false;
}

/* ---- the other lines ---- */

sam_hdr_t *plain_header_lines(const sam_hdr_t *sam)
{
    struct byte_buffer lines = {NULL, 0, 0};
    struct header_line line;
    for (size_t at = 0; next_line(sam->text, sam->l_text, &at, &line);) {
        if (is_type(&line, "@SQ"))
            continue;
        if (byte_buffer_reserve(&lines, lines.n + line.n + 1) < 0) {
            free(lines.p);
            return NULL;
        }
        memcpy(lines.p + lines.n, line.p, line.n + 1);
        lines.n += line.n + 1;
    }
    sam_hdr_t *parsed = lines.n ? sam_hdr_parse(lines.n, (const char *)lines.p) : sam_hdr_init();
    free(lines.p);
    return parsed;
}

/* Size of the @HD line with its newline. 0: there is none. */
static size_t hd_size(const char *text, size_t n)
{
    struct header_line line;
    size_t at = 0;
    return next_line(text, n, &at, &line) && is_type(&line, "@HD") ? at : 0;
}

/* The next line of the text, from `at` on, that is not @SQ. *end: where the line after it begins. */
static bool next_other(const sam_hdr_t *sam, size_t at, struct header_line *line, size_t *end)
{
    while (next_line(sam->text, sam->l_text, &at, line)) {
        *end = at;
        if (!is_type(line, "@SQ"))
            return true;
    }
    return false;
}

/* Appends bytes of the text, from *at to end. */
static void copy_to(struct byte_buffer *to, const sam_hdr_t *sam, size_t *at, size_t end)
{
    if (end > *at)
        memcpy(to->p + to->n, sam->text + *at, end - *at);
    to->n += end - *at;
    *at = end;
}

static void append_line(struct byte_buffer *to, const struct header_line *line)
{
    memcpy(to->p + to->n, line->p, line->n + 1);
    to->n += line->n + 1;
}

/* Builds the header's text from its own lines and those at p[n]. htslib adds a line after the last one of its type, or
 * at the end. False: other lines of the text are missing or in another order. */
static bool join_lines(struct byte_buffer *to, const sam_hdr_t *sam, const char *p, size_t n)
{
    struct header_line line, next, last = {"", 0};
    size_t at = hd_size(sam->text, sam->l_text), from = hd_size(p, n), end = 0;
    memcpy(to->p, p, to->n = from);
    for (; next_line(p, n, &from, &line); last = line) {
        bool more = next_other(sam, at, &next, &end);
        if (more && next.n == line.n && memcmp(next.p, line.p, line.n) == 0) {
            copy_to(to, sam, &at, end);
            continue;
        }
        bool follows = last.n >= 3 && memcmp(last.p, line.p, 3) == 0;
        if (more && !follows)
            return false;
        if (!follows)
            copy_to(to, sam, &at, sam->l_text);
        append_line(to, &line);
    }
    if (next_other(sam, at, &next, &end))
        return false;
    copy_to(to, sam, &at, sam->l_text);
    return true;
}

const char *plain_header_text(sam_hdr_t *sam, size_t *n)
{
    bool empty = !sam->hrecs && !sam->text;
    const char *text = empty ? NULL : sam_hdr_str(sam);
    *n = empty ? 0 : sam_hdr_length(sam);
    return text || *n ? text : "";
}

int plain_header_put(sam_hdr_t *sam, sam_hdr_t *lines)
{
    size_t n;
    const char *text = plain_header_text(lines, &n);
    if (!text)
        return -1;
    struct byte_buffer to = {malloc(sam->l_text + n + 1), 0, 0};
    if (!to.p)
        return -1;
    if (!join_lines(&to, sam, text, n)) {
        free(to.p);
        return 1;
    }
    to.p[to.n] = '\0';
    free(sam->text);
    sam->text = (char *)to.p;
    sam->l_text = to.n;
    return 0;
}

/* ---- the header ---- */

/* Returns whether htslib would write all lines except @SQ as they are. */
static bool other_lines_fit(const sam_hdr_t *sam)
{
    sam_hdr_t *lines = plain_header_lines(sam);
    size_t n = 0, from = 0, at = 0, end = 0;
    const char *text = lines ? plain_header_text(lines, &n) : NULL;
    struct header_line line, next;
    bool fit = text != NULL;
    while (fit && next_line(text, n, &from, &line)) {
        fit = next_other(sam, at, &next, &end) && next.n == line.n && memcmp(next.p, line.p, line.n) == 0;
        at = end;
    }
    fit = fit && from == n && !next_other(sam, at, &next, &end);
    sam_hdr_destroy(lines);
    return fit;
}

static bool fill(sam_hdr_t *sam, const uint8_t *text, size_t n_text, int32_t n_ref, const uint8_t *dictionary, size_t n)
{
    sam->text = malloc(n_text + 1);
    sam->target_len = calloc((size_t)n_ref + 1, sizeof *sam->target_len);
    sam->target_name = calloc((size_t)n_ref + 1, sizeof *sam->target_name);
    sam->n_targets = sam->target_name ? n_ref : 0;
    if (!sam->text || !sam->target_len || !sam->target_name)
        return false;
    if (n_text)
        memcpy(sam->text, text, n_text);
    sam->text[n_text] = '\0';
    sam->l_text = n_text;
    return take_references(sam, dictionary, n) && other_lines_fit(sam);
}

static sam_hdr_t *make(const uint8_t *text, size_t n_text, int64_t n_ref, const uint8_t *dictionary, size_t n)
{
    sam_hdr_t *sam = n_ref >= 0 ? sam_hdr_init() : NULL;
    if (!sam || fill(sam, text, n_text, (int32_t)n_ref, dictionary, n))
        return sam;
    sam_hdr_destroy(sam);
    return NULL;
}

sam_hdr_t *plain_header_of_text(const uint8_t *text, size_t n)
{
    static const uint8_t none[1];
    text = text ? text : none;
    return make(text, n, count_references((const char *)text, n), NULL, 0);
}

sam_hdr_t *plain_header_of_bam(const uint8_t *text, size_t n_text, uint32_t n_ref, const uint8_t *dictionary, size_t n)
{
    int64_t found = count_references((const char *)text, n_text);
    return found == n_ref ? make(text, n_text, found, dictionary, n) : NULL;
}
