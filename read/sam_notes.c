/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/message.h"
#include "read/sam_notes.h"

enum { SHOWN = 60 };             /* characters of a line that are shown */

/* ---- how a line begins ---- */

static char *put_character(char *to, unsigned char c)
{
    if (c == '\t' || c == '\\')
        return to + sprintf(to, "%s", c == '\t' ? "\\t" : "\\\\");
    if (c < ' ' || c == 0x7f)
        return to + sprintf(to, "\\x%02x", c);
    *to = (char)c;
    return to + 1;
}

static bool has(const char *line, size_t n, const char *word)
{
    return memmem(line, n, word, strlen(word));
}

/* Returns whether the line seems to be from a program's log: a line of bwa, minimap2 or htslib, or a line with words
 * instead of fields. */
static bool is_log(const char *line, size_t n)
{
    static const char *const marks[] = {"[M::", "[W::", "[E::", "[I::", "[D::", "[main]"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (has(line, n, marks[i]))
            return true;
    return n > 0 && !memchr(line, '\t', n) && memchr(line, ' ', n);
}

void sam_notes_excerpt(char text[SAM_EXCERPT_SIZE], const char *line, size_t size)
{
    _Static_assert(SAM_EXCERPT_SIZE > 4 * SHOWN + 110, "each character may take four");
    enum { LOOKED_AT = 4096 };   /* most text of a log is at the beginning */
    char *to = text + sprintf(text, "The line begins \"");
    if (size == 0) {
        sprintf(text, "The line is empty");
        return;
    }
    for (size_t i = 0; i < size && i < SHOWN; i++)
        to = put_character(to, (unsigned char)line[i]);
    to += sprintf(to, size > SHOWN ? "...\"" : "\"");
    if (is_log(line, size < LOOKED_AT ? size : LOOKED_AT))
        sprintf(to, ". Is it from a log? Then the program before must not write it to the pipe (2>&1)");
}

/* ---- lines that are changed ---- */

void sam_notes_add(struct sam_notes *notes, uint32_t found, uint64_t number, const char *line, size_t n)
{
    for (int i = 0; i < SAM_LINE_N_NOTES; i++)
        if (found >> i & 1 && notes->n[i]++ == 0) {
            notes->first[i].number = number;
            sam_notes_excerpt(notes->first[i].excerpt, line, n);
        }
}

static void report_first(int note, const struct sam_place *place, uint64_t number, uint64_t header_lines,
                         const char *path)
{
    char line[40] = "";
    if (header_lines < UINT64_MAX)
        snprintf(line, sizeof line, " (line %llu)", (unsigned long long)(header_lines + number));
    message_warning("%s: record %llu%s %s. %s", path, (unsigned long long)number, line, sam_line_note_text(note),
                    place->excerpt);
}

void sam_notes_merge(struct sam_notes *all, const struct sam_notes *more, uint64_t before, uint64_t header_lines,
                     const char *path)
{
    for (int i = 0; i < SAM_LINE_N_NOTES; i++) {
        if (all->n[i] == 0 && more->n[i] > 0)
            report_first(i, &more->first[i], before + more->first[i].number + 1, header_lines, path);
        all->n[i] += more->n[i];
    }
}

void sam_notes_total(struct sam_notes *all, const char *path)
{
    for (int i = 0; i < SAM_LINE_N_NOTES; i++)
        if (all->n[i] > 1)
            message_warning("%s: %llu such records in all; the first one %s", path, (unsigned long long)all->n[i],
                            sam_line_note_text(i));
    memset(all->n, 0, sizeof all->n);
}
