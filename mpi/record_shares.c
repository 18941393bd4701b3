/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "mpi/mpi_wait.h"
#include "mpi/record_shares.h"

/* Ends the parts of one rank at its splitter, and begins the parts of the next rank there. */
static void cut_lists(struct record_shares *shares, int rank, const struct splitter *s,
                      const struct records_read *o)
{
    struct merge_way *part = shares->parts + (size_t)rank * shares->n_lists;
    uint64_t tied = 0;
    for (size_t i = 0; i < shares->n_lists; i++, part++) {
        struct splitter_keys keys = {o->lists[i], o->rule};
        struct splitter_list list = splitter_list_of(&keys);
        part->end = keys.way.next + splitter_below(s, &list, 0, o->team->rank, &tied);
        part[shares->n_lists] = (struct merge_way){part->end, keys.way.end, keys.way.base};
    }
}

/* Runs in a task. Counts the bytes that a sublist has for each rank, and finds its largest record. */
static void count_list(void *of, uint32_t list)
{
    struct record_shares *shares = of;
    uint64_t *bytes = shares->counted + list * ((size_t)shares->size + 1), *largest = bytes + shares->size;
    for (int r = 0; r < shares->size; r++) {
        const struct merge_way *part = record_shares_of(shares, r) + list;
        for (const struct bam_key *key = part->next; key < part->end; key++) {
            uint64_t size = bam_key_record_size(part->base, *key);
            bytes[r] += size;
            *largest = size > *largest ? size : *largest;
        }
    }
}

static void add_list_counts(struct record_shares *shares, size_t list)
{
    const uint64_t *bytes = shares->counted + list * ((size_t)shares->size + 1), *largest = bytes + shares->size;
    for (int r = 0; r < shares->size; r++) {
        const struct merge_way *part = record_shares_of(shares, r) + list;
        shares->bytes[r] += bytes[r];
        shares->records[r] += (uint64_t)(part->end - part->next);
    }
    shares->largest = *largest > shares->largest ? *largest : shares->largest;
}

static void count(struct record_shares *shares)
{
    task_ring_hand_out_all(&shares->ring);
    task_ring_take_all(&shares->ring, NULL);
    for (size_t i = 0; i < shares->n_lists; i++)
        add_list_counts(shares, i);
}

int record_shares_make(struct record_shares *shares, const struct splitters *splitters,
                       const struct records_read *o)
{
    size_t size = splitters->n + 1;
    *shares = (struct record_shares){.size = (int)size, .n_lists = o->n_lists};
    shares->parts = calloc(size * o->n_lists + 1, sizeof *shares->parts);
    shares->bytes = calloc(size, sizeof *shares->bytes);
    shares->records = calloc(size, sizeof *shares->records);
    shares->from = calloc(size, 2 * sizeof *shares->from);
    shares->counted = calloc(o->n_lists * (size + 1) + 1, sizeof *shares->counted);
    struct task_ring_options ring = {.n_slots = (uint32_t)o->n_lists, .n_threads = o->n_threads, .run = count_list,
                                     .arg = shares};
    if (!shares->parts || !shares->bytes || !shares->records || !shares->from || !shares->counted
        || task_ring_open(&shares->ring, &ring) < 0)
        return -1;
    for (size_t i = 0; i < o->n_lists; i++)
        shares->parts[i] = o->lists[i];
    for (size_t r = 0; r < splitters->n; r++)
        cut_lists(shares, (int)r, &splitters->each[r], o);
    count(shares);
    return 0;
}

void record_shares_report(struct record_shares *shares, const struct mpi_team *team)
{
    uint64_t *bytes = shares->from, *records = shares->from + team->size;
    mpi_wait_alltoall(shares->bytes, 1, MPI_UINT64_T, bytes);
    mpi_wait_alltoall(shares->records, 1, MPI_UINT64_T, records);
    for (int r = 0; r < team->size; r++)
        if (r != team->rank) {
            shares->bytes_come += bytes[r];
            shares->records_come += records[r];
        }
}

void record_shares_free(struct record_shares *shares)
{
    free(shares->parts);
    free(shares->bytes);
    free(shares->records);
    free(shares->from);
    free(shares->counted);
    task_ring_close(&shares->ring, true);
    *shares = (struct record_shares){.parts = NULL};
}
