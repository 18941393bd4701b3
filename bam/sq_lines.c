/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "bam/plain_header.h"
#include "bam/sq_lines.h"

bool sq_lines_next(struct sq_lines *s, int32_t i)
{
    if (plain_header_is(s->sam))
        return plain_header_reference(s->sam, &s->at, &s->line, &s->n);
    if (sam_hdr_find_line_pos(s->sam, "SQ", i, &s->parsed) < 0)
        return false;
    s->line = s->parsed.s;
    s->n = s->parsed.l;
    return true;
}

const char *sq_lines_field(const char *line, size_t n, const char *tag, size_t *size)
{
    const char *end = line + n, *at = memmem(line, n, tag, strlen(tag));
    if (!at)
        return NULL;
    at += strlen(tag);
    const char *tab = memchr(at, '\t', (size_t)(end - at));
    *size = (size_t)((tab ? tab : end) - at);
    return at;
}

int sq_lines_clash(const char *line, size_t n, const char *before, size_t n_before, kstring_t *text)
{
    static const char *const tags[] = {"\tLN:", "\tM5:"};
    if (n == n_before && memcmp(line, before, n) == 0)
        return 0;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        size_t size, size_before, size_name = 0;
        const char *value = sq_lines_field(line, n, tags[i], &size);
        const char *value_before = sq_lines_field(before, n_before, tags[i], &size_before);
        const char *name = sq_lines_field(line, n, "\tSN:", &size_name);
        bool same = !value || !value_before || (size == size_before && strncasecmp(value, value_before, size) == 0);
        if (!same && name)
            return ksprintf(text, "reference %.*s has %s%.*s, and %s%.*s", (int)size_name, name, tags[i] + 1, (int)size,
                            value, tags[i] + 1, (int)size_before, value_before) < 0 ? -1 : 1;
    }
    return 0;
}
