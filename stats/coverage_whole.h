/* SPDX-License-Identifier: MIT */
/* The coverage of all ranges of reads that were joined so far.
 *
 * Joining a range mostly means to unite the places that it covers with the last ones of the whole. But `samtools
 * coverage` keeps at most -d reads (1,000,000) at a time: at each place where reads begin, it takes the first one, and
 * others only while fewer are kept. A read is kept until a read begins after its end. So a range also has a log of its
 * reads. If the limit may be reached in a range, its reads are joined one by one. */
#ifndef COVERAGE_WHOLE_H
#define COVERAGE_WHOLE_H

#include "stats/covered.h"

/* The counts of one reference. */
struct coverage_counts {
    uint64_t reads, mapqs;       /* records that pass the filters, and the sum of their MAPQ */
    uint64_t spans;              /* records among these that span a base of the reference */
    uint64_t bases;              /* bases of these records: the sum of depths */
    uint64_t n_quals, quals;     /* bases among these that have a quality, and the sum of the qualities */
    uint64_t places;             /* places that a base covers */
};

/* A read of the log. */
struct coverage_read {
    int64_t begin, end;          /* places */
    uint64_t quals;
    uint32_t bases, n_quals, n_blocks;
};

struct coverage_range {
    struct coverage_read *reads; /* n of them, in order, except those that cannot change anything */
    size_t n, room;
    struct covered_block *blocks;        /* n_blocks of all reads, one read after the other */
    size_t n_blocks, room_blocks;
    struct covered covered;      /* places that all reads cover together */
};

void coverage_range_free(struct coverage_range *range);
void coverage_range_clear(struct coverage_range *range);

/* Reads that are kept and end at the same place. */
struct coverage_ends {
    int64_t end;
    uint64_t n;
};

struct coverage_whole {
    int64_t last;                /* the place where the last read begins */
    uint64_t n_kept;             /* number of reads that are kept */
    struct coverage_ends *ends;  /* n_ends of them, from the first place to the last */
    size_t n_ends, room_ends;
    struct covered covered;      /* the last places; those before are counted */
    struct coverage_counts counts[];     /* for each reference, to be added to the sums: the places, and minus (modulo
                                          * 2^64) what reads that were left out have added to the sums */
};

/* Returns NULL if out of memory. */
struct coverage_whole *coverage_whole_open(int32_t n_ref);
void coverage_whole_close(struct coverage_whole *whole);

/* Joins a range that follows. limit: the number of reads that are kept. Returns -1 if out of memory. */
int coverage_whole_join(struct coverage_whole *whole, const struct coverage_range *range, uint64_t limit);

/* Counts all places, when everything is joined. */
void coverage_whole_end(struct coverage_whole *whole);

size_t coverage_whole_memory(int32_t n_ref);

#endif
