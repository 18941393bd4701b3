/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "mpi/key_samples.h"
#include "mpi/mpi_wait.h"
#include "order/sort_key.h"

/* The number of keys of each rank: one for 0.012 % of its bytes if there are few ranks. Rank 0 sorts the keys of all
 * ranks by itself, 2^18 keys in 40 ms. With many ranks, the errors of some compensate for those of others. */
enum { SAMPLES = 8192, SAMPLES_LEAST = 2048, SAMPLES_OF_ALL = 1 << 18 };

int key_samples_add(struct key_samples *s, struct key_sample sample)
{
    struct key_sample *each = byte_buffer_grow(s->each, s->n, &s->room, sizeof *each);
    if (!each)
        return -1;
    s->each = each;
    s->each[s->n++] = sample;
    return 0;
}

/* ---- keys of this rank ---- */

/* A key in a message. */
struct packed_sample {
    uint64_t key, bytes;
};

/* Appends the samples of a list. The middle one of several neighbours stands for them, so a cut at its key is too early
 * as often as it is too late. */
static int append_samples(struct byte_buffer *to, const struct merge_way *list, uint64_t step)
{
    struct packed_sample sample = {0};
    for (const struct bam_key *key = list->next; key < list->end; key++) {
        if (sample.bytes <= step / 2)
            sample.key = key->sort;
        sample.bytes += bam_key_record_size(list->base, *key);
        if (sample.bytes < step && key + 1 < list->end)
            continue;
        if (byte_buffer_append(to, &sample, sizeof sample) < 0)
            return -1;
        sample.bytes = 0;
    }
    return 0;
}

static uint64_t wanted(int size)
{
    int n = SAMPLES_OF_ALL / size;
    return (uint64_t)(n > SAMPLES ? SAMPLES : n < SAMPLES_LEAST ? SAMPLES_LEAST : n);
}

static int take_keys(struct byte_buffer *to, const struct records_read *o)
{
    uint64_t key, step = o->bytes / wanted(o->team->size) + 1;
    for (size_t i = 0; i < o->n_lists; i++)
        if (append_samples(to, &o->lists[i], step) < 0)
            return -1;
    for (size_t run = 0; run < o->runs->n; run++)
        for (size_t slice = 0; o->runs->first_key(o->runs->reader, run, slice, &key); slice++)
            if (byte_buffer_append(to, &(struct packed_sample){key, o->slice_size}, sizeof(struct packed_sample)) < 0)
                return -1;
    return 0;
}

/* ---- rank 0 gets the samples of all ranks ---- */

int key_samples_gather_bytes(const struct mpi_team *team, const void *mine, size_t size, uint8_t **all, int **counts)
{
    int n = size <= INT32_MAX ? (int)size : 0, *places = NULL, failed = 0;
    size_t bytes = 0;
    *all = NULL;
    *counts = team->rank == 0 ? calloc((size_t)team->size, 2 * sizeof **counts) : NULL;
    failed = team->rank == 0 && !*counts;
    mpi_wait_bcast(&failed, 1, MPI_INT, 0);
    if (failed)
        return -1;
    mpi_wait_gather(&n, 1, MPI_INT, *counts);
    if (team->rank == 0) {
        places = *counts + team->size;
        for (int i = 0; i < team->size; i++) {
            places[i] = (int)bytes;
            bytes += (size_t)(*counts)[i];
        }
        *all = bytes <= INT32_MAX ? malloc(bytes + 1) : NULL;
        failed = !*all;
    }
    mpi_wait_bcast(&failed, 1, MPI_INT, 0);
    if (!failed)
        mpi_wait_gather_bytes(mine, n, *all, *counts, places);
    return failed ? -1 : 0;
}

/* Runs at rank 0. -1: out of memory. */
static int unpack(struct key_samples *all, const uint8_t *bytes, const int *counts, int size)
{
    struct packed_sample sample;
    for (int rank = 0; rank < size; bytes += counts[rank++])
        for (size_t i = 0; i < (size_t)counts[rank] / sizeof sample; i++) {
            memcpy(&sample, bytes + i * sizeof sample, sizeof sample);
            if (key_samples_add(all, (struct key_sample){sample.key, sample.bytes, rank, NULL, NULL}) < 0)
                return -1;
        }
    return 0;
}

int key_samples_gather(struct key_samples *all, const struct records_read *o)
{
    struct byte_buffer mine = {.p = NULL};
    uint8_t *bytes;
    int *counts;
    if (take_keys(&mine, o) < 0)
        mine.n = 0;                              /* then the balance is worse, but the order is right */
    int result = key_samples_gather_bytes(o->team, mine.p, mine.n, &bytes, &counts);
    if (result == 0 && bytes)
        result = unpack(all, bytes, counts, o->team->size);
    free(mine.p);
    free(bytes);
    free(counts);
    return mpi_team_all(result == 0) ? 0 : -1;
}

/* ---- their order ---- */

/* Samples that only have a key come first. */
static int compare_samples(const struct key_sample *x, const struct key_sample *y)
{
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (!x->record || !y->record)
        return (x->record != NULL) - (y->record != NULL);
    return sort_key_compare(x->rule, (const struct bam_record *)x->record, (const struct bam_record *)y->record);
}

int key_samples_compare(const struct key_sample *x, const struct key_sample *y)
{
    int order = compare_samples(x, y);
    return order ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_key_sample(const void *a, const void *b)
{
    return key_samples_compare(a, b);
}

void key_samples_sort(struct key_samples *samples)
{
    if (samples->n > 0)
        qsort(samples->each, samples->n, sizeof *samples->each, by_key_sample);
}

size_t key_samples_find(const struct key_samples *all, size_t n, uint64_t key)
{
    size_t from = 0;
    while (n > 0) {
        size_t half = n / 2;
        bool before = all->each[from + half].key < key;
        from += before ? half + 1 : 0;
        n = before ? n - half - 1 : half;
    }
    return from;
}

uint64_t key_samples_sum(const struct key_samples *all)
{
    uint64_t total = 0;
    for (size_t i = 0; i < all->n; i++)
        total += all->each[i].bytes;
    return total;
}
