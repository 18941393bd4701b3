/* SPDX-License-Identifier: MIT */
/* The program with a fault of memory or of its own code. The program's objects are linked unchanged: -Wl,--wrap puts
 * each function named __wrap_X between X and its callers.
 *
 * SAMTOOLS_FAULT=PLACE:KIND[:AT[:N]]   the fault, at the byte AT of a record, at the N-th call of the place
 * SAMTOOLS_FAULT_TOLD=FILE             a byte is appended when it has happened
 *
 *   input -> arena -> (sort) -> unpacked <- run <- slice <- pack -> ...   places, in the order in which
 *                        `-----------> merged -> block -> deflate -> out   a record comes by them
 *
 * Input that is read in chunks has listed (a record), lent (all chunks) and slice (records of a chunk) instead of arena
 * and run; fixmate has fixed (a template), markdup has marked (a record) and losses (that leave memory). sormadup has
 * collated (a slice; before it all of the collating sort), fixed, listed, lent, arena, ..., merged, marked.
 *
 * Kinds: flip a byte; drop a record; double one; both (one lost, another twice, so that the count is right);
 * swap (two records change places), apart (two records change places, each in a list of its own). */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>
#include "fixmate/fixmate.h"
#include "bam_arena.h"
#include "codec/bgzf_block.h"
#include "markdup/dup_mark.h"
#include "markdup/dup_store.h"
#include "hts/hts_writer.h"
#include "write/output_block.h"
#include "write/record_sink.h"
#include "order/sublist_sort.h"
#include "markdup/marked_store.h"
#include "sormadup/sorted_slices.h"
#include "read/chunk_reader.h"
#include "read/fixed_records.h"
#include "sort/spill_slice.h"

struct fault {
    char place[16], kind[16];
    size_t at;
    int n;
};

static struct fault fault(void)
{
    const char *text = getenv("SAMTOOLS_FAULT");
    struct fault f = {"", "", 40, 1};
    if (text)
        sscanf(text, "%15[^:]:%15[^:]:%zu:%d", f.place, f.kind, &f.at, &f.n);
    return f;
}

static void tell(void)
{
    FILE *told = fopen(getenv("SAMTOOLS_FAULT_TOLD"), "a");
    if (told) {
        fputc('!', told);
        fclose(told);
    }
}

/* Returns whether the fault happens here and now: at the N-th call that might. */
static bool strikes(const char *place, const char *kind)
{
    static atomic_int calls;
    struct fault f = fault();
    if (strcmp(f.place, place) != 0 || strcmp(f.kind, kind) != 0 || atomic_fetch_add(&calls, 1) + 1 != f.n)
        return false;
    tell();
    return true;
}

/* One bit of the byte AT of n, or of the last. */
static void flip(uint8_t *bytes, size_t n)
{
    size_t at = fault().at;
    bytes[at < n ? at : n - 1] ^= 0x10;
}

/* A copy of a record with a wrong bit, which stays. */
static const uint8_t *flipped(const uint8_t *record, size_t size)
{
    uint8_t *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, record, size);
    flip(copy, size);
    return copy;
}

/* ----------------------------------------------------------------- fixmate */

int __real_fixmate_template(struct fixmate *fixmate, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                            struct byte_buffer *to, uint64_t *dropped);
int __wrap_fixmate_template(struct fixmate *fixmate, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                            struct byte_buffer *to, uint64_t *dropped);

/* Flips a bit of the record of `size` bytes at `start`, removes it, or appends a copy of it after the last one. */
static void spoil_made(const char *place, struct byte_buffer *to, size_t start, size_t size)
{
    if (strikes(place, "flip"))
        flip(to->p + start, size);
    if (strikes(place, "drop"))
        to->n = start;
    if (strikes(place, "double")) {
        if (byte_buffer_reserve(to, to->n + size) < 0)
            abort();
        memcpy(to->p + to->n, to->p + start, size);
        to->n += size;
    }
}

int __wrap_fixmate_template(struct fixmate *fixmate, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                            struct byte_buffer *to, uint64_t *dropped)
{
    size_t start = to->n;
    int result = __real_fixmate_template(fixmate, rules, p, n, to, dropped);
    spoil_made("fixed", to, start, bam_record_size((const struct bam_record *)(to->p + start)));
    return result;
}

const struct chunk_counts *__real_chunk_reader_counts(const struct chunk_reader *chunks);
const struct chunk_counts *__wrap_chunk_reader_counts(const struct chunk_reader *chunks);

/* The counts look as if a record had changed between its chunk and the consumer. Lines of SAM have no checksums yet. */
const struct chunk_counts *__wrap_chunk_reader_counts(const struct chunk_reader *chunks)
{
    static struct chunk_counts wrong;
    static atomic_bool is_wrong;                 /* it stays wrong: some callers look at other counts only */
    const struct chunk_counts *counts = __real_chunk_reader_counts(chunks);
    if (!is_wrong && (counts->made.checksum == 0 || !strikes("lent", "flip")))
        return counts;
    is_wrong = true;
    wrong = *counts;
    wrong.made.checksum++;
    return &wrong;
}

typedef int list_fn(struct record_slice *slice, size_t start, bool normalise, const struct sort_rule *rule,
                    enum bam_fault *fault);
list_fn __real_record_slice_list, __wrap_record_slice_list;

/* The record is missing in the list and in the sum. */
int __wrap_record_slice_list(struct record_slice *slice, size_t start, bool normalise, const struct sort_rule *rule,
                             enum bam_fault *fault)
{
    struct record_slice before = *slice;
    int result = __real_record_slice_list(slice, start, normalise, rule, fault);
    if (result == 0 && !*fault && strikes("listed", "drop")) {
        slice->n = before.n;
        slice->checksum = before.checksum;
    }
    return result;
}

typedef enum dup_mark_fault mark_fn(const struct dup_mark_rule *rule, struct byte_buffer *to,
                                    const struct bam_record *record, const struct dup_verdict *verdict);
mark_fn __real_dup_mark_append, __wrap_dup_mark_append;

enum dup_mark_fault __wrap_dup_mark_append(const struct dup_mark_rule *rule, struct byte_buffer *to,
                                           const struct bam_record *record, const struct dup_verdict *verdict)
{
    size_t start = to->n;
    enum dup_mark_fault result = __real_dup_mark_append(rule, to, record, verdict);
    spoil_made("marked", to, start, to->n - start);
    return result;
}

int __real_chunk_reader_take(struct chunk_reader *chunks, struct record_slice *slice);
int __wrap_chunk_reader_take(struct chunk_reader *chunks, struct record_slice *slice);

/* The last record is missing in the list and in the sum; or all records of the slice are lost. */
int __wrap_chunk_reader_take(struct chunk_reader *chunks, struct record_slice *slice)
{
    int result = __real_chunk_reader_take(chunks, slice);
    if (result == 0 && slice->n > 0 && strikes("slice", "drop")) {
        const struct bam_key last = slice->keys[--slice->n];
        slice->checksum -= record_checksum(bam_key_record(slice->records.p, last),
                                           bam_key_record_size(slice->records.p, last));
    }
    if (result == 0 && strikes("slice", "lose"))
        slice->n = slice->records.n = 0;
    return result;
}

int __real_sorted_slices_take(struct sorted_slices *source, struct record_slice *slice);
int __wrap_sorted_slices_take(struct sorted_slices *source, struct record_slice *slice);

/* The slice is not read. */
int __wrap_sorted_slices_take(struct sorted_slices *source, struct record_slice *slice)
{
    int result = __real_sorted_slices_take(source, slice);
    if (result == 0 && strikes("collated", "drop"))
        slice->n = slice->records.n = 0;
    return result;
}

/* ------------------------------------------------------------------- arena */

int __real_bam_arena_cut_sublist(struct bam_arena *arena, size_t min_records, struct bam_sublist *sublist);
int __wrap_bam_arena_cut_sublist(struct bam_arena *arena, size_t min_records, struct bam_sublist *sublist);

/* All keys are in their places here; the newest is at the top of those of the last block, which are lowest. */
int __wrap_bam_arena_cut_sublist(struct bam_arena *arena, size_t min_records, struct bam_sublist *sublist)
{
    if (bam_arena_open_records(arena) > 1 && strikes("arena", "double")) {
        struct bam_key *keys = (struct bam_key *)(arena->base + arena->top);
        keys[-1] = keys[0];
        arena->top -= sizeof *keys;
    }
    int cut = __real_bam_arena_cut_sublist(arena, min_records, sublist);
    if (cut > 0 && sublist->n > 1 && strikes("arena", "drop"))
        arena->sublists[arena->n_sublists - 1].n = --sublist->n;
    return cut;
}

void __real_sublist_sort(struct bam_key *keys, size_t n, const struct bam_key_order *order);
void __wrap_sublist_sort(struct bam_key *keys, size_t n, const struct bam_key_order *order);

void __wrap_sublist_sort(struct bam_key *keys, size_t n, const struct bam_key_order *order)
{
    if (n > 1 && strikes("arena", "flip"))
        flip((uint8_t *)(uintptr_t)bam_key_record(order->base, keys[n / 2]), bam_key_record_size(order->base, keys[n / 2]));
    if (n > 1 && strikes("arena", "both"))
        keys[0] = keys[n - 1];
    __real_sublist_sort(keys, n, order);
    if (n > 1 && keys[0].sort != keys[n - 1].sort && strikes("arena", "swap")) {
        struct bam_key first = keys[0];
        keys[0] = keys[n - 1];
        keys[n - 1] = first;
    }
}

/* ------------------------------------------------------------------- runs */

typedef int add_fn(struct spill_packer *p, uint64_t sort_key, const uint8_t *record, size_t size);
add_fn __real_spill_packer_add, __wrap_spill_packer_add;

int __wrap_spill_packer_add(struct spill_packer *p, uint64_t sort_key, const uint8_t *record, size_t size)
{
    static atomic_int lost;      /* a record; none is doubled yet */
    static atomic_int again;     /* the slice was full: the flipped record is not in it */
    if (strikes("run", "drop"))
        return 1;
    if (strikes("run", "both")) {
        atomic_store(&lost, 1);
        return 1;
    }
    bool flips = strikes("run", "flip") || atomic_exchange(&again, 0);
    int added = __real_spill_packer_add(p, sort_key, flips ? flipped(record, size) : record, size);
    if (flips && added == 0)
        atomic_store(&again, 1);
    if (added == 1 && (atomic_exchange(&lost, 0) || strikes("run", "double")))
        return __real_spill_packer_add(p, sort_key, record, size);
    return added;
}

typedef int pack_fn(struct spill_packer *p, const uint8_t **packed, size_t *n);
pack_fn __real_spill_packer_pack, __wrap_spill_packer_pack;

int __wrap_spill_packer_pack(struct spill_packer *p, const uint8_t **packed, size_t *n)
{
    int result = __real_spill_packer_pack(p, packed, n);
    if (result == 0 && strikes("slice", "flip"))
        flip((uint8_t *)(uintptr_t)*packed, *n);
    return result;
}

typedef int unpack_fn(struct spill_slice *slice, struct record_unpacker *unpacker, const uint8_t *packed, size_t n);
unpack_fn __real_spill_slice_unpack, __wrap_spill_slice_unpack;

int __wrap_spill_slice_unpack(struct spill_slice *slice, struct record_unpacker *unpacker, const uint8_t *packed, size_t n)
{
    int result = __real_spill_slice_unpack(slice, unpacker, packed, n);
    if (result == 0 && strikes("unpacked", "flip"))
        flip(slice->base, slice->bottom);
    return result;
}

static int (*put_losses)(void *context, const void *data, size_t n, struct dup_place *place);

static int put_flipped(void *context, const void *data, size_t n, struct dup_place *place)
{
    return put_losses(context, strikes("losses", "flip") ? flipped(data, n) : data, n, place);
}

void __real_marked_store_lend(struct marked_store *store, struct dup_store *losses);
void __wrap_marked_store_lend(struct marked_store *store, struct dup_store *losses);

void __wrap_marked_store_lend(struct marked_store *store, struct dup_store *losses)
{
    __real_marked_store_lend(store, losses);
    put_losses = losses->put;
    losses->put = put_flipped;
}

/* ------------------------------------------------------------------ output */

uint64_t __real_record_sink_count(const struct record_sink *sink);
uint64_t __wrap_record_sink_count(const struct record_sink *sink);

uint64_t __wrap_record_sink_count(const struct record_sink *sink)
{
    return __real_record_sink_count(sink) + strikes("count", "flip");
}

typedef int index_fn(hts_idx_t *index, int tid, hts_pos_t begin, hts_pos_t end, uint64_t offset, int mapped);
index_fn __real_hts_idx_push, __wrap_hts_idx_push;

/* htslib has no memory for an entry. */
int __wrap_hts_idx_push(hts_idx_t *index, int tid, hts_pos_t begin, hts_pos_t end, uint64_t offset, int mapped)
{
    return strikes("index", "drop") ? -1 : __real_hts_idx_push(index, tid, begin, end, offset, mapped);
}

typedef int put_fn(void *sink, const struct record_list *list);

/* Both sinks take lists of records. */
static int put(const char *place, put_fn *real, void *sink, const struct record_list *list)
{
    if (list->n < 2)
        return real(sink, list);
    struct record_ref *records = list->records, pair[2] = {records[1], records[0]}, wrong = records[0];
    struct record_list one = {.records = records, .n = 1}, swapped = {.records = pair, .n = 2};
    struct record_list later = {.records = records + 1, .n = list->n - 1};
    if (strikes(place, "drop"))
        return real(sink, &later);
    if (strikes(place, "double") && real(sink, &one) < 0)
        return -1;
    if (strikes(place, "both")) {
        swapped.n = 1;
        return real(sink, &swapped) < 0 ? -1 : real(sink, &later);
    }
    if (strikes(place, "swap")) {
        later.records++;
        later.n--;
        return real(sink, &swapped) < 0 ? -1 : real(sink, &later);
    }
    if (strikes(place, "apart")) {
        struct record_list second = {.records = records + 1, .n = 1};
        later.records++;
        later.n--;
        return real(sink, &second) < 0 || real(sink, &one) < 0 ? -1 : real(sink, &later);
    }
    if (!strikes(place, "flip"))
        return real(sink, list);
    wrong.data = flipped(wrong.data, wrong.size);
    one.records = &wrong;
    return real(sink, &one) < 0 ? -1 : real(sink, &later);
}

int __real_record_sink_put(struct record_sink *sink, const struct record_list *list);
int __wrap_record_sink_put(struct record_sink *sink, const struct record_list *list);
int __real_output_blocks_put(struct output_blocks *sink, const struct record_list *list);
int __wrap_output_blocks_put(struct output_blocks *sink, const struct record_list *list);

static int put_merged(void *sink, const struct record_list *list)
{
    return __real_record_sink_put(sink, list);
}

int __wrap_record_sink_put(struct record_sink *sink, const struct record_list *list)
{
    return put("merged", put_merged, sink, list);
}

static int put_blocks(void *sink, const struct record_list *list)
{
    return __real_output_blocks_put(sink, list);
}

int __wrap_output_blocks_put(struct output_blocks *sink, const struct record_list *list)
{
    return put("block", put_blocks, sink, list);
}

/* The fault is in the block that a record was just copied to. */
static void spoil_gathered(uint8_t *record)
{
    if (strikes("gathered", "flip"))
        flip(record, bam_record_size((const struct bam_record *)record));
}

typedef struct output_blocks *open_fn(const struct bgzf_sink_options *options);
open_fn __real_output_blocks_open, __wrap_output_blocks_open;

struct output_blocks *__wrap_output_blocks_open(const struct bgzf_sink_options *options)
{
    struct output_blocks *sink = __real_output_blocks_open(options);
    if (sink && strcmp(fault().place, "gathered") == 0)
        output_blocks_how(sink)->finish = spoil_gathered;
    return sink;
}

typedef uint32_t deflate_fn(struct bgzf_codec *codec, const uint8_t *data, uint32_t n, uint8_t *out);
deflate_fn __real_bgzf_block_deflate, __wrap_bgzf_block_deflate;

uint32_t __wrap_bgzf_block_deflate(struct bgzf_codec *codec, const uint8_t *data, uint32_t n, uint8_t *out)
{
    bool is_header = n > 4 && memcmp(data, "BAM\1", 4) == 0;
    if (!is_header && strikes("encoder", "flip"))
        flip((uint8_t *)(uintptr_t)data, n);
    uint32_t length = __real_bgzf_block_deflate(codec, data, n, out);
    if (!is_header && strikes("deflated", "flip"))
        flip(out, length);
    return length;
}

int __real_hts_writer_put(struct hts_writer *writer, const struct record_ref *records, size_t n);
int __wrap_hts_writer_put(struct hts_writer *writer, const struct record_ref *records, size_t n);

static int put_ready(void *writer, const struct record_list *list)
{
    return __real_hts_writer_put(writer, list->records, list->n);
}

/* CRAM, and SAM.gz with an index, take this way in place of BAM's blocks. */
int __wrap_hts_writer_put(struct hts_writer *writer, const struct record_ref *records, size_t n)
{
    struct record_list list = {.records = (struct record_ref *)(uintptr_t)records, .n = n};
    return put("block", put_ready, writer, &list);
}

int __real_sam_write1(samFile *file, const sam_hdr_t *header, const bam1_t *record);
int __wrap_sam_write1(samFile *file, const sam_hdr_t *header, const bam1_t *record);

int __real_sam_format1(const sam_hdr_t *header, const bam1_t *record, kstring_t *line);
int __wrap_sam_format1(const sam_hdr_t *header, const bam1_t *record, kstring_t *line);

/* htslib makes no line for a record, without an error; or makes two. */
int __wrap_sam_format1(const sam_hdr_t *header, const bam1_t *record, kstring_t *line)
{
    int length = __real_sam_format1(header, record, line);
    if (length > 0 && strikes("htslib", "drop")) {
        line->l = 0;
        return 0;
    }
    return length;
}

/* htslib reports that it has written a record, but has not; or it writes one twice. CRAM. */
int __wrap_sam_write1(samFile *file, const sam_hdr_t *header, const bam1_t *record)
{
    if (strikes("htslib", "drop"))
        return 0;
    if (strikes("htslib", "double") && __real_sam_write1(file, header, record) < 0)
        return -1;
    return __real_sam_write1(file, header, record);
}
