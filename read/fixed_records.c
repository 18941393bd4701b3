/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "fixmate/base_mods.h"
#include "bam/record_search.h"
#include "base/byte_hash.h"
#include "base/latch.h"
#include "base/stats.h"
#include "bgzf_omp.h"
#include "read/fixed_records.h"

enum fix_fault {
    FIX_FINE, FIX_BROKEN, FIX_TOO_LONG, FIX_NO_LENGTH, FIX_BAD_TAGS, FIX_BEYOND, FIX_CHANGED, FIX_NO_MEMORY
};

/* What the task of a chunk has, and what it found, by the chunk's number: the claimer's before DONE. */
struct fix_found {
    struct fixmate fixmate;
    struct byte_buffer lone;     /* uint64_t: lone_mate() of the templates that are one */
    enum fix_fault fault;        /* of the record behind those that were looked at */
    enum bam_fault broken;       /* why it is */
    char name[UINT8_MAX + 1];    /* of the template that it begins, unless it is broken */
};

/* What the main thread knows of the bytes that it has cut, at their end. */
struct seam {
    char name[UINT8_MAX + 1];    /* of the last record whose name is whole */
    size_t name_size;            /* 0: there is none */
    size_t part;                 /* bytes of the record that is cut, which are carried; 0: none is */
    uint64_t n;                  /* whole records that end in the chunk or block, so far */
    bool is_broken;              /* there is no telling where the next record begins */
};

/* Where templates begin, in bytes whose records have been followed up to `end`: the first one and the last. */
struct borders {
    size_t first, last, end;
    bool any;
};

/* What the task that inflated a block found in it: n records that follow each other, from `begin` on. */
struct block_borders {
    size_t begin;
    uint64_t n;
    struct borders inner;        /* between them; `end` is where the last whole one ends */
};

struct fixed_records {
    struct fixed_records_options opt;
    struct chunk_reader *chunks;
    int32_t n_ref;
    struct fix_found *found;
    struct block_borders *blocks;    /* by the source's slots: right ones, we hope */
    struct seam seam;            /* main thread, as all below */
    bool follows;                /* in the chunk whose bytes come, it is known where records begin ... */
    struct borders borders;      /* ... and these are there so far */
};

static const struct bam_record *record_at(const uint8_t *p)
{
    return (const struct bam_record *)p;
}

/* Whether names of so many bytes are the same. One may lack its NUL. */
static bool is_same(const char *a, size_t n_a, const char *b, size_t n_b)
{
    return strncmp(a, b, n_a < n_b ? n_a : n_b) == 0 && strnlen(a, n_a) == strnlen(b, n_b);
}

static bool is_named_as(const struct bam_record *a, const struct bam_record *b)
{
    return is_same(bam_record_name(a), a->name_len, bam_record_name(b), b->name_len);
}

/* ------------------------------------------------------------------- tasks */

/* What of a read fixmate never changes; tags are compared where some are cut. */
static bool is_same_read(const struct bam_record *a, const struct bam_record *b, bool with_tags)
{
    enum { KEPT = BAM_FREAD1 | BAM_FREAD2 | BAM_FREVERSE | BAM_FSECONDARY | BAM_FSUPPLEMENTARY | BAM_FDUP };
    size_t l_seq = load_le32(a->seq_len), n = (l_seq + 1) / 2 + l_seq;
    return a->name_len == b->name_len && l_seq == load_le32(b->seq_len)
        && !((bam_record_flag(a) ^ bam_record_flag(b)) & KEPT)
        && memcmp(a->data, b->data, a->name_len) == 0
        && memcmp(bam_record_aux(a) - n, bam_record_aux(b) - n, n) == 0
        && (!with_tags || base_mods_kept_others(a, b));
}

/* The records that were made of p[n] are in to->records from `start` on: lists them. Each must be one of p[n], in
 * order, and none may be lacking but those dropped. */
static enum fix_fault list_made(const struct fixed_records *r, struct record_slice *to, size_t start, const uint8_t *p,
                                size_t n, uint64_t dropped)
{
    size_t end = to->records.n;
    enum bam_fault none;
    for (size_t at = 0; at < n; at += bam_record_size(record_at(p + at))) {
        const struct bam_record *made = record_at(to->records.p + start);
        struct bam_verdict verdict = bam_record_check(to->records.p + start, end - start, r->n_ref);
        if (verdict.fault || !is_same_read(record_at(p + at), made, r->opt.wish->rules.base_mods)) {
            if (dropped-- == 0)                  /* new tags make bytes behind the others one that hides CG */
                return verdict.fault == BAM_BAD_CG ? FIX_BAD_TAGS : FIX_CHANGED;
            continue;
        }
        if (bam_record_is_beyond(made, r->opt.lengths))
            return FIX_BEYOND;
        if (record_slice_list(to, start, false, NULL, &none) < 0)
            return FIX_NO_MEMORY;
        start = to->records.n;
    }
    return dropped == 0 && start == end ? FIX_FINE : FIX_CHANGED;
}

/* Of a mate whose other half is not in its template p[n]: a number for the name whose lowest bit says which half it is.
 * 0: there is none. */
static uint64_t lone_mate(const uint8_t *p, size_t n)
{
    enum { OTHERS = BAM_FSECONDARY | BAM_FSUPPLEMENTARY, HALVES = BAM_FREAD1 | BAM_FREAD2 };
    unsigned half = 0;
    for (size_t at = 0; at < n; at += bam_record_size(record_at(p + at))) {
        unsigned flag = bam_record_flag(record_at(p + at));
        if (flag & OTHERS)
            continue;
        if (half || !(flag & BAM_FPAIRED))
            return 0;
        half = flag & HALVES;
    }
    if (half != BAM_FREAD1 && half != BAM_FREAD2)
        return 0;
    size_t n_name = strnlen(bam_record_name(record_at(p)), record_at(p)->name_len);
    uint64_t lone = (byte_hash(p + BAM_FIXED, n_name, 0) & ~(uint64_t)1) | (half == BAM_FREAD2);
    return lone > 1 ? lone : lone | 2;
}

/* Notes it. */
static enum fix_fault look_for_mate(struct fix_found *f, const uint8_t *p, size_t n)
{
    uint64_t lone = lone_mate(p, n);
    return lone && byte_buffer_append(&f->lone, &lone, sizeof lone) < 0 ? FIX_NO_MEMORY : FIX_FINE;
}

/* Fixes the template p[n] of so many records, which are checked. */
static enum fix_fault fix_template(const struct fixed_records *r, struct fix_found *f, struct chunk *c,
                                   const uint8_t *p, size_t n)
{
    struct record_slice *to = &c->made;
    size_t start = to->records.n;
    uint64_t dropped = 0;
    if (r->opt.wish->lone && look_for_mate(f, p, n))
        return FIX_NO_MEMORY;
    if (fixmate_template(&f->fixmate, &r->opt.wish->rules, p, n, &to->records, &dropped) < 0)
        return errno == EOVERFLOW ? FIX_TOO_LONG : errno == EINVAL ? FIX_NO_LENGTH
             : errno == EBADMSG ? FIX_BAD_TAGS : FIX_NO_MEMORY;
    c->dropped += dropped;
    return list_made(r, to, start, p, n, dropped);
}

static void fix_templates(const struct fixed_records *r, struct fix_found *f, struct chunk *c, const uint8_t *p,
                          size_t n);

/* Appends the records in p[n] with the NULs that their names lack; one with another fault, and all behind it, as they
 * are. -1: no memory. */
static int close_names(const struct fixed_records *r, struct byte_buffer *to, const uint8_t *p, size_t n)
{
    size_t at = 0;
    for (int status = 0; at < n; at += bam_record_size(record_at(p + at))) {
        enum bam_fault fault = bam_record_check(p + at, n - at, r->n_ref).fault;
        if (bam_record_can_close(p + at, fault))
            status = bam_record_close(to, p + at);
        else if (fault)
            break;
        else
            status = byte_buffer_append(to, p + at, bam_record_size(record_at(p + at)));
        if (status < 0)
            return -1;
    }
    return byte_buffer_append(to, p + at, n - at);
}

/* Fixes the templates in p[n], in which names lack their NULs. */
static void fix_closed(const struct fixed_records *r, struct fix_found *f, struct chunk *c, const uint8_t *p, size_t n)
{
    struct byte_buffer closed = {NULL, 0, 0};
    uint64_t before = c->size;
    f->fault = close_names(r, &closed, p, n) < 0 ? FIX_NO_MEMORY : FIX_FINE;
    if (!f->fault)
        fix_templates(r, f, c, closed.p, closed.n);
    if (!f->fault)
        c->size = before + n;
    free(closed.p);
}

/* Fixes the templates in p[n], until a record has a fault. */
static void fix_templates(const struct fixed_records *r, struct fix_found *f, struct chunk *c, const uint8_t *p,
                          size_t n)
{
    uint64_t n_open = 0;
    for (size_t start = 0, at = 0; start < n && !f->fault;) {
        struct bam_verdict verdict = {BAM_OK, 0};
        if (at < n)
            verdict = bam_record_check(p + at, n - at, r->n_ref);
        if (at < n && bam_record_can_close(p + at, verdict.fault)) {
            fix_closed(r, f, c, p + start, n - start);
            return;
        }
        if (at == n || verdict.fault || (at > start && !is_named_as(record_at(p + start), record_at(p + at)))) {
            f->fault = at > start ? fix_template(r, f, c, p + start, at - start) : FIX_FINE;
            if (f->fault) {
                snprintf(f->name, sizeof f->name, "%.*s", record_at(p + start)->name_len,
                         bam_record_name(record_at(p + start)));
                return;
            }
            c->n += n_open;
            c->size += at - start;
            n_open = 0;
            start = at;
        }
        f->broken = verdict.fault;
        f->fault = verdict.fault ? FIX_BROKEN : FIX_FINE;
        if (at < n && !f->fault) {
            at += bam_record_size(record_at(p + at));
            n_open++;
        }
    }
}

static void fix_chunk(void *records, uint32_t number, struct chunk *c)
{
    const struct fixed_records *r = records;
    struct fix_found *f = &r->found[number];
    *f = (struct fix_found){.fixmate = f->fixmate, .lone = {f->lone.p, 0, f->lone.max}};
    fix_templates(r, f, c, c->head.p, c->head.n);
    if (!f->fault)
        fix_templates(r, f, c, c->bytes + c->begin, c->end - c->begin);
}

/* ------------------------------------------------------------- main thread */

static void keep_name(struct seam *s, const uint8_t *record)
{
    s->name_size = record_at(record)->name_len;
    memcpy(s->name, record + BAM_FIXED, s->name_size);
}

/* Goes on with the record that is cut at the end of `carried`, in p[n]. Returns how many bytes of p are its own, or
 * SIZE_MAX: it does not end there. */
static size_t end_record(const struct fixed_records *r, struct seam *s, const struct byte_buffer *carried,
                         const uint8_t *p, size_t n)
{
    uint8_t head[BAM_FIXED + UINT8_MAX];
    size_t had = s->part < sizeof head ? s->part : sizeof head;
    size_t more = n < sizeof head - had ? n : sizeof head - had, known = had + more;
    memcpy(head, carried->p + carried->n - s->part, had);
    memcpy(head + had, p, more);
    enum bam_fault fault = bam_record_check(head, known, r->n_ref).fault;
    if (known < BAM_FIXED || (fault == BAM_CUT && bam_record_said_size(head) > s->part + n))
        return SIZE_MAX;
    s->is_broken = fault && fault != BAM_CUT && !bam_record_can_close(head, fault);
    if (s->is_broken)                            /* what is known will do for the task to tell */
        return known > s->part ? known - s->part : 0;
    keep_name(s, head);
    s->n++;
    return (size_t)bam_record_said_size(head) - s->part;
}

/* The record at p is there with its name. */
static void look_for_border(struct seam *s, const uint8_t *p, size_t at, struct borders *b)
{
    const struct bam_record *record = record_at(p + at);
    if (s->name_size && is_same(s->name, s->name_size, bam_record_name(record), record->name_len))
        return;
    b->first = b->any ? b->first : at;
    b->last = at;
    b->any = true;
    keep_name(s, p + at);
}

/* Passes the records of the block; the first one has been looked at. */
static void leap(struct seam *s, struct borders *b, const uint8_t *p, size_t start, const struct block_borders *block)
{
    if (block->inner.any) {
        b->first = b->any ? b->first : start + block->inner.first;
        b->last = start + block->inner.last;
        b->any = true;
        keep_name(s, p + b->last);
    }
    b->end = start + block->inner.end;
    s->n += block->n;
}

static bool has_name(const uint8_t *p, size_t n)
{
    return n >= BAM_FIXED && n - BAM_FIXED >= record_at(p)->name_len;
}

/* Goes on with the borders of p[n] until a record is cut. Records of a block that begins at `start` are leapt over: the
 * bytes are in the caches of others. block: NULL: there is none. */
static void find_borders(struct seam *s, struct borders *b, const uint8_t *p, size_t n, size_t start,
                         const struct block_borders *block)
{
    for (;;) {
        size_t at = b->end;
        bool leaps = block && block->n > 0 && at == start + block->begin;
        if (!leaps && !has_name(p + at, n - at))
            return;
        look_for_border(s, p, at, b);
        if (leaps) {
            leap(s, b, p, start, block);
            continue;
        }
        if (bam_record_said_size(p + at) > n - at)
            return;
        b->end += bam_record_said_size(p + at);
        s->n++;
    }
}

/* In the inflate task. */
static void find_in_block(void *records, const struct bgzf_source_block *block)
{
    const struct fixed_records *r = records;
    enum stage before = stats_enter(r->opt.in.stats, STAGE_FIND);
    struct record_chain chain = record_search_chain(block->data, block->size, r->n_ref);
    struct block_borders found = {.begin = chain.begin, .inner.end = chain.begin};
    struct seam s = {.name_size = 0};
    if (has_name(block->data + chain.begin, chain.end - chain.begin))
        keep_name(&s, block->data + chain.begin);
    find_borders(&s, &found.inner, block->data, chain.end, 0, NULL);
    found.n = s.n;
    r->blocks[block->slot] = found;
    stats_leave(r->opt.in.stats, before, block->size);
}

/* Whether it is known where records begin in the p[n] of a chunk. */
static bool begin_chunk(struct fixed_records *r, const struct byte_buffer *carried, const uint8_t *p, size_t n)
{
    struct seam *s = &r->seam;
    if (r->follows)
        return true;
    size_t at = s->part && !s->is_broken ? end_record(r, s, carried, p, n) : 0;
    r->borders = (struct borders){.end = at < n ? at : n};
    return r->follows = at != SIZE_MAX;
}

static void follow_block(void *records, const struct byte_buffer *carried, const uint8_t *p, size_t n,
                         const struct bgzf_source_block *block)
{
    struct fixed_records *r = records;
    if (begin_chunk(r, carried, p, n) && !r->seam.is_broken)
        find_borders(&r->seam, &r->borders, p, n, (size_t)(block->data - p), &r->blocks[block->slot]);
}

/* If a record is broken, the bytes up to their end are the task's, which tells of it. */
static int cut_templates(void *records, const struct byte_buffer *carried, const uint8_t *p, size_t n,
                         struct chunk_cut *cut)
{
    struct fixed_records *r = records;
    struct seam *s = &r->seam;
    struct borders *b = &r->borders;
    *cut = (struct chunk_cut){n, n, false, 0};
    if (!begin_chunk(r, carried, p, n)) {
        s->part += n;
        return 0;
    }
    r->follows = false;
    if (s->is_broken) {
        *cut = (struct chunk_cut){b->end, n, true, 0};
        return 0;
    }
    find_borders(s, b, p, n, 0, NULL);
    s->part = n - b->end;
    enum bam_fault fault = s->part ? bam_record_check(p + b->end, s->part, r->n_ref).fault : BAM_CUT;
    s->is_broken = fault != BAM_CUT;
    if (b->any || s->is_broken)
        *cut = (struct chunk_cut){b->any ? b->first : b->end, s->is_broken ? n : b->last, true, 0};
    cut->n = s->n;
    s->n = 0;
    return 0;
}

static const uint8_t *record_in(const struct slice_piece *piece, size_t number)
{
    return bam_key_record(piece->slice->records.p, piece->slice->keys[piece->first + number]);
}

/* The templates between the first that begins there and the last need no look. */
static void cut_piece(void *records, const struct slice_piece *piece, struct chunk_cut *cut)
{
    struct seam *s = &((struct fixed_records *)records)->seam;
    struct borders b = {.any = false};
    size_t first = 0, last = piece->n - 1;
    look_for_border(s, record_in(piece, first), 0, &b);
    while (!b.any && first < last)
        look_for_border(s, record_in(piece, ++first), 0, &b);
    *cut = (struct chunk_cut){piece->size, piece->size, false, piece->n};
    if (!b.any)
        return;
    keep_name(s, record_in(piece, last));
    while (last > first && is_named_as(record_at(record_in(piece, last - 1)), record_at(record_in(piece, last))))
        last--;
    cut->begin = (size_t)(record_in(piece, first) - piece->bytes);
    cut->end = (size_t)(record_in(piece, last) - piece->bytes);
    cut->ends_carried = true;
}

/* A record that is cut ends its input. */
static struct byte_buffer *leave_template(void *records, const struct byte_buffer *carried, uint64_t *n)
{
    const struct fixed_records *r = records;
    if (r->opt.is_last || r->seam.part || r->seam.is_broken)
        return NULL;
    for (size_t at = 0; at < carried->n; at += bam_record_said_size(carried->p + at))
        ++*n;
    return &r->opt.wish->open;
}

/* Takes the template that the input before has left: the seam is as if its records were of this input. */
static void go_on(struct fixed_records *r)
{
    struct byte_buffer *open = &r->opt.wish->open;
    uint64_t n = 0;
    for (size_t at = 0; at < open->n; at += bam_record_said_size(open->p + at), n++)
        keep_name(&r->seam, open->p + at);
    chunk_reader_go_on(r->chunks, open, n);
}

static int tell(const struct fixed_records *r, const struct fix_found *f, const struct chunk *c)
{
    static const char *const why[] = {
        [FIX_BROKEN] = "",
        [FIX_TOO_LONG] = "and those of its name cannot be fixed: with its new tags, one would be longer than BAM holds",
        [FIX_NO_LENGTH] = "or one behind it of the same name has base modifications, but its MN is no number, or a tag "
                          "cannot be read. Nothing was written; mend that, or leave -M out",
        [FIX_BAD_TAGS] = "or one behind it of the same name has tags that cannot be read. Nothing was written; mend "
                         "the record, or leave it out of the input",
        [FIX_BEYOND] = "or one behind it of the same name begins behind the end of its reference, and htslib could not "
                       "read it again from CRAM. Nothing was written; use -O bam, or --output-fmt-option no_ref=1",
        [FIX_CHANGED] = "or one behind it of the same name has become another read. Memory may be faulty, or this is "
                        "our bug: please report it",
        [FIX_NO_MEMORY] = "finds no memory, with all those of its name",
    };
    char text[2 * UINT8_MAX + 64];
    snprintf(text, sizeof text, "%s(%s) %s", r->opt.collated ? "as collated " : "", f->name, why[f->fault]);
    return chunk_reader_tell(r->chunks, c, f->broken, NULL, text);
}

static int lend(void *records, uint32_t number, struct chunk *c)
{
    struct fixed_records *r = records;
    const struct fix_found *f = &r->found[number];
    const void *lone = f->lone.p;
    if (f->fault)
        return tell(r, f, c);
    return r->opt.wish->lone ? r->opt.wish->lone(r->opt.wish->lone_arg, lone, f->lone.n / sizeof(uint64_t)) : 0;
}

struct chunk_reader *fixed_records_chunks(struct fixed_records *r)
{
    return r->chunks;
}

/* ---------------------------------------------------------- open and close */

static int prepare(struct fixed_records *r, struct bam_header *header)
{
    struct chunk_reader_options how = {
        .in = r->opt.in,
        .header = header,
        .cut = cut_templates,
        .cut_piece = cut_piece,
        .arrived = follow_block,
        .inflated = find_in_block,
        .make = fix_chunk,
        .lend = lend,
        .leave = leave_template,
        .arg = r,
    };
    r->n_ref = sam_hdr_nref(header->sam);
    r->found = calloc(r->opt.in.use.n_chunks, sizeof *r->found);
    r->blocks = calloc(r->opt.in.source ? bgzf_source_slots(r->opt.in.source) : 1, sizeof *r->blocks);
    if (!r->found || !r->blocks)
        return -1;
    if (!(r->chunks = chunk_reader_open(&how)))
        return -1;
    go_on(r);
    return 0;
}

struct fixed_records *fixed_records_open(const struct fixed_records_options *options, struct bam_header *header)
{
    struct fixed_records *r = calloc(1, sizeof *r);
    if (r) {
        r->opt = *options;
        if (prepare(r, header) == 0)
            return r;
    }
    latch_fail(options->in.latch, "%s: out of memory", options->in.path);
    fixed_records_close(r);
    return NULL;
}

static void free_parts(struct fixed_records *r)
{
    for (uint32_t i = 0; r->found && i < r->opt.in.use.n_chunks; i++) {
        fixmate_free(&r->found[i].fixmate);
        free(r->found[i].lone.p);
    }
    free(r->found);
    free(r->blocks);
    r->found = NULL;
    r->blocks = NULL;
}

void fixed_records_end(struct fixed_records *r)
{
    chunk_reader_end(r->chunks);
    free_parts(r);
}

void fixed_records_close(struct fixed_records *r)
{
    if (!r)
        return;
    chunk_reader_close(r->chunks);
    free_parts(r);
    free(r);
}
