/* SPDX-License-Identifier: MIT */
/* Depth and GC of stretches of a reference (GCD). A stretch begins with a record and takes those that begin (with
 * -r, end) at most a bin further. Sums are of 32 bits, in the order of the records, as those of samtools. */
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

/* One of all zeros but `size` is empty. */
struct stats_gcd {
    int64_t size;                /* --GC-depth */
    struct gcd_bin *bins;
    size_t n, room;
    int64_t start;               /* of the last one */
};

void stats_gcd_free(struct stats_gcd *g);

/* Bytes of memory with bins of that size, for records on all of these references. */
size_t stats_gcd_memory(int64_t size, sam_hdr_t *sam);

/* Counts a record. is_new: it is the first one of its reference. span, sequence: with -r. -1: out of memory. */
int stats_gcd_add(struct stats_gcd *g, bool is_new, int64_t pos, uint32_t span, float gc,
                  const struct stats_sequence *sequence);

/* Likewise for n records without -r, in order on one reference. */
int stats_gcd_add_visit(struct stats_gcd *g, bool is_new, const int32_t *places, const float *gc, size_t n);

/* Prints the rows, and puts the bins in order. average: length of the reads. -1: out of memory. */
int stats_gcd_print(struct stats_gcd *g, bool has_sequence, float average, FILE *out);

#endif
