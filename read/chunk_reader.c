/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_header.h"
#include "bam/record_fault.h"
#include "base/byte_window.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "bgzf_omp.h"
#include "codec/kept_block.h"
#include "read/chunk_reader.h"

/* The bytes go through a ring of chunks. A task makes the units of each chunk into records:
 *
 *     records are       to be made,         bytes are being      blocks of bytes
 *     being used        or made             inflated             are handed out to it
 *   +-----+---+-------+-------+-----+-----+-------+-----+-----+------------------+
 *   |  2  | 3 |   4   |   5   |   6 | ... |  11   | ... | 14  |        15        |
 *   +-----+---+-------+-------+-----+-----+-------+-----+-----+------------------+
 *     freed             lent                closed                   filling
 *
 * The main thread closes a chunk when all its bytes have arrived. Only then are the borders of the chunk's units known,
 * and the bytes of a unit that ends in a later chunk.
 *
 *   chunk 4 ..line a \n line b \n li                 chunk 5 ne c \n line d \n line e ..
 *                                 -> carry -> its head: line c \n
 *
 * A unit may be longer than a chunk. Then the chunks in its middle have no units. */
struct chunk_reader {
    struct chunk_reader_options opt;
    struct slice_feed feed;      /* feed of opt.in.stream */
    struct chunk *chunks;
    struct task_ring ring;       /* ring of the chunks: a chunk is handed out when it is closed, and taken back when it
                                  * is freed */
    uint64_t lent, filling;      /* numbers of chunks, see above; at most n_chunks from the first one not yet freed to
                                  * `filling` */
    struct byte_buffer carry;    /* the beginning of a unit that does not end in the last closed chunk */
    struct chunk_counts counts;
    uint64_t last_block;         /* file offset of the block taken back last */
    uint64_t gone_on;            /* units of BAM that an earlier input has left to this one */
    uint64_t left;               /* units of BAM that are left to a later input */
    bool at_end;                 /* all bytes are handed out */
    bool has_ended;              /* all bytes are handed out, and all records were lent */
};

static struct chunk *chunk_of(const struct chunk_reader *r, uint64_t number)
{
    return &r->chunks[number % r->opt.in.use.n_chunks];
}

/* Frees the memory for a chunk's own bytes. */
static void drop_bytes(struct chunk *c)
{
    free(c->bytes);
    free(c->blocks);
    free(c->kept);
    c->bytes = c->kept = NULL;
    c->blocks = NULL;
}

/* Frees a chunk's bytes once all records were lent. Without such tasks the main thread would free all chunks alone. */
static void free_bytes(const struct chunk_reader *r, struct chunk *c)
{
    enum stage before = clocks_enter(r->opt.in.engine->clocks, STAGE_FREE);
    drop_bytes(c);
    clocks_leave(r->opt.in.engine->clocks, before, 0);
}

static void make_records(void *reader, uint32_t number)
{
    const struct chunk_reader *r = reader;
    struct chunk *c = &r->chunks[number];
    if (latch_tripped(r->opt.in.engine->latch))
        return;                                  /* no thread waits for its span any more */
    if (r->has_ended) {
        free_bytes(r, c);
        return;
    }
    enum stage before = clocks_enter(r->opt.in.engine->clocks, STAGE_PARSE);
    size_t size = c->head.n + c->end - c->begin;
    c->n = c->size = c->dropped = 0;
    if (!c->made.records.p)                      /* the slice came from a consumer that had none: without this, it would
                                                  * grow to twice the size. If it fails, make() asks again */
        byte_buffer_reserve(&c->made.records, r->opt.in.use.records_size);
    r->opt.make(r->opt.arg, number, c);
    if (c->span.users)
        slice_span_release(&c->span);
    clocks_records(r->opt.in.engine->clocks, c->n);
    clocks_leave(r->opt.in.engine->clocks, before, size);
}

/* --------------------------------------------------------- bytes to chunks */

/* Keeps n more bytes of an incomplete unit, and room for a NUL after them. */
static int carry_on(struct chunk_reader *r, const uint8_t *bytes, size_t n)
{
    struct byte_buffer *unit = &r->carry;
    if (byte_buffer_reserve(unit, unit->n + n + 1) < 0)
        return latch_fail(r->opt.in.engine->latch, "%s: out of memory for a record of more than %zu bytes",
                          r->opt.in.path, unit->n);
    memcpy(unit->p + unit->n, bytes, n);
    unit->n += n;
    return 0;
}

/* Makes the carried unit, which is complete, the head of the chunk. */
static void take_carry(struct chunk_reader *r, struct chunk *c)
{
    struct byte_buffer head = c->head;
    c->head = r->carry;
    r->carry = head;
}

/* Returns whether the reader takes the records of another producer. */
static bool reads_stream(const struct chunk_reader *r)
{
    return r->opt.in.stream.producer;
}

/* Returns whether blocks are inflated into the chunks' own memory. If not, chunks refer to bytes that exist already. */
static bool reads_blocks(const struct chunk_reader *r)
{
    return r->opt.in.source;
}

/* Finds the units in a chunk that has all its bytes. */
static int cut_chunk(const struct chunk_reader *r, const struct chunk *c, struct chunk_cut *cut)
{
    if (!reads_stream(r))
        return r->opt.cutter.cut(r->opt.cutter.arg, &r->carry, c->bytes, c->filled, cut);
    *cut = (struct chunk_cut){0, c->filled, true, c->span.n};
    if (r->opt.cutter.cut_span)
        r->opt.cutter.cut_span(r->opt.cutter.arg, &c->span, cut);
    return 0;
}

static int close_chunk(struct chunk_reader *r)
{
    struct chunk *c = chunk_of(r, task_ring_head(&r->ring));
    struct chunk_cut cut;
    if (cut_chunk(r, c, &cut) < 0)
        return -1;
    c->begin = cut.begin;
    c->end = cut.end;
    c->last_block = r->last_block;
    r->counts.seen += cut.n;
    if (carry_on(r, c->bytes, c->begin) < 0)
        return -1;
    if (cut.ends_carried)
        take_carry(r, c);
    if (carry_on(r, c->bytes + c->end, c->filled - c->end) < 0)
        return -1;
    task_ring_hand_out(&r->ring);
    return 0;
}

/* Returns whether a chunk is free to be filled. */
static bool may_fill(const struct chunk_reader *r)
{
    uint64_t n = r->filling - r->ring.tail;
    return n < r->opt.in.use.n_chunks && (!r->opt.borrower || chunk_pool_may_fill(r->opt.borrower, n));
}

/* Call it when one more chunk is filled, or one more is free. */
static void update_pool(const struct chunk_reader *r)
{
    if (r->opt.borrower)
        chunk_pool_fills(r->opt.borrower, r->filling - r->ring.tail);
}

/* Returns how many blocks of a chunk may be kept. */
static size_t kept_blocks(const struct chunk_memory *use)
{
    return use->chunk_size / KEPT_BLOCK_LEAST;
}

/* Allocates the memory for a chunk's bytes. */
static int alloc_text(const struct chunk_reader *r, struct chunk *c)
{
    const struct chunk_memory *use = &r->opt.in.use;
    c->bytes = malloc(use->chunk_size + 1);
    if (!c->bytes || (use->keeps && (!(c->blocks = malloc(kept_blocks(use) * sizeof *c->blocks))
                                     || !(c->kept = malloc(use->chunk_size)))))
        return latch_fail(r->opt.in.engine->latch, "%s: out of memory for its records", r->opt.in.path);
    return 0;
}

/* Gives a chunk the memory that it lacks. */
static int equip_chunk(const struct chunk_reader *r, struct chunk *c)
{
    struct chunk_text text;
    if (r->opt.borrower && !c->made.records.p)
        chunk_pool_take_records(r->opt.borrower->pool, &c->made);
    if (c->bytes || !reads_blocks(r))
        return 0;
    if (!r->opt.borrower || !chunk_pool_take_text(r->opt.borrower->pool, &text))
        return alloc_text(r, c);
    c->bytes = text.bytes;
    c->blocks = text.blocks;
    c->kept = text.kept;
    return 0;
}

/* Gives the memory of an empty chunk to the pool. */
static void strip_chunk(const struct chunk_reader *r, struct chunk *c)
{
    chunk_pool_put_text(r->opt.borrower->pool, (struct chunk_text){c->bytes, c->blocks, c->kept});
    chunk_pool_put_records(r->opt.borrower->pool, c->made);
    c->bytes = c->kept = NULL;
    c->blocks = NULL;
    c->made = (struct record_slice){.n = 0};
}

/* Leaves the carried unit to the next input, if it may continue there. Call it at the end of the input. */
static void leave_carry(struct chunk_reader *r)
{
    uint64_t n = 0;
    struct byte_buffer *to = r->opt.leave ? r->opt.leave(r->opt.arg, &r->carry, &n) : NULL;
    if (!to)
        return;
    struct byte_buffer had = *to;
    *to = r->carry;
    r->carry = had;
    r->carry.n = 0;
    r->counts.seen -= n;
    r->left += n;
}

/* Closes chunks whose bytes have all arrived. At the end of the input, the carried unit gets a chunk of its own. */
static int close_chunks(struct chunk_reader *r)
{
    while (task_ring_head(&r->ring) < r->filling) {
        const struct chunk *c = chunk_of(r, task_ring_head(&r->ring));
        if (c->arrived < c->filled)
            return 0;
        if (close_chunk(r) < 0)
            return -1;
    }
    if (r->at_end && r->carry.n)
        leave_carry(r);
    if (r->at_end && r->carry.n && may_fill(r)) {
        if (equip_chunk(r, chunk_of(r, r->filling)) < 0)
            return -1;
        chunk_of(r, r->filling)->last_block = r->last_block;
        take_carry(r, chunk_of(r, r->filling++));
        update_pool(r);
        task_ring_hand_out(&r->ring);
    }
    return 0;
}

/* Notes that the bytes of this block are inflated. They belong to the chunk that is closed next. */
static void note_arrived(struct chunk_reader *r, const struct bgzf_source_block *block)
{
    struct chunk *c = chunk_of(r, task_ring_head(&r->ring));
    c->arrived += block->size;
    r->last_block = block->file_offset;
    if (r->opt.cutter.arrived)
        r->opt.cutter.arrived(r->opt.cutter.arg, &r->carry, c->bytes, c->arrived, block);
}

/* Takes inflated bytes back. wait: works until there are some. */
static int take_bytes(struct chunk_reader *r, bool wait)
{
    struct bgzf_source_block block;
    if (!reads_blocks(r))
        return close_chunks(r);
    int taken = 1;
    for (; taken > 0; wait = false) {
        if (close_chunks(r) < 0)
            return -1;
        taken = bgzf_source_take(r->opt.in.source, wait, &block);
        if (taken > 0)
            note_arrived(r, &block);
    }
    return taken;
}

/* Lists the peeked block in the chunk if it is to be kept. Returns the place for its compressed bytes; NULL if it is
 * not kept. There is room, because the block is smaller than its data. */
static uint8_t *keep_block(const struct chunk_reader *r, struct chunk *c, uint32_t size)
{
    uint32_t compressed_size = c->blocks ? bgzf_source_compressed_size(r->opt.in.source) : 0;
    if (compressed_size == 0 || compressed_size > size || size < KEPT_BLOCK_LEAST)
        return NULL;
    c->blocks[c->n_blocks++] = (struct chunk_block){c->filled, size, compressed_size, c->n_kept};
    c->n_kept += compressed_size;
    return c->kept + c->n_kept - compressed_size;
}

/* Gives the bytes of the span to the next chunk. */
static int fill_with(struct chunk_reader *r, struct slice_span span, uint64_t offset)
{
    struct chunk *c = chunk_of(r, r->filling++);
    c->span = span;
    c->bytes = (uint8_t *)(uintptr_t)span.bytes;
    c->filled = c->arrived = span.size;
    r->last_block = offset;
    update_pool(r);
    return equip_chunk(r, c) < 0 ? -1 : 1;
}

/* As fill_of_blocks(), but for records that exist already. */
static int fill_of_stream(struct chunk_reader *r)
{
    enum chunk_state state = slice_feed_advance(&r->feed);
    r->at_end = state == CHUNK_NONE;
    if (state != CHUNK_MADE)
        return state == CHUNK_FAILED ? -1 : 0;
    struct slice_span span = slice_feed_take(&r->feed);
    return fill_with(r, span, span.slice->offset);
}

static bool help_make(void *reader)
{
    return task_ring_help(&((struct chunk_reader *)reader)->ring);
}

/* As fill_of_blocks(), but for text. If the text comes in small pieces, as from a pipe, the function waits for more. */
static int fill_of_text(struct chunk_reader *r)
{
    struct byte_window *w = r->opt.in.text;
    size_t most = r->opt.in.use.chunk_size, least = most < BYTE_WINDOW_KEPT ? most : BYTE_WINDOW_KEPT;
    int more = 1;
    while (w->size < least && more > 0)
        more = byte_window_more(w, help_make, r);
    r->at_end = more == 0 && w->size == 0;
    if (more < 0 || r->at_end)
        return more;
    size_t n = w->size < most ? w->size : most;
    struct slice_span span = {.bytes = w->data, .size = n, .users = byte_window_hold(w)};
    uint64_t offset = w->offset;
    byte_window_skip(w, n);
    return fill_with(r, span, offset);
}

/* Hands out blocks for one chunk. 1: done; 0: there is no room, or there are no more bytes; -1: failed, and the error
 * is recorded in the latch. */
static int fill_of_blocks(struct chunk_reader *r)
{
    struct chunk *c = chunk_of(r, r->filling);
    uint32_t size;
    int found;
    if (equip_chunk(r, c) < 0)
        return -1;
    while ((found = bgzf_source_peek(r->opt.in.source, &size)) > 0 && c->filled + size <= r->opt.in.use.chunk_size) {
        if (bgzf_source_ring_full(r->opt.in.source) && take_bytes(r, true) < 0)
            return -1;
        bgzf_source_hand_out(r->opt.in.source, c->bytes + c->filled, keep_block(r, c, size));
        c->filled += size;
    }
    r->filling += c->filled > 0;
    update_pool(r);
    r->at_end = found == 0;
    return found;
}

static int fill_chunk(struct chunk_reader *r)
{
    if (r->at_end || !may_fill(r))
        return 0;
    return reads_blocks(r) ? fill_of_blocks(r) : reads_stream(r) ? fill_of_stream(r) : fill_of_text(r);
}

/* -------------------------------------------------------- chunks to records */

/* Makes a chunk empty, and small again. A buffer that cannot be made smaller stays as it is. */
static void clear_chunk(const struct chunk_reader *r, struct chunk *c)
{
    c->filled = c->arrived = c->begin = c->end = c->n_blocks = c->n_kept = 0;
    byte_buffer_trim(&c->head, r->opt.in.use.chunk_size);
    if (c->span.users)
        c->bytes = NULL;
    c->span = (struct slice_span){.users = NULL};
    record_slice_reuse(&c->made, r->opt.in.use.records_size);
    if (r->opt.borrower)
        strip_chunk(r, c);
}

/* Frees the chunks whose records were taken. */
static void free_chunks(struct chunk_reader *r)
{
    while (r->ring.tail < r->lent) {
        clear_chunk(r, chunk_of(r, r->ring.tail));
        task_ring_take(&r->ring);
        update_pool(r);
    }
}

/* Hands out more blocks, takes the inflated ones back, and then returns the state of the next chunk. *filled: blocks
 * were handed out. */
static enum chunk_state advance(struct chunk_reader *r, bool *filled)
{
    free_chunks(r);
    int found = fill_chunk(r);
    *filled = found > 0;
    if (found < 0 || take_bytes(r, false) < 0)
        return CHUNK_FAILED;
    if (found == 0 && reads_blocks(r))
        bgzf_source_make_task(r->opt.in.source);
    if (r->lent < task_ring_head(&r->ring)
        && task_ring_state(&r->ring, task_ring_slot(&r->ring, r->lent)) == TASK_DONE)
        return CHUNK_MADE;
    if (!r->at_end || r->lent < r->filling)
        return CHUNK_AWAITED;
    assert(r->carry.n == 0);                     /* no chunk is in use, so the carried unit has had one */
    return CHUNK_NONE;
}

/* Checks that the records taken from the stream are those that its producer gave. */
static int compare_stream(const struct chunk_reader *r)
{
    struct tally seen = {.n = r->counts.seen + r->left - r->gone_on, .counts_only = true};
    return record_stream_end(&r->opt.in.stream, seen, "on the way into chunks", r->opt.in.path,
                             r->opt.in.engine->latch);
}

/* Once, when all records were lent: compares, lets tasks free the chunks' bytes, and calls the owner's ended(). It does
 * nothing after an error, because then the last chunk that was lent may be the broken one. -1: the stream gave other
 * records, and the error is recorded in the latch. */
static int end_chunks(struct chunk_reader *r)
{
    if (r->has_ended || latch_tripped(r->opt.in.engine->latch))
        return 0;
    r->has_ended = true;
    if (reads_stream(r) && compare_stream(r) < 0)
        return -1;
    if (reads_blocks(r))
        bgzf_source_warn_of_end(r->opt.in.source);
    if (reads_blocks(r) && !r->opt.borrower) {   /* tasks run free_bytes() */
        task_ring_hand_out_all(&r->ring);
        task_ring_take_all(&r->ring, r->opt.in.engine->clocks);
        r->lent = r->filling = task_ring_head(&r->ring);
    }
    if (r->opt.ended)
        r->opt.ended(r->opt.arg);
    return 0;
}

/* Lends the next chunk, whose records have been made. NULL: the chunk has a fault, which is recorded in the latch. */
static struct chunk *lend(struct chunk_reader *r)
{
    uint32_t number = task_ring_slot(&r->ring, r->lent++);
    struct chunk *c = &r->chunks[number];
    struct chunk_counts *counts = &r->counts;
    if (r->opt.lend(r->opt.arg, number, c) < 0)
        return NULL;
    c->made.number = counts->made.n + 1;
    c->made.offset = c->last_block;
    counts->n += c->n;
    counts->bytes += c->size;
    counts->dropped += c->dropped;
    tally_add(&counts->made, (struct tally){.n = c->made.n, .checksum = c->made.checksum});
    return c;
}

enum chunk_state chunk_reader_advance(void *reader)
{
    struct chunk_reader *r = reader;
    bool filled;
    enum chunk_state state;
    do
        state = advance(r, &filled);
    while (state == CHUNK_AWAITED && filled);
    return state == CHUNK_NONE && end_chunks(r) < 0 ? CHUNK_FAILED : state;
}

int chunk_reader_take(void *reader, struct record_slice *slice)
{
    struct chunk *c = lend(reader);
    if (!c)
        return -1;
    struct record_slice made = c->made;
    c->made = *slice;
    *slice = made;
    return 0;
}

/* Inflates a block, or helps the producer that it reads from. */
static bool help_source(struct chunk_reader *r)
{
    return reads_stream(r) ? r->opt.in.stream.help(r->opt.in.stream.producer)
                           : task_ring_head(&r->ring) < r->filling && take_bytes(r, true) == 0;
}

/* Makes the records of the chunk that is lent next, unless a task does so. */
static bool help_next(struct chunk_reader *r)
{
    return task_ring_run(&r->ring, task_ring_slot(&r->ring, r->lent));
}

/* While the main thread makes the records of a chunk, it hands out no work. With many threads this costs more than it
 * gains, so it inflates a block first, which takes a tenth of the time, and makes no chunk but the one that it waits
 * for. */
bool chunk_reader_help(void *reader)
{
    enum { FEW_THREADS = 8 };
    struct chunk_reader *r = reader;
    return r->opt.in.engine->n_threads > FEW_THREADS ? help_source(r) || help_next(r)
                                                     : task_ring_help(&r->ring) || help_source(r);
}

const uint8_t *chunk_reader_first(struct chunk_reader *r, size_t *size)
{
    if (slice_feed_await(&r->feed, task_no_help, NULL) != CHUNK_MADE)
        return NULL;
    *size = r->feed.span.size;
    return r->feed.span.bytes;
}

const struct chunk_counts *chunk_reader_counts(const struct chunk_reader *r)
{
    return &r->counts;
}

int chunk_reader_compare(const struct chunk_reader *r)
{
    struct tally in = {.n = r->counts.seen, .counts_only = true}, out = {.n = r->counts.made.n + r->counts.dropped};
    return tally_compare(in, out, "where chunks become records", r->opt.in.path, r->opt.in.engine->latch);
}

int chunk_reader_report(const struct chunk_reader *r, const struct chunk *c, enum bam_fault fault,
                        const uint8_t *record, const char *why)
{
    uint64_t n = r->counts.n + c->n;
    struct record_place at = {r->opt.in.path, 1 + n - (n < r->gone_on ? 0 : r->gone_on), r->counts.bytes + c->size,
                              c->last_block};
    if (fault == BAM_CUT)
        return record_fault_report_cut(r->opt.in.engine->latch, &at, true);
    if (fault)
        return record_fault_report(r->opt.in.engine->latch, &at, fault, record);
    return latch_fail(r->opt.in.engine->latch, "%s: record %llu %s", at.file, (unsigned long long)at.number, why);
}

/* ----------------------------------------------------------- open and close */

void chunk_reader_put(struct chunk_reader *r, const uint8_t *bytes, size_t n)
{
    struct chunk *first = r->chunks;
    assert(n <= r->opt.in.use.chunk_size);          /* the first chunk has its memory from the beginning */
    first->filled = first->arrived = n;
    if (n)
        memcpy(first->bytes, bytes, n);
}

void chunk_reader_go_on(struct chunk_reader *r, struct byte_buffer *unit, uint64_t n)
{
    r->counts.bytes -= unit->n;
    r->counts.seen += n;
    r->gone_on = n;
    r->carry = *unit;
    *unit = (struct byte_buffer){.p = NULL};
}

static int alloc_chunks(struct chunk_reader *r)
{
    const struct chunk_memory *use = &r->opt.in.use;
    struct task_ring_options ring = {.n_slots = use->n_chunks, .run = make_records, .arg = r};
    if (task_ring_open(&r->ring, &ring) < 0 || !(r->chunks = calloc(use->n_chunks, sizeof *r->chunks)))
        return -1;
    if (reads_stream(r)
        && slice_feed_open(&r->feed, &r->opt.in.stream, use->n_lent, use->chunk_size, r->opt.in.engine) < 0)
        return -1;
    for (uint32_t i = 0; i < (r->opt.borrower ? 1 : use->n_chunks); i++)
        if ((reads_blocks(r) && alloc_text(r, &r->chunks[i]) < 0)
            || byte_buffer_reserve(&r->chunks[i].made.records, use->records_size) < 0)
            return -1;
    return 0;
}

/* Sets up what comes before the bytes of the source. From now on these are looked at. */
static void begin(struct chunk_reader *r)
{
    struct bam_header *header = r->opt.header;
    r->counts.n = r->opt.in.n_before;
    r->counts.bytes = header ? header->size : 0;
    if (!reads_blocks(r))
        return;
    if (header) {
        r->last_block = bgzf_source_offset(r->opt.in.source);
        chunk_reader_put(r, header->rest, header->rest_size);
        bam_header_drop_rest(header);
    }
    if (r->opt.cutter.inflated)
        bgzf_source_on_inflated(r->opt.in.source, r->opt.cutter.inflated, r->opt.cutter.arg);
}

size_t chunk_reader_slice_memory(const struct chunk_memory *use)
{
    enum { TEXT_OF_RECORD = 256 };
    return record_slice_memory(use->records_size, use->chunk_size / TEXT_OF_RECORD);
}

size_t chunk_reader_chunk_memory(const struct chunk_memory *use)
{
    size_t text = use->chunk_size + 1;
    size_t kept = use->keeps ? use->chunk_size + kept_blocks(use) * sizeof(struct chunk_block) : 0;
    return text + kept + chunk_reader_slice_memory(use);
}

size_t chunk_reader_slot_memory(void)
{
    return sizeof(struct chunk) + task_ring_memory(1);
}

struct chunk_reader *chunk_reader_open(const struct chunk_reader_options *options)
{
    struct chunk_reader *r = calloc(1, sizeof *r);
    if (r) {
        r->opt = *options;
        r->counts.made.counts_only = options->counts_only;
        if (r->opt.in.use.tight)
            machine_keep_heaps_small();          /* a unit that is longer than a chunk makes the chunk larger for a
                                                  * while */
        if (alloc_chunks(r) == 0) {
            begin(r);
            return r;
        }
    }
    latch_fail(options->in.engine->latch, "%s: out of memory for its records", options->in.path);
    chunk_reader_close(r);
    return NULL;
}

void chunk_reader_use_batches(struct chunk_reader *r, struct task_batches *batches)
{
    task_ring_use_batches(&r->ring, batches);
    if (reads_blocks(r))
        bgzf_source_use_batches(r->opt.in.source, batches);
}

static void free_buffers(struct chunk_reader *r)
{
    for (uint32_t i = 0; r->chunks && i < r->opt.in.use.n_chunks; i++) {
        struct chunk *c = &r->chunks[i];
        if (!c->span.users)
            drop_bytes(c);
        free(c->head.p);
        record_slice_free(&c->made);
    }
    slice_feed_close(&r->feed);
    free(r->chunks);
    free(r->carry.p);
    r->chunks = NULL;
    r->carry.p = NULL;
}

void chunk_reader_end(struct chunk_reader *r)
{
    free_chunks(r);
    free_buffers(r);
}

void chunk_reader_close(struct chunk_reader *r)
{
    if (!r)
        return;
    bool read_all = r->at_end && r->lent == r->filling && !latch_tripped(r->opt.in.engine->latch);
    if (read_all)
        free_chunks(r);
    task_ring_close(&r->ring, read_all);
    free_buffers(r);
    free(r);
}
