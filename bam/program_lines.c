/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "bam/program_lines.h"
#include "base/byte_hash.h"

int program_lines_replace(kstring_t *to, const char *line, const char *tag, const char *value)
{
    char field[] = {'\t', tag[0], tag[1], ':', 0};
    const char *at = strstr(line, field);
    if (!at)
        return kputs(line, to) < 0 ? -1 : 0;
    at += sizeof field - 1;
    const char *end = at + strcspn(at, "\t");
    return kputsn(line, (size_t)(at - line), to) < 0 || kputs(value, to) < 0 || kputs(end, to) < 0 ? -1 : 0;
}

const char *program_lines_new_id(const struct program_lines *lines, sam_hdr_t *from, const char *id)
{
    int i = sam_hdr_line_index(from, "PG", id);
    return i >= 0 && i < lines->n && lines->ids[i] && strcmp(lines->ids[i], id) != 0 ? lines->ids[i] : NULL;
}

/* Adds the line to `into` unless `into` has it. 1: a different line has its ID; 0: done; -1: failed. */
static int add_program_line(sam_hdr_t *into, const char *id, const kstring_t *line)
{
    kstring_t there = KS_INITIALIZE;
    int found = sam_hdr_find_line_id(into, "PG", "ID", id, &there);
    int status = found < -1 ? -1
               : found == 0 ? strcmp(there.s, line->s) != 0 : sam_hdr_add_lines(into, line->s, line->l);
    ks_free(&there);
    return status;
}

/* Adds the line under an ID that is a hash of its text. If another line has that ID, a number is hashed with it. */
static int add_renamed(sam_hdr_t *into, kstring_t *id, const kstring_t *line)
{
    kstring_t renamed = KS_INITIALIZE;
    size_t id_size = id->l;
    int status = 1;
    for (uint64_t number = 0; status > 0; number++) {
        uint64_t hash = byte_hash((const uint8_t *)line->s, line->l, number);
        id->l = id_size;
        renamed.l = 0;
        status = ksprintf(id, "-%08X", (unsigned)(hash & UINT32_MAX)) < 0
              || program_lines_replace(&renamed, line->s, "ID", id->s) < 0 ? -1
               : add_program_line(into, id->s, &renamed);
    }
    ks_free(&renamed);
    return status;
}

/* Adds line number i. The line that its PP names was added before. */
static int add_numbered(struct program_lines *lines, sam_hdr_t *into, sam_hdr_t *from, int i)
{
    kstring_t line = KS_INITIALIZE, previous = KS_INITIALIZE, as_it_stands = KS_INITIALIZE, id = KS_INITIALIZE;
    const char *own_id = sam_hdr_line_name(from, "PG", i), *new_id = NULL;
    int status = -1;
    if (!own_id || kputs(own_id, &id) < 0 || sam_hdr_find_line_pos(from, "PG", i, &as_it_stands) < 0)
        goto end;
    if (sam_hdr_find_tag_pos(from, "PG", i, "PP", &previous) == 0)
        new_id = program_lines_new_id(lines, from, previous.s);
    if (new_id ? program_lines_replace(&line, as_it_stands.s, "PP", new_id) < 0 : kputs(as_it_stands.s, &line) < 0)
        goto end;
    status = add_program_line(into, id.s, &line);
    if (status > 0) {
        status = add_renamed(into, &id, &line);
        lines->n_renamed++;
    }
    lines->ids[i] = ks_release(&id);
end:
    ks_free(&line);
    ks_free(&previous);
    ks_free(&as_it_stands);
    ks_free(&id);
    return status;
}

/* The line that PP of line i names, if it has not been added yet; otherwise -1. */
static int previous_of(const struct program_lines *lines, sam_hdr_t *from, int i, kstring_t *id)
{
    int previous = sam_hdr_find_tag_pos(from, "PG", i, "PP", id) == 0 ? sam_hdr_line_index(from, "PG", id->s) : -1;
    return previous >= 0 && !lines->ids[previous] ? previous : -1;
}

/* Adds the chain of PP that line i ends, the first line first. path[n] takes their numbers. A circular chain is cut
 * where it returns to a line that it has met. */
static int add_chain(struct program_lines *lines, sam_hdr_t *into, sam_hdr_t *from, int i, int *path, bool *met)
{
    kstring_t id = KS_INITIALIZE;
    int n = 0, status = 0;
    for (; i >= 0 && !met[i]; i = previous_of(lines, from, i, &id)) {
        met[i] = true;
        path[n++] = i;
    }
    while (n-- > 0 && status == 0)
        status = add_numbered(lines, into, from, path[n]);
    ks_free(&id);
    return status;
}

int program_lines_merge(struct program_lines *lines, sam_hdr_t *into, sam_hdr_t *from)
{
    int n = sam_hdr_count_lines(from, "PG"), status = 0;
    *lines = (struct program_lines){.n = n > 0 ? n : 0};
    if (n <= 0)
        return n;
    int *path = malloc((size_t)n * sizeof *path);
    bool *met = calloc((size_t)n, sizeof *met);
    lines->ids = calloc((size_t)n, sizeof *lines->ids);
    if (!path || !met || !lines->ids)
        status = -1;
    for (int i = 0; i < n && status == 0; i++)
        status = add_chain(lines, into, from, i, path, met);
    free(path);
    free(met);
    return status;
}

int program_lines_values(const struct program_lines *lines, sam_hdr_t *from, struct tag_values *programs)
{
    int status = 0;
    for (int i = 0; i < lines->n && status == 0; i++) {
        const char *id = sam_hdr_line_name(from, "PG", i);
        if (!id)
            status = -1;
        else if (strcmp(lines->ids[i], id) != 0)
            status = tag_values_add(programs, id, lines->ids[i]);
    }
    return status;
}

void program_lines_free(struct program_lines *lines)
{
    for (int i = 0; lines->ids && i < lines->n; i++)
        free(lines->ids[i]);
    free(lines->ids);
    *lines = (struct program_lines){.n = 0};
}
