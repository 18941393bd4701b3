/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include "stats/stats_sections.h"
#include "stats/stats_settings.h"
#include "stats/stats_sums.h"
#include "stats/stats_whole.h"

#define USE_GREP(what) ". Use `grep ^" what " | cut -f 2-` to extract this part."
#define IN_PERCENT " base counts as a percentage of all A/C/G/T bases [%]"

/* ---- qualities ---- */

/* The last column of FFQ, LFQ and MPC. */
static int last_quality_column(const struct stats_sums *sums)
{
    int most = 0;
    for (int quality = 0; quality < QUALS; quality++)
        if (stats_quals_sum(&sums->quals[0], quality) || stats_quals_sum(&sums->quals[1], quality))
            most = quality;
    return most + 1 < QUALS ? most + 1 : QUALS - 1;
}

void stats_section_qualities(const struct stats_sums *sums, FILE *out)
{
    static const char *const heads[] = {"# First Fragment Qualities" USE_GREP("FFQ"),
                                        "# Last Fragment Qualities" USE_GREP("LFQ")};
    int last = last_quality_column(sums);
    for (int end = 0; end < STATS_CYCLE_ENDS; end++) {
        fprintf(out, "%s\n# Columns correspond to qualities and rows to cycles. First column is the cycle number.\n",
                heads[end]);
        for (size_t cycle = 0; cycle < sums->longest[end]; cycle++) {
            fprintf(out, "%cFQ\t%zu", "FL"[end], cycle + 1);
            for (int quality = 0; quality <= last; quality++)
                fprintf(out, "\t%" PRIu64, stats_quals_count(&sums->quals[end], cycle, quality));
            fputc('\n', out);
        }
    }
}

void stats_section_mismatches(const struct stats_sums *sums, const struct stats_whole *whole, FILE *out)
{
    int last = last_quality_column(sums);
    fputs("# Mismatches per cycle and quality" USE_GREP("MPC") "\n"
          "# Columns correspond to qualities, rows to cycles. First column is the cycle number, second\n"
          "# is the number of N's and the rest is the number of mismatches\n", out);
    for (size_t cycle = 0; cycle <= sums->longest[STATS_OTHER]; cycle++) {
        fprintf(out, "MPC\t%zu", cycle + 1);
        for (int column = 0; column <= last; column++)
            fprintf(out, "\t%" PRIu64, stats_whole_mismatches(whole, cycle, (size_t)column));
        fputc('\n', out);
    }
}

/* ---- bases ---- */

void stats_section_gc(const struct stats_sums *sums, FILE *out)
{
    static const char *const heads[] = {"# GC Content of first fragments" USE_GREP("GCF"),
                                        "# GC Content of last fragments" USE_GREP("GCL")};
    for (int end = 0; end < STATS_CYCLE_ENDS; end++) {
        fprintf(out, "%s\n", heads[end]);
        int begin = 0;
        const uint64_t *steps = sums->counts.gc[end];    /* differences from one cell to the next */
        uint64_t n = steps[0];
        for (int i = 1; i < STATS_GC_CELLS; i++) {
            if (steps[i] == 0)
                continue;
            fprintf(out, "GC%c\t%.2f\t%" PRIu64 "\n", "FL"[end], (i + begin) * 0.5 * 100 / (STATS_GC_CELLS - 1), n);
            n += steps[i];
            begin = i;
        }
    }
}

/* Prints a row with the shares of A, C, G, T and of the further columns; prints nothing if there is no A, C, G or T. */
static void print_shares(FILE *out, const char *key, size_t cycle, const uint64_t *n, int columns)
{
    uint64_t sum = n[STATS_A] + n[STATS_C] + n[STATS_G] + n[STATS_T];
    if (sum == 0)
        return;
    fprintf(out, "%s\t%zu", key, cycle + 1);
    for (int i = 0; i < columns; i++)
        fprintf(out, "\t%.2f", 100.0 * (double)n[i] / (double)sum);
    fputc('\n', out);
}

static void print_end(const struct stats_sums *sums, int end, FILE *out)
{
    static const char *const names[] = {"first", "last"};
    char letter = "FL"[end];
    const char key[] = {letter, 'B', 'C', 0};
    uint64_t total[STATS_BASES] = {0};
    fprintf(out, "# ACGT content per cycle for %s fragments. Use `grep ^%s | cut -f 2-` to extract this part. The "
            "columns are: cycle; A,C,G,T base counts as a percentage of all A/C/G/T bases [%%]; and N and O counts "
            "as a percentage of all A/C/G/T bases [%%]\n", names[end], key);
    for (size_t cycle = 0; cycle < sums->longest[end]; cycle++) {
        uint64_t n[STATS_BASES] = {0}, unused[STATS_BASES] = {0};
        stats_bases_cycle(&sums->bases[end], cycle, n, unused);
        print_shares(out, key, cycle, n, STATS_BASES);
        for (int i = 0; i < STATS_BASES; i++)
            total[i] += n[i];
    }
    fprintf(out, "# ACGT raw counters for %s fragments. Use `grep ^%cTC | cut -f 2-` to extract this part. The columns "
            "are: A,C,G,T,N base counters\n%cTC", names[end], letter, letter);
    for (int i = 0; i <= STATS_N; i++)
        fprintf(out, "\t%" PRIu64, total[i]);
    fputc('\n', out);
}

void stats_section_bases(const struct stats_sums *sums, FILE *out)
{
    for (int oriented = 0; oriented < 2; oriented++) {
        fputs(oriented ? "# ACGT content per cycle, read oriented" USE_GREP("GCT") " The columns are: cycle; A,C,G,T"
                         IN_PERCENT "\n"
                       : "# ACGT content per cycle" USE_GREP("GCC") " The columns are: cycle; A,C,G,T" IN_PERCENT
                         "; and N and O counts as a percentage of all A/C/G/T bases [%]\n", out);
        for (size_t cycle = 0; cycle < sums->longest[STATS_OTHER]; cycle++) {
            uint64_t n[2][STATS_BASES] = {0};
            for (int end = 0; end < STATS_CYCLE_ENDS; end++)
                stats_bases_cycle(&sums->bases[end], cycle, n[0], n[1]);
            print_shares(out, oriented ? "GCT" : "GCC", cycle, n[oriented], oriented ? STATS_T + 1 : STATS_BASES);
        }
    }
    print_end(sums, 0, out);
    print_end(sums, 1, out);
}

/* ---- insert sizes ---- */

static uint64_t half_total(const uint64_t n[STATS_ORIENTATIONS])
{
    return n[0] / 2 + n[1] / 2 + n[2] / 2;
}

/* Returns the deviation from the average, over sizes up to the last one that counts. */
static double deviation(const struct stats_inserts *inserts, const struct insert_summary *summary, double pairs)
{
    double sum = 0;
    size_t at = 0;
    uint32_t size;
    for (const uint64_t *n; (n = stats_inserts_next(inserts, &at, &size)) && size <= summary->last;)
        if (size > 0) {
            double apart = (double)size - summary->average;
            sum += (double)half_total(n) * apart * apart / pairs;
        }
    return sqrt(sum);
}

void stats_section_summarise(const struct stats_inserts *inserts, float most, struct insert_summary *summary)
{
    *summary = (struct insert_summary){0};
    size_t at = 0;
    uint32_t size;
    double pairs = 0, bulk = 0, sum = 0;
    for (const uint64_t *n; (n = stats_inserts_next(inserts, &at, &size));) {
        for (int i = 0; i < STATS_ORIENTATIONS; i++)
            summary->pairs[i] += n[i] / 2;
        pairs += (double)half_total(n);
    }
    at = 0;
    for (const uint64_t *n; (n = stats_inserts_next(inserts, &at, &size));) {
        double total = (double)half_total(n);
        if (total > 0) {
            summary->last = size;
            summary->any = true;
        }
        bulk += total;
        sum += (double)size * total;
        if (bulk / pairs > (double)most) {
            summary->last = size;
            pairs = bulk;
            break;
        }
    }
    if (pairs == 0)
        pairs = 1;
    summary->average = sum / pairs;
    summary->deviation = deviation(inserts, summary, pairs);
}

static void print_insert(FILE *out, uint32_t size, const uint64_t n[STATS_ORIENTATIONS])
{
    fprintf(out, "IS\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", size, half_total(n),
            n[STATS_INWARD] / 2, n[STATS_OUTWARD] / 2, n[STATS_OTHERWISE] / 2);
}

void stats_section_inserts(const struct stats_inserts *inserts, const struct insert_summary *summary, bool sparse,
                           FILE *out)
{
    static const uint64_t none[STATS_ORIENTATIONS];
    fputs("# Insert sizes" USE_GREP("IS") " The columns are: insert size, pairs total, inward oriented pairs, outward "
          "oriented pairs, other pairs\n", out);
    size_t at = 0;
    uint32_t size, next = 0;
    for (const uint64_t *n; summary->any && (n = stats_inserts_next(inserts, &at, &size)) && size <= summary->last;) {
        for (; !sparse && next < size; next++)
            print_insert(out, next, none);
        if (!sparse || half_total(n) > 0)
            print_insert(out, size, n);
        next = size + 1;
    }
}

/* ---- lengths and indels ---- */

void stats_section_lengths(const struct stats_sums *sums, FILE *out)
{
    static const char *const heads[] = {
        "# Read lengths" USE_GREP("RL"), "# Read lengths - first fragments" USE_GREP("FRL"),
        "# Read lengths - last fragments" USE_GREP("LRL")};
    static const char *const keys[] = {"RL", "FRL", "LRL"};
    for (int section = 0; section < 3; section++) {
        fprintf(out, "%s The columns are: read length, count\n", heads[section]);
        for (size_t i = 0; i < sums->lengths.room; i++) {
            const uint64_t *ends = sums->lengths.n + i * STATS_ENDS;
            uint64_t n = section == 0 ? ends[0] + ends[1] + ends[2] : ends[section - 1];
            if (n > 0)
                fprintf(out, "%s\t%zu\t%" PRIu64 "\n", keys[section], i, n);
        }
    }
    fputs("# Mapping qualities for reads !(UNMAP|SECOND|SUPPL|QCFAIL|DUP)" USE_GREP("MAPQ")
          " The columns are: mapq, count\n", out);
    for (int i = 0; i < 256; i++)
        if (sums->counts.mapq[i] > 0)
            fprintf(out, "MAPQ\t%d\t%" PRIu64 "\n", i, sums->counts.mapq[i]);
}

void stats_section_indels(const struct stats_sums *sums, FILE *out)
{
    const struct stats_counts *c = &sums->counts;
    fputs("# Indel distribution" USE_GREP("ID") " The columns are: length, number of insertions, number of deletions\n",
          out);
    for (int i = 1; i <= STATS_INDEL_LENGTHS; i++)
        if (c->insertions[i] > 0 || c->deletions[i] > 0)
            fprintf(out, "ID\t%d\t%" PRIu64 "\t%" PRIu64 "\n", i, c->insertions[i], c->deletions[i]);
    fputs("# Indels per cycle" USE_GREP("IC") " The columns are: cycle, number of insertions (fwd), .. (rev) , number "
          "of deletions (fwd), .. (rev)\n", out);
    for (size_t cycle = 0; cycle < sums->indels.room; cycle++) {
        const uint64_t *n = sums->indels.n + cycle * STATS_INDEL_COLUMNS;
        if (n[0] | n[1] | n[2] | n[3])
            fprintf(out, "IC\t%zu\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", cycle + 1,
                    n[0], n[1], n[2], n[3]);
    }
}

/* ---- what depends on the order ---- */

/* A single bin (if MIN is above MAX) is the first and the last one, and has two lines, as in samtools. */
static void print_depths(const struct stats_depth_bins *bins, const uint64_t *n, FILE *out)
{
    if (n[0] > 0)
        fprintf(out, "COV\t[<%" PRId64 "]\t%" PRId64 "\t%" PRIu64 "\n", bins->min, bins->min - 1, n[0]);
    int64_t above = bins->min + ((int64_t)bins->n - 2) * bins->step - 1;
    for (size_t i = 1; i + 1 < bins->n; i++) {
        int64_t first = bins->min + (int64_t)(i - 1) * bins->step, last = first + bins->step - 1;
        if (n[i] > 0)
            fprintf(out, "COV\t[%" PRId64 "-%" PRId64 "]\t%" PRId64 "\t%" PRIu64 "\n", first, last, last, n[i]);
    }
    if (n[bins->n - 1] > 0)
        fprintf(out, "COV\t[%" PRId64 "<]\t%" PRId64 "\t%" PRIu64 "\n", above, above, n[bins->n - 1]);
}

void stats_section_coverage(const struct stats_settings *settings, const struct stats_whole *whole, FILE *out)
{
    if (whole->unsorted)
        return;
    fputs("# Coverage distribution" USE_GREP("COV") "\n", out);
    print_depths(&settings->bins, whole->ring.left, out);
}

int stats_section_gcd(struct stats_whole *whole, float average, FILE *out)
{
    if (whole->unsorted)
        return 0;
    fputs("# GC-depth" USE_GREP("GCD") " The columns are: GC%, unique sequence percentiles, 10th, 25th, 50th, 75th and "
          "90th depth percentile\n", out);
    return stats_gcd_print(&whole->gcd, whole->settings->fasta != NULL, average, out);
}
