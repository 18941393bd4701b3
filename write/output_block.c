/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/record_checksum.h"
#include "bam/tag_check.h"
#include "base/byte_hash.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "codec/bgzf_block.h"
#include "codec/kept_block.h"
#include "stats/counts.h"
#include "stats/join_tree.h"
#include "hts/bam_index.h"
#include "write/output_block.h"
#include "write/samtools_checksum.h"
#include "write/sam_text.h"
#include "write/sink_verify.h"

/* Bytes of records in a block, unless one record is longer. The text of SAM.gz becomes several BGZF blocks of about the
 * same size: with more text they are fuller, and so compress 3 % better. If they are not compressed, a slot has less
 * room (sam_text.h). */
static uint32_t room_of(enum sink_form form, int level)
{
    return form == SINK_SAM_GZ && level != 0 ? 4 * BGZF_FILL : BGZF_FILL;
}

static uint32_t records_max(enum sink_form form, int level)
{
    enum { OTHERS = 3 };         /* parts of two records, and one that would not fit */
    return (room_of(form, level) + BGZF_MAX_BLOCK - BGZF_FILL) / BAM_MIN_RECORD + OTHERS;
}

_Static_assert((int)RECORD_CHECKSUM_SEGMENT == (int)BGZF_FILL, "a block holds one segment of a long record");

/* The segment of a record_ref that has bytes of the header. The checksum does not include them. */
static const uint16_t NO_RECORD = UINT16_MAX;

/* The contents of a slot's block. It is usually a part of a merged list, and the main thread reads no record. Where two
 * lists meet, the main thread copies their references to the slot's own list. The deflate task copies the records
 * together and writes the fields from `size` on. placed() reads them. */
struct output_block {
    struct record_ref *own;      /* room for the records of a block */
    const struct record_ref *records;   /* the block's records: own, or in a list */
    uint32_t n;
    uint32_t size;               /* bytes of the records; the main thread sets it while own records are listed */
    uint32_t n_entries;
    struct bam_index_entry *entries;   /* for the records that end in the block */
    struct verify_ends ends;
    uint64_t checksum;
    const struct kept_block *kept;   /* the block to copy; NULL: it is deflated. This and the next two: main thread */
    uint32_t before;             /* bytes of the first record before the block, except those of segments */
    uint32_t behind;             /* bytes of the last record after it, except those of segments */
};

struct output_blocks {
    struct bgzf_sink_options opt;
    struct bgzf_sink *bgzf;
    struct sam_text *text;       /* NULL: the output is BAM */
    struct output_block *slots;
    struct record_ref *records;  /* records of all slots */
    struct output_block *filling;   /* NULL: none; main thread */
    uint32_t room, records_max;  /* bytes and records of a block, at most */
    struct record_out_options how;   /* this and the next: main thread, before the first block */
    struct bam_index *index;     /* NULL: none */
    struct copied_blocks copied; /* main thread; used if opt.copies */
    uint64_t checksum;           /* sum over all blocks that have been placed; this and the next: used by placed() */
    struct copied_count count;
    struct join_tree joins;      /* tree of the slots' counts; open from the first block on, if how.counts */
    uint64_t n_begun;            /* blocks; main thread */
};

/* ---- in the deflate task ---- */

/* Copies the records of a block together. Returns their size. */
static uint32_t gather(const struct output_block *block, record_finish_fn *finish, uint8_t *data)
{
    enum { AHEAD = 6 };
    uint8_t *out = data;
    for (uint32_t i = 0; i < block->n; i++) {
        const struct record_ref *r = &block->records[i];
        if (i + AHEAD < block->n)
            record_list_prefetch(&r[AHEAD]);
        memcpy(out, r->data, r->size);
        if (finish && r->segment == 0)
            finish(out);
        out += r->size;
    }
    return (uint32_t)(out - data);
}

static uint64_t records_size(const struct output_block *block)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < block->n; i++)
        size += block->records[i].size;
    return size;
}

/* The record that ends with reference i of the block, and its size. NULL: the record continues, or there is none. */
static const uint8_t *ending_record(const struct output_block *block, uint32_t i, size_t *size)
{
    const struct record_ref *r = &block->records[i];
    if (r->segment == NO_RECORD)
        return NULL;
    size_t before = (size_t)r->segment * BGZF_FILL + (i == 0 ? block->before : 0);
    const uint8_t *record = r->data - before;
    *size = bam_record_size(bam_record_at(record));
    return before + r->size == *size ? record : NULL;
}

static void count_finished(struct output_blocks *o, int thread, uint32_t slot, const uint8_t *record, size_t size)
{
    uint8_t *copy = malloc(size);
    if (!copy) {
        latch_fail(o->opt.engine->latch, "out of memory for a record of %zu bytes", size);
        return;
    }
    memcpy(copy, record, size);
    o->how.finish(copy);
    counts_add(o->how.counts, thread, slot, copy, (uint32_t)size);
    free(copy);
}

/* Returns whether another block has a part of record i, except of a long record. */
static bool is_parted(const struct output_block *block, uint32_t i)
{
    return (i == 0 && block->before > 0) || (i + 1 == block->n && block->behind > 0);
}

/* Returns true if reference i is surely a whole record. A record of BGZF_FILL bytes looks like a segment. */
static bool is_whole(const struct output_block *block, uint32_t i)
{
    const struct record_ref *r = &block->records[i];
    return r->segment == 0 && r->size < BGZF_FILL && !is_parted(block, i);
}

/* Counts the records that end in the block, and adds them to the checksum of samtools. data: the bytes of the records,
 * which the cache still has. A record in several blocks is read where it was put. */
static void look_at_records(struct output_blocks *o, const struct output_block *block, const uint8_t *data)
{
    uint32_t slot = (uint32_t)(block - o->slots);
    int thread = task_thread();
    for (uint32_t i = 0; i < block->n; i++) {
        const struct record_ref *r = &block->records[i];
        size_t size = r->size;
        bool whole = is_whole(block, i), is_unfinished = !whole && o->how.finish;
        const uint8_t *record = whole ? data : ending_record(block, i, &size);
        if (record && o->how.samtools && samtools_checksum_add(o->how.samtools, thread, record, size) < 0)
            latch_fail(o->opt.engine->latch, "out of memory for --checksum");
        if (record && o->how.counts && is_unfinished)
            count_finished(o, thread, slot, record, size);
        else if (record && o->how.counts)
            counts_add(o->how.counts, thread, slot, record, (uint32_t)size);
        data += r->size;
    }
}

/* Returns the checksum of record i. If the record is in two blocks, it is computed in the second one, from the record
 * that was put. */
static uint64_t checksum_of(const struct output_block *block, uint32_t i, const uint8_t *data)
{
    const struct record_ref *r = &block->records[i];
    size_t size;
    bool parted = is_parted(block, i);
    const uint8_t *record = parted ? ending_record(block, i, &size) : NULL;
    if (parted)
        return record ? record_checksum(record, size) : 0;
    return r->segment != NO_RECORD ? byte_hash(data, r->size, r->segment) : 0;
}

/* data: the bytes of the block's records. */
static uint64_t checksum_block(struct output_blocks *o, const struct output_block *block, const uint8_t *data)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < block->n; i++) {
        sum += checksum_of(block, i, data);
        data += block->records[i].size;
    }
    if (o->how.samtools || o->how.counts)
        look_at_records(o, block, data - records_size(block));
    return sum;
}

/* Checks that other programs can read the tags of the records that end in this block. */
static void check_tags(struct output_blocks *o, const struct output_block *block)
{
    for (uint32_t i = 0; i < block->n; i++) {
        size_t size;
        const uint8_t *record = ending_record(block, i, &size);
        const struct bam_record *r = bam_record_at(record);
        if (record && bam_record_fits(r, size) && !tag_check_bam(bam_record_aux(r), record + size))
            latch_fail(o->opt.engine->latch, "%s: record %s has a broken tag, so no program could read the file. "
                       RECORD_OUT_REMEDY, o->opt.path, bam_record_name(r));
    }
}

static void list_entry(struct output_blocks *o, struct output_block *block, const uint8_t *record, size_t size,
                       uint32_t after)
{
    if (bam_index_takes(o->index, record, size))
        block->entries[block->n_entries++] = bam_index_entry(record, after);
    else
        latch_fail(o->opt.engine->latch, "writing %s failed: " BAM_RECORD_CHANGED, o->opt.path);
}

/* Lists the index entries of the records that end in this block. */
static void list_entries(struct output_blocks *o, struct output_block *block)
{
    uint32_t after = 0;
    block->n_entries = 0;
    for (uint32_t i = 0; i < block->n; i++) {
        const struct record_ref *r = &block->records[i];
        after += r->size;
        size_t size;
        const uint8_t *record = ending_record(block, i, &size);
        if (record)
            list_entry(o, block, record, size, after);
    }
}

static const uint8_t *kept(void *blocks, uint32_t slot, uint32_t *length)
{
    const struct kept_block *block = ((const struct output_blocks *)blocks)->slots[slot].kept;
    if (!block)
        return NULL;
    *length = block->size;
    return kept_block_bytes(block);
}

/* Leaves what was counted in the block to the threads that join. */
static void put_counts(struct output_blocks *o, uint32_t slot)
{
    if (o->how.counts)
        join_tree_put(&o->joins, slot);
}

static uint32_t fill(void *blocks, uint32_t slot, uint8_t *data)
{
    struct output_blocks *o = blocks;
    struct output_block *block = &o->slots[slot];
    enum stage before = clocks_enter(o->opt.engine->clocks, STAGE_GATHER);
    block->size = gather(block, o->how.finish, data);
    check_tags(o, block);
    if (!o->how.verify)
        block->checksum = checksum_block(o, block, data);
    if (o->index)
        list_entries(o, block);
    if (!o->how.verify)
        put_counts(o, slot);
    clocks_leave(o->opt.engine->clocks, before, block->size);
    return block->size;
}

/* With --verify, the checksum is that of the data inflated from the block. So bytes that changed on their way to the
 * encoder are found. */
static void verify(void *blocks, uint32_t slot, const uint8_t *data, const uint8_t *deflated, uint32_t length)
{
    struct output_blocks *o = blocks;
    struct output_block *block = &o->slots[slot];
    struct sink_verify *look = o->how.verify;
    if (!look)
        return;
    int thread = task_thread();
    uint32_t parted = block->before > 0;         /* the record was checked in the block where it begins */
    enum stage before = clocks_enter(o->opt.engine->clocks, STAGE_VERIFY);
    if (sink_verify_block(look, thread, deflated, length, data, block->size) == 0
        && sink_verify_order(look, block->records + parted, block->n - parted, &block->ends) == 0)
        block->checksum = checksum_block(o, block, sink_verify_inflated(look, thread));
    put_counts(o, slot);
    clocks_leave(o->opt.engine->clocks, before, block->size);
}

/* Makes the text of the block, in place of fill() and verify(), if the output is SAM. */
static uint32_t make_text(void *blocks, uint32_t slot, const uint8_t **bytes)
{
    struct output_blocks *o = blocks;
    struct output_block *block = &o->slots[slot];
    bool is_header = block->records[0].segment == NO_RECORD;
    enum stage before = clocks_enter(o->opt.engine->clocks, STAGE_GATHER);
    uint32_t n = is_header ? sam_text_header(o->text, slot, block->records, bytes)
                           : sam_text_records(o->text, slot, block->records, block->n, &block->checksum, bytes);
    if (o->how.verify && !is_header && n > 0)
        sink_verify_order(o->how.verify, block->records, block->n, &block->ends);
    put_counts(o, slot);
    clocks_leave(o->opt.engine->clocks, before, records_size(block));
    return n ? n : 1;
}

/* Joins counts. No thread waits for this thread's block any more, so it does not matter if this takes long. */
static void join(void *blocks, uint32_t slot)
{
    struct output_blocks *o = blocks;
    if (o->how.counts && !latch_tripped(o->opt.engine->latch))
        join_tree_work(&o->joins, slot);
}

/* ---- under the ticket ---- */

/* The name of the record that has this entry. */
static const char *entry_name(const struct output_block *block, uint32_t number)
{
    for (uint32_t i = 0; i < block->n; i++) {
        size_t size;
        const uint8_t *record = ending_record(block, i, &size);
        if (record && number-- == 0)
            return bam_record_name(bam_record_at(record));
    }
    return NULL;
}

static void enter_index(struct output_blocks *o, const struct output_block *block, uint64_t place, uint64_t next)
{
    enum stage before = clocks_enter(o->opt.engine->clocks, STAGE_INDEX);
    uint32_t n = bam_index_add(o->index, place, block->size, next, block->entries, block->n_entries);
    if (n < block->n_entries)
        bam_index_refuse(bam_index_header(o->index), &block->entries[n], entry_name(block, n), o->opt.path,
                         o->opt.engine->latch);
    clocks_leave(o->opt.engine->clocks, before, 0);
}

static void placed(void *blocks, uint32_t slot, uint64_t place, uint64_t next)
{
    struct output_blocks *o = blocks;
    const struct output_block *block = &o->slots[slot];
    o->checksum += block->checksum;
    o->count.blocks += block->kept != NULL;
    o->count.bytes += block->kept ? next - place : 0;
    if (o->index && block->records[0].segment != NO_RECORD)   /* the header ends its block */
        enter_index(o, block, place, next);
    if (o->how.verify)
        sink_verify_join(o->how.verify, &block->ends);
}

/* ---- on the main thread ---- */

static int slots_alloc(struct output_blocks *o)
{
    if (o->opt.form != SINK_BAM && !(o->text = sam_text_new(&o->opt, &o->how)))
        return -1;
    if (!(o->slots = calloc(o->opt.n_slots, sizeof *o->slots)))
        return -1;
    if (!(o->records = malloc((size_t)o->opt.n_slots * o->records_max * sizeof *o->records)))
        return -1;
    for (uint32_t i = 0; i < o->opt.n_slots; i++)
        o->slots[i].own = o->records + (size_t)i * o->records_max;
    return 0;
}

struct output_blocks *output_blocks_open(const struct bgzf_sink_options *options)
{
    struct output_blocks *o = calloc(1, sizeof *o);
    if (o) {
        o->opt = *options;
        o->how = (struct record_out_options){.path = options->path, .format = sam, .latch = options->engine->latch};
        o->room = room_of(options->form, options->level);
        o->records_max = records_max(options->form, options->level);
        o->opt.fill = fill;
        o->opt.kept = kept;
        o->opt.deflated = verify;
        o->opt.make = make_text;
        o->opt.placed = placed;
        o->opt.finished = join;
        o->opt.arg = o;
        if (slots_alloc(o) == 0 && (o->bgzf = bgzf_sink_open(&o->opt)))
            return o;
    }
    latch_fail(options->engine->latch, BGZF_SINK_NO_MEMORY, options->path);
    output_blocks_close(o);
    return NULL;
}

void output_blocks_close(struct output_blocks *o)
{
    if (!o)
        return;
    bgzf_sink_close(o->bgzf);
    join_tree_close(&o->joins);
    for (uint32_t i = 0; o->slots && i < o->opt.n_slots; i++)
        free(o->slots[i].entries);
    free(o->records);
    free(o->slots);
    sam_text_free(o->text);
    free(o);
}

struct bgzf_sink *output_blocks_sink(const struct output_blocks *o)
{
    return o->bgzf;
}

int output_blocks_set_index(struct output_blocks *o, struct bam_index *index)
{
    for (uint32_t i = 0; i < o->opt.n_slots; i++)
        if (!(o->slots[i].entries = malloc(o->records_max * sizeof *o->slots[i].entries)))
            return -1;
    o->index = index;
    return 0;
}

struct record_out_options *output_blocks_how(struct output_blocks *o)
{
    return &o->how;
}

int output_blocks_flush(struct output_blocks *o)
{
    o->filling = NULL;
    return bgzf_sink_hand_out(o->bgzf);
}

/* Gives the slot room for its text. If there is none, waits for the oldest blocks to be written, as many as needed. */
static int begin_text(struct output_blocks *o, uint32_t slot, const struct record_ref *line)
{
    for (uint32_t older = slot; !sam_text_begin(o->text, slot, line);) {
        older = (older + 1) % o->opt.n_slots;
        if (bgzf_sink_wait(o->bgzf, older) < 0)
            return -1;
        sam_text_give_back(o->text, older);
    }
    return 0;
}

static bool help_deflate(void *blocks)
{
    return bgzf_sink_help(((const struct output_blocks *)blocks)->bgzf);
}

/* Waits until the counts of the first n blocks are joined. All these blocks have been deflated. */
static int wait_for_joins(struct output_blocks *o, uint64_t n)
{
    return o->how.counts ? join_tree_wait(&o->joins, n, help_deflate, o, o->opt.engine->latch) : 0;
}

static int begin_counts(struct output_blocks *o)
{
    uint64_t before = o->n_begun++;
    if (!o->how.counts)
        return 0;
    if (before == 0 && join_tree_open(&o->joins, o->how.counts, o->opt.n_slots, o->opt.engine->clocks) < 0)
        return latch_fail(o->opt.engine->latch, BGZF_SINK_NO_MEMORY, o->opt.path);
    return before < o->opt.n_slots ? 0 : wait_for_joins(o, before + 1 - o->opt.n_slots);
}

/* line: a record of SAM that is longer than the room of a block; otherwise NULL. */
static int begin_block(struct output_blocks *o, const struct record_ref *line)
{
    uint32_t slot;
    if (bgzf_sink_begin(o->bgzf, &slot) < 0 || begin_counts(o) < 0 || (o->text && begin_text(o, slot, line) < 0))
        return -1;
    o->filling = &o->slots[slot];
    o->filling->records = o->filling->own;
    o->filling->n = o->filling->size = o->filling->before = o->filling->behind = 0;
    o->filling->kept = NULL;
    return 0;
}

/* Lists as many records as fit into the block, as its own. Returns their number. */
static size_t list_records(const struct output_blocks *o, const struct record_ref *records, size_t n)
{
    enum { AHEAD = 64 };                         /* they are in another thread's cache */
    struct output_block *block = o->filling;
    uint32_t room = o->room - block->size;
    size_t most = o->records_max - block->n, fit = 0;
    most = n < most ? n : most;
    while (fit < most && records[fit].size <= room) {
        __builtin_prefetch(records + fit + AHEAD);
        room -= records[fit++].size;
    }
    memcpy(block->own + block->n, records, fit * sizeof *records);
    block->n += (uint32_t)fit;
    block->size = o->room - room;
    return fit;
}

/* Puts bytes that may be longer than a block, cut into segments of BGZF_FILL. The line of a SAM record is made at
 * once. */
static int put_long(struct output_blocks *o, const uint8_t *data, size_t size, bool is_record)
{
    size_t most = o->text && is_record ? UINT32_MAX : BGZF_FILL;
    for (uint32_t segment = 0; size > 0; segment++) {
        uint32_t n = (uint32_t)(size < most ? size : most);
        struct record_ref part = {data, n, is_record ? (uint16_t)segment : NO_RECORD, 0};
        if (output_blocks_flush(o) < 0 || begin_block(o, is_record ? &part : NULL) < 0)
            return -1;
        o->filling->own[0] = part;
        o->filling->n = 1;
        o->filling->size = n;
        data += n;
        size -= n;
    }
    return o->text ? output_blocks_flush(o) : 0;
}

int output_blocks_put_header(struct output_blocks *o, const uint8_t *data, size_t size)
{
    return put_long(o, data, size, false);
}

/* Puts a long record, or as many records as the block has room for. If it has none, hands the block out. Returns the
 * number of records put, or -1. */
static ssize_t put_some(struct output_blocks *o, const struct record_ref *records, size_t n)
{
    if (records->size > o->room)
        return put_long(o, records->data, records->size, true) < 0 ? -1 : 1;
    if (!o->filling && begin_block(o, NULL) < 0)
        return -1;
    size_t fit = list_records(o, records, n);
    return fit == 0 && output_blocks_flush(o) < 0 ? -1 : (ssize_t)fit;
}

/* Hands out a block of n records, which stay in the caller's list. */
static ssize_t put_block(struct output_blocks *o, const struct record_ref *records, uint32_t n)
{
    if (begin_block(o, NULL) < 0)
        return -1;
    o->filling->records = records;
    o->filling->n = n;
    return output_blocks_flush(o) < 0 ? -1 : (ssize_t)n;
}

/* ---- on the main thread, with copied blocks ---- */

/* Adds n bytes of the record, from `at` on, to the block, which has room. */
static int put_part(struct output_blocks *o, const struct record_ref *r, uint32_t at, uint32_t n)
{
    if (!o->filling && begin_block(o, NULL) < 0)
        return -1;
    struct output_block *block = o->filling;
    if (block->n == 0)
        block->before = at;
    block->behind = r->size - at - n;
    block->own[block->n++] = (struct record_ref){r->data + at, n, 0, r->input};
    block->size += n;
    return 0;
}

/* Ends the block before the last `lead` bytes, which belong to the first copied block. */
static int end_before(struct output_blocks *o, uint32_t lead)
{
    if (lead == 0)
        return output_blocks_flush(o);
    struct output_block *block = o->filling;
    struct record_ref last = block->own[--block->n];
    block->size -= last.size;
    return put_part(o, &last, 0, last.size - lead) < 0 || output_blocks_flush(o) < 0
        || put_part(o, &last, last.size - lead, lead) < 0 ? -1 : 0;
}

/* Turns the records of a block that is not copied after all into an ordinary block being filled. They may be more than
 * fit into one. */
static int settle(struct output_blocks *o)
{
    struct output_block *block = o->filling;
    uint32_t n = 0;
    while (block && block->size > o->room)
        block->size -= block->own[block->n - ++n].size;
    if (n == 0)
        return 0;
    block->n -= n;
    if (output_blocks_flush(o) < 0)
        return -1;
    for (const struct record_ref *r = block->own + block->n; n > 0; n--, r++)
        if (put_part(o, r, 0, r->size) < 0)
            return -1;
    return 0;
}

/* Puts the record into the block to be copied, and the rest of it into the next one. */
static int put_copied(struct output_blocks *o, const struct record_ref *r, const struct copy_step *step)
{
    if (put_part(o, r, 0, step->part) < 0)
        return -1;
    if (!step->whole)
        return 0;
    o->filling->kept = step->whole;
    return output_blocks_flush(o) < 0 || (step->part < r->size && put_part(o, r, step->part, r->size - step->part) < 0)
         ? -1 : 0;
}

static int put_or_copy(struct output_blocks *o, const struct record_ref *r)
{
    struct copy_step step = copied_blocks_next(&o->copied, r);
    ssize_t put = 0;
    if ((step.breaks && settle(o) < 0) || (step.begins && end_before(o, step.lead) < 0))
        return -1;
    if (step.copies)
        return put_copied(o, r, &step);
    while (put == 0)
        put = put_some(o, r, 1);
    return put < 0 ? -1 : 0;
}

int output_blocks_put(struct output_blocks *o, const struct record_list *list)
{
    ssize_t put;
    for (size_t i = 0; o->opt.copies && i < list->n; i++)
        if (put_or_copy(o, &list->records[i]) < 0)
            return -1;
    if (o->opt.copies)
        return 0;
    bool has_fit = list->fit && o->room == BGZF_FILL;   /* the size that fit is computed for */
    for (size_t i = 0; i < list->n; i += (size_t)put) {
        uint32_t fit = has_fit && !o->filling ? list->fit[i] : 0;
        put = fit ? put_block(o, list->records + i, fit) : put_some(o, list->records + i, list->n - i);
        if (put < 0)
            return -1;
    }
    return 0;
}

int output_blocks_finish(struct output_blocks *o)
{
    return settle(o) < 0 || output_blocks_flush(o) < 0 || bgzf_sink_finish(o->bgzf) < 0 ? -1
         : wait_for_joins(o, o->n_begun);
}

uint64_t output_blocks_checksum(const struct output_blocks *o)
{
    return o->checksum;
}

struct copied_count output_blocks_copied(const struct output_blocks *o)
{
    return o->count;
}

size_t output_blocks_memory(enum sink_form form, int n_threads, uint32_t n_slots, int level, size_t piece_size)
{
    size_t sink = form == SINK_SAM || form == SINK_SAM_GZ
                ? sam_text_memory(form == SINK_SAM_GZ, level, n_threads, n_slots)
                : bgzf_sink_memory(n_threads, n_slots, level, piece_size);
    return sink + n_slots * (sizeof(struct output_block) + records_max(form, level) * sizeof(struct record_ref));
}
