/* SPDX-License-Identifier: MIT */
/* Sequences of a FASTA file with an index (-r), by reference. Threads may ask for them at the same time. */
#ifndef STATS_FASTA_H
#define STATS_FASTA_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct stats_fasta;

/* One sequence. It stays at its address until it is released. */
struct stats_sequence {
    int64_t n;
    int32_t ref;
    int users;                   /* number of users; under the lock of the file */
    char *bases;                 /* n letters as the file has them */
    struct stats_sequence *next;
};

/* Returns NULL if the file or its index cannot be read; the error is recorded in the latch. */
struct stats_fasta *stats_fasta_open(const char *path, struct latch *latch);
void stats_fasta_close(struct stats_fasta *fasta);

/* Returns the sequence of this name; `ref` identifies it. Returns NULL if there is none, or if out of memory. */
struct stats_sequence *stats_fasta_take(struct stats_fasta *fasta, int32_t ref, const char *name);
void stats_fasta_release(struct stats_fasta *fasta, struct stats_sequence *sequence);

/* Returns the share of G and C among the A, C, G and T of the bases [begin, begin + n), or 0 if there are none. */
float stats_sequence_gc(const struct stats_sequence *sequence, int64_t begin, int64_t n);

#endif
