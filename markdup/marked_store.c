/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/byte_hash.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "markdup/dup_store.h"
#include "markdup/marked_store.h"
#include "read/record_slice.h"
#include "sort/record_pack.h"

struct marked_store {
    struct marked_store_options opt;
    struct spill_store *files;
    bool prepared;
    struct spill_packer **packers;   /* one for each thread, used by that thread only; NULL: not needed yet */
    struct spill_loader *loaders;    /* one for each thread, as the packers */
};

size_t marked_store_memory(int n_threads, size_t slice_size)
{
    return (size_t)n_threads * (spill_packer_memory(slice_size) + spill_loader_memory(slice_size) + slice_size);
}

struct marked_store *marked_store_open(const struct marked_store_options *options)
{
    struct marked_store *s = calloc(1, sizeof *s);
    if (s) {
        s->opt = *options;
        s->files = spill_store_open(&options->store);
        s->packers = calloc((size_t)options->store.engine->n_threads, sizeof *s->packers);
        s->loaders = calloc((size_t)options->store.engine->n_threads, sizeof *s->loaders);
    }
    if (s && s->files && s->packers && s->loaders)
        return s;
    latch_fail(options->store.engine->latch, "out of memory");
    marked_store_close(s);
    return NULL;
}

void marked_store_close(struct marked_store *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->opt.store.engine->n_threads; i++) {
        if (s->packers)
            spill_packer_free(s->packers[i]);
        if (s->loaders)
            spill_loader_free(&s->loaders[i]);
    }
    free(s->packers);
    free(s->loaders);
    spill_store_close(s->files);
    free(s);
}

int marked_store_prepare(struct marked_store *s)
{
    uint64_t room;
    if (s->prepared)
        return 0;
    s->prepared = true;
    return spill_store_prepare(s->files, &room);
}

int marked_store_put(struct marked_store *s, struct record_slice *records, struct spill_run *run)
{
    struct spill_packer **packer = &s->packers[task_thread()];
    if (!*packer && !(*packer = spill_packer_new(s->opt.slice_size)))
        return latch_fail(s->opt.store.engine->latch, "out of memory for temporary data");
    struct spill_writer writer = {*packer, s->files, run, s->opt.store.engine->latch, 0};
    const uint8_t *base = records->records.p;
    for (size_t i = 0; i < records->n; i++)
        if (spill_writer_put(&writer, records->keys[i].sort, bam_key_record(base, records->keys[i]),
                             bam_key_record_size(base, records->keys[i])) < 0)
            return -1;
    if (spill_writer_end(&writer) < 0)
        return -1;
    free(records->records.p);
    free(records->keys);
    records->records = (struct byte_buffer){NULL, 0, 0};
    records->keys = NULL;
    records->max = 0;
    return 0;
}

static int put_losses(void *store, const void *data, size_t n, struct dup_place *place)
{
    struct marked_store *s = store;
    struct spill_place put;
    if (spill_store_put(s->files, data, n, &put) < 0)
        return -1;
    *place = (struct dup_place){put.offset, put.size, put.volume};
    return 0;
}

static int get_losses(void *store, const struct dup_place *place, size_t offset, size_t n, uint64_t hash, void *data)
{
    struct marked_store *s = store;
    struct spill_place part = {.offset = place->offset + offset, .size = (uint32_t)n, .volume = place->volume};
    if (spill_store_get(s->files, part, data) < 0)
        return -1;
    return byte_hash(data, n, 0) == hash ? 0 : spill_store_damaged(s->files, part);
}

static void drop_losses(void *store, const struct dup_place *place)
{
    struct marked_store *s = store;
    spill_store_free(s->files, (struct spill_place){.offset = place->offset, .size = place->size,
                                                    .volume = place->volume});
}

void marked_store_lend(struct marked_store *store, struct dup_store *losses)
{
    *losses = (struct dup_store){.put = put_losses, .get = get_losses, .drop = drop_losses, .context = store};
}

static int wrong_number(const struct marked_store *s)
{
    return latch_fail(s->opt.store.engine->latch, "temporary data have lost records, or have some twice. The disk may "
                      "be faulty, or this is our bug: please report it");
}

/* Appends the loaded records. There is room for the keys. */
static int append(struct record_slice *records, size_t *n, const struct spill_slice *loaded)
{
    const struct bam_key *keys = spill_slice_keys(loaded);
    size_t start = records->records.n;
    if (byte_buffer_append(&records->records, loaded->base, loaded->bottom) < 0)
        return -1;
    for (size_t i = 0; i < loaded->n; i++) {
        records->keys[*n] = keys[i];
        records->keys[(*n)++].place += (uint64_t)start << BAM_KEY_SIZE_BITS;
    }
    return 0;
}

static int load(struct marked_store *s, struct spill_place place, struct record_slice *records, size_t *n)
{
    struct spill_buffer buffer = {.home = NULL};
    int status = spill_load(s->files, place, &s->loaders[task_thread()], &buffer, false, s->opt.store.engine->latch);
    if (status == 0 && buffer.slice.n > records->n - *n)
        status = wrong_number(s);
    else if (status == 0 && append(records, n, &buffer.slice) < 0)
        status = latch_fail(s->opt.store.engine->latch, "out of memory for temporary data");
    spill_extra_free(&buffer.extra);
    return status;
}

int marked_store_get(struct marked_store *s, struct spill_run *run, struct record_slice *records)
{
    size_t n = 0;
    if (!(records->keys = malloc((records->n + 1) * sizeof *records->keys)))
        return latch_fail(s->opt.store.engine->latch, "out of memory for temporary data");
    records->max = records->n;
    for (size_t i = 0; i < run->n; i++)
        if (load(s, run->slices[i], records, &n) < 0)
            return -1;
    spill_run_remove(run, s->files);
    return n == records->n ? 0 : wrong_number(s);
}
