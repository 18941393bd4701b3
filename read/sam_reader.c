/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "bam/header_text.h"
#include "bam/plain_header.h"
#include "bam/ref_names.h"
#include "bam/sam_line.h"
#include "bgzf_omp.h"
#include "base/byte_buffer.h"
#include "base/byte_window.h"
#include "hts/hts_file.h"
#include "read/chunk_reader.h"
#include "read/header_read.h"
#include "hts/hts_reader.h"
#include "read/input_part.h"
#include "read/record_filter.h"
#include "base/engine.h"
#include "base/latch.h"
#include "read/sam_notes.h"
#include "read/sam_reader.h"

/* The result of a chunk's task, by the chunk's number; the claimer's before DONE. */
struct sam_found {
    const char *why;             /* the reason why the line after those that the chunk counts is refused; NULL: it is
                                  * not refused */
    char broken[SAM_EXCERPT_SIZE];   /* that line */
    struct sam_notes notes;      /* notes on the records */
};

struct sam_reader {
    struct input_options opt;
    struct bgzf_source *source;  /* source of packed text; main thread, as are all fields below except `found` */
    struct byte_window *plain;   /* the plain text; NULL: the text is packed */
    struct chunk_reader *chunks; /* chunks of the text */
    struct ref_names *names;     /* the names that lines are parsed against; not changed once complete */
    struct record_filter *filter;    /* used by each chunk's task under the chunk's number; NULL: all records pass */
    uint64_t header_lines;
    struct sam_found *found;
    struct sam_notes notes;      /* notes on records that were lent */
};

static int no_memory_for(const struct sam_reader *r, const char *what)
{
    return latch_fail(r->opt.engine->latch, "%s: out of memory for %s", r->opt.path, what);
}

/* ------------------------------------------------------------------- tasks */

/* Returns whether the record of n bytes passes the filter. number: number of its chunk. -1: the filter cannot be
 * evaluated. A broken record passes: the consumer checks all records. */
static int filter_record(const struct sam_reader *r, uint32_t number, const uint8_t *record, size_t n)
{
    if (!r->filter || bam_record_check(record, n, ref_names_count(r->names)).fault)
        return 1;
    return record_filter_passes(r->filter, number, bam_record_at(record));
}

/* Appends the record of a line of n bytes. A NUL overwrites the byte after the line. */
static void parse_line(const struct sam_reader *r, uint32_t number, struct chunk *c, char *line, size_t n)
{
    struct sam_found *f = &r->found[number];
    struct byte_buffer *records = &c->made.records;
    size_t before = records->n;
    line[n] = '\0';
    struct sam_line found = sam_line_append(records, r->names, line, n);
    int passes = found.fault ? 1 : filter_record(r, number, records->p + before, records->n - before);
    if (passes == 0)
        records->n = before;
    bool is_lost = passes > 0 && !found.fault && record_slice_note(&c->made, before) < 0;
    if (found.fault || is_lost || passes < 0 || (passes && found.far && !r->opt.far)) {
        sam_notes_excerpt(f->broken, line, n);
        f->why = found.fault ? sam_line_fault_text(found.fault) : is_lost ? "needs more memory than is left"
               : passes < 0 ? "cannot be filtered: htslib cannot evaluate --input-fmt-option filter= for it"
               : "has a position or TLEN beyond the 32 bits of BAM and CRAM; use -O sam";
        return;
    }
    if (found.notes)
        sam_notes_add(&f->notes, found.notes, c->n, line, n);
    c->n++;
}

/* Appends the records of the lines in n bytes. Only the last line may lack its newline. In that case it keeps a
 * carriage return at its end, as in htslib. */
static void parse_lines(const struct sam_reader *r, uint32_t number, struct chunk *c, uint8_t *text, size_t n)
{
    char *line = (char *)text;
    for (char *end = line + n, *next; line < end && !r->found[number].why; line = next) {
        char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        next = stop + 1;
        parse_line(r, number, c, line, (size_t)(stop - line) - (newline && stop > line && stop[-1] == '\r'));
    }
}

/* Turns the lines of a chunk into records. */
static void parse_chunk(void *reader, uint32_t number, struct chunk *c)
{
    const struct sam_reader *r = reader;
    struct sam_found *f = &r->found[number];
    f->why = NULL;
    memset(f->notes.n, 0, sizeof f->notes.n);
    if (c->head.n)
        parse_lines(r, number, c, c->head.p, c->head.n);
    if (c->head.n > r->opt.chunks.chunk_size)        /* it may be a line of 200 MB, and its record will be copied */
        byte_buffer_trim(&c->head, r->opt.chunks.chunk_size);
    if (c->end > c->begin)                           /* otherwise `bytes` may be NULL */
        parse_lines(r, number, c, c->bytes + c->begin, c->end - c->begin);
}

/* ------------------------------------------------------------- main thread */

/* Finds the complete lines in a chunk. */
static int cut_lines(void *reader, const struct byte_buffer *carried, const uint8_t *text, size_t n,
                     struct chunk_cut *cut)
{
    const struct sam_reader *r = reader;
    const uint8_t *newline = memchr(text, '\n', n);
    cut->n = 0;
    cut->ends_carried = newline;
    cut->end = n;
    while (newline && text[cut->end - 1] != '\n')
        cut->end--;
    cut->begin = !newline ? n : carried->n ? (size_t)(newline - text) + 1 : 0;
    if (carried->n + cut->begin <= INT32_MAX)
        return 0;
    return latch_fail(r->opt.engine->latch, "%s: a line is longer than 2 GB. Nothing was written; check that it is SAM",
                      r->opt.path);
}

/* Records in the latch why the chunk's line is refused. */
static int report_broken(const struct sam_reader *r, const struct sam_found *f, const struct chunk *c)
{
    unsigned long long number = chunk_reader_counts(r->chunks)->n + c->n + 1, line = r->header_lines + number;
    if (r->opt.part)                             /* the number of lines before the part is not known */
        return latch_fail(r->opt.engine->latch, "%s: line %llu from file offset %llu on %s. Nothing was written. %s",
                          r->opt.path, number, (unsigned long long)r->opt.part->begin, f->why, f->broken);
    return latch_fail(r->opt.engine->latch, "%s: record %llu (line %llu) %s. Nothing was written. %s", r->opt.path,
                      number, line, f->why, f->broken);
}

static int lend(void *reader, uint32_t number, struct chunk *c)
{
    struct sam_reader *r = reader;
    const struct sam_found *f = &r->found[number];
    sam_notes_merge(&r->notes, &f->notes, chunk_reader_counts(r->chunks)->n,
                    r->opt.part ? UINT64_MAX : r->header_lines, r->opt.path);
    return f->why ? report_broken(r, f, c) : 0;
}

static void ended(void *reader)
{
    struct sam_reader *r = reader;
    sam_notes_total(&r->notes, r->opt.path);
}

/* Compares nothing: cut_lines() does not count the lines, because that would look at each byte of the text on the main
 * thread. */
static int end(void *chunks, struct tally *given)
{
    *given = chunk_reader_counts(chunks)->made;
    return 0;
}

struct record_stream sam_reader_stream(struct sam_reader *r)
{
    struct record_stream stream = chunk_reader_stream(r->chunks);
    stream.end = end;
    return stream;
}

/* ------------------------------------------------------------------ header */

/* Moves *at past the header lines that are complete in the text. There is no newline between *at and `seen`. True: the
 * header is complete, because another line follows it. */
static bool follow(const struct byte_buffer *text, size_t *at, size_t seen)
{
    while (*at < text->n && text->p[*at] == '@') {
        size_t from = *at > seen ? *at : seen;
        const uint8_t *newline = memchr(text->p + from, '\n', text->n - from);
        if (!newline)
            return false;
        *at = (size_t)(newline - text->p) + 1;
    }
    return *at < text->n;
}

static struct header_bytes bytes_of(const struct sam_reader *r)
{
    return (struct header_bytes){r->source, r->plain};
}

/* Reads text until the header is complete or the file ends. *size: size of the header in bytes. */
static int read_header_text(struct sam_reader *r, struct byte_buffer *text, size_t *size)
{
    int found = 1;
    size_t at = 0, seen = 0;
    while (!follow(text, &at, seen) && found > 0) {
        seen = text->n;
        found = header_read_block(text, bytes_of(r), r->opt.header_max, r->opt.path, r->opt.engine->latch);
    }
    if (found == 0 && text->n == 0)
        return latch_fail(r->opt.engine->latch, "%s is empty: there is not even a header", r->opt.path);
    *size = found > 0 ? at : text->n;
    return found < 0 ? -1 : 0;
}

/* htslib makes the header if it is not plain, because its rules are subtle. One line is added after the header; without
 * it, htslib would not recognise SAM without a header. */
static sam_hdr_t *make_header(const uint8_t *text, size_t size, const struct input_options *options)
{
    static const char line[] = "\nr\t0\tr\t1\t1\t1M\t*\t0\t0\tA\tI\n";
    sam_hdr_t *header = options->format_options ? NULL : plain_header_of_text(text, size);
    if (header)
        return header;
    bool ended = size == 0 || text[size - 1] == '\n';
    hFILE *file = hts_file_of_bytes(text, size, line + ended);
    if (!file) {
        latch_fail(options->engine->latch, "%s: out of memory for the header", options->path);
        return NULL;
    }
    struct hts_reader *reader = hts_reader_open(file, options, 1, NULL, &header);
    if (reader) {
        hts_reader_close(reader);
        if (sam_hdr_count_lines(header, "SQ") >= 0)      /* makes htslib parse the header, which is an unparsed copy */
            return header;
        latch_fail(options->engine->latch, "%s: out of memory for the header", options->path);
    }
    sam_hdr_destroy(header);
    return NULL;
}

static int report_header(const struct header_text *found, const struct input_options *options)
{
    char excerpt[SAM_EXCERPT_SIZE];
    sam_notes_excerpt(excerpt, found->line, found->size);
    return latch_fail(options->engine->latch, "%s: its header cannot be read: line %zu %s. Nothing was written. %s",
                      options->path, found->number, found->fault, excerpt);
}

sam_hdr_t *sam_reader_header(const uint8_t *text, size_t size, const struct input_options *options)
{
    struct header_text found = header_text_check((const char *)text, size, true);
    if (found.fault) {
        report_header(&found, options);
        return NULL;
    }
    if (found.n_to_normalise == 0)
        return make_header(text, size, options);
    char *normalised = malloc(size + found.n_to_normalise);
    sam_hdr_t *header = NULL;
    if (normalised)
        header = make_header((uint8_t *)normalised, header_text_normalise(normalised, (const char *)text, size),
                             options);
    else
        latch_fail(options->engine->latch, "%s: out of memory for the header", options->path);
    free(normalised);
    return header;
}

/* Keeps the names of the references, and makes the filter. */
static int take_names(struct sam_reader *r, sam_hdr_t *sam)
{
    const char *filter = record_filter_of(r->opt.format_options);
    r->names = ref_names_new(sam);
    if (r->names && filter)
        r->filter = record_filter_new(filter, sam, r->opt.chunks.n_chunks);
    return r->names && (r->filter || !filter) ? 0 : no_memory_for(r, "the header");
}

static int parse_header(struct sam_reader *r, const uint8_t *text, size_t size, sam_hdr_t **header)
{
    if (!*header)
        *header = sam_reader_header(text, size, &r->opt);
    return *header ? take_names(r, *header) : -1;
}

/* Takes the header of a part, which has none of its own. */
static int take_header(struct sam_reader *r, sam_hdr_t **header)
{
    *header = sam_hdr_dup(r->opt.part->sam);
    return *header ? take_names(r, *header) : no_memory_for(r, "the header");
}

/* Puts the text that was read after the header back into the source: it belongs to the first chunk. */
static void give_back(struct sam_reader *r, const uint8_t *lines, size_t n)
{
    if (r->plain)
        byte_window_put_back(r->plain, n);
    else
        chunk_reader_put(r->chunks, lines, n);
}

static int read_header(struct sam_reader *r, sam_hdr_t **header)
{
    struct byte_buffer text = {NULL, 0, 0};
    size_t size = 0;
    int status = read_header_text(r, &text, &size) < 0 || parse_header(r, text.p, size, header) < 0 ? -1 : 0;
    if (status == 0) {
        if (text.p)
            give_back(r, text.p + size, text.n - size);
        for (size_t i = 0; i < size; i++)
            r->header_lines += text.p[i] == '\n';
    }
    free(text.p);
    return status;
}

/* ----------------------------------------------------------- open and close */

static int open_chunks(struct sam_reader *r)
{
    struct chunk_reader_options how = {
        .in = {.source = r->source, .text = r->plain, .use = r->opt.chunks, .path = r->opt.path,
               .engine = r->opt.engine},
        .cutter = {.cut = cut_lines, .arg = r},
        .make = parse_chunk,
        .counts_only = true,
        .lend = lend,
        .ended = ended,
        .arg = r,
    };
    if (!(r->found = calloc(r->opt.chunks.n_chunks, sizeof *r->found)))
        return no_memory_for(r, "lines");
    return (r->chunks = chunk_reader_open(&how)) ? 0 : -1;
}

/* Opens the source of packed text. */
static int open_source(struct sam_reader *r, struct byte_window *text)
{
    struct bgzf_source_options from = {
        .input = text,
        .path = r->opt.path,
        .n_slots = r->opt.chunks.source_slots,
        .codecs = r->opt.codecs,
        .engine = r->opt.engine,
        .is_text = true,
    };
    r->source = bgzf_source_open(&from);
    return r->source ? 0 : -1;
}

size_t sam_reader_memory(uint32_t n_chunks)
{
    return n_chunks * (sizeof(struct sam_found) + chunk_reader_slot_memory());
}

struct sam_reader *sam_reader_open(struct byte_window *text, bool packed, const struct input_options *options,
                                   sam_hdr_t **header)
{
    struct sam_reader *r = calloc(1, sizeof *r);
    if (!r) {
        latch_fail(options->engine->latch, "out of memory");
        return NULL;
    }
    r->opt = *options;
    r->plain = packed ? NULL : text;
    if ((!packed || open_source(r, text) == 0) && open_chunks(r) == 0
        && (options->part ? take_header(r, header) : read_header(r, header)) == 0)
        return r;
    sam_reader_close(r);
    return NULL;
}

/* Frees what late tasks do not look at. */
static void free_unshared(struct sam_reader *r)
{
    free(r->found);
    ref_names_free(r->names);
    record_filter_free(r->filter);
    r->found = NULL;
    r->names = NULL;
    r->filter = NULL;
}

void sam_reader_end(struct sam_reader *r)
{
    if (r->source)
        bgzf_source_end(r->source);
    chunk_reader_end(r->chunks);
    free_unshared(r);
}

void sam_reader_close(struct sam_reader *r)
{
    if (!r)
        return;
    bgzf_source_close(r->source);
    chunk_reader_close(r->chunks);
    free_unshared(r);
    free(r);
}
