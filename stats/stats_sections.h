/* SPDX-License-Identifier: MIT */
/* The sections of the text of `samtools stats` that follow the summary. */
#ifndef STATS_SECTIONS_H
#define STATS_SECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "stats/stats_inserts.h"

struct stats_settings;
struct stats_sums;
struct stats_whole;

/* The numbers of pairs, each of which was counted twice. */
struct insert_summary {
    uint64_t pairs[STATS_ORIENTATIONS];
    double average, deviation;
    uint32_t last;               /* size of the last row ... */
    bool any;                    /* ... if there is one */
};

/* Computes *summary from closed counts. Average and deviation are those of the smallest sizes, up to the one with which
 * they have more than the share `most` of all pairs. */
void stats_section_summarise(const struct stats_inserts *inserts, float most, struct insert_summary *summary);

/* All these functions take closed sums. */
void stats_section_qualities(const struct stats_sums *sums, FILE *out);
void stats_section_mismatches(const struct stats_sums *sums, const struct stats_whole *whole, FILE *out);
void stats_section_gc(const struct stats_sums *sums, FILE *out);
void stats_section_bases(const struct stats_sums *sums, FILE *out);
void stats_section_inserts(const struct stats_inserts *inserts, const struct insert_summary *summary, bool sparse,
                           FILE *out);
void stats_section_lengths(const struct stats_sums *sums, FILE *out);
void stats_section_indels(const struct stats_sums *sums, FILE *out);
void stats_section_coverage(const struct stats_settings *settings, const struct stats_whole *whole, FILE *out);
/* average: average length of the reads. Returns -1 if out of memory. */
int stats_section_gcd(struct stats_whole *whole, float average, FILE *out);

#endif
