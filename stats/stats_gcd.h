/* SPDX-License-Identifier: MIT */
/* Depth and GC of stretches of a reference (GCD). A stretch begins with a record and takes the records that begin (with
 * -r, end) at most the size of a bin further. Sums have 32 bits and are added in the order of the records, as in
 * samtools. */
#ifndef STATS_GCD_H
#define STATS_GCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <htslib/sam.h>

struct stats_sequence;

struct gcd_bin {
    float gc;
    uint32_t depth;
};

/* A struct is empty if all its fields except `size` are zero. */
struct stats_gcd {
    int64_t size;                /* --GC-depth */
    struct gcd_bin *bins;
    size_t n, room;
    int64_t start;               /* start of the last bin */
};

void stats_gcd_free(struct stats_gcd *g);

/* Bytes of memory for bins of this size, and records on all references of the header. */
size_t stats_gcd_memory(int64_t size, sam_hdr_t *sam);

/* Counts a record. is_new: it is the first record of its reference. span, sequence: for -r. Returns -1 if out of
 * memory. */
int stats_gcd_add(struct stats_gcd *g, bool is_new, int64_t pos, uint32_t span, float gc,
                  const struct stats_sequence *sequence);

/* Counts n records of one reference, in order, without -r. Returns -1 if out of memory. */
int stats_gcd_add_visit(struct stats_gcd *g, bool is_new, const int32_t *places, const float *gc, size_t n);

/* Prints the rows and sorts the bins. average: average length of the reads. Returns -1 if out of memory. */
int stats_gcd_print(struct stats_gcd *g, bool has_sequence, float average, FILE *out);

#endif
