/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "fixmate/base_mods.h"
#include "base/byte_hash.h"
#include "base/engine.h"
#include "base/latch.h"
#include "read/fixed_records.h"
#include "read/record_cut.h"

/* The values that record_unit_fn returns. */
enum fix_fault {
    FIX_NO_MEMORY = RECORD_CUT_NO_MEMORY, FIX_FINE, FIX_TOO_LONG, FIX_NO_LENGTH, FIX_BAD_TAGS, FIX_BEYOND, FIX_CHANGED
};

/* The state and the result of a chunk's task, by the chunk's number; the claimer's before DONE. */
struct fix_found {
    struct fixmate fixmate;
    struct byte_buffer orphans;  /* uint64_t each: orphan_number() of each template that is an orphan */
    char name[UINT8_MAX + 1];    /* name of the template that cannot be fixed */
};

struct fixed_records {
    struct fixed_records_options opt;
    struct chunk_reader *chunks;
    struct record_cut cut;       /* cuts the input into templates */
    int32_t n_ref;
    struct fix_found *found;
};

/* ------------------------------------------------------------------- tasks */

/* Compares the parts of a read that fixmate never changes. Tags are compared if fixmate cuts some tags. */
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

/* Lists the records that were made from p[n], which are in to->records from `start` on. They must be the records of
 * p[n] in the same order, and only dropped records may be missing. */
static enum fix_fault list_made(const struct fixed_records *r, struct record_slice *to, size_t start, const uint8_t *p,
                                size_t n, uint64_t dropped)
{
    size_t end = to->records.n;
    enum bam_fault none;
    for (size_t at = 0; at < n; at += bam_record_size(bam_record_at(p + at))) {
        const struct bam_record *made = bam_record_at(to->records.p + start);
        struct bam_verdict verdict = bam_record_check(to->records.p + start, end - start, r->n_ref);
        if (verdict.fault || !is_same_read(bam_record_at(p + at), made, r->opt.request->rules.base_mods)) {
            if (dropped-- == 0)                  /* with new tags, the bytes after the other tags become a tag that
                                                  * hides CG */
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

/* Returns a number for the name of the orphan in p[n]: a template of which only one read is present. The lowest bit
 * says which one. 0: the template is not an orphan. */
static uint64_t orphan_number(const uint8_t *p, size_t n)
{
    enum { OTHERS = BAM_FSECONDARY | BAM_FSUPPLEMENTARY, HALVES = BAM_FREAD1 | BAM_FREAD2 };
    unsigned half = 0;
    for (size_t at = 0; at < n; at += bam_record_size(bam_record_at(p + at))) {
        unsigned flag = bam_record_flag(bam_record_at(p + at));
        if (flag & OTHERS)
            continue;
        if (half || !(flag & BAM_FPAIRED))
            return 0;
        half = flag & HALVES;
    }
    if (half != BAM_FREAD1 && half != BAM_FREAD2)
        return 0;
    size_t n_name = strnlen(bam_record_name(bam_record_at(p)), bam_record_at(p)->name_len);
    uint64_t orphan = (byte_hash(p + BAM_FIXED, n_name, 0) & ~(uint64_t)1) | (half == BAM_FREAD2);
    return orphan > 1 ? orphan : orphan | 2;
}

/* Notes the template p[n] if it is an orphan. */
static enum fix_fault look_for_mate(struct fix_found *f, const uint8_t *p, size_t n)
{
    uint64_t orphan = orphan_number(p, n);
    return orphan && byte_buffer_append(&f->orphans, &orphan, sizeof orphan) < 0 ? FIX_NO_MEMORY : FIX_FINE;
}

/* Fixes the template p[n], whose records are checked. */
static enum fix_fault fix_template(const struct fixed_records *r, struct fix_found *f, struct chunk *c,
                                   const uint8_t *p, size_t n)
{
    struct record_slice *to = &c->made;
    size_t start = to->records.n;
    uint64_t dropped = 0;
    if (r->opt.request->orphans && look_for_mate(f, p, n))
        return FIX_NO_MEMORY;
    if (fixmate_template(&f->fixmate, &r->opt.request->rules, p, n, &to->records, &dropped) < 0)
        return errno == EOVERFLOW ? FIX_TOO_LONG : errno == EINVAL ? FIX_NO_LENGTH
             : errno == EBADMSG ? FIX_BAD_TAGS : FIX_NO_MEMORY;
    c->dropped += dropped;
    return list_made(r, to, start, p, n, dropped);
}

static int fix_unit(void *records, uint32_t number, struct chunk *c, const struct record_unit *unit)
{
    const struct fixed_records *r = records;
    struct fix_found *f = &r->found[number];
    enum fix_fault fault = fix_template(r, f, c, unit->bytes, unit->size);
    const struct bam_record *first = bam_record_at(unit->bytes);
    if (fault)
        snprintf(f->name, sizeof f->name, "%.*s", first->name_len, bam_record_name(first));
    return fault;
}

static void fix_chunk(void *records, uint32_t number, struct chunk *c)
{
    struct fixed_records *r = records;
    struct fix_found *f = &r->found[number];
    f->orphans.n = 0;
    f->name[0] = '\0';
    record_cut_make(&r->cut, number, c);
}

/* ------------------------------------------------------------- main thread */

/* Returns where the last template is left for the next input. If the last record is cut, it is not left: it ends its
 * input. */
static struct byte_buffer *leave_template(void *records, const struct byte_buffer *carried, uint64_t *n)
{
    const struct fixed_records *r = records;
    if (r->opt.is_last || !record_cut_is_whole(&r->cut))
        return NULL;
    for (size_t at = 0; at < carried->n; at += bam_record_said_size(carried->p + at))
        ++*n;
    return &r->opt.request->open;
}

/* Takes the template that the input before has left, as if its records belonged to this input. */
static void go_on(struct fixed_records *r)
{
    struct byte_buffer *open = &r->opt.request->open;
    chunk_reader_go_on(r->chunks, open, record_cut_go_on(&r->cut, open->p, open->n));
}

static int report(const struct fixed_records *r, const struct fix_found *f, const struct chunk *c,
                struct record_found found)
{
    static const char no_memory[] = "and those of its name do not fit into memory";
    static const char *const why[] = {
        [FIX_FINE] = "",
        [FIX_TOO_LONG] = "and those of its name cannot be fixed: with new tags, one of them would be too long for BAM",
        [FIX_NO_LENGTH] = "or a later one with the same name has base modifications, but its MN is not a number, or "
                          "a tag cannot be read. Nothing was written; fix that, or leave -M out",
        [FIX_BAD_TAGS] = "or a later one with the same name has tags that cannot be read. Nothing was written; fix "
                         "the record, or leave it out of the input",
        [FIX_BEYOND] = "or a later one with the same name begins after the end of its reference, and htslib could not "
                       "read it again from CRAM. Nothing was written; use -O bam, or --output-fmt-option no_ref=1",
        [FIX_CHANGED] = "or a later one with the same name has become another read. Memory may be faulty, or this is "
                        "our bug: please report it",
    };
    char text[2 * UINT8_MAX + 64];
    snprintf(text, sizeof text, "%s(%s) %s", r->opt.in.stream.is_reordered ? "as collated " : "", f->name,
             found.status < 0 ? no_memory : why[found.status]);
    return chunk_reader_report(r->chunks, c, found.fault, NULL, text);
}

static int lend(void *records, uint32_t number, struct chunk *c)
{
    struct fixed_records *r = records;
    const struct fix_found *f = &r->found[number];
    const void *orphans = f->orphans.p;
    struct record_found found = record_cut_found(&r->cut, number);
    if (found.status || found.fault)
        return report(r, f, c, found);
    const struct fix_request *request = r->opt.request;
    return request->orphans ? request->orphans(request->orphans_arg, orphans, f->orphans.n / sizeof(uint64_t)) : 0;
}

struct record_stream fixed_records_stream(struct fixed_records *r)
{
    return chunk_reader_stream(r->chunks);
}

/* ---------------------------------------------------------- open and close */

static int prepare(struct fixed_records *r, struct bam_header *header)
{
    struct record_cut_options cut = {
        .in = &r->opt.in,
        .n_chunks = r->opt.in.use.n_chunks,
        .n_ref = sam_hdr_nref(header->sam),
        .by_name = true,
        .counts_bytes = !r->opt.in.stream.is_reordered,
        .unit = fix_unit,
        .arg = r,
    };
    struct chunk_reader_options how = {
        .in = r->opt.in,
        .header = header,
        .make = fix_chunk,
        .lend = lend,
        .leave = leave_template,
        .arg = r,
    };
    r->n_ref = cut.n_ref;
    r->found = calloc(r->opt.in.use.n_chunks, sizeof *r->found);
    if (record_cut_open(&r->cut, &cut) < 0 || !r->found)
        return -1;
    how.cutter = record_cut_cutter(&r->cut);
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
    latch_fail(options->in.engine->latch, "%s: out of memory", options->in.path);
    fixed_records_close(r);
    return NULL;
}

static void free_parts(struct fixed_records *r)
{
    for (uint32_t i = 0; r->found && i < r->opt.in.use.n_chunks; i++) {
        fixmate_free(&r->found[i].fixmate);
        free(r->found[i].orphans.p);
    }
    free(r->found);
    record_cut_close(&r->cut);
    r->found = NULL;
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
