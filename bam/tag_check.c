/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "bam/bam_record.h"
#include "bam/tag_check.h"

enum { IGNORED = 3 };            /* bytes after the last tag that are ignored */

/* One past the tag at p. More than IGNORED bytes follow p. NULL: it cannot be read. Arrays of these two types have a
 * size but no meaning. */
static inline const uint8_t *next_checked_tag(const uint8_t *p, const uint8_t *end)
{
    bool no_array = p[2] == 'B' && (p[3] == 'A' || p[3] == 'd');
    return no_array ? NULL : bam_record_aux_next(p, end);
}

bool tag_check_bam(const uint8_t *p, const uint8_t *end)
{
    while (p && end - p > IGNORED)
        p = next_checked_tag(p, end);
    return p;
}

/* ---- SAM ---- */

static bool is_visible(uint8_t c)
{
    return c > ' ' && c < 128;
}

/* Returns whether a field of SAM can hold the tag in [p, next). */
static bool is_field(const uint8_t *p, const uint8_t *next)
{
    const char *text = (const char *)p + 3;
    if (!is_visible(p[0]) || !is_visible(p[1]))
        return false;
    if (p[2] == 'A')
        return p[3] > '\n' && p[3] != '\r' && p[3] < 128;
    return !bam_record_aux_is_text(p + 2)
        || (!text[strcspn(text, "\t\n")] && !(p[2] == 'H' && (next - p) % 2));
}

bool tag_check_sam(const uint8_t *p, const uint8_t *end)
{
    for (const uint8_t *next; end - p > IGNORED; p = next)
        if (!(next = next_checked_tag(p, end)) || !is_field(p, next))
            return false;
    return true;
}

bool tag_check_sam_name(const char *name)
{
    return !name[strcspn(name, "\t\n")];
}

/* ---- CRAM ---- */

/* A tag of NULs is the end marker. A tab ends texts in CRAM. */
bool tag_check_cram(const uint8_t *p, const uint8_t *end)
{
    for (const uint8_t *next; end - p > IGNORED && *p; p = next)
        if (p[2] == 'd' || !(next = next_checked_tag(p, end))
            || (bam_record_aux_is_text(p + 2) && memchr(p + 3, '\t', (size_t)(next - p - 3))))
            return false;
    return p == end || !*p;
}
