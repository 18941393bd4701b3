/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "markdup/dup_counts.h"

/* The lines, in their order: the counts, each with its field, ... */
#define COUNTED(X) \
    X("READ", read) \
    X("WRITTEN", written) \
    X("EXCLUDED", excluded) \
    X("EXAMINED", examined) \
    X("PAIRED", paired) \
    X("SINGLE", single) \
    X("DUPLICATE PAIR", duplicate_pair) \
    X("DUPLICATE SINGLE", duplicate_single) \
    X("DUPLICATE PAIR OPTICAL", optical_pair) \
    X("DUPLICATE SINGLE OPTICAL", optical_single) \
    X("DUPLICATE NON PRIMARY", non_primary) \
    X("DUPLICATE NON PRIMARY OPTICAL", non_primary_optical)
/* ... and the numbers derived from them. */
#define DERIVED(X) \
    X("DUPLICATE PRIMARY TOTAL", c->duplicate_pair + c->duplicate_single) \
    X("DUPLICATE TOTAL", c->duplicate_pair + c->duplicate_single + c->non_primary) \
    X("ESTIMATED_LIBRARY_SIZE", dup_counts_library(c->paired, c->duplicate_pair, c->optical_pair))

void dup_counts_add(struct dup_counts *sum, const struct dup_counts *other)
{
#define ADD(name, field) sum->field += other->field;
    COUNTED(ADD)
#undef ADD
}

/* ---- library size ---- */

/* The share of a library of x templates that has not been seen after n draws, minus the share that c different
 * templates leave unseen. 0: x is the size of the library. */
static double excess(double x, double c, double n)
{
    return c / x - 1 + exp(-n / x);
}

uint64_t dup_counts_library(uint64_t paired, uint64_t duplicates, uint64_t optical)
{
    enum { BISECTIONS = 40 };
    uint64_t drawn = (paired - optical) / 2, different = (paired - duplicates) / 2, again = (duplicates - optical) / 2;
    double low = 1, high = 100, c = (double)different, n = (double)drawn;
    if (drawn == 0 || different == 0 || again == 0 || drawn <= again || excess(low * c, c, n) < 0)
        return 0;
    while (excess(high * c, c, n) > 0)
        high *= 10;
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2, over = excess(middle * c, c, n);
        if (over > 0)
            low = middle;
        else if (over < 0)
            high = middle;
        else
            break;
    }
    return (uint64_t)(c * (low + high) / 2);
}

/* ---- text ---- */

static int put(struct byte_buffer *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int put(struct byte_buffer *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || byte_buffer_reserve(text, text->n + (size_t)n + 1) < 0)
        return -1;
    va_start(args, format);
    vsnprintf((char *)text->p + text->n, (size_t)n + 1, format, args);
    va_end(args);
    text->n += (size_t)n;
    return 0;
}

static struct dup_counts total_of(const struct dup_counts *counts, const struct name_table *groups)
{
    struct dup_counts total = counts[0];
    for (size_t i = 0; groups && i < name_table_count(groups); i++)
        dup_counts_add(&total, &counts[i + 1]);
    return total;
}

static int put_text(struct byte_buffer *text, const struct dup_counts *c)
{
#define LINE(name, value) if (put(text, "%s: %" PRIu64 "\n", name, (uint64_t)(value)) < 0) return -1;
#define FIELD(name, field) LINE(name, c->field)
    COUNTED(FIELD)
    DERIVED(LINE)
#undef LINE
    return put(text, "\n");
}

int dup_counts_text(struct byte_buffer *text, const char *command, const struct dup_counts *counts,
                    const struct name_table *groups)
{
    struct dup_counts total = total_of(counts, groups);
    if (put(text, "COMMAND: %s\n", command) < 0 || put_text(text, &total) < 0)
        return -1;
    if (groups && counts[0].read > 0 && (put(text, "READ GROUP: ungrouped\n") < 0 || put_text(text, &counts[0]) < 0))
        return -1;
    for (size_t i = 0; groups && i < name_table_count(groups); i++)
        if (put(text, "READ GROUP: %s\n", name_table_at(groups, i)) < 0 || put_text(text, &counts[i + 1]) < 0)
            return -1;
    return 0;
}

/* ---- JSON ---- */

/* Puts `before`, the text as a string of JSON, and `after`. */
static int put_json_text(struct byte_buffer *text, const char *before, const char *string, const char *after)
{
    int status = put(text, "%s\"", before);
    for (; *string && status == 0; string++) {
        unsigned char c = (unsigned char)*string;
        status = c < ' ' ? put(text, "\\u%04x", c) : put(text, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    return status < 0 ? -1 : put(text, "\"%s", after);
}

/* Appends the lines, without the end of the last one. */
static int put_json(struct byte_buffer *text, const char *indent, const struct dup_counts *c)
{
    const char *before = "";
#define LINE(name, value) \
    if (put(text, "%s%s\"%s\": %" PRIu64, before, indent, name, (uint64_t)(value)) < 0) \
        return -1; \
    before = ",\n";
    COUNTED(FIELD)
    DERIVED(LINE)
#undef LINE
#undef FIELD
    return before[0] == ',' ? 0 : -1;
}

static int put_json_group(struct byte_buffer *text, const char *name, const struct dup_counts *counts, bool more)
{
    return put_json_text(text, "        {\n            \"READ GROUP\": ", name, ",\n") < 0
        || put_json(text, "            ", counts) < 0
        || put(text, "\n        }%s\n", more ? "," : "") < 0 ? -1 : 0;
}

int dup_counts_json(struct byte_buffer *text, const char *command, const struct dup_counts *counts,
                    const struct name_table *groups)
{
    struct dup_counts total = total_of(counts, groups);
    size_t n = groups ? name_table_count(groups) : 0;
    if (put_json_text(text, "{\n    \"COMMAND\": ", command, ",\n") < 0 || put_json(text, "    ", &total) < 0)
        return -1;
    if (groups && put(text, ",\n    \"READ GROUPS\": [\n") < 0)
        return -1;
    if (groups && counts[0].read > 0 && put_json_group(text, "ungrouped", &counts[0], n > 0) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (put_json_group(text, name_table_at(groups, i), &counts[i + 1], i + 1 < n) < 0)
            return -1;
    return put(text, groups ? "    ]\n}\n" : "\n}\n");
}
