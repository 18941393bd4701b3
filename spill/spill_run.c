/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/latch.h"
#include "spill/record_pack.h"
#include "merge/run_merge.h"
#include "spill/spill_run.h"
#include "base/stats.h"

enum { BEST_PACKING = 1000 };    /* bytes unpacked per packed byte, a generous bound: LZ4 makes at most 255
                                  * bytes of one, keys 16 of one */

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

static void leave_gate(struct spill_writer *w)
{
    if (!w->inside)
        return;
    spill_packer_trim(w->packer);
    pthread_mutex_unlock(&w->gate->mutex);
    w->inside = false;
}

static int store_slice(struct spill_writer *w)
{
    const uint8_t *packed;
    struct spill_run *run = w->run;
    size_t n;
    enum stage before = stats_enter(spill_store_stats(w->store), STAGE_PACK);
    int failed = spill_packer_pack(w->packer, &packed, &n);
    uint64_t size = failed ? 0 : spill_slice_size(packed);
    stats_leave(spill_store_stats(w->store), before, size);
    if (failed)
        return latch_fail(w->latch, "out of memory for temporary data");
    if (n > UINT32_MAX)
        return latch_fail(w->latch, "a record is too large to leave memory; use a larger -m");
    if (make_room(run, 1) < 0)
        return latch_fail(w->latch, "out of memory for the list of temporary data");
    if (spill_store_put(w->store, packed, n, &run->slices[run->n]) < 0)
        return -1;
    run->slices[run->n++].first_key = w->first_key;
    run->bytes += n;
    run->largest = size > run->largest ? size : run->largest;
    return latch_tripped(w->latch) ? -1 : 0;
}

static int write_slice(struct spill_writer *w)
{
    int result = store_slice(w);
    leave_gate(w);
    return result;
}

static int add_record(struct spill_writer *w, uint64_t sort_key, const uint8_t *record, size_t size)
{
    if (!bam_record_fits((const struct bam_record *)record, size))
        return latch_fail(w->latch, "packing temporary data failed: " BAM_RECORD_CHANGED);
    if (size > w->gate->large && !w->inside) {
        pthread_mutex_lock(&w->gate->mutex);
        w->inside = true;
    }
    if (spill_packer_empty(w->packer))
        w->first_key = sort_key;
    int added = spill_packer_add(w->packer, sort_key, record, size);
    if (added < 0) {
        leave_gate(w);
        return latch_fail(w->latch, "out of memory for a record of %zu bytes", size);
    }
    return added;
}

int spill_writer_put(struct spill_writer *w, uint64_t sort_key, const uint8_t *record, size_t size)
{
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
    *loader = (struct spill_loader){.gate = loader->gate};
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

static int load(struct spill_store *store, struct spill_place place, struct spill_loader *loader,
                struct spill_buffer *b, bool home_is_free, struct latch *latch)
{
    if (read_packed(store, place, loader, latch) < 0)
        return -1;
    /* The header is not verified yet, but no packing is that good. */
    uint64_t size = spill_slice_size(loader->packed.p);
    if (size / BEST_PACKING > place.size)
        return spill_store_damaged(store, place);
    b->slice = (struct spill_slice){.base = b->home, .size = b->home_size};
    if (!home_is_free || size > b->home_size) {
        b->extra = size < SIZE_MAX / 2 ? malloc(size) : NULL;
        b->slice = (struct spill_slice){.base = b->extra, .size = size};
    }
    if (!b->slice.base)
        return latch_fail(latch, "out of memory for temporary data");
    enum stage before = stats_enter(spill_store_stats(store), STAGE_UNPACK);
    int failed = spill_slice_unpack(&b->slice, loader->unpacker, loader->packed.p, place.size);
    stats_leave(spill_store_stats(store), before, size);
    return failed ? spill_store_damaged(store, place) : 0;
}

int spill_load(struct spill_store *store, struct spill_place place, struct spill_loader *loader,
               struct spill_buffer *b, bool home_is_free, struct latch *latch)
{
    bool large = place.size > loader->gate->large;
    if (large)
        pthread_mutex_lock(&loader->gate->mutex);
    int result = load(store, place, loader, b, home_is_free, latch);
    if (large) {
        spill_loader_free(loader);
        pthread_mutex_unlock(&loader->gate->mutex);
    }
    return result;
}

/* ----------------------------------------------------------------- merging */

struct merging {
    const struct spill_merge *how;
    struct spill_buffer *buffers;
    size_t *next;                /* number of each run's next slice to load */
};

/* The first slice that can have a record of this sort key or a larger one. The slice before one that begins with the
 * key may end with it. */
static size_t first_slice(const struct spill_run *run, uint64_t key)
{
    size_t slice = 0;
    while (slice + 1 < run->n && run->slices[slice + 1].first_key < key)
        slice++;
    return slice;
}

/* The keys of the slice that are to be merged. */
static struct merge_source part_of(const struct spill_merge *how, const struct spill_slice *slice)
{
    const struct bam_key *keys = spill_slice_keys(slice), *end = keys + slice->n;
    while (keys < end && keys->sort < how->from)
        keys++;
    while (keys < end && end[-1].sort > how->to)
        end--;
    return (struct merge_source){keys, end, slice->base};
}

static bool has_next(const struct merging *m, size_t number)
{
    const struct spill_run *run = &m->how->runs[number];
    return m->next[number] < run->n && run->slices[m->next[number]].first_key <= m->how->to;
}

static int load_next(void *arg, size_t number, struct merge_source *source)
{
    struct merging *m = arg;
    const struct spill_merge *how = m->how;
    const struct spill_run *run = &how->runs[number];
    struct spill_buffer *buffer = &m->buffers[number];
    do {
        free(buffer->extra);
        buffer->extra = NULL;
        if (atomic_load(how->cancelled))
            return -1;
        if (!has_next(m, number))
            return 0;
        struct spill_place place = run->slices[m->next[number]++];
        if (has_next(m, number))
            spill_store_expect(how->writer.store, run->slices[m->next[number]]);
        if (spill_load(how->writer.store, place, how->loader, buffer, true, how->writer.latch) < 0)
            return -1;
        *source = part_of(how, &buffer->slice);
    } while (source->next == source->end);
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
    struct merging m = {how, calloc(how->n, sizeof *m.buffers), calloc(how->n, sizeof *m.next)};
    int result = -1;
    if (!m.buffers || !m.next || run_merge_init(&merge, how->rule, how->n) < 0) {
        latch_fail(writer.latch, "out of memory for merging temporary data");
    } else {
        for (size_t i = 0; i < how->n; i++) {
            m.buffers[i].home = how->memory + i * how->slice_size;
            m.buffers[i].home_size = how->slice_size;
            m.next[i] = first_slice(&how->runs[i], how->from);
            run_merge_add(&merge, (struct merge_source){0});
        }
        if (run_merge_start(&merge, load_next, &m) == 0)
            result = merge_into(&writer, &merge) < 0 ? -1 : 1;
        if (!spill_packer_empty(writer.packer))  /* it stopped early */
            spill_packer_trim(writer.packer);
        leave_gate(&writer);
        run_merge_free(&merge);
        if (result < 0 && atomic_load(how->cancelled))
            result = 0;
    }
    for (size_t i = 0; m.buffers && i < how->n; i++)
        free(m.buffers[i].extra);
    free(m.buffers);
    free(m.next);
    return result;
}
