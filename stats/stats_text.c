/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include "base/latch.h"
#include "stats/counter.h"
#include "stats/stats_part.h"
#include "stats/stats_references.h"
#include "stats/stats_sections.h"
#include "stats/stats_settings.h"
#include "stats/stats_text.h"

#define FIND_PART(what) ". Use `grep ^" what " | cut -f 2-` to extract this part."

static void print_head(const struct stats_settings *settings, const char *value,
                       const uint32_t checksums[STATS_CHECKSUMS], FILE *out)
{
    fputs("# This file was produced by samtools stats (1.24+htslib-1.24) and can be plotted using "
          "plot-bamstats\n", out);
    if (value)
        fprintf(out, "# This file contains statistics only for reads with tag: %s=%s\n", settings->split_tag, value);
    else
        fputs("# This file contains statistics for all reads.\n", out);
    fprintf(out, "# The command line was:  %s\n", settings->command_line);
    fputs("# CHK, Checksum\t[2]Read Names\t[3]Sequences\t[4]Qualities\n"
          "# CHK, CRC32 of reads which passed filtering followed by addition (32bit overflow)\n", out);
    fprintf(out, "CHK\t%08" PRIx32 "\t%08" PRIx32 "\t%08" PRIx32 "\n", checksums[0], checksums[1], checksums[2]);
}

static void number(FILE *out, const char *name, uint64_t n, const char *remark)
{
    fprintf(out, "SN\t%s:\t%" PRIu64 "%s\n", name, n, remark);
}

static void average(FILE *out, const char *name, uint64_t sum, uint64_t n)
{
    fprintf(out, "SN\t%s:\t%.0f\n", name, n ? (double)((float)sum / (float)n) : 0.0);
}

static uint64_t all_ends(const uint64_t n[STATS_ENDS])
{
    return n[STATS_FIRST] + n[STATS_LAST] + n[STATS_OTHER];
}

static void print_reads(const struct stats_counts *c, bool is_sorted, FILE *out)
{
    uint64_t reads = all_ends(c->ends);
    number(out, "raw total sequences", c->filtered + reads, "\t# excluding supplementary and secondary reads");
    number(out, "filtered sequences", c->filtered, "");
    number(out, "sequences", reads, "");
    number(out, "is sorted", is_sorted, is_sorted ? "\t# sorted by coordinate" : "\t# not sorted by coordinate");
    number(out, "1st fragments", c->ends[STATS_FIRST], "");
    number(out, "last fragments", c->ends[STATS_LAST], "");
    number(out, "reads mapped", c->mapped_both + c->mapped_single, "");
    number(out, "reads mapped and paired", c->mapped_both, "\t# paired-end technology bit set + both mates mapped");
    number(out, "reads unmapped", c->unmapped, "");
    number(out, "reads properly paired", c->proper, "\t# proper-pair bit set");
    number(out, "reads paired", c->paired, "\t# paired-end technology bit set");
    number(out, "reads duplicated", c->duplicates, "\t# PCR or optical duplicate bit set");
    number(out, "reads MQ0", c->mapq0, "\t# mapped and MQ=0");
    number(out, "reads QC failed", c->qc_failed, "");
    number(out, "non-primary alignments", c->secondary, "");
    number(out, "supplementary alignments", c->supplementary, "");
}

static double error_rate(const struct stats_counts *c, uint64_t cigar_bases)
{
    int64_t mapped = (int64_t)cigar_bases;
    return mapped ? (double)((float)c->mismatches / (float)mapped) : 0.0;
}

static void print_bases(const struct stats_sums *s, uint64_t cigar_bases, FILE *out)
{
    const struct stats_counts *c = &s->counts;
    int64_t mapped = (int64_t)cigar_bases;
    number(out, "total length", all_ends(c->bases), "\t# ignores clipping");
    number(out, "total first fragment length", c->bases[STATS_FIRST], "\t# ignores clipping");
    number(out, "total last fragment length", c->bases[STATS_LAST], "\t# ignores clipping");
    number(out, "bases mapped", c->bases_mapped, "\t# ignores clipping");
    fprintf(out, "SN\tbases mapped (cigar):\t%" PRId64 "\t# more accurate\n", mapped);
    number(out, "bases trimmed", c->bases_trimmed, "");
    number(out, "bases duplicated", c->duplicate_bases, "");
    fprintf(out, "SN\tmismatches:\t%" PRId64 "\t# from NM fields\n", (int64_t)c->mismatches);
    fprintf(out, "SN\terror rate:\t%e\t# mismatches / bases mapped (cigar)\n",
            error_rate(c, cigar_bases));
    average(out, "average length", all_ends(c->bases), all_ends(c->ends));
    average(out, "average first fragment length", c->bases[STATS_FIRST], c->ends[STATS_FIRST]);
    average(out, "average last fragment length", c->bases[STATS_LAST], c->ends[STATS_LAST]);
    number(out, "maximum length", s->longest[STATS_OTHER], "");
    number(out, "maximum first fragment length", s->longest[STATS_FIRST], "");
    number(out, "maximum last fragment length", s->longest[STATS_LAST], "");
}

static void print_pairs(const struct stats_counts *c, const struct insert_summary *inserts, FILE *out)
{
    uint64_t reads = all_ends(c->ends);
    fprintf(out, "SN\tinsert size average:\t%.1f\n", inserts->average);
    fprintf(out, "SN\tinsert size standard deviation:\t%.1f\n", inserts->deviation);
    number(out, "inward oriented pairs", inserts->pairs[STATS_INWARD], "");
    number(out, "outward oriented pairs", inserts->pairs[STATS_OUTWARD], "");
    number(out, "pairs with other orientation", inserts->pairs[STATS_OTHERWISE], "");
    number(out, "pairs on different chromosomes", c->anomalous / 2, "");
    fprintf(out, "SN\tpercentage of properly paired reads (%%):\t%.1f\n",
            reads ? (double)(100.0F * (float)c->proper / (float)reads) : 0.0);
}

static void print_target(const struct stats_settings *settings, const struct stats_whole *whole, FILE *out)
{
    uint64_t target = stats_regions_bases(&settings->targets, settings->sam), covered = 0;
    if (target == 0)
        return;
    for (size_t i = (size_t)settings->threshold + 1; i < settings->bins.n; i++)
        covered += whole->ring.left[i];
    number(out, "bases inside the target", target, "");
    fprintf(out, "SN\tpercentage of target genome with coverage > %d (%%):\t%.2f\n", settings->threshold,
            (double)(100.0F * (float)covered / (float)target));
}

static void print_summary(const struct stats_settings *settings, const struct stats_sums *sums,
                          const struct stats_whole *whole, const struct insert_summary *inserts, FILE *out)
{
    fputs("# Summary Numbers" FIND_PART("SN") "\n", out);
    print_reads(&sums->counts, !whole->unsorted, out);
    print_bases(sums, sums->counts.cigar_bases - whole->mates.removed, out);
    uint64_t bases = all_ends(sums->counts.bases), sum = 0;
    for (int quality = 0; quality < QUALS; quality++)
        for (int end = 0; end < STATS_CYCLE_ENDS; end++)
            sum += (uint64_t)quality * stats_quals_sum(&sums->quals[end], quality);
    fprintf(out, "SN\taverage quality:\t%.1f\n", bases ? (double)sum / (double)bases : 0.0);
    print_pairs(&sums->counts, inserts, out);
    print_target(settings, whole, out);
}

/* Returns -1 if out of memory. */
static int print_all(struct stats_part *part, struct stats_sums *sums, const char *value, FILE *out)
{
    const struct stats_settings *settings = part->settings;
    struct stats_whole *whole = part->whole;
    struct insert_summary inserts;
    if (stats_sums_close_cycles(sums) < 0)
        return -1;
    stats_inserts_close(&sums->inserts);
    stats_whole_end(whole);
    sums->most_inserts = settings->most_inserts;
    stats_section_summarise(&sums->inserts, sums->most_inserts, &inserts);
    print_head(settings, value, sums->checksums, out);
    print_summary(settings, sums, whole, &inserts, out);
    stats_section_qualities(sums, out);
    if (settings->fasta)
        stats_section_mismatches(sums, whole, out);
    stats_section_gc(sums, out);
    stats_section_bases(sums, out);
    if (stats_barcodes_print(&sums->barcodes, &part->barcodes, out) < 0)
        return -1;
    stats_section_inserts(&sums->inserts, &inserts, settings->sparse, out);
    stats_section_lengths(sums, out);
    stats_section_indels(sums, out);
    stats_section_coverage(settings, whole, out);
    uint64_t reads = all_ends(sums->counts.ends);
    if (stats_section_gcd(whole, reads ? (float)all_ends(sums->counts.bases) / (float)reads : 0, out) < 0)
        return -1;
    return settings->ref_stats ? stats_references_print(settings, out) : 0;
}

int stats_text_print(struct stats_part *part, struct stats_sums *sums, const char *value, FILE *out,
                     struct latch *latch)
{
    if (stats_part_settle(part) < 0)
        return latch_fail(latch, "out of memory");
    if (part->settings->sorted && part->settings->targets_path && part->whole->unsorted)
        return latch_fail(latch, "the records are not in order, as -t of stats needs them");
    return print_all(part, sums, value, out) < 0 ? latch_fail(latch, "out of memory") : 0;
}

void stats_text_numbers(const struct stats_sums *sums, struct counter_numbers *numbers)
{
    const struct stats_counts *c = &sums->counts;
    struct insert_summary inserts;
    stats_section_summarise(&sums->inserts, sums->most_inserts, &inserts);
    numbers->reads = all_ends(c->ends);
    numbers->mapped = c->mapped_both + c->mapped_single;
    numbers->duplicates = c->duplicates;
    numbers->has_pairs = true;
    numbers->insert_size = inserts.average;
    numbers->error_rate = error_rate(c, c->cigar_bases);
}
