/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "bam/header_text.h"
#include "base/ascii.h"

enum { LINE_MIN = 4 };           /* "@XY" and a tab */

static const char *line_end(const char *p, const char *end)
{
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    return newline ? newline : end;
}

/* Size without a carriage return before the newline; the last line has no newline at `end`. */
static size_t line_size(const char *p, const char *stop, const char *end)
{
    return (size_t)(stop - p) - (stop < end && stop > p && stop[-1] == '\r');
}

static bool is_bare(const char *line, size_t n)
{
    return n == 3 && memcmp(line, "@CO", 3) == 0;
}

/* As strtoll() in base 10, in the n bytes of a value. */
static int64_t length_of(const char *p, size_t n)
{
    const char *end = p + n;
    uint64_t v = 0;
    while (p < end && (*p == ' ' || *p == '\v' || *p == '\f' || *p == '\r'))
        p++;
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && ascii_is_digit(*p); p++)
        v = v > INT64_MAX / 10 - 1 ? INT64_MAX : 10 * v + (uint64_t)(*p - '0');
    return negative ? -(int64_t)v : (int64_t)v;
}

/* Returns the fault in the lengths (LN) of an @SQ line, or NULL. A line without LN is reported by htslib. Adds the
 * number of repeated lengths to *n_repeated. */
static const char *lengths_fault(const char *line, size_t n, size_t *n_repeated)
{
    const char *end = line + n, *tab = memchr(line, '\t', n);
    int64_t length = 0;
    while (tab) {
        const char *field = tab + 1, *next = memchr(field, '\t', (size_t)(end - field));
        size_t size = (size_t)((next ? next : end) - field);
        if (size >= 3 && memcmp(field, "LN:", 3) == 0) {
            int64_t v = length_of(field + 3, size - 3);
            if (v <= 0)
                return "has a length (LN) that is not a number above 0";
            if (length && v != length)
                return "has two lengths (LN)";
            *n_repeated += length != 0;
            length = v;
        }
        tab = next;
    }
    return NULL;
}

static bool is_header_line(const char *line)
{
    static const char types[][4] = {"@HD", "@SQ", "@RG", "@PG", "@CO"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (memcmp(line, types[i], 3) == 0)
            return true;
    return false;
}

static const char *line_fault(const char *line, size_t n, bool is_sam, size_t *n_repeated)
{
    if (n == 0 || line[0] != '@' || (is_sam && is_bare(line, n)))
        return NULL;
    if (n < LINE_MIN)
        return "is too short for a header line";
    if (is_sam && (!is_header_line(line) || line[3] != '\t'))
        return "does not begin with @HD, @SQ, @RG, @PG or @CO, and a tab";
    return memcmp(line, "@SQ", 3) == 0 ? lengths_fault(line, n, n_repeated) : NULL;
}

struct header_text header_text_check(const char *text, size_t size, bool is_sam)
{
    struct header_text found = {.fault = NULL};
    const char *end = text + size, *stop;
    for (const char *p = text; p < end; p = stop + 1) {
        stop = line_end(p, end);
        found.line = p;
        if (!is_sam && end - stop <= 1 && stop - p < LINE_MIN - 1)
            break;
        found.size = is_sam ? line_size(p, stop, end) : (size_t)(stop - p);
        found.number++;
        found.n_to_normalise += is_bare(p, found.size) || (is_sam && memchr(p, '\0', found.size));
        if ((found.fault = line_fault(p, found.size, is_sam, &found.n_repeated)))
            break;
    }
    return found;
}

bool header_text_is_bam(const char *text, size_t size)
{
    const char *end = text + strnlen(text, size);
    for (const char *p = text; p < end; p = line_end(p, end) + 1)
        if (*p != '@')
            return false;
    return true;
}

/* htslib, which parses the text again, does not report its faults. */
static bool is_parsed(const char *text, size_t size)
{
    int verbose = hts_verbose;
    hts_verbose = HTS_LOG_OFF;
    sam_hdr_t *sam = sam_hdr_parse(size, text);
    bool parsed = sam && sam_hdr_count_lines(sam, "SQ") > 0;
    hts_verbose = verbose;
    sam_hdr_destroy(sam);
    return parsed;
}

bool header_text_is_sam(const char *text, size_t size)
{
    struct header_text found = header_text_check(text, size, true);
    if (found.fault || size < LINE_MIN || text[LINE_MIN - 1] != '\t' || text[size - 1] != '\n'
        || memchr(text, '\0', size))            /* htslib recognises SAM by the first bytes */
        return false;
    char *normalised = malloc(size + found.n_to_normalise);
    bool is_sam = normalised && is_parsed(normalised, header_text_normalise(normalised, text, size));
    free(normalised);
    return is_sam;
}

size_t header_text_normalise(char *to, const char *text, size_t size)
{
    char *out = to;
    const char *end = text + size, *stop;
    for (const char *p = text; p < end; p = stop + 1) {
        stop = line_end(p, end);
        size_t whole = line_size(p, stop, end), n = strnlen(p, whole);
        memcpy(out, p, n);
        out += n;
        if (is_bare(p, whole))
            *out++ = '\t';
        if (stop < end)
            *out++ = '\n';
    }
    return (size_t)(out - to);
}
