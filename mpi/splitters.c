/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/latch.h"
#include "mpi/splitters.h"

/* So many records' keys of each rank stand for all: each for 0.012 % of its bytes. */
enum { SAMPLES = 8192 };

/* The last key of some neighbours in a sorted list, and their bytes. */
struct sample {
    uint64_t key, bytes;
    int64_t source;
};

struct samples {
    struct sample *each;
    size_t n, room;
};

static int add(struct samples *s, uint64_t key, uint64_t bytes, int source)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : SAMPLES;
        struct sample *larger = realloc(s->each, room * sizeof *larger);
        if (!larger)
            return -1;
        s->each = larger;
        s->room = room;
    }
    s->each[s->n++] = (struct sample){key, bytes, source};
    return 0;
}

static int sample_sublist(struct samples *s, const struct bam_sublist *list, const uint8_t *base, uint64_t step,
                          int source)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->n; i++) {
        bytes += bam_key_record_size(base, list->keys[i]);
        if (bytes < step && i + 1 < list->n)
            continue;
        if (add(s, list->keys[i].sort, bytes, source) < 0)
            return -1;
        bytes = 0;
    }
    return 0;
}

static int sample_rank(struct samples *s, const struct bam_arena arenas[2], const struct merge_runs *runs,
                       size_t slice_size, int source)
{
    uint64_t key, step = (arenas[0].walked + arenas[1].walked) / SAMPLES + 1;
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < arenas[a].n_sublists; i++)
            if (sample_sublist(s, &arenas[a].sublists[i], arenas[a].base, step, source) < 0)
                return -1;
    for (size_t run = 0; run < runs->n; run++)
        for (size_t slice = 0; runs->first_key(runs->reader, run, slice, &key); slice++)
            if (add(s, key, slice_size, source) < 0)
                return -1;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* Goes through the sorted samples, and cuts where the ranks so far have their bytes. */
static void cut(struct splitter *out, int size, const struct samples *all, bool keys_decide)
{
    uint64_t total = 0, before = 0, tied = 0;
    int next = 0;
    for (size_t i = 0; i < all->n; i++)
        total += all->each[i].bytes;
    for (size_t i = 0; i < all->n && next < size - 1; i++) {
        const struct sample *s = &all->each[i];
        bool same = i > 0 && s->key == s[-1].key && s->source == s[-1].source;
        tied = same ? tied : 0;
        for (; next < size - 1; next++) {
            uint64_t wanted = total / (uint64_t)size * (uint64_t)(next + 1);
            if (before + s->bytes < wanted)
                break;
            uint64_t inside = wanted > before ? wanted - before : 0;
            out[next] = keys_decide ? (struct splitter){s->key, tied + inside, s->source}
                                    : (struct splitter){s->key, 0, 0};
        }
        before += s->bytes;
        tied += s->bytes;
    }
    for (; next < size - 1; next++)
        out[next] = (struct splitter){UINT64_MAX, UINT64_MAX, size};
}

/* Rank 0 has the samples of all ranks afterwards. -1: no memory there. */
static int gather(const struct mpi_team *team, const struct samples *mine, struct samples *all)
{
    int n = (int)(mine->n * sizeof(struct sample)), *counts = NULL, *places = NULL;
    int failed = 0;
    if (team->rank == 0) {
        counts = calloc((size_t)team->size, sizeof *counts);
        places = calloc((size_t)team->size, sizeof *places);
        failed = !counts || !places;
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!failed)
        MPI_Gather(&n, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!failed && team->rank == 0) {
        size_t bytes = 0;
        for (int i = 0; i < team->size; i++) {
            places[i] = (int)bytes;
            bytes += (size_t)counts[i];
        }
        all->each = bytes <= INT32_MAX ? malloc(bytes + 1) : NULL;
        all->n = bytes / sizeof(struct sample);
        failed = !all->each;
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!failed)
        MPI_Gatherv(mine->each, n, MPI_BYTE, all->each, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    free(counts);
    free(places);
    return failed ? -1 : 0;
}

int splitters_make(struct splitter *splitters, const struct mpi_team *team, const struct bam_arena arenas[2],
                   const struct merge_runs *runs, size_t slice_size, bool keys_decide, struct latch *latch)
{
    struct samples mine = {.each = NULL}, all = {.each = NULL};
    int sampled = sample_rank(&mine, arenas, runs, slice_size, team->rank);
    if (sampled < 0)
        mine.n = 0;                              /* the balance suffers, the order does not */
    int gathered = gather(team, &mine, &all);
    if (gathered == 0 && team->rank == 0 && all.each) {
        qsort(all.each, all.n, sizeof *all.each, by_key);
        cut(splitters, team->size, &all, keys_decide);
    }
    free(mine.each);
    free(all.each);
    if (gathered < 0)
        return latch_fail(latch, "out of memory for the keys of all ranks");
    MPI_Bcast(splitters, (int)(sizeof *splitters * (size_t)(team->size - 1)), MPI_BYTE, 0, MPI_COMM_WORLD);
    return 0;
}
