/* SPDX-License-Identifier: MIT */
/* Sequences of a FASTA file with an index (-r), by reference. Threads may ask for them at the same time. */
#ifndef STATS_FASTA_H
#define STATS_FASTA_H

#include <stddef.h>
#include <stdint.h>

struct latch;
struct stats_fasta;

/* One sequence; it stays where it is until it is released. */
struct stats_sequence {
    int64_t n;
    int32_t ref;
    int users;                   /* under the lock of the file */
    char *bases;                 /* n letters as the file has them */
    struct stats_sequence *next;
};

/* NULL: it or its index cannot be read, and the error is recorded in the latch. */
struct stats_fasta *stats_fasta_open(const char *path, struct latch *latch);
void stats_fasta_close(struct stats_fasta *fasta);

/* The sequence of this name; `ref` stands for it. NULL: there is none, or no memory. */
struct stats_sequence *stats_fasta_take(struct stats_fasta *fasta, int32_t ref, const char *name);
void stats_fasta_release(struct stats_fasta *fasta, struct stats_sequence *sequence);

/* The share of G and C among A, C, G, T of the bases [begin, begin + n); 0 if there are none. */
float stats_sequence_gc(const struct stats_sequence *sequence, int64_t begin, int64_t n);

#endif
