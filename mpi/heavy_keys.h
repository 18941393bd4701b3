/* SPDX-License-Identifier: MIT */
/* Keys that too many records share. Where records of equal keys are compared, the records of such a key must be cut,
 * too. */
#ifndef HEAVY_KEYS_H
#define HEAVY_KEYS_H

#include "mpi/key_samples.h"
#include "mpi/splitter.h"

struct byte_buffer;

/* Finds the keys of splitters that too many records share, so that these records cannot stay together. Puts each key
 * into `keys` once. Returns the number of keys. */
int heavy_keys_find(const struct splitter *cuts, size_t n_cuts, const struct key_samples *all, uint64_t *keys);

/* Appends evenly spread records of this rank that have these keys, without SEQ and QUAL. -1: out of memory; then some
 * records are missing. */
int heavy_keys_records(struct byte_buffer *to, const struct records_read *read, const uint64_t *keys, int n);

/* Call it at rank 0. Records of all ranks, counts[] bytes of each rank, replace the samples of their keys, which are
 * sorted. The samples then refer to these records. -1: out of memory. */
int heavy_keys_replace(struct key_samples *all, const uint8_t *records, const int *counts, int size,
                       const struct sort_rule *rule);

#endif
