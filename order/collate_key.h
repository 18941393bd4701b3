/* SPDX-License-Identifier: MIT */
/* The order of `samtools collate` 1.24: all records with the same name are together, and names come in the order of a
 * hash, so the order does not depend on the genome.
 *
 * A name has a 32-bit hash, and the hash modulo n_bins is its bin. Records are ordered by bin, by hash, by name as in
 * strcmp(), and by the READ1 and READ2 flags: neither, READ1, READ2, both. */
#ifndef COLLATE_KEY_H
#define COLLATE_KEY_H

#include "bam/bam_record.h"

enum { COLLATE_BINS = 64 };      /* the default of samtools' -n */

struct collate_key {
    uint32_t n_bins;             /* at least 1 */
    uint64_t per_bin;            /* the number of hashes in the largest bin */
};

/* n_bins: as in samtools collate -n, at least 1. */
struct collate_key collate_key_init(uint32_t n_bins);

/* The key of a record: the place of its name's hash. If a comes before b, then key(a) <= key(b). */
uint64_t collate_key_make(const struct collate_key *rule, const struct bam_record *r);

/* Compares two records by the full order. Returns < 0, 0 or > 0. */
int collate_key_compare(const struct collate_key *rule, const struct bam_record *a, const struct bam_record *b);

#endif
