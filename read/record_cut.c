/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/record_search.h"
#include "base/clocks.h"
#include "base/engine.h"
#include "base/prefetch.h"
#include "bgzf_omp.h"
#include "read/record_cut.h"

/* The result of the task that inflated a block: records that follow each other, from `begin` on. */
struct block_records {
    size_t begin;
    struct unit_borders inner;   /* borders of the units inside these records; `end` is where the last complete record
                                  * ends */
};

/* The result of the task of a chunk. */
struct record_walk {
    struct record_found found;
    struct byte_buffer closed;   /* copy of a record whose name has got its NUL */
    struct byte_buffer unit;     /* copy of the records of a unit that has such a record */
};

static bool is_same(const char *a, size_t n_a, const char *b, size_t n_b)
{
    return strncmp(a, b, n_a < n_b ? n_a : n_b) == 0 && strnlen(a, n_a) == strnlen(b, n_b);
}

/* Returns whether two records have the same name. One of the names may lack its NUL. */
static bool have_same_name(const uint8_t *a, const uint8_t *b)
{
    return is_same(bam_record_name(bam_record_at(a)), bam_record_at(a)->name_len, bam_record_name(bam_record_at(b)),
                   bam_record_at(b)->name_len);
}

/* --------------------------------------------- following records: main thread, inflate tasks */

static void keep_name(struct record_carry *s, const uint8_t *record)
{
    s->name_size = bam_record_at(record)->name_len;
    memcpy(s->name, record + BAM_FIXED, s->name_size);
}

/* Returns whether the n bytes at p are enough to see where the record ends, and whether it begins a unit. */
static bool is_shown(const struct record_cut *c, const uint8_t *p, size_t n)
{
    return n >= BAM_FIXED && (!c->opt.by_name || n - BAM_FIXED >= bam_record_at(p)->name_len);
}

static void add_border(struct unit_borders *b, size_t at)
{
    b->first = b->any ? b->first : at;
    b->last = at;
    b->any = true;
}

/* Checks whether the record at p[at] begins a unit. is_shown() is true for the record. */
static void look_for_border(const struct record_cut *c, struct record_carry *s, const uint8_t *p, size_t at,
                            struct unit_borders *b)
{
    if (!c->opt.by_name) {
        add_border(b, at);
        return;
    }
    const struct bam_record *record = bam_record_at(p + at);
    if (s->name_size && is_same(s->name, s->name_size, bam_record_name(record), record->name_len))
        return;
    add_border(b, at);
    keep_name(s, p + at);
}

/* Skips the records of the block; the first one has been looked at. */
static void leap(const struct record_cut *c, struct record_carry *s, struct unit_borders *b, const uint8_t *p,
                 size_t start, const struct block_records *block)
{
    const struct unit_borders *inner = &block->inner;
    if (inner->any) {
        add_border(b, start + inner->first);
        b->last = start + inner->last;
        if (c->opt.by_name)
            keep_name(s, p + b->last);
    }
    b->end = start + inner->end;
    b->n += inner->n;
}

/* Continues the search for borders in p[n] until a record is cut. Records of a block that begins at `start` are
 * skipped, because their bytes are in the caches of other threads. block: NULL if there is none. */
static void follow(const struct record_cut *c, struct record_carry *s, struct unit_borders *b, const uint8_t *p,
                   size_t n, size_t start, const struct block_records *block)
{
    for (;;) {
        size_t at = b->end;
        bool leaps = block && block->inner.n > 0 && at == start + block->begin;
        if (!leaps && !is_shown(c, p + at, n - at))
            return;
        look_for_border(c, s, p, at, b);
        if (leaps) {
            leap(c, s, b, p, start, block);
            continue;
        }
        if (bam_record_said_size(p + at) > n - at)
            return;
        b->end += bam_record_said_size(p + at);
        b->n++;
    }
}

/* Guesses where the block's records are. Runs in the inflate task. */
static void guess(void *cut, const struct bgzf_source_block *block)
{
    const struct record_cut *c = cut;
    enum stage before = clocks_enter(c->clocks, STAGE_FIND);
    struct record_chain chain = record_search_chain(block->data, block->size, c->opt.n_ref);
    struct block_records found = {chain.begin, {.end = chain.end, .n = chain.n}};
    if (c->opt.by_name && chain.n > 0) {
        struct record_carry s = {.name_size = 0};
        found.inner = (struct unit_borders){.end = chain.begin};
        keep_name(&s, block->data + chain.begin);
        follow(c, &s, &found.inner, block->data, chain.end, 0, NULL);
    }
    c->blocks[block->slot] = found;
    clocks_leave(c->clocks, before, c->opt.counts_bytes ? block->size : 0);
}

/* ------------------------------------------------------------- cutting chunks: main thread */

/* Continues, in p[n], the record that is cut at the end of `carried`. Returns how many bytes of p belong to the record,
 * or SIZE_MAX if it does not end in p[n]. For a broken record, the bytes that show the fault are enough. */
static size_t end_record(struct record_cut *c, const struct byte_buffer *carried, const uint8_t *p, size_t n)
{
    struct record_carry *s = &c->carry;
    uint8_t head[BAM_FIXED + UINT8_MAX];
    size_t had = s->part < sizeof head ? s->part : sizeof head;
    size_t more = n < sizeof head - had ? n : sizeof head - had, known = had + more;
    memcpy(head, carried->p + carried->n - s->part, had);
    memcpy(head + had, p, more);
    enum bam_fault fault = bam_record_check(head, known, c->opt.n_ref).fault;
    if (known < BAM_FIXED || (fault == BAM_CUT && bam_record_said_size(head) > s->part + n))
        return SIZE_MAX;
    s->is_broken = fault && fault != BAM_CUT && !bam_record_can_close(head, fault);
    if (s->is_broken)
        return known > s->part ? known - s->part : 0;
    if (c->opt.by_name)
        keep_name(s, head);
    c->borders.n = 1;
    return (size_t)bam_record_said_size(head) - s->part;
}

/* Returns whether it is known where records begin in a chunk's bytes p[n]. */
static bool begin_chunk(struct record_cut *c, const struct byte_buffer *carried, const uint8_t *p, size_t n)
{
    struct record_carry *s = &c->carry;
    if (c->follows)
        return true;
    c->borders = (struct unit_borders){.n = 0};
    size_t at = s->part && !s->is_broken ? end_record(c, carried, p, n) : 0;
    c->borders.end = at < n ? at : n;
    return c->follows = at != SIZE_MAX;
}

static void arrived(void *cut, const struct byte_buffer *carried, const uint8_t *p, size_t n,
                    const struct bgzf_source_block *block)
{
    struct record_cut *c = cut;
    if (begin_chunk(c, carried, p, n) && !c->carry.is_broken)
        follow(c, &c->carry, &c->borders, p, n, (size_t)(block->data - p), &c->blocks[block->slot]);
}

/* Cuts a chunk. If a record is broken, all bytes from that record on are given to the task, which reports the
 * record. */
static int cut_chunk(void *cut, const struct byte_buffer *carried, const uint8_t *p, size_t n, struct chunk_cut *to)
{
    struct record_cut *c = cut;
    struct record_carry *s = &c->carry;
    struct unit_borders *b = &c->borders;
    *to = (struct chunk_cut){n, n, false, 0};
    if (!begin_chunk(c, carried, p, n)) {
        s->part += n;
        return 0;
    }
    c->follows = false;
    if (s->is_broken) {
        *to = (struct chunk_cut){b->end, n, true, 0};
        return 0;
    }
    size_t first = b->end;
    follow(c, s, b, p, n, 0, NULL);
    s->part = n - b->end;
    s->is_broken = bam_record_check(p + b->end, s->part, c->opt.n_ref).fault != BAM_CUT;
    if (b->any || s->is_broken || !c->opt.by_name) {
        size_t end = s->is_broken ? n : c->opt.by_name ? b->last : b->end;
        *to = (struct chunk_cut){b->any ? b->first : first, end, true, 0};
    }
    to->n = b->n;
    return 0;
}

static const uint8_t *record_in(const struct slice_span *span, size_t number)
{
    return bam_key_record(span->slice->records.p, span->slice->keys[span->first + number]);
}

/* Returns whether the record is complete: the last record of a stream may be broken, or cut. */
static bool is_complete(const struct slice_span *span, size_t number)
{
    struct bam_key key = span->slice->keys[span->first + number];
    return bam_key_record_size(span->slice->records.p, key) == bam_record_said_size(record_in(span, number));
}

/* Finds the first template that begins in the span and the last one. The templates between them need not be looked
 * at. */
static void cut_span(void *cut, const struct slice_span *span, struct chunk_cut *to)
{
    struct record_cut *c = cut;
    struct unit_borders b = {.any = false};
    size_t first = 0, last = span->n - 1;
    c->carry.is_broken = !is_complete(span, last);
    if (c->opt.counts_bytes)
        clocks_leave(c->clocks, clocks_enter(c->clocks, STAGE_FIND), span->size);
    if (!c->opt.by_name)
        return;
    look_for_border(c, &c->carry, record_in(span, first), 0, &b);
    while (!b.any && first < last)
        look_for_border(c, &c->carry, record_in(span, ++first), 0, &b);
    *to = (struct chunk_cut){span->size, span->size, false, span->n};
    if (!b.any)
        return;
    keep_name(&c->carry, record_in(span, last));
    while (last > first && have_same_name(record_in(span, last - 1), record_in(span, last)))
        last--;
    to->begin = (size_t)(record_in(span, first) - span->bytes);
    to->end = (size_t)(record_in(span, last) - span->bytes);
    to->ends_carried = true;
}

struct chunk_cutter record_cut_cutter(struct record_cut *cut)
{
    return (struct chunk_cutter){cut_chunk, cut_span, arrived, guess, cut};
}

bool record_cut_is_whole(const struct record_cut *c)
{
    return c->carry.part == 0 && !c->carry.is_broken;
}

uint64_t record_cut_go_on(struct record_cut *c, const uint8_t *p, size_t size)
{
    uint64_t n = 0;
    for (size_t at = 0; at < size; at += bam_record_said_size(p + at), n++)
        keep_name(&c->carry, p + at);
    return n;
}

/* ------------------------------------------------------- records to units: the chunk's task */

/* Adds the record at `from` to the unit, in its changed form `record` if it has one. As soon as one record of a unit
 * has changed, all records of the unit are copied. -1: out of memory. */
static int add_to_unit(struct record_walk *w, struct record_unit *unit, const uint8_t *from, const uint8_t *record)
{
    size_t had = (size_t)(from - unit->from), size = bam_record_size(bam_record_at(record));
    if (record != from && w->unit.n == 0 && byte_buffer_append(&w->unit, unit->from, had) < 0)
        return -1;
    if ((record != from || w->unit.n) && byte_buffer_append(&w->unit, record, size) < 0)
        return -1;
    unit->n++;
    unit->size += size;
    unit->bytes = w->unit.n ? w->unit.p : unit->from;
    return 0;
}

/* Hands over the unit that ends at `end`, where the next one begins. -1: the unit has a fault. */
static int end_unit(const struct record_cut *c, uint32_t number, struct chunk *chunk, struct record_unit *unit,
                    const uint8_t *end)
{
    struct record_walk *w = &c->walks[number];
    if ((w->found.status = c->opt.unit(c->opt.arg, number, chunk, unit)))
        return -1;
    chunk->n += unit->n;
    chunk->size += (size_t)(end - unit->from);
    w->unit.n = 0;
    *unit = (struct record_unit){.from = end};
    return 0;
}

/* Checks the record at p; n bytes may be read. *record: where the checked record is, which is a copy if its name lacked
 * the NUL. NULL: out of memory. */
static struct bam_verdict check(const struct record_cut *c, struct record_walk *w, const uint8_t *p, size_t n,
                                const uint8_t **record)
{
    struct bam_verdict verdict = bam_record_check(p, n, c->opt.n_ref);
    *record = p;
    if (!bam_record_can_close(p, verdict.fault))
        return verdict;
    w->closed.n = 0;
    *record = bam_record_close(&w->closed, p) < 0 ? NULL : w->closed.p;
    verdict = *record ? bam_record_check(*record, w->closed.n, c->opt.n_ref) : verdict;
    verdict.needs_fix = 1;                       /* the record has changed */
    return verdict;
}

/* Prefetches bytes from AHEAD bytes after p on, as many as the record at p has. The thread that inflated these bytes
 * may have left them in another cache, and the processor cannot foresee where the next records begin. n: bytes that may
 * be read at p. */
PREFETCH_FN void prefetch(const uint8_t *p, size_t n, size_t size)
{
    enum { AHEAD = 1024 };                       /* three short records, some 0.1 us of work */
    if (n > AHEAD)
        prefetch_lines(p + AHEAD, size < n - AHEAD ? size : n - AHEAD);
}

/* Hands over the units in p[n], until there is a fault. */
static void walk(const struct record_cut *c, uint32_t number, struct chunk *chunk, const uint8_t *p, size_t n)
{
    struct record_walk *w = &c->walks[number];
    struct record_unit unit = {.from = p};
    const uint8_t *record;
    for (size_t at = 0; at < n; at += bam_record_size(bam_record_at(p + at))) {
        struct bam_verdict verdict = check(c, w, p + at, n - at, &record);
        bool ends = unit.n > 0 && (!record || verdict.fault || !c->opt.by_name
                                   || !have_same_name(unit.bytes, record));
        if (ends && end_unit(c, number, chunk, &unit, p + at) < 0)
            return;
        w->found.fault = record ? verdict.fault : BAM_OK;
        if (w->found.fault)
            return;
        unit.needs_fix |= verdict.needs_fix;
        if (!record || add_to_unit(w, &unit, p + at, record) < 0) {
            w->found.status = RECORD_CUT_NO_MEMORY;
            return;
        }
        prefetch(p + at, n - at, bam_record_size(bam_record_at(p + at)));
    }
    if (unit.n > 0)
        end_unit(c, number, chunk, &unit, p + n);
}

void record_cut_make(struct record_cut *c, uint32_t number, struct chunk *chunk)
{
    struct record_walk *w = &c->walks[number];
    w->found = (struct record_found){0, BAM_OK};
    w->unit.n = 0;
    walk(c, number, chunk, chunk->head.p, chunk->head.n);
    if (!w->found.status && !w->found.fault)
        walk(c, number, chunk, chunk->bytes + chunk->begin, chunk->end - chunk->begin);
}

struct record_found record_cut_found(const struct record_cut *c, uint32_t number)
{
    return c->walks[number].found;
}

/* ---------------------------------------------------------- open and close */

size_t record_cut_memory(uint32_t n_chunks, uint32_t n_slots)
{
    return n_chunks * sizeof(struct record_walk) + n_slots * sizeof(struct block_records);
}

int record_cut_open(struct record_cut *c, const struct record_cut_options *options)
{
    const struct chunk_input *in = options->in;
    *c = (struct record_cut){.opt = *options, .clocks = in->engine->clocks};
    c->opt.in = NULL;
    c->walks = calloc(options->n_chunks, sizeof *c->walks);
    c->blocks = calloc(in->source ? bgzf_source_slots(in->source) : 1, sizeof *c->blocks);
    return c->walks && c->blocks ? 0 : -1;
}

void record_cut_close(struct record_cut *c)
{
    for (uint32_t i = 0; c->walks && i < c->opt.n_chunks; i++) {
        free(c->walks[i].closed.p);
        free(c->walks[i].unit.p);
    }
    free(c->walks);
    free(c->blocks);
    c->walks = NULL;
    c->blocks = NULL;
}
