/* SPDX-License-Identifier: MIT */
/* Evenly spread keys and records of all ranks, and how many bytes each stands for. Rank 0 has those of all. */
#ifndef KEY_SAMPLES_H
#define KEY_SAMPLES_H

#include <stdint.h>
#include "sort/merge_ring.h"
#include "mpi/mpi_team.h"

/* What a rank has read: its sorted records, of which those in memory are in lists and the others in runs. The driver
 * fills it in for all who cut the order (splitters.h, record_shares.h), and owns what it points to. */
struct records_read {
    const struct mpi_team *team;
    const struct merge_way *lists;      /* the sorted sublists in memory, in the order of the input */
    size_t n_lists;
    uint64_t bytes;              /* of the records in them */
    int n_threads;
    const struct sort_rule *rule;       /* compares records of equal keys; NULL: they tie */
    const struct merge_runs *runs;      /* what left memory */
    size_t slice_size;           /* bytes of a slice of the runs, about */
    struct latch *latch;
};

/* One of some neighbours in a sorted list, and their bytes. */
struct key_sample {
    uint64_t key, bytes;
    int source;                  /* the rank that it is of */
    const uint8_t *record;       /* NULL: only the key is known */
    const struct sort_rule *rule;   /* of the record */
};

/* Zeros: there are none. The owner frees `each`. */
struct key_samples {
    struct key_sample *each;
    size_t n, room;
};

/* -1: out of memory. */
int key_samples_add(struct key_samples *samples, struct key_sample sample);

/* Rank 0 gets the keys of all ranks. Every rank calls it. -1 at each of them: rank 0 has no memory. */
int key_samples_gather(struct key_samples *all, const struct records_read *read);

/* Rank 0 gets bytes of all ranks, one rank's behind the other's, and *counts of each rank. The caller frees both; other
 * ranks get none. Every rank calls it. -1 at each of them: rank 0 has no memory. */
int key_samples_gather_bytes(const struct mpi_team *team, const void *mine, size_t size, uint8_t **all, int **counts);

/* In the order of all records. For those that tie with each other, 0. */
int key_samples_compare(const struct key_sample *x, const struct key_sample *y);
void key_samples_sort(struct key_samples *samples);

/* Where those of this key begin among the first n, which are sorted. */
size_t key_samples_find(const struct key_samples *samples, size_t n, uint64_t key);

/* Bytes that all stand for. */
uint64_t key_samples_sum(const struct key_samples *samples);

#endif
