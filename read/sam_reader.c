/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "bam/header_text.h"
#include "bam/plain_header.h"
#include "bam/ref_names.h"
#include "bam/sam_line.h"
#include "bgzf_source.h"
#include "base/byte_buffer.h"
#include "base/byte_window.h"
#include "base/hts_file.h"
#include "read/header_read.h"
#include "read/hts_reader.h"
#include "read/input_part.h"
#include "read/record_filter.h"
#include "base/latch.h"
#include "base/machine.h"
#include "read/sam_notes.h"
#include "read/sam_reader.h"
#include "base/stats.h"
#include "base/task_ring.h"

/* The text goes through a ring of chunks, in each of which a task makes lines into records:
 *
 *     records are       to be parsed,       text is being       blocks of text
 *     being used        or parsed           inflated            are handed out to it
 *   +-----+---+-------+-------+-----+-----+-------+-----+-----+------------------+
 *   |  2  | 3 |   4   |   5   |   6 | ... |  11   | ... | 14  |        15        |
 *   +-----+---+-------+-------+-----+-----+-------+-----+-----+------------------+
 *     freed             lent                closed                   filling
 *
 * The main thread closes a chunk when all its text is there. Only then it is known where the chunk's lines begin and
 * end, and which bytes belong to a line that ends in a later chunk.
 *
 *   chunk 4 ..line a \n line b \n li                 chunk 5 ne c \n line d \n line e ..
 *                                 -> carry -> its head: line c \n
 *
 * A line may be longer than a chunk. Then chunks in its middle have no line. */
struct sam_chunk {
    char *text;                  /* the main thread's before READY, then the claimer's, who writes NULs into it */
    size_t filled;               /* bytes of text handed out; main thread only, as the next */
    size_t arrived;              /* bytes of text that have been inflated */
    struct byte_buffer head;     /* the line that began in a chunk before, if any; as text */
    size_t begin, end;           /* the other lines in text; the main thread sets it before READY */
    struct byte_buffer records;  /* of the lines, as BAM; the claimer's before DONE, as all below */
    uint64_t n;                  /* how many lines; a filter may leave fewer records */
    struct sam_place broken;     /* the line behind them, if it is refused; line is NULL otherwise */
    const char *why;             /* it is refused */
    struct sam_notes notes;      /* on the records */
    atomic_int users;            /* of the records, see struct byte_window */
};

struct sam_reader {
    struct byte_window window;   /* must be first: more() gets it. The records of the chunk lent last */
    struct input_options opt;
    struct bgzf_source *source;  /* of the text; main thread, as all below but the chunks */
    struct ref_names *names;     /* what lines are parsed against; not changed once it is complete */
    struct record_filter *filter;    /* a chunk's task uses it under the chunk's number; NULL: all records pass */
    uint64_t header_lines;
    struct sam_chunk *chunks;
    struct task_ring ring;       /* of the chunks: handed out when closed, taken back when freed */
    uint64_t lent, filling;      /* numbers of chunks, see above; n_chunks at most from the first freed to this */
    struct byte_buffer carry;    /* the beginning of the line that the chunk closed last does not end */
    bool at_end;                 /* all text is handed out */
    uint64_t n;                  /* lines whose records were lent, or did not pass */
    struct sam_notes notes;      /* on them */
};

static struct sam_chunk *chunk_of(const struct sam_reader *r, uint64_t number)
{
    return &r->chunks[number % r->opt.sam.n_chunks];
}

static int no_memory_for(const struct sam_reader *r, const char *what)
{
    return latch_fail(r->opt.latch, "%s: out of memory for %s", r->opt.path, what);
}

/* ------------------------------------------------------------------- tasks */

/* Whether the chunk's record at `at` passes the filter. -1: nobody can tell. What is broken is left to who checks all
 * records. */
static int filter_record(const struct sam_reader *r, const struct sam_chunk *c, size_t at)
{
    const uint8_t *record = c->records.p + at;
    if (!r->filter || bam_record_check(record, c->records.n - at, ref_names_count(r->names)).fault)
        return 1;
    return record_filter_passes(r->filter, (uint32_t)(c - r->chunks), (const struct bam_record *)record);
}

/* Appends the record of a line of n bytes. A NUL overwrites the byte behind them. */
static void parse_line(const struct sam_reader *r, struct sam_chunk *c, char *line, size_t n)
{
    const struct sam_place place = {c->n, line, n};
    size_t before = c->records.n;
    line[n] = '\0';
    struct sam_line found = sam_line_append(&c->records, r->names, line, n);
    int passes = found.fault ? 1 : filter_record(r, c, before);
    if (passes == 0)
        c->records.n = before;
    if (found.fault || passes < 0 || (passes && found.far && !r->opt.far)) {
        c->broken = place;
        c->why = found.fault ? sam_line_fault_text(found.fault)
               : passes < 0 ? "cannot be filtered: htslib cannot evaluate --input-fmt-option filter= for it"
               : "has a position or TLEN beyond the 32 bits of BAM and CRAM; use -O sam";
        return;
    }
    c->n++;
    if (found.notes)
        sam_notes_add(&c->notes, found.notes, &place);
}

/* Appends the records of the lines in n bytes. Only the last line may lack its newline; then it keeps a carriage return
 * at its end, as in htslib. */
static void parse_lines(const struct sam_reader *r, struct sam_chunk *c, char *line, size_t n)
{
    for (char *end = line + n, *next; line < end && !c->why; line = next) {
        char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        next = stop + 1;
        parse_line(r, c, line, (size_t)(stop - line) - (newline && stop > line && stop[-1] == '\r'));
    }
}

static bool has_notes(const struct sam_notes *notes)
{
    uint64_t n = 0;
    for (size_t i = 0; i < SAM_LINE_N_NOTES; i++)
        n += notes->n[i];
    return n > 0;
}

/* Makes the lines of a claimed chunk into records. */
static void parse_chunk(void *reader, uint32_t index)
{
    const struct sam_reader *r = reader;
    struct sam_chunk *c = &r->chunks[index];
    if (latch_tripped(r->opt.latch))
        return;
    enum stage before = stats_enter(r->opt.stats, STAGE_PARSE);
    size_t size = c->head.n + c->end - c->begin;
    if (c->head.n)
        parse_lines(r, c, (char *)c->head.p, c->head.n);
    /* It may be a line of 200 MB, and its record is to be copied. A note shows how the line begins. */
    if (c->head.n > r->opt.sam.text_size && !c->why && !has_notes(&c->notes))
        byte_buffer_trim(&c->head, r->opt.sam.text_size);
    parse_lines(r, c, c->text + c->begin, c->end - c->begin);
    stats_records(r->opt.stats, c->n);
    stats_leave(r->opt.stats, before, size);
}

/* ---------------------------------------------------------- text to chunks */

/* Keeps n more bytes of a line that is not complete, and room for a NUL behind them. */
static int carry_on(struct sam_reader *r, const char *text, size_t n)
{
    struct byte_buffer *line = &r->carry;
    if (line->n + n > INT32_MAX)
        return latch_fail(r->opt.latch, "%s: a line of more than 2 GB. Nothing was written; is it SAM?", r->opt.path);
    if (byte_buffer_reserve(line, line->n + n + 1) < 0)
        return latch_fail(r->opt.latch, "%s: out of memory for a line of more than %zu bytes", r->opt.path, line->n);
    memcpy(line->p + line->n, text, n);
    line->n += n;
    return 0;
}

/* Makes the carried line, which is complete, the head of the chunk. */
static void take_carry(struct sam_reader *r, struct sam_chunk *c)
{
    struct byte_buffer head = c->head;
    c->head = r->carry;
    r->carry = head;
}

/* Finds where the lines are in a chunk that has all its text. */
static int close_chunk(struct sam_reader *r)
{
    struct sam_chunk *c = chunk_of(r, task_ring_head(&r->ring));
    const char *newline = memchr(c->text, '\n', c->filled);
    c->end = c->filled;
    while (newline && c->text[c->end - 1] != '\n')
        c->end--;
    c->begin = !newline ? c->end : r->carry.n ? (size_t)(newline - c->text) + 1 : 0;
    if (carry_on(r, c->text, c->begin) < 0)
        return -1;
    if (newline)
        take_carry(r, c);
    if (carry_on(r, c->text + c->end, c->filled - c->end) < 0)
        return -1;
    task_ring_hand_out(&r->ring);
    return 0;
}

/* Closes chunks whose text has all arrived. At the end of the file a line without newline gets a chunk of its own. */
static int close_chunks(struct sam_reader *r)
{
    while (task_ring_head(&r->ring) < r->filling) {
        const struct sam_chunk *c = chunk_of(r, task_ring_head(&r->ring));
        if (c->arrived < c->filled)
            return 0;
        if (close_chunk(r) < 0)
            return -1;
    }
    if (r->at_end && r->carry.n && r->filling - r->ring.tail < r->opt.sam.n_chunks) {
        take_carry(r, chunk_of(r, r->filling++));
        task_ring_hand_out(&r->ring);
    }
    return 0;
}

/* Takes inflated text back. With wait, works until there is some. */
static int take_text(struct sam_reader *r, bool wait)
{
    struct bgzf_source_block block;
    int taken = 1;
    for (; taken > 0; wait = false) {
        if (close_chunks(r) < 0)
            return -1;
        taken = bgzf_source_take(r->source, wait, &block);
        if (taken > 0)
            chunk_of(r, task_ring_head(&r->ring))->arrived += block.size;
    }
    return taken;
}

/* Hands out text for one chunk. 1: done; 0: there is no room, or no more text; -1: failed, and the error is recorded in
 * the latch. */
static int fill_chunk(struct sam_reader *r)
{
    if (r->at_end || r->filling - r->ring.tail == r->opt.sam.n_chunks)
        return 0;
    struct sam_chunk *c = chunk_of(r, r->filling);
    uint32_t size;
    int found;
    while ((found = bgzf_source_peek(r->source, &size)) > 0 && c->filled + size <= r->opt.sam.text_size) {
        if (bgzf_source_ring_full(r->source) && take_text(r, true) < 0)
            return -1;
        bgzf_source_hand_out(r->source, (uint8_t *)c->text + c->filled);
        c->filled += size;
    }
    r->filling += c->filled > 0;
    if (found == 0) {
        r->at_end = true;
        bgzf_source_warn_of_end(r->source);
    }
    return found;
}

/* -------------------------------------------------------- chunks to records */

/* Makes a chunk empty. It becomes small again, or long lines would leave every chunk large. If a buffer cannot be made
 * smaller, it stays as it is. */
static void clear_chunk(const struct sam_reader *r, struct sam_chunk *c)
{
    c->filled = c->arrived = c->begin = c->end = 0;
    byte_buffer_trim(&c->head, r->opt.sam.text_size);
    byte_buffer_trim(&c->records, r->opt.sam.records_size);
    c->n = 0;
    memset(&c->notes, 0, sizeof c->notes);
}

/* Frees the oldest chunks as far as nobody uses them. */
static void free_chunks(struct sam_reader *r)
{
    while (r->ring.tail < r->lent) {
        struct sam_chunk *c = chunk_of(r, r->ring.tail);
        if (atomic_load_explicit(&c->users, memory_order_acquire) > 0)
            return;
        clear_chunk(r, c);
        task_ring_take(&r->ring);
    }
}

/* Hands out work for other threads, and works, until the next chunk is parsed. 1: it is; 0: there is none; -1: failed,
 * and the error is recorded in the latch. */
static int await_chunk(struct sam_reader *r, task_help_fn *help, void *arg)
{
    for (unsigned spins = 0; !latch_tripped(r->opt.latch);) {
        free_chunks(r);
        int filled = fill_chunk(r);
        if (filled < 0 || take_text(r, false) < 0)
            return -1;
        if (r->lent < task_ring_head(&r->ring)
            && task_ring_state(&r->ring, task_ring_slot(&r->ring, r->lent)) == TASK_DONE)
            return 1;
        if (r->at_end && r->lent == r->filling)
            return 0;
        if (filled || task_ring_help(&r->ring) || help(arg)) {
            spins = 0;
        } else if (task_ring_head(&r->ring) == r->filling) {
            enum stage before = stats_enter(r->opt.stats, STAGE_WAIT);
            task_pause(&spins);
            stats_leave(r->opt.stats, before, 0);
        } else if (take_text(r, true) < 0) {
            return -1;
        }
    }
    return -1;
}

/* Records in the latch why the chunk's line is refused. */
static int tell_broken(const struct sam_reader *r, const struct sam_chunk *c)
{
    char excerpt[SAM_EXCERPT_SIZE];
    unsigned long long number = r->n + c->n + 1, line = r->header_lines + number;
    sam_notes_excerpt(excerpt, c->broken.line, c->broken.size);
    if (r->opt.part)                             /* nobody knows how many lines are before it */
        return latch_fail(r->opt.latch, "%s: line %llu from file offset %llu on %s. Nothing was written. %s",
                          r->opt.path, number, (unsigned long long)r->opt.part->begin, c->why, excerpt);
    return latch_fail(r->opt.latch, "%s: record %llu (line %llu) %s. Nothing was written. %s", r->opt.path, number,
                      line, c->why, excerpt);
}

/* Lends the records of the next chunk that has any. Those of the chunk before are used up by now. */
static int more(struct byte_window *window, task_help_fn *help, void *arg)
{
    struct sam_reader *r = (struct sam_reader *)window;
    int found;
    struct sam_chunk *c;
    byte_window_leave(window);
    do {
        if ((found = await_chunk(r, help, arg)) <= 0)
            break;
        c = chunk_of(r, r->lent++);
        sam_notes_merge(&r->notes, &c->notes, r->n, r->opt.part ? UINT64_MAX : r->header_lines, r->opt.path);
        if (c->why)
            return tell_broken(r, c);
        r->n += c->n;
    } while (c->records.n == 0);                 /* it lies in the middle of a long line, or no record passes */
    if (found == 0)
        sam_notes_total(&r->notes, r->opt.path);
    if (found <= 0)
        return found;
    assert(window->size == 0);
    window->data = c->records.p;
    window->size = c->records.n;
    window->users = &c->users;
    return 1;
}

struct byte_window *sam_reader_window(struct sam_reader *r)
{
    return &r->window;
}

/* ------------------------------------------------------------------ header */

/* Moves *at behind the header's lines as far as the text has them. There is no newline between *at and `seen`. True:
 * the header is complete, because another line follows it. */
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

/* Reads text until the header is complete or the file ends. *size: bytes of the header. */
static int read_header_text(struct sam_reader *r, struct byte_buffer *text, size_t *size)
{
    int found = 1;
    size_t at = 0, seen = 0;
    while (!follow(text, &at, seen) && found > 0) {
        seen = text->n;
        found = header_read_block(text, r->source, r->opt.header_max, r->opt.path, r->opt.latch);
    }
    if (found == 0 && text->n == 0)
        return latch_fail(r->opt.latch, "%s is empty: there is not even a header", r->opt.path);
    *size = found > 0 ? at : text->n;
    return found < 0 ? -1 : 0;
}

/* htslib makes the header if it is not plain, because its rules are subtle. One line behind it is needed, or htslib
 * would not know SAM without a header. */
static sam_hdr_t *make_header(const uint8_t *text, size_t size, const struct input_options *options)
{
    static const char line[] = "\nr\t0\tr\t1\t1\t1M\t*\t0\t0\tA\tI\n";
    sam_hdr_t *header = options->format_options ? NULL : plain_header_of_text(text, size);
    if (header)
        return header;
    bool ended = size == 0 || text[size - 1] == '\n';
    hFILE *file = hts_file_of_bytes(text, size, line + ended);
    if (!file) {
        latch_fail(options->latch, "%s: out of memory for the header", options->path);
        return NULL;
    }
    struct hts_reader *reader = hts_reader_open(file, options, NULL, &header);
    if (reader) {
        hts_reader_close(reader);
        if (sam_hdr_count_lines(header, "SQ") >= 0)      /* of a copy, which is not parsed */
            return header;
        latch_fail(options->latch, "%s: out of memory for the header", options->path);
    }
    sam_hdr_destroy(header);
    return NULL;
}

static int tell_header(const struct header_text *found, const struct input_options *options)
{
    char excerpt[SAM_EXCERPT_SIZE];
    sam_notes_excerpt(excerpt, found->line, found->size);
    return latch_fail(options->latch, "%s: its header cannot be read: line %zu %s. Nothing was written. %s",
                      options->path, found->number, found->fault, excerpt);
}

sam_hdr_t *sam_reader_header(const uint8_t *text, size_t size, const struct input_options *options)
{
    struct header_text found = header_text_check((const char *)text, size, true);
    if (found.fault) {
        tell_header(&found, options);
        return NULL;
    }
    if (found.bare == 0)
        return make_header(text, size, options);
    char *mended = malloc(size + found.bare);
    sam_hdr_t *header = NULL;
    if (mended)
        header = make_header((uint8_t *)mended, header_text_mend(mended, (const char *)text, size), options);
    else
        latch_fail(options->latch, "%s: out of memory for the header", options->path);
    free(mended);
    return header;
}

/* Keeps the names of the references, and what the filter needs. */
static int take_names(struct sam_reader *r, sam_hdr_t *sam)
{
    const char *filter = record_filter_of(r->opt.format_options);
    r->names = ref_names_new(sam);
    if (r->names && filter)
        r->filter = record_filter_new(filter, sam, r->opt.sam.n_chunks);
    return r->names && (r->filter || !filter) ? 0 : no_memory_for(r, "the header");
}

static int parse_header(struct sam_reader *r, const uint8_t *text, size_t size, sam_hdr_t **header)
{
    if (!*header)
        *header = sam_reader_header(text, size, &r->opt);
    return *header ? take_names(r, *header) : -1;
}

/* A part has no header of its own. */
static int take_header(struct sam_reader *r, sam_hdr_t **header)
{
    *header = sam_hdr_dup(r->opt.part->sam);
    return *header ? take_names(r, *header) : no_memory_for(r, "the header");
}

/* Reads the header. The lines behind it that its last block has are put into the first chunk. */
static int read_header(struct sam_reader *r, sam_hdr_t **header)
{
    struct byte_buffer text = {NULL, 0, 0};
    size_t size = 0;
    int status = read_header_text(r, &text, &size) < 0 || parse_header(r, text.p, size, header) < 0 ? -1 : 0;
    if (status == 0) {
        struct sam_chunk *c = r->chunks;
        c->filled = c->arrived = text.n - size;
        if (text.p)
            memcpy(c->text, text.p + size, c->filled);
        for (size_t i = 0; i < size; i++)
            r->header_lines += text.p[i] == '\n';
    }
    free(text.p);
    return status;
}

/* ----------------------------------------------------------- open and close */

static int alloc_chunks(struct sam_reader *r)
{
    struct task_ring_options ring = {.n_slots = r->opt.sam.n_chunks, .run = parse_chunk, .arg = r};
    if (task_ring_open(&r->ring, &ring) < 0)
        return no_memory_for(r, "lines");
    r->chunks = calloc(r->opt.sam.n_chunks, sizeof *r->chunks);
    for (uint32_t i = 0; r->chunks && i < r->opt.sam.n_chunks; i++) {
        struct sam_chunk *c = &r->chunks[i];
        c->text = malloc(r->opt.sam.text_size + 1);
        if (!c->text || byte_buffer_reserve(&c->records, r->opt.sam.records_size) < 0)
            return no_memory_for(r, "lines");
    }
    return r->chunks ? 0 : no_memory_for(r, "lines");
}

struct sam_reader *sam_reader_open(struct byte_window *text, bool packed, const struct input_options *options,
                                   sam_hdr_t **header)
{
    struct sam_reader *r = calloc(1, sizeof *r);
    if (!r) {
        latch_fail(options->latch, "out of memory");
        return NULL;
    }
    r->opt = *options;
    r->window.more = more;
    struct bgzf_source_options from = {
        .input = text,
        .framed = packed,
        .path = options->path,
        .n_threads = options->n_threads,
        .n_slots = options->sam.source_slots,
        .latch = options->latch,
        .stats = options->stats,
        .text_size = (uint32_t)options->sam.text_size,
    };
    if (options->sam.tight)
        machine_keep_heaps_small();              /* lines longer than a chunk make it larger for a while */
    r->source = bgzf_source_open(&from);
    if (r->source && alloc_chunks(r) == 0
        && (options->part ? take_header(r, header) : read_header(r, header)) == 0)
        return r;
    sam_reader_close(r);
    return NULL;
}

/* What no late task looks at. */
static void free_parts(struct sam_reader *r)
{
    for (uint32_t i = 0; r->chunks && i < r->opt.sam.n_chunks; i++) {
        struct sam_chunk *c = &r->chunks[i];
        free(c->text);
        free(c->head.p);
        free(c->records.p);
    }
    free(r->chunks);
    free(r->carry.p);
    ref_names_free(r->names);
    record_filter_free(r->filter);
    r->chunks = NULL;
    r->carry.p = NULL;
    r->names = NULL;
    r->filter = NULL;
}

void sam_reader_end(struct sam_reader *r)
{
    bgzf_source_end(r->source);
    free_chunks(r);
    free_parts(r);
}

void sam_reader_close(struct sam_reader *r)
{
    if (!r)
        return;
    bgzf_source_close(r->source);
    bool read_all = r->at_end && r->lent == r->filling && !latch_tripped(r->opt.latch);
    if (read_all)
        free_chunks(r);
    task_ring_close(&r->ring, read_all);
    free_parts(r);
    free(r);
}
