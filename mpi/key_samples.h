/* SPDX-License-Identifier: MIT */
/* Samples: evenly spread keys and records of all ranks, and the number of bytes that each stands for. Rank 0 has the
 * samples of all ranks. */
#ifndef KEY_SAMPLES_H
#define KEY_SAMPLES_H

#include <stdint.h>
#include "sort/merge_ring.h"
#include "mpi/mpi_team.h"

/* The sorted records that a rank has read. Records in memory are in lists, the others in runs. The driver fills it in
 * for the modules that cut the order (splitters.h, record_shares.h), and owns what it points to. */
struct records_read {
    const struct mpi_team *team;
    const struct merge_way *lists;      /* the sorted sublists in memory, in the order of the input */
    size_t n_lists;
    uint64_t bytes;              /* bytes of the records in the lists */
    int n_threads;
    const struct sort_rule *rule;       /* compares records of equal keys; NULL: they tie */
    const struct merge_runs *runs;      /* the records that were spilled */
    size_t slice_size;           /* approximate bytes of a slice of the runs */
    struct latch *latch;
};

/* One of several neighbours in a sorted list, with the bytes of all of them. */
struct key_sample {
    uint64_t key, bytes;
    int rank;                    /* the rank that has these records */
    const uint8_t *record;       /* NULL: only the key is known */
    const struct sort_rule *rule;   /* the rule that compares the record */
};

/* A zero-initialised struct is empty. The owner frees `each`. */
struct key_samples {
    struct key_sample *each;
    size_t n, room;
};

/* -1: out of memory. */
int key_samples_add(struct key_samples *samples, struct key_sample sample);

/* Gives rank 0 the keys of all ranks. Every rank calls it. -1 at each rank: rank 0 is out of memory. */
int key_samples_gather(struct key_samples *all, const struct records_read *read);

/* Gives rank 0 the bytes of all ranks, one rank after the other, and in *counts the number of bytes of each rank. The
 * caller frees both; other ranks get none. Every rank calls it. -1 at each rank: rank 0 is out of memory. */
int key_samples_gather_bytes(const struct mpi_team *team, const void *mine, size_t size, uint8_t **all, int **counts);

/* Compares two samples in the order of all records. 0 if they tie with each other. */
int key_samples_compare(const struct key_sample *x, const struct key_sample *y);
void key_samples_sort(struct key_samples *samples);

/* Returns where the samples of this key begin among the first n, which are sorted. */
size_t key_samples_find(const struct key_samples *samples, size_t n, uint64_t key);

/* Returns the bytes that all samples stand for. */
uint64_t key_samples_sum(const struct key_samples *samples);

#endif
