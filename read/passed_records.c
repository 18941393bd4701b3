/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/record_remap.h"
#include "bam/record_search.h"
#include "bam/ref_regions.h"
#include "base/latch.h"
#include "base/stats.h"
#include "bgzf_omp.h"
#include "codec/kept_block.h"
#include "order/group_mark.h"
#include "read/chunk_reader.h"
#include "read/passed_records.h"
#include "read/record_filter.h"
#include "read/record_slice.h"

enum { COPY_SIZE = 4096 };       /* bytes that a chunk keeps for the copy of a record that is mended and looked at */

enum pass_fault { PASS_NO_MEMORY = -1, PASS_FINE, PASS_BROKEN, PASS_NO_FILTER, PASS_BEYOND };

#define NO_FILTER \
    "cannot be filtered: htslib cannot evaluate --input-fmt-option filter= for it. Nothing was written"
#define BEYOND \
    "begins behind the end of its reference, and htslib could not read it again from CRAM. Nothing was written; use " \
    "-O bam, or --output-fmt-option no_ref=1"

/* What the task of a chunk found in it, by the chunk's number: the claimer's before DONE. */
struct pass_found {
    int fault;                   /* of the record behind those that were looked at; below 0: of record_remap_append() */
    enum bam_fault broken;       /* why it is */
    size_t at;                   /* of a merge: where its record with a fault begins */
    struct remap_unknown unknown;    /* of a merge */
    size_t n_blocks;             /* kept blocks of the chunk that have been passed */
    struct byte_buffer closed;   /* a record whose name lacked its NUL, with it */
};

struct passed_records {
    struct passed_records_options opt;
    struct chunk_reader *chunks;
    struct record_filter *filter;    /* a chunk's task uses it under the chunk's number; NULL: all records pass */
    struct record_remap remap;
    int32_t n_ref;
    bool marks;                  /* the order takes a mark in front of each record (group_mark.h) */
    struct record_chain *chains;     /* that tasks found in the blocks, by the source's slots: right ones, we hope */
    bool follows;                /* in the chunk whose bytes come, it is known where records begin; main thread, as all
                                  * below but `found` ... */
    size_t at;                   /* ... and where the last whole one ends, of the bytes that are there */
    uint64_t n_ended;            /* in these bytes */
    struct pass_found *found;
    struct name_table told;      /* unknown values that were warned of */
};

/* ------------------------------------------------------------------- tasks */

/* Lists the record that was appended at `start`. */
static int list_record(const struct merge_wish *merge, struct pass_found *f, struct record_slice *to, size_t start,
                       bool mend)
{
    if (!merge)                                  /* who takes it makes its key */
        return record_slice_note(to, start) < 0 ? PASS_NO_MEMORY : PASS_FINE;
    f->at = start;
    int status = record_slice_list(to, start, mend, merge->rule, &f->broken);
    if (status < 0 || f->broken)
        return status < 0 ? PASS_NO_MEMORY : PASS_BROKEN;
    const struct bam_record *made = (const struct bam_record *)(to->records.p + start);
    return bam_record_is_beyond(made, merge->lengths) ? PASS_BEYOND : PASS_FINE;
}

/* Appends the block whose first record is the one at c->bytes[at], if the block has all of it, and was kept. 1: there
 * is one; -1: no memory. */
static int append_block(struct pass_found *f, struct byte_buffer *to, const struct chunk *c, size_t at, size_t size)
{
    const struct chunk_block *block = c->blocks + f->n_blocks, *end = c->blocks + c->n_blocks;
    while (block < end && block->at + block->size <= at)
        block++;
    f->n_blocks = (size_t)(block - c->blocks);
    if (block == end || block->at > at)
        return 0;
    f->n_blocks++;
    if (at + size > block->at + block->size)
        return 0;
    struct kept_block kept = {block->compressed_size, block->size, (uint32_t)(at - block->at)};
    return kept_block_append(to, &kept, c->kept + block->kept) < 0 ? -1 : 1;
}

/* Puts what belongs in front of the record at p, of the chunk's head or of its bytes: see codec/kept_block.h. */
static int make_place(const struct passed_records *r, struct pass_found *f, struct chunk *c, const uint8_t *p)
{
    struct byte_buffer *to = &c->made.records;
    bool may_begin = c->blocks && !r->filter && !r->opt.regions && p >= c->bytes && p < c->bytes + c->filled;
    int begun = may_begin ? append_block(f, to, c, (size_t)(p - c->bytes), bam_record_size((const void *)p)) : 0;
    size_t pad = begun ? 0 : kept_block_pad(to->n);
    if (begun < 0 || byte_buffer_reserve(to, to->n + pad) < 0)
        return -1;
    to->n += pad;
    return 0;
}

/* The record that was appended at *start is not as it was. */
static int mark_changed(struct byte_buffer *to, size_t *start)
{
    size_t pad = kept_block_pad_changed(*start), size = to->n - *start;
    if (byte_buffer_reserve(to, to->n + pad) < 0)
        return -1;
    memmove(to->p + *start + pad, to->p + *start, size);
    to->n += pad;
    *start += pad;
    return 0;
}

/* Appends the second RG tag of the record, if it has one, and room for a mark: see order/group_mark.h. */
static int make_mark(struct byte_buffer *to, const struct bam_record *r)
{
    static const uint8_t unset[GROUP_MARK];
    int bad;
    const uint8_t *end = bam_record_end(r), *tag = bam_record_aux_find(bam_record_aux(r), end, "RG", &bad);
    tag = tag ? bam_record_aux_find(bam_record_aux_skip(tag, end), end, "RG", &bad) : NULL;
    return byte_buffer_append(to, tag, tag ? (size_t)(bam_record_aux_skip(tag, end) - tag) : 0) < 0
        || byte_buffer_append(to, unset, GROUP_MARK) < 0 ? -1 : 0;
}

/* Looks at the record, or at a copy if it must be mended. If nobody looks now, the copy is kept until all do. */
static int look_at(const struct passed_records *r, uint32_t number, struct chunk *c, const struct bam_record *record,
                   bool mend)
{
    const struct look_wish *wish = r->opt.looks;
    struct byte_buffer *copies = &c->made.records;
    size_t start = copies->n;
    c->made.n++;
    if (mend || !wish->look) {
        if (byte_buffer_append(copies, record, bam_record_size(record)) < 0)
            return PASS_NO_MEMORY;
        record = (const struct bam_record *)(copies->p + start);
        if (mend && bam_record_fix((struct bam_record *)(copies->p + start)) < 0)
            return PASS_NO_MEMORY;
        copies->n = wish->look ? start : start + bam_record_size(record);
    }
    if (wish->look)
        wish->look(wish->arg, number, (const uint8_t *)record, (uint32_t)bam_record_size(record));
    return PASS_FINE;
}

/* Appends the checked record, if it passes. */
static int pass_record(const struct passed_records *r, uint32_t number, struct chunk *c,
                       const struct bam_record *record, bool mend)
{
    int passes = r->opt.regions && !ref_regions_has(r->opt.regions, record) ? 0
               : r->filter ? record_filter_passes(r->filter, number, record) : 1;
    c->dropped += passes == 0;
    if (passes <= 0)
        return passes < 0 ? PASS_NO_FILTER : PASS_FINE;
    if (r->opt.looks)
        return look_at(r, number, c, record, mend);
    struct record_slice *to = &c->made;
    size_t mark = to->records.n;
    if (r->marks && make_mark(&to->records, record) < 0)
        return PASS_NO_MEMORY;
    size_t start = to->records.n;
    bool has_second = start - mark > GROUP_MARK;
    struct pass_found *f = &r->found[number];
    int status = record_remap_append(&r->remap, &to->records, record, &f->unknown);
    if (status < 0)
        return status;
    if (r->opt.in.use.keeps && (status > 0 || mend) && mark_changed(&to->records, &start) < 0)
        return PASS_NO_MEMORY;
    if (r->marks)
        group_mark_set(to->records.p + start, has_second ? (uint32_t)(start - mark) : status == 1);
    return list_record(r->opt.merge, f, to, start, mend);
}

/* The record with the NUL that its name lacks. NULL: no memory. */
static const struct bam_record *close_name(struct pass_found *f, const uint8_t *record)
{
    f->closed.n = 0;
    return bam_record_close(&f->closed, record) < 0 ? NULL : (const struct bam_record *)f->closed.p;
}

/* Passes the record at p, of which n bytes may be read, unless it has a fault. */
static void pass_one(const struct passed_records *r, uint32_t number, struct chunk *c, const uint8_t *p, size_t n)
{
    struct pass_found *f = &r->found[number];
    const struct bam_record *record = (const struct bam_record *)p;
    struct bam_verdict verdict = bam_record_check(p, n, r->n_ref);
    if (bam_record_can_close(p, verdict.fault) && (record = close_name(f, p))) {
        verdict = bam_record_check(f->closed.p, f->closed.n, r->n_ref);
        verdict.needs_fix = 1;                   /* it has changed */
    }
    f->broken = verdict.fault;
    f->fault = !record ? PASS_NO_MEMORY : f->broken ? PASS_BROKEN
             : r->opt.in.use.keeps && make_place(r, f, c, p) < 0 ? PASS_NO_MEMORY
             : pass_record(r, number, c, record, verdict.needs_fix);
}

/* Appends the records in p[n] that pass, until one has a fault. */
static void pass_records(const struct passed_records *r, uint32_t number, struct chunk *c, const uint8_t *p, size_t n)
{
    struct pass_found *f = &r->found[number];
    for (size_t at = 0; at < n && !f->fault;) {
        pass_one(r, number, c, p + at, n - at);
        if (f->fault)
            return;
        size_t size = bam_record_size((const struct bam_record *)(p + at));
        c->n++;
        c->size += size;
        at += size;
    }
}

static void pass_chunk(void *records, uint32_t number, struct chunk *c)
{
    const struct passed_records *r = records;
    struct pass_found *f = &r->found[number];
    *f = (struct pass_found){.unknown = f->unknown, .closed = f->closed};
    remap_unknown_clear(&f->unknown);
    pass_records(r, number, c, c->head.p, c->head.n);
    pass_records(r, number, c, c->bytes + c->begin, c->end - c->begin);
}

/* In the inflate task. */
static void find_chain(void *records, const struct bgzf_source_block *block)
{
    const struct passed_records *r = records;
    enum stage before = stats_enter(r->opt.in.stats, STAGE_FIND);
    r->chains[block->slot] = record_search_chain(block->data, block->size, r->n_ref);
    bool is_last = r->opt.merge || r->opt.looks; /* else a sort finds them again */
    stats_leave(r->opt.in.stats, before, is_last ? block->size : 0);
}

/* ------------------------------------------------------------- main thread */

/* The same of the record that is carried and goes on with p[n]. 0: that is not known yet. Of a record that is broken
 * the fixed fields will do for the task to tell: who knows how much would be carried for it. */
static uint64_t size_of_carried(const struct passed_records *r, const struct byte_buffer *carried, const uint8_t *p,
                                size_t n)
{
    uint8_t head[BAM_FIXED];
    size_t had = carried->n < sizeof head ? carried->n : sizeof head, lacking = sizeof head - had;
    if (n < lacking)
        return 0;
    memcpy(head, carried->p, had);
    memcpy(head + had, p, lacking);
    enum bam_fault fault = lacking ? bam_record_check(head, sizeof head, r->n_ref).fault : BAM_OK;
    return fault == BAM_OK || fault == BAM_CUT ? bam_record_said_size(head) : sizeof head;
}

/* Where the chunk p[n] with these carried bytes begins and ends, as far as that does not need its other records. */
static struct chunk_cut begin_of(const struct passed_records *r, const struct byte_buffer *carried, const uint8_t *p,
                                 size_t n)
{
    uint64_t size = carried->n ? size_of_carried(r, carried, p, n) : 0;
    bool ends = carried->n == 0 || (size > 0 && size <= carried->n + n);
    size_t begin = !ends ? n : size ? (size_t)size - carried->n : 0;
    return (struct chunk_cut){begin, begin, ends, 0};
}

/* Whether it is known where records begin in p[n]. */
static bool begin_chunk(struct passed_records *r, const struct byte_buffer *carried, const uint8_t *p, size_t n,
                        struct chunk_cut *cut)
{
    *cut = begin_of(r, carried, p, n);
    if (!r->follows && cut->ends_carried) {
        r->follows = true;
        r->at = cut->begin;
        r->n_ended = carried->n > 0;
    }
    return r->follows;
}

/* Follows the records in p[n] from one to the next, and leaps over those of a chain that begins where the one before
 * ends: the bytes are in the caches of others. */
static void follow(struct passed_records *r, const uint8_t *p, size_t n, struct record_chain chain)
{
    for (;;) {
        bool leaps = r->at == chain.begin;
        r->at = leaps ? chain.end : r->at;
        r->n_ended += leaps ? chain.n : 0;
        if (n - r->at < 4 || bam_record_said_size(p + r->at) > n - r->at)
            return;
        r->at += bam_record_said_size(p + r->at);
        r->n_ended++;
    }
}

static void follow_block(void *records, const struct byte_buffer *carried, const uint8_t *p, size_t n,
                         const struct bgzf_source_block *block)
{
    struct passed_records *r = records;
    struct record_chain chain = r->chains[block->slot];
    size_t start = (size_t)(block->data - p);
    struct chunk_cut cut;
    if (r->follows || begin_chunk(r, carried, p, n, &cut))
        follow(r, p, n, (struct record_chain){start + chain.begin, start + chain.end, chain.n});
}

/* If the record behind the last whole one is broken, a task is to tell of it. */
static int cut_records(void *records, const struct byte_buffer *carried, const uint8_t *p, size_t n,
                       struct chunk_cut *cut)
{
    struct passed_records *r = records;
    if (!begin_chunk(r, carried, p, n, cut))
        return 0;
    follow(r, p, n, (struct record_chain){n, n, 0});
    cut->n = r->n_ended;
    cut->end = bam_record_check(p + r->at, n - r->at, r->n_ref).fault == BAM_CUT ? r->at : n;
    r->follows = false;
    return 0;
}

static int tell(const struct passed_records *r, const struct pass_found *f, const struct chunk *c)
{
    const char *why = f->fault < 0 ? record_remap_fault(f->fault) : f->fault == PASS_NO_FILTER ? NO_FILTER : BEYOND;
    return chunk_reader_tell(r->chunks, c, f->broken, c->made.records.p + f->at, why);
}

static int lend(void *records, uint32_t number, struct chunk *c)
{
    struct passed_records *r = records;
    struct pass_found *f = &r->found[number];
    if (f->fault)
        return tell(r, f, c);
    if (r->opt.looks)
        return r->opt.looks->looked(r->opt.looks->arg, number, &c->made.records);
    return r->opt.merge && remap_unknown_tell(&f->unknown, &r->told, r->opt.in.path) < 0
         ? latch_fail(r->opt.in.latch, "%s: out of memory", r->opt.in.path) : 0;
}

struct chunk_reader *passed_records_chunks(struct passed_records *r)
{
    return r->chunks;
}

/* ---------------------------------------------------------- open and close */

/* With a loan it has more chunks, if all are borrowed that may be. Not with a filter: each takes a copy of it. */
static uint32_t count_chunks(const struct passed_records *r, const struct chunk_loan *loan)
{
    return !loan ? r->opt.in.use.n_chunks : r->opt.filter ? loan->pool->opt.own_chunks
         : loan->pool->opt.own_chunks + loan->pool->opt.borrows;
}

static int prepare(struct passed_records *r, struct bam_header *header)
{
    struct chunk_loan *loan = r->opt.merge ? r->opt.merge->loan : NULL;
    r->opt.in.use.n_chunks = count_chunks(r, loan);
    if (r->opt.looks && r->opt.looks->look)
        r->opt.in.use.records_size = COPY_SIZE;
    struct chunk_reader_options how = {
        .in = r->opt.in,
        .header = header,
        .loan = loan,
        .cut = cut_records,
        .arrived = follow_block,
        .inflated = find_chain,
        .make = pass_chunk,
        .lend = lend,
        .arg = r,
    };
    r->n_ref = sam_hdr_nref(header->sam);
    r->marks = r->opt.merge && sort_rule_takes_marks(r->opt.merge->rule);
    if (r->opt.filter)
        r->filter = record_filter_new(r->opt.filter, header->sam, r->opt.in.use.n_chunks);
    r->found = calloc(r->opt.in.use.n_chunks, sizeof *r->found);
    r->chains = calloc(r->opt.in.source ? bgzf_source_slots(r->opt.in.source) : 1, sizeof *r->chains);
    if (!r->found || !r->chains || (r->opt.filter && !r->filter))
        return -1;
    return (r->chunks = chunk_reader_open(&how)) ? 0 : -1;
}

struct passed_records *passed_records_open(const struct passed_records_options *options, struct record_remap *remap,
                                           struct bam_header *header)
{
    struct passed_records *r = calloc(1, sizeof *r);
    if (r) {
        r->opt = *options;
        r->remap = *remap;
        *remap = (struct record_remap){.group = NULL};
        if (prepare(r, header) == 0)
            return r;
    }
    latch_fail(options->in.latch, "%s: out of memory", options->in.path);
    passed_records_close(r);
    return NULL;
}

static void free_parts(struct passed_records *r)
{
    record_filter_free(r->filter);
    record_remap_free(&r->remap);
    name_table_free(&r->told);
    for (uint32_t i = 0; r->found && i < r->opt.in.use.n_chunks; i++) {
        free(r->found[i].unknown.list.p);
        free(r->found[i].closed.p);
    }
    free(r->found);
    free(r->chains);
    r->filter = NULL;
    r->found = NULL;
    r->chains = NULL;
}

void passed_records_end(struct passed_records *r)
{
    chunk_reader_end(r->chunks);
    free_parts(r);
}

void passed_records_close(struct passed_records *r)
{
    if (!r)
        return;
    chunk_reader_close(r->chunks);
    free_parts(r);
    free(r);
}
