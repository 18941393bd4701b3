/* SPDX-License-Identifier: MIT */
/* Rank 0 gets evenly spread keys of each rank, with the number of bytes that each key stands for, and cuts their order.
 * If many records share a key and must be compared, it also gets records of that key, and cuts again. */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "mpi/heavy_keys.h"
#include "mpi/key_samples.h"
#include "mpi/mpi_wait.h"
#include "mpi/splitters.h"

/* ---- cutting ---- */

/* Returns the splitter at a sample. If only the key is known, records that share it without a tie are either all below
 * the splitter or all after it. */
static struct splitter splitter_at(const struct key_sample *s, uint64_t tied, bool keys_decide)
{
    if (s->record || keys_decide)
        return (struct splitter){.key = s->key, .bytes = tied, .record = s->record, .rank = s->rank};
    return (struct splitter){.key = s->key};
}

/* Goes through the samples in order, and makes a cut where the ranks so far have their bytes. */
static void make_cuts(struct splitters *out, struct key_samples *all, bool keys_decide)
{
    uint64_t total = key_samples_sum(all), before = 0, tied = 0;
    size_t next = 0, size = out->n + 1;
    key_samples_sort(all);
    for (size_t i = 0; i < all->n && next < out->n; i++) {
        const struct key_sample *s = &all->each[i];
        bool same = i > 0 && key_samples_compare(s, s - 1) == 0;
        tied = same ? tied : 0;
        for (; next < out->n; next++) {
            uint64_t wanted = total / size * (next + 1);
            if (before + s->bytes < wanted)
                break;
            out->each[next] = splitter_at(s, tied + (wanted > before ? wanted - before : 0), keys_decide);
        }
        before += s->bytes;
        tied += s->bytes;
    }
    for (; next < out->n; next++)
        out->each[next] = (struct splitter){.key = UINT64_MAX, .bytes = UINT64_MAX, .rank = INT64_MAX};
}

/* Cuts again with records of the keys that too many records share. Rank 0 finds these keys; `keys` has room for them.
 * Rank 0 alone uses `all` and *records, which holds the records that the samples refer to afterwards. -1: rank 0 is out
 * of memory. */
static int cut_heavy(struct splitters *out, struct key_samples *all, const struct records_read *o, uint64_t *keys,
                     uint8_t **records)
{
    struct byte_buffer mine = {.p = NULL};
    int *counts, rank = o->team->rank, n = rank == 0 ? heavy_keys_find(out->each, out->n, all, keys) : 0;
    mpi_wait_bcast(&n, 1, MPI_INT, 0);
    if (n == 0)
        return 0;
    mpi_wait_bcast(keys, n, MPI_UINT64_T, 0);
    heavy_keys_records(&mine, o, keys, n);       /* if some are missing, the balance is worse, but the order is right */
    int result = key_samples_gather_bytes(o->team, mine.p, mine.n, records, &counts);
    if (result == 0 && rank == 0) {
        result = heavy_keys_replace(all, *records, counts, o->team->size, o->rule);
        make_cuts(out, all, false);
    }
    free(counts);
    free(mine.p);
    return result;
}

/* ---- all ranks get the splitters ---- */

/* Copies the splitters' records, which have these sizes, one after another. */
static void pack_records(struct splitters *s, const uint32_t *sizes, bool copies)
{
    uint8_t *p = s->records;
    for (size_t i = 0; i < s->n; p += sizes[i++]) {
        if (copies && sizes[i])
            memcpy(p, s->each[i].record, sizes[i]);
        s->each[i].record = sizes[i] ? p : NULL;
    }
}

/* failed: this rank has failed before. */
static int send_splitters(struct splitters *s, const struct mpi_team *team, bool failed)
{
    uint32_t *sizes = calloc(s->n + 1, sizeof *sizes);
    size_t bytes = 0;
    bool all_ready = mpi_team_all(sizes && !failed);
    for (size_t i = 0; i < s->n && all_ready && team->rank == 0; i++)
        sizes[i] = s->each[i].record ? (uint32_t)bam_record_size((const struct bam_record *)s->each[i].record) : 0;
    if (all_ready) {
        mpi_wait_bcast(s->each, (int)(sizeof *s->each * s->n), MPI_BYTE, 0);
        mpi_wait_bcast(sizes, (int)s->n, MPI_UINT32_T, 0);
        for (size_t i = 0; i < s->n; i++)
            bytes += sizes[i];
        s->records = bytes <= INT32_MAX ? malloc(bytes + 1) : NULL;
        all_ready = mpi_team_all(s->records) && s->records;
    }
    if (all_ready) {
        pack_records(s, sizes, team->rank == 0);
        mpi_wait_bcast(s->records, (int)bytes, MPI_BYTE, 0);
    }
    free(sizes);
    return all_ready ? 0 : -1;
}

/* Every rank makes the same calls of MPI, even if some rank has failed. */
static int find_splitters(struct splitters *out, const struct records_read *o, uint64_t *keys)
{
    struct key_samples all = {.each = NULL};
    uint8_t *records = NULL;
    bool failed = false;
    int result = key_samples_gather(&all, o);
    if (result == 0 && o->team->rank == 0)
        make_cuts(out, &all, !o->rule);
    if (result == 0 && o->rule)
        failed = cut_heavy(out, &all, o, keys, &records) < 0;
    if (result == 0)
        result = send_splitters(out, o->team, failed);
    free(records);
    free(all.each);
    return result;
}

int splitters_make(struct splitters *out, const struct records_read *o)
{
    *out = (struct splitters){.n = (size_t)o->team->size - 1};
    uint64_t *keys = calloc(out->n + 1, sizeof *keys);
    out->each = calloc(out->n + 1, sizeof *out->each);
    int result = mpi_team_all(keys && out->each) ? find_splitters(out, o, keys) : -1;
    free(keys);
    return result < 0 ? latch_fail(o->latch, "out of memory for the keys of all ranks") : 0;
}

void splitters_free(struct splitters *s)
{
    free(s->each);
    free(s->records);
    *s = (struct splitters){.each = NULL};
}
