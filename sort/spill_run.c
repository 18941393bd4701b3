/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/byte_hash.h"
#include "base/endian_io.h"
#include "base/latch.h"
#include "sort/record_pack.h"
#include "sort/run_merge.h"
#include "sort/spill_run.h"
#include "base/clocks.h"

enum { BEST_PACKING = 1000 };    /* unpacked bytes per packed byte, a generous bound: a byte of LZ4 becomes at most 255
                                  * bytes, a byte of keys at most 16 */

static int make_room(struct spill_run *run, size_t n)
{
    if (run->n + n <= run->max)
        return 0;
    size_t max = run->n + n > 2 * run->max ? run->n + n : 2 * run->max;
    struct spill_place *grown = realloc(run->slices, max * sizeof *grown);
    if (!grown)
        return -1;
    run->slices = grown;
    run->max = max;
    return 0;
}

int spill_run_append(struct spill_run *run, struct spill_run *other)
{
    if (make_room(run, other->n) < 0)
        return -1;
    if (other->n)
        memcpy(run->slices + run->n, other->slices, other->n * sizeof *other->slices);
    run->n += other->n;
    run->bytes += other->bytes;
    run->largest = run->largest > other->largest ? run->largest : other->largest;
    spill_run_free(other);
    return 0;
}

void spill_run_free(struct spill_run *run)
{
    free(run->slices);
    *run = (struct spill_run){0};
}

void spill_run_remove(struct spill_run *run, struct spill_store *store)
{
    for (size_t i = 0; i < run->n; i++)
        spill_store_free(store, run->slices[i]);
    spill_run_free(run);
}

/* ----------------------------------------------------------------- writing */

/* Puts a slice, which takes `size` bytes in memory, into the store, and lists its place. hash: see struct
 * spill_place. */
static int put_slice(struct spill_writer *w, const struct spill_bytes both[2], uint64_t first_key, uint64_t hash,
                     uint64_t size)
{
    struct spill_run *run = w->run;
    struct spill_place *place = make_room(run, 1) < 0 ? NULL : &run->slices[run->n];
    if (!place)
        return latch_fail(w->latch, "out of memory for the list of temporary data");
    if (spill_store_put_both(w->store, both, place) < 0)
        return -1;
    place->first_key = first_key;
    place->hash = hash;
    run->n++;
    run->bytes += place->size;
    run->largest = size > run->largest ? size : run->largest;
    return latch_tripped(w->latch) ? -1 : 0;
}

static int write_slice(struct spill_writer *w)
{
    const uint8_t *packed;
    size_t n;
    enum stage before = clocks_enter(spill_store_clocks(w->store), STAGE_PACK);
    int failed = spill_packer_pack(w->packer, &packed, &n);
    uint64_t size = failed ? 0 : spill_slice_size(packed);
    clocks_leave(spill_store_clocks(w->store), before, size);
    if (failed)
        return latch_fail(w->latch, "out of memory for temporary data");
    const struct spill_bytes both[2] = {{packed, n}, {NULL, 0}};
    return put_slice(w, both, w->first_key, 0, size);
}

static int add_record(struct spill_writer *w, uint64_t sort_key, const uint8_t *record, size_t size)
{
    if (spill_packer_empty(w->packer))
        w->first_key = sort_key;
    int added = spill_packer_add(w->packer, sort_key, record, size);
    return added < 0 ? latch_fail(w->latch, "out of memory for a record of %zu bytes", size) : added;
}

/* Offset of a record's qualities. */
static size_t qualities_at(const struct bam_record *r)
{
    return bam_record_seq_at(r) + ((size_t)load_le32(r->seq_len) + 1) / 2;
}

/* Returns the hash of both strings of bytes that are put, as one string, because they are loaded as one. It is not
 * 0. */
static uint64_t hash_of(const void *first, size_t n_first, const void *second, size_t n_second)
{
    return byte_hash(second, n_second, byte_hash(first, n_first, 0)) | 1;
}

/* Leaves out missing qualities (all 0xff): assemblies have none, and they would be two thirds of all bytes. */
static int write_large(struct spill_writer *w, uint64_t sort_key, const uint8_t *record, size_t size)
{
    const struct bam_record *r = bam_record_at(record);
    size_t at = qualities_at(r), n = load_le32(r->seq_len);
    enum stage before = clocks_enter(spill_store_clocks(w->store), STAGE_PACK);
    bool none = n > 0 && record[at] == 0xff && memcmp(record + at, record + at + 1, n - 1) == 0;
    size_t end = none ? at : size, next = none ? at + n : size;
    const struct spill_bytes both[2] = {{record, end}, {record + next, size - next}};
    uint64_t hash = hash_of(record, end, record + next, size - next);
    clocks_leave(spill_store_clocks(w->store), before, size);
    return put_slice(w, both, sort_key, hash, spill_slice_memory(size, 1));
}

int spill_writer_put(struct spill_writer *w, uint64_t sort_key, const uint8_t *record, size_t size)
{
    if (!bam_record_fits(bam_record_at(record), size))
        return latch_fail(w->latch, "packing temporary data failed: " BAM_RECORD_CHANGED);
    if (spill_packer_too_small(w->packer, size))
        return spill_writer_end(w) < 0 ? -1 : write_large(w, sort_key, record, size);
    int added = add_record(w, sort_key, record, size);
    if (added == 0)
        added = write_slice(w) < 0 ? -1 : add_record(w, sort_key, record, size);
    return added < 0 ? -1 : 0;
}

int spill_writer_end(struct spill_writer *w)
{
    return spill_packer_empty(w->packer) ? 0 : write_slice(w);
}

/* ----------------------------------------------------------------- loading */

void spill_loader_free(struct spill_loader *loader)
{
    free(loader->packed.p);
    record_unpacker_free(loader->unpacker);
    *loader = (struct spill_loader){.unpacker = NULL};
}

size_t spill_loader_memory(size_t slice_size)
{
    return record_packer_memory() + slice_size;
}

static int read_packed(struct spill_store *store, struct spill_place place, struct spill_loader *loader,
                       struct latch *latch)
{
    size_t size = (size_t)place.size + RECORD_PACK_SLACK;
    if ((!loader->unpacker && !(loader->unpacker = record_unpacker_new()))
        || (size > loader->packed.max && byte_buffer_resize(&loader->packed, size) < 0))
        return latch_fail(latch, "out of memory for temporary data");
    if (spill_store_get(store, place, loader->packed.p) < 0)
        return -1;
    return place.size < SPILL_SLICE_HEADER ? spill_store_damaged(store, place) : 0;
}

void spill_extra_free(struct spill_extra *extra)
{
    if (extra->memory)
        munmap(extra->memory, extra->size);
    *extra = (struct spill_extra){NULL, 0};
}

/* Gives the buffer's slice `size` bytes of memory. Pages that are not written to take no memory. */
static int place_slice(struct spill_buffer *b, uint64_t size, bool home_is_free, struct latch *latch)
{
    b->slice = (struct spill_slice){.base = b->home, .size = b->home_size};
    if (!home_is_free || size > b->home_size) {
        void *extra = size < SIZE_MAX / 2 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                          : MAP_FAILED;
        b->extra = (struct spill_extra){extra == MAP_FAILED ? NULL : extra, size};
        b->slice = (struct spill_slice){.base = b->extra.memory, .size = size};
    }
    if (b->slice.base)
        return 0;
    latch_fail(latch, "out of memory for temporary data");
    return -1;
}

static int load_packed(struct spill_store *store, struct spill_place place, struct spill_loader *loader,
                       struct spill_buffer *b, bool home_is_free, struct latch *latch)
{
    if (read_packed(store, place, loader, latch) < 0)
        return -1;
    /* The header is not verified yet, but no packing has a better ratio than this. */
    uint64_t size = spill_slice_size(loader->packed.p);
    if (size / BEST_PACKING > place.size)
        return spill_store_damaged(store, place);
    if (place_slice(b, size, home_is_free, latch) < 0)
        return -1;
    enum stage before = clocks_enter(spill_store_clocks(store), STAGE_UNPACK);
    int failed = spill_slice_unpack(&b->slice, loader->unpacker, loader->packed.p, place.size);
    clocks_leave(spill_store_clocks(store), before, size);
    return failed ? spill_store_damaged(store, place) : 0;
}

static size_t tags_at(const struct bam_record *r)
{
    return qualities_at(r) + load_le32(r->seq_len);
}

/* Reads n bytes of the stored bytes, beginning at offset `from`. */
static int get_bytes(struct spill_store *store, struct spill_place place, size_t from, size_t n, uint8_t *to)
{
    place.offset += from;
    place.size = (uint32_t)n;
    return n > 0 ? spill_store_get(store, place, to) : 0;
}

int spill_load_head(struct spill_store *store, struct spill_place place, struct spill_buffer *b, bool home_is_free,
                    struct latch *latch)
{
    uint8_t fixed[BAM_FIXED] = {0};
    const struct bam_record *r = bam_record_at(fixed);
    if (get_bytes(store, place, 0, place.size < BAM_FIXED ? place.size : BAM_FIXED, fixed) < 0)
        return -1;
    /* The fields are not verified yet. */
    size_t size = bam_record_size(r), tags = tags_at(r), missing = size - place.size, head = bam_record_seq_at(r);
    if ((size != place.size && missing != load_le32(r->seq_len)) || tags > size)
        return spill_store_damaged(store, place);
    if (place_slice(b, spill_slice_memory(size, 1), home_is_free, latch) < 0
        || get_bytes(store, place, 0, head, b->slice.base) < 0
        || get_bytes(store, place, tags - missing, size - tags, b->slice.base + tags) < 0)
        return -1;
    /* Names are compared before the hash is known. */
    if (memcmp(b->slice.base, fixed, BAM_FIXED) != 0 || r->name_len < 1 || b->slice.base[BAM_FIXED + r->name_len - 1])
        return spill_store_damaged(store, place);
    b->slice.bottom = size;
    b->slice.n = 1;
    struct bam_key *key = (struct bam_key *)(b->slice.base + b->slice.size) - 1;
    *key = (struct bam_key){place.first_key, bam_key_place(0, size)};
    return 0;
}

int spill_load_body(struct spill_store *store, struct spill_place place, const struct spill_buffer *b)
{
    uint8_t *record = b->slice.base;
    const struct bam_record *r = bam_record_at(record);
    size_t size = b->slice.bottom, missing = size - place.size, head = bam_record_seq_at(r), tags = tags_at(r);
    size_t body = tags - missing - head, end = missing ? tags - missing : size, next = missing ? tags : size;
    if (get_bytes(store, place, head, body, record + head) < 0)
        return -1;
    enum stage before = clocks_enter(spill_store_clocks(store), STAGE_UNPACK);
    memset(record + head + body, 0xff, missing);
    bool damaged = hash_of(record, end, record + next, size - next) != place.hash;
    clocks_leave(spill_store_clocks(store), before, size);
    return damaged ? spill_store_damaged(store, place) : 0;
}

int spill_load(struct spill_store *store, struct spill_place place, struct spill_loader *loader,
               struct spill_buffer *b, bool home_is_free, struct latch *latch)
{
    if (!place.hash)
        return load_packed(store, place, loader, b, home_is_free, latch);
    return spill_load_head(store, place, b, home_is_free, latch) < 0 ? -1 : spill_load_body(store, place, b);
}

/* ----------------------------------------------------------------- merging */

struct range_merge {
    const struct spill_merge *how;
    struct spill_buffer *buffers;
    size_t *next;                /* number of each run's next slice to load */
};

/* The first slice that can have a record of this sort key or a larger one. A slice that begins with the key may follow
 * one that ends with it. */
static size_t first_slice_with(const struct spill_run *run, uint64_t key)
{
    size_t slice = 0;
    while (slice + 1 < run->n && run->slices[slice + 1].first_key < key)
        slice++;
    return slice;
}

/* Returns the keys of the slice that are to be merged. */
static struct merge_way keys_to_merge(const struct spill_merge *how, const struct spill_slice *slice)
{
    const struct bam_key *keys = spill_slice_keys(slice), *end = keys + slice->n;
    while (keys < end && keys->sort < how->from)
        keys++;
    while (keys < end && end[-1].sort > how->to)
        end--;
    return (struct merge_way){keys, end, slice->base};
}

static bool has_next(const struct range_merge *m, size_t number)
{
    const struct spill_run *run = &m->how->runs[number];
    return m->next[number] < run->n && run->slices[m->next[number]].first_key <= m->how->to;
}

static int load_next(void *arg, size_t number, struct merge_way *way)
{
    struct range_merge *m = arg;
    const struct spill_merge *how = m->how;
    const struct spill_run *run = &how->runs[number];
    struct spill_buffer *buffer = &m->buffers[number];
    do {
        spill_extra_free(&buffer->extra);
        if (atomic_load(how->cancelled))
            return -1;
        if (!has_next(m, number))
            return 0;
        struct spill_place place = run->slices[m->next[number]++];
        if (has_next(m, number))
            spill_store_expect(how->writer.store, run->slices[m->next[number]]);
        if (spill_load(how->writer.store, place, how->loader, buffer, true, how->writer.latch) < 0)
            return -1;
        *way = keys_to_merge(how, &buffer->slice);
    } while (way->next == way->end);
    return 1;
}

static int merge_into(struct spill_writer *writer, struct run_merge *merge)
{
    struct merge_item item;
    int there;
    while ((there = run_merge_next(merge, &item)) > 0)
        if (spill_writer_put(writer, item.key.sort, bam_key_record(item.base, item.key),
                             bam_key_record_size(item.base, item.key)) < 0)
            return -1;
    return there < 0 ? -1 : spill_writer_end(writer);
}

int spill_merge(const struct spill_merge *how)
{
    struct run_merge merge;
    struct spill_writer writer = how->writer;
    struct range_merge m = {how, calloc(how->n, sizeof *m.buffers), calloc(how->n, sizeof *m.next)};
    int result = -1;
    if (!m.buffers || !m.next || run_merge_init(&merge, how->rule, how->n, how->n) < 0) {
        latch_fail(writer.latch, "out of memory for merging temporary data");
    } else {
        for (size_t i = 0; i < how->n; i++) {
            m.buffers[i].home = how->memory + i * how->slice_size;
            m.buffers[i].home_size = how->slice_size;
            m.next[i] = first_slice_with(&how->runs[i], how->from);
        }
        if (run_merge_start(&merge, load_next, &m) == 0)
            result = merge_into(&writer, &merge) < 0 ? -1 : 1;
        if (!spill_packer_empty(writer.packer))  /* the merge stopped early */
            spill_packer_drop(writer.packer);
        run_merge_free(&merge);
        if (result < 0 && atomic_load(how->cancelled))
            result = 0;
    }
    for (size_t i = 0; m.buffers && i < how->n; i++)
        spill_extra_free(&m.buffers[i].extra);
    free(m.buffers);
    free(m.next);
    return result;
}
