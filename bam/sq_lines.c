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

/* The values of a tag in two lines. */
struct values {
    const char *a, *b;           /* NULL: there is none */
    size_t n_a, n_b;
};

static bool differ(const struct values *v)
{
    return v->a && v->b && (v->n_a != v->n_b || strncasecmp(v->a, v->b, v->n_a) != 0);
}

int sq_lines_clash(const char *line, size_t n, const char *before, size_t n_before, kstring_t *text)
{
    static const char *const tags[] = {"\tSN:", "\tLN:", "\tM5:"};
    enum { SN, N_TAGS = sizeof tags / sizeof *tags };
    struct values all[N_TAGS];
    if (n == n_before && memcmp(line, before, n) == 0)
        return 0;
    for (size_t i = 0; i < N_TAGS; i++) {
        struct values *v = &all[i];
        v->a = sq_lines_field(line, n, tags[i], &v->n_a);
        v->b = sq_lines_field(before, n_before, tags[i], &v->n_b);
        if (i > SN && differ(v))
            return ksprintf(text, "reference %.*s has %s%.*s, and %s%.*s", (int)all[SN].n_a, all[SN].a, tags[i] + 1,
                            (int)v->n_a, v->a, tags[i] + 1, (int)v->n_b, v->b) < 0 ? -1 : 1;
        if (i == SN && (!v->a || !v->b || v->n_a != v->n_b || memcmp(v->a, v->b, v->n_a) != 0))
            return 0;
    }
    return 0;
}
