/* SPDX-License-Identifier: MIT */
/* Keys that so many records share that these must be cut, too, where records of equal keys are compared. */
#ifndef HEAVY_KEYS_H
#define HEAVY_KEYS_H

#include "mpi/key_samples.h"
#include "mpi/splitter.h"

struct byte_buffer;

/* The splitters' keys that have so many records that these should not stay together, each once. Returns how many. */
int heavy_keys_find(const struct splitter *cuts, size_t n_cuts, const struct key_samples *all, uint64_t *keys);

/* Appends evenly spread records of this rank that have these keys, without SEQ and QUAL. -1: out of memory; then some
 * are missing. */
int heavy_keys_records(struct byte_buffer *to, const struct records_read *read, const uint64_t *keys, int n);

/* At rank 0: records of all ranks, counts[] bytes of each, take the place of the samples of their keys, which are
 * sorted. The samples refer to them. -1: out of memory. */
int heavy_keys_replace(struct key_samples *all, const uint8_t *records, const int *counts, int size,
                       const struct sort_rule *rule);

#endif
