/* SPDX-License-Identifier: MIT */
/* All counts of `stats` that do not depend on the order of the records. One thread counts into them. */
#ifndef STATS_SUMS_H
#define STATS_SUMS_H

#include <stddef.h>
#include <stdint.h>
#include "stats/stats_barcodes.h"
#include "stats/stats_bases.h"
#include "stats/stats_column.h"
#include "stats/stats_inserts.h"
#include "stats/stats_quals.h"
#include "stats/stats_view.h"

struct stats_settings;

enum { STATS_GC_CELLS = 200, STATS_INDEL_LENGTHS = 300, STATS_CHECKSUMS = 3, STATS_CYCLE_ENDS = 2 /* first, last */ };

/* Numbers that are added up. All are 64 bits wide, so that they can be added as an array. */
struct stats_counts {
    uint64_t filtered, secondary, supplementary, duplicates, duplicate_bases;
    uint64_t ends[STATS_ENDS];           /* primary records */
    uint64_t bases[STATS_ENDS];
    uint64_t qc_failed, paired, unmapped, mapped_single, mapped_both, proper, anomalous, mapq0;
    uint64_t bases_mapped, bases_trimmed;
    uint64_t cigar_bases;                /* modulo 2^64: a target cuts some off */
    uint64_t mismatches;                 /* modulo 2^64: NM may be negative */
    uint64_t mapq[256];
    uint64_t gc[STATS_CYCLE_ENDS][STATS_GC_CELLS + 1];     /* differences of neighbouring cells */
    uint64_t insertions[STATS_INDEL_LENGTHS + 1], deletions[STATS_INDEL_LENGTHS + 1];
};

enum { STATS_INS_FIRST, STATS_INS_LAST, STATS_DEL_FIRST, STATS_DEL_LAST, STATS_INDEL_COLUMNS };

struct stats_sums {
    struct stats_counts counts;
    uint32_t checksums[STATS_CHECKSUMS];         /* names, SEQ, QUAL */
    uint32_t longest[STATS_ENDS];                /* with hard clips; [STATS_OTHER]: longest of all records */
    struct stats_column lengths;                 /* STATS_ENDS columns */
    struct stats_column indels;                  /* STATS_INDEL_COLUMNS columns */
    struct stats_inserts inserts;
    struct stats_bases bases[STATS_CYCLE_ENDS];
    struct stats_quals quals[STATS_CYCLE_ENDS];
    struct stats_barcodes barcodes;
    float most_inserts;                          /* -m, stored when the sums are printed */
};

/* A zero-initialised struct is empty. */
void stats_sums_free(struct stats_sums *s);

/* Allocate empty sums and free them, in the form that struct counter_store needs. stats_sums_open() does not use its
 * argument, and returns NULL if out of memory. stats_sums_close() accepts NULL. */
void *stats_sums_open(const void *settings);
void stats_sums_close(void *sums);

/* The result of stats_sums_add(), which decides how the record is counted further. */
enum stats_way { STATS_NO_MEMORY = -1, STATS_ENDS_HERE, STATS_IS_UNPLACED, STATS_IS_MAPPED };

/* Counts everything that does not depend on the order, for a record that passed the filters. If there are targets,
 * stats_part counts the bases that the CIGAR maps. Notes in `order` which barcodes come first. *gc gets the number of G
 * and C if the record is primary and first or last, else 0. */
enum stats_way stats_sums_add(struct stats_sums *s, struct stats_barcode_order *order,
                              const struct stats_settings *settings, const struct stats_view *v, uint32_t *gc);

/* Adds the counts of `from`, which is empty afterwards. Returns -1 if out of memory. */
int stats_sums_join(struct stats_sums *s, struct stats_sums *from);

/* Prepares the counts of bases and qualities for printing. Returns -1 if out of memory. */
int stats_sums_close_cycles(struct stats_sums *s);

/* Bytes of memory for reads of up to n bases. */
size_t stats_sums_memory(size_t n);

#endif
