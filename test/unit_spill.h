/* SPDX-License-Identifier: MIT */
/* Records with given keys, in their stable order, and a store for them. */
#ifndef UNIT_SPILL_H
#define UNIT_SPILL_H

#include "bam_arena.h"
#include "base/endian_io.h"
#include "base/engine.h"
#include "base/latch.h"
#include "sort/record_pack.h"
#include "sort/spill_run.h"
#include "unit.h"

struct unit_item {
    uint64_t key;
    size_t at, size;             /* place and size of the record in the list's bytes */
};

struct unit_list {
    struct unit_bytes bytes;
    struct unit_bytes items;     /* struct unit_item each */
    size_t n;
};

static inline struct unit_item *unit_items(const struct unit_list *list)
{
    return (struct unit_item *)list->items.data;
}

static inline const uint8_t *unit_item_record(const struct unit_list *list, size_t i)
{
    return list->bytes.data + unit_items(list)[i].at;
}

/* Adds a record of `size` bytes, whose pos is the number of records before it. Most have few different bytes, like real
 * ones; every eighth does not compress. */
static inline void unit_list_add(struct unit_list *list, uint64_t *seed, uint64_t key, size_t size)
{
    enum { LONGEST_NAME = 20, ARRAY_HEAD = 8 };
    MUST(size >= BAM_MIN_RECORD);
    char name[LONGEST_NAME + ARRAY_HEAD] = "";
    size_t n_name = size - BAM_MIN_RECORD < LONGEST_NAME ? size - BAM_MIN_RECORD : unit_below(seed, LONGEST_NAME + 1);
    if (size - BAM_MIN_RECORD - n_name < ARRAY_HEAD)
        n_name = size - BAM_MIN_RECORD;          /* no room for a tag */
    for (size_t i = 0; i < n_name; i++)
        name[i] = (char)('a' + unit_below(seed, 26));
    struct unit_bytes aux = {NULL, 0, 0};
    size_t n_aux = size - BAM_MIN_RECORD - n_name;
    uint8_t *p = n_aux ? unit_more(&aux, n_aux) : NULL;
    uint64_t mask = unit_below(seed, 8) ? 0x0303030303030303u : UINT64_MAX;
    for (size_t i = 0; i < n_aux; i += 8) {
        uint64_t word = unit_random(seed) & mask;
        memcpy(p + i, &word, n_aux - i < 8 ? n_aux - i : 8);
    }
    if (n_aux) {
        memcpy(p, "XBBC", ARRAY_HEAD / 2);       /* an array of bytes */
        store_le32(p + ARRAY_HEAD / 2, (uint32_t)(n_aux - ARRAY_HEAD));
    }
    struct unit_record r = {.ref_id = -1, .pos = (int32_t)list->n, .flag = 4, .name = name, .aux = p, .n_aux = n_aux};
    struct unit_item item = {key, list->bytes.n, size};
    MUST(unit_append_record(&list->bytes, &r) == size);
    unit_free(&aux);
    unit_append(&list->items, &item, sizeof item);
    list->n++;
}

static inline int unit_compare_items(const void *a, const void *b)
{
    const struct unit_item *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts by key; of equal keys, the record that was added first comes first. */
static inline void unit_list_sort(struct unit_list *list)
{
    if (list->n)
        qsort(list->items.data, list->n, sizeof(struct unit_item), unit_compare_items);
}

static inline void unit_list_free(struct unit_list *list)
{
    unit_free(&list->bytes);
    unit_free(&list->items);
    list->n = 0;
}

/* A key of any order of magnitude. */
static inline uint64_t unit_any_key(uint64_t *seed)
{
    return unit_random(seed) >> unit_below(seed, 64);
}

/* A typical size of a record: mostly small. */
static inline size_t unit_any_size(uint64_t *seed)
{
    uint32_t kind = unit_below(seed, 100);
    return BAM_MIN_RECORD + (kind < 60 ? unit_below(seed, 30) : kind < 98 ? unit_below(seed, 400)
                                                                          : unit_below(seed, 5000));
}

/* Memory of exactly this size, a multiple of 16, aligned to 16. */
static inline uint8_t *unit_slice_memory(size_t size)
{
    MUST(size % sizeof(struct bam_key) == 0);
    return must_alloc(size);                     /* malloc's alignment is 16 */
}

static inline struct spill_store *unit_store_open(const char *prefix, const struct engine *engine)
{
    uint64_t room;
    struct spill_store_options options = {&prefix, 1, engine};
    struct spill_store *store = spill_store_open(&options);
    MUST(store && spill_store_prepare(store, &room) == 0);
    return store;
}

/* Bytes in memory that the slice needs at least. */
static inline size_t unit_slice_size(const struct spill_slice *slice)
{
    size_t align = sizeof(struct bam_key);
    return (slice->bottom + align - 1) / align * align + slice->n * align;
}

/* The slice has the next records in the list's order, from *next on. */
static inline void unit_check_slice(const struct spill_slice *slice, const struct unit_list *list, size_t *next)
{
    const struct bam_key *keys = spill_slice_keys(slice);
    for (size_t i = 0; i < slice->n; i++, ++*next) {
        MUST(*next < list->n);
        const struct unit_item *want = &unit_items(list)[*next];
        assert_int_equal(keys[i].sort, want->key);
        assert_int_equal(bam_key_record_size(slice->base, keys[i]), want->size);
        const uint8_t *record = bam_key_record(slice->base, keys[i]);
        assert_true(record >= slice->base && record + want->size <= slice->base + slice->bottom);
        assert_memory_equal(record, list->bytes.data + want->at, want->size);
    }
}

/* A copy in an allocation of exactly the bytes that may be read. */
static inline uint8_t *unit_packed_copy(const uint8_t *packed, size_t n)
{
    uint8_t *copy = must_alloc(n + RECORD_PACK_SLACK);
    memcpy(copy, packed, n);
    memset(copy + n, 0xa5, RECORD_PACK_SLACK);
    return copy;
}

/* Writes all records of a sorted list as a run. */
static inline void unit_write_run(struct spill_run *run, const struct unit_list *list, struct spill_packer *packer,
                                  struct spill_store *store, struct latch *latch)
{
    struct spill_writer writer = {packer, store, run, latch, 0};
    for (size_t i = 0; i < list->n; i++)
        assert_int_equal(spill_writer_put(&writer, unit_items(list)[i].key, unit_item_record(list, i),
                                          unit_items(list)[i].size), 0);
    assert_int_equal(spill_writer_end(&writer), 0);
}

/* The run holds exactly the records of the sorted list. */
static inline void unit_check_run(const struct spill_run *run, const struct unit_list *list, size_t slice_size,
                                  struct spill_store *store, struct latch *latch)
{
    struct spill_loader loader = {.unpacker = NULL};
    struct spill_buffer b = {.home = unit_slice_memory(slice_size), .home_size = slice_size};
    size_t next = 0, largest = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->n; i++) {
        assert_int_equal(spill_load(store, run->slices[i], &loader, &b, true, latch), 0);
        unit_check_slice(&b.slice, list, &next);
        bytes += run->slices[i].size;
        size_t size = unit_slice_size(&b.slice);
        largest = size > largest ? size : largest;
        spill_extra_free(&b.extra);
    }
    assert_int_equal(next, list->n);
    assert_int_equal(run->bytes, bytes);
    assert_int_equal(run->largest, largest);
    assert_string_equal(latch->message, "");
    spill_loader_free(&loader);
    free(b.home);
}

#endif
