/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/ref_names.h"
#include "bam/sam_line.h"
#include "base/engine.h"
#include "base/latch.h"
#include "mpi/text_split.h"
#include "read/sam_reader.h"

enum { PIECE = 1 << 16, HEADER_MOST = 1 << 30, SAMPLE_RECORDS = 256 };

/* ---- the header ---- */

/* Skips header lines that are complete in text[n], from `at` on. */
static size_t skip_lines(const char *text, size_t at, size_t n)
{
    const char *newline;
    while (at < n && text[at] == '@' && (newline = memchr(text + at, '\n', n - at)))
        at = (size_t)(newline - text) + 1;
    return at;
}

/* Reads until it finds a line that does not belong to the header. Returns where that line begins. */
static size_t read_header(const struct text_split *t, struct byte_buffer *text)
{
    size_t at = 0;
    ssize_t got = PIECE;
    while (got == PIECE && !latch_tripped(t->file.latch) && (at == text->n || text->p[at] == '@')) {
        if (text->n > HEADER_MOST)
            latch_fail(t->file.latch, "%s: a header of more than 1 GiB. Nothing was read", t->file.path);
        else if (byte_buffer_reserve(text, text->n + PIECE) < 0)
            latch_fail(t->file.latch, "%s: out of memory for the header", t->file.path);
        else if ((got = input_file_read_at(&t->file, text->p + text->n, PIECE, text->n)) > 0)
            text->n += (size_t)got;
        at = skip_lines((char *)text->p, at, text->n);
    }
    return at < text->n && text->p[at] == '@' ? text->n : at;
}

/* ---- the sample ---- */

/* Adds records to the sample. A line that cannot be parsed ends it; the rank that reads that line reports the error. */
static void parse_sample(struct text_split *t, char *line, const char *end)
{
    struct ref_names *names = sam_hdr_count_lines(t->sam, "SQ") >= 0 ? ref_names_new(t->sam) : NULL;
    char *newline;
    enum sam_line_fault fault = SAM_LINE_OK;
    for (int i = 0; names && i < SAMPLE_RECORDS && !fault && line < end; i++, line = newline + 1) {
        if (!(newline = memchr(line, '\n', (size_t)(end - line))))
            break;
        size_t n = (size_t)(newline - line) - (newline > line && newline[-1] == '\r');
        line[n] = '\0';
        fault = sam_line_append(&t->sample, names, line, n).fault;
    }
    ref_names_free(names);
}

static void take_sample(struct text_split *t)
{
    char *text = malloc(PIECE);
    ssize_t n = text ? input_file_read_at(&t->file, text, PIECE, t->first) : 0;
    if (text && byte_buffer_reserve(&t->sample, PIECE) == 0)
        parse_sample(t, text, text + (n > 0 ? n : 0));
    else
        latch_fail(t->file.latch, "out of memory");
    free(text);
}

int text_split_open(struct text_split *t)
{
    struct byte_buffer text = {NULL, 0, 0};
    const struct engine engine = {.latch = t->file.latch, .n_threads = 1};
    struct input_options how = {.path = t->file.path, .engine = &engine};
    t->first = read_header(t, &text);
    if (!latch_tripped(t->file.latch))
        t->sam = sam_reader_header(text.p, t->first, &how);
    free(text.p);
    if (!latch_tripped(t->file.latch))
        take_sample(t);
    return latch_tripped(t->file.latch) ? -1 : 0;
}

uint64_t text_split_find(const struct text_split *t, uint64_t from)
{
    char *piece = malloc(PIECE);
    /* A line begins at `from` itself if a newline lies before it. */
    uint64_t at = from - 1, end = (uint64_t)t->file.end, found = end;
    ssize_t n = PIECE;
    if (from <= t->first) {
        free(piece);
        return t->first;
    }
    for (; piece && found == end && n == PIECE; at += PIECE) {
        n = input_file_read_at(&t->file, piece, PIECE, at);
        const char *newline = n > 0 ? memchr(piece, '\n', (size_t)n) : NULL;
        if (newline)
            found = at + (uint64_t)(newline - piece) + 1;
    }
    if (!piece)
        latch_fail(t->file.latch, "out of memory");
    free(piece);
    return found;
}
