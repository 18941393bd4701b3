/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/record_remap.h"
#include "bam/ref_regions.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "codec/kept_block.h"
#include "order/group_mark.h"
#include "read/chunk_reader.h"
#include "read/passed_records.h"
#include "read/record_cut.h"
#include "read/record_filter.h"
#include "read/record_slice.h"

enum { COPY_SIZE = 4096 };       /* bytes that a chunk keeps for the copy of a record that is normalised before it is
                                  * looked at */

/* The values that record_unit_fn returns; below 0, those of record_remap_append(). */
enum pass_fault { PASS_NO_MEMORY = RECORD_CUT_NO_MEMORY, PASS_FINE, PASS_BROKEN, PASS_NO_FILTER, PASS_BEYOND };

#define NO_FILTER \
    "cannot be filtered: htslib cannot evaluate --input-fmt-option filter= for it. Nothing was written"
#define BEYOND \
    "begins after the end of its reference, and htslib could not read it again from CRAM. Nothing was written; use " \
    "-O bam, or --output-fmt-option no_ref=1"

/* The result of a chunk's task, by the chunk's number; the claimer's before DONE. */
struct pass_found {
    enum bam_fault broken;       /* the reason why a record cannot have a key */
    size_t at;                   /* for a merge: where the record with a fault begins */
    struct remap_unknown unknown;    /* for a merge */
    size_t n_blocks;             /* number of kept blocks of the chunk that have been passed */
    int thread;                  /* number of the thread that runs the task */
};

struct passed_records {
    struct passed_records_options opt;
    struct chunk_reader *chunks;
    struct record_cut cut;
    struct record_filter *filter;    /* used by each chunk's task under the chunk's number; NULL: all records pass */
    struct record_remap remap;
    bool marks;                  /* the order needs a mark in front of each record (group_mark.h) */
    struct pass_found *found;
    struct name_table told;      /* unknown values that a warning has named */
};

/* ------------------------------------------------------------------- tasks */

/* Lists the record that was appended at `start`. */
static int list_record(const struct merge_request *merge, struct pass_found *f, struct record_slice *to, size_t start,
                       bool normalise)
{
    if (!merge)                                  /* the consumer makes its key */
        return record_slice_note(to, start) < 0 ? PASS_NO_MEMORY : PASS_FINE;
    f->at = start;
    int status = record_slice_list(to, start, normalise, merge->rule, &f->broken);
    if (status < 0 || f->broken)
        return status < 0 ? PASS_NO_MEMORY : PASS_BROKEN;
    const struct bam_record *made = bam_record_at(to->records.p + start);
    return bam_record_is_beyond(made, merge->lengths) ? PASS_BEYOND : PASS_FINE;
}

/* Appends the kept block whose first record is the one at c->bytes[at], if there is such a block and it contains the
 * complete record. 1: it was appended; -1: out of memory. */
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

/* Appends what belongs in front of the record at p, which lies in the chunk's head or in its bytes: see
 * codec/kept_block.h. */
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

/* Marks the record that was appended at *start as changed. */
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

/* Passes the record to look(), or a normalised copy of it. If look() is NULL, the copy is kept until looked() sees all
 * of them. */
static int look_at(const struct passed_records *r, uint32_t number, struct chunk *c, const struct bam_record *record,
                   bool normalise)
{
    const struct look_request *request = r->opt.looks;
    struct byte_buffer *copies = &c->made.records;
    size_t start = copies->n;
    c->made.n++;
    if (normalise || !request->look) {
        if (byte_buffer_append(copies, record, bam_record_size(record)) < 0)
            return PASS_NO_MEMORY;
        record = bam_record_at(copies->p + start);
        if (normalise && bam_record_fix((struct bam_record *)(copies->p + start)) < 0)
            return PASS_NO_MEMORY;
        copies->n = request->look ? start : start + bam_record_size(record);
    }
    if (request->look)
        request->look(request->arg, r->found[number].thread, number, (const uint8_t *)record,
                      (uint32_t)bam_record_size(record));
    return PASS_FINE;
}

/* Appends the checked record, if it passes. */
static int pass_record(const struct passed_records *r, uint32_t number, struct chunk *c,
                       const struct bam_record *record, bool normalise)
{
    int passes = r->opt.regions && !ref_regions_has(r->opt.regions, record) ? 0
               : r->filter ? record_filter_passes(r->filter, number, record) : 1;
    c->dropped += passes == 0;
    if (passes <= 0)
        return passes < 0 ? PASS_NO_FILTER : PASS_FINE;
    if (r->opt.looks)
        return look_at(r, number, c, record, normalise);
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
    if (r->opt.in.use.keeps && (status > 0 || normalise) && mark_changed(&to->records, &start) < 0)
        return PASS_NO_MEMORY;
    if (r->marks)
        group_mark_set(to->records.p + start, has_second ? (uint32_t)(start - mark) : status == 1);
    return list_record(r->opt.merge, f, to, start, normalise);
}

static int pass_unit(void *records, uint32_t number, struct chunk *c, const struct record_unit *unit)
{
    const struct passed_records *r = records;
    if (r->opt.in.use.keeps && make_place(r, &r->found[number], c, unit->from) < 0)
        return PASS_NO_MEMORY;
    return pass_record(r, number, c, bam_record_at(unit->bytes), unit->needs_fix);
}

static void pass_chunk(void *records, uint32_t number, struct chunk *c)
{
    struct passed_records *r = records;
    struct pass_found *f = &r->found[number];
    *f = (struct pass_found){.unknown = f->unknown, .thread = task_thread()};
    remap_unknown_clear(&f->unknown);
    record_cut_make(&r->cut, number, c);
    struct record_found found = record_cut_found(&r->cut, number);
    if (r->opt.looks && r->opt.looks->seen && !found.status && !found.fault)
        r->opt.looks->seen(r->opt.looks->arg, number);
}

/* ------------------------------------------------------------- main thread */

/* Reports the fault of the record after those that have passed. */
static int report(const struct passed_records *r, const struct pass_found *f, const struct chunk *c,
                struct record_found found)
{
    const char *why = found.status < 0 ? record_remap_fault(found.status)
                    : found.status == PASS_NO_FILTER ? NO_FILTER : BEYOND;
    return chunk_reader_report(r->chunks, c, found.fault ? found.fault : f->broken, c->made.records.p + f->at, why);
}

static int lend(void *records, uint32_t number, struct chunk *c)
{
    struct passed_records *r = records;
    struct pass_found *f = &r->found[number];
    struct record_found found = record_cut_found(&r->cut, number);
    if (found.status || found.fault)
        return report(r, f, c, found);
    if (r->opt.looks)
        return r->opt.looks->looked(r->opt.looks->arg, number, &c->made.records);
    return r->opt.merge && remap_unknown_report(&f->unknown, &r->told, r->opt.in.path) < 0
         ? latch_fail(r->opt.in.engine->latch, "%s: out of memory", r->opt.in.path) : 0;
}

struct chunk_reader *passed_records_chunks(struct passed_records *r)
{
    return r->chunks;
}

/* ---------------------------------------------------------- open and close */

/* Returns the number of chunks, with all chunks that it may borrow. With a filter it borrows none, because each chunk
 * needs a copy of the filter. */
static uint32_t count_chunks(const struct passed_records *r, const struct chunk_borrower *borrower)
{
    return !borrower ? r->opt.in.use.n_chunks : r->opt.filter ? borrower->pool->opt.own_chunks
         : borrower->pool->opt.own_chunks + borrower->pool->opt.borrows;
}

static int prepare(struct passed_records *r, struct bam_header *header)
{
    struct chunk_borrower *borrower = r->opt.merge ? r->opt.merge->borrower : NULL;
    r->opt.in.use.n_chunks = count_chunks(r, borrower);
    if (r->opt.looks && r->opt.looks->look)
        r->opt.in.use.records_size = COPY_SIZE;
    struct record_cut_options cut = {
        .in = &r->opt.in,
        .n_chunks = r->opt.in.use.n_chunks,
        .n_ref = sam_hdr_nref(header->sam),
        .counts_bytes = r->opt.merge || r->opt.looks,    /* otherwise a sort finds and counts them again */
        .unit = pass_unit,
        .arg = r,
    };
    struct chunk_reader_options how = {
        .in = r->opt.in,
        .header = header,
        .borrower = borrower,
        .make = pass_chunk,
        .counts_only = !r->opt.merge,
        .lend = lend,
        .arg = r,
    };
    r->marks = r->opt.merge && sort_rule_takes_marks(r->opt.merge->rule);
    if (r->opt.filter)
        r->filter = record_filter_new(r->opt.filter, header->sam, r->opt.in.use.n_chunks);
    r->found = calloc(r->opt.in.use.n_chunks, sizeof *r->found);
    if (record_cut_open(&r->cut, &cut) < 0 || !r->found || (r->opt.filter && !r->filter))
        return -1;
    how.cutter = record_cut_cutter(&r->cut);
    return (r->chunks = chunk_reader_open(&how)) ? 0 : -1;
}

size_t passed_records_memory(uint32_t n_chunks, uint32_t n_slots)
{
    return record_cut_memory(n_chunks, n_slots) + n_chunks * (sizeof(struct pass_found) + chunk_reader_slot_memory());
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
    latch_fail(options->in.engine->latch, "%s: out of memory", options->in.path);
    passed_records_close(r);
    return NULL;
}

static void free_parts(struct passed_records *r)
{
    record_filter_free(r->filter);
    record_remap_free(&r->remap);
    name_table_free(&r->told);
    record_cut_close(&r->cut);
    for (uint32_t i = 0; r->found && i < r->opt.in.use.n_chunks; i++)
        free(r->found[i].unknown.list.p);
    free(r->found);
    r->filter = NULL;
    r->found = NULL;
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
