/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "stats/flagstat.h"

enum { FLAGS = 1 << 12, SURE = 5 };   /* SURE: least MAPQ of a record whose place is trusted */

/* Histograms of records by their flags: all records; those whose mate is on another reference; and the latter with a
 * MAPQ of SURE or more. Every number that is printed is a sum over some flags. */
enum histogram { ALL, ELSEWHERE, SURELY, N_HISTOGRAMS };

struct flag_counts {
    const struct flagstat_settings *settings;
    uint64_t n[N_HISTOGRAMS][FLAGS];
};

/* A row counts the records whose flags are `value` under the mask. */
struct row {
    const char *name, *json;     /* json: NULL if it is the same as name */
    enum histogram of;
    unsigned mask, value;
    int base;                    /* the row that counts as 100 %, numbered from 0; NONE: no percentage */
};

enum {
    NONE = -1, TOTAL = 0, PRIMARIES = 1, PAIRS = 8,
    OTHERS = BAM_FSECONDARY | BAM_FSUPPLEMENTARY,
    PAIR = OTHERS | BAM_FPAIRED,                 /* with the value BAM_FPAIRED: primary and paired */
    BOTH = PAIR | BAM_FUNMAP | BAM_FMUNMAP,
};

static const struct row rows[] = {
    {"total (QC-passed reads + QC-failed reads)", "total", ALL, 0, 0, NONE},
    {"primary", NULL, ALL, OTHERS, 0, NONE},
    {"secondary", NULL, ALL, BAM_FSECONDARY, BAM_FSECONDARY, NONE},
    {"supplementary", NULL, ALL, OTHERS, BAM_FSUPPLEMENTARY, NONE},
    {"duplicates", NULL, ALL, BAM_FDUP, BAM_FDUP, NONE},
    {"primary duplicates", NULL, ALL, OTHERS | BAM_FDUP, BAM_FDUP, NONE},
    {"mapped", NULL, ALL, BAM_FUNMAP, 0, TOTAL},
    {"primary mapped", NULL, ALL, OTHERS | BAM_FUNMAP, 0, PRIMARIES},
    {"paired in sequencing", NULL, ALL, PAIR, BAM_FPAIRED, NONE},
    {"read1", NULL, ALL, PAIR | BAM_FREAD1, BAM_FPAIRED | BAM_FREAD1, NONE},
    {"read2", NULL, ALL, PAIR | BAM_FREAD2, BAM_FPAIRED | BAM_FREAD2, NONE},
    {"properly paired", NULL, ALL, PAIR | BAM_FPROPER_PAIR | BAM_FUNMAP, BAM_FPAIRED | BAM_FPROPER_PAIR, PAIRS},
    {"with itself and mate mapped", NULL, ALL, BOTH, BAM_FPAIRED, NONE},
    {"singletons", NULL, ALL, BOTH, BAM_FPAIRED | BAM_FMUNMAP, PAIRS},
    {"with mate mapped to a different chr", NULL, ELSEWHERE, BOTH, BAM_FPAIRED, NONE},
    {"with mate mapped to a different chr (mapQ>=5)", "with mate mapped to a different chr (mapQ >= 5)", SURELY, BOTH,
     BAM_FPAIRED, NONE},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* ------------------------------------------------------------------- counts */

static void *open_counts(const void *settings)
{
    struct flag_counts *counts = calloc(1, sizeof *counts);
    if (counts)
        counts->settings = settings;
    return counts;
}

static size_t memory_of_counts(const void *settings, sam_hdr_t *sam, size_t range)
{
    (void)settings, (void)sam, (void)range;
    return sizeof(struct flag_counts);
}

static int join_counts(void *left, void *right)
{
    struct flag_counts *to = left, *from = right;
    for (int i = 0; i < N_HISTOGRAMS; i++)
        for (int flag = 0; flag < FLAGS; flag++)
            to->n[i][flag] += from->n[i][flag];
    memset(from->n, 0, sizeof from->n);
    return 0;
}

static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    struct flag_counts *counts = sums;
    const struct bam_record *r = (const struct bam_record *)record;
    unsigned flag = bam_record_flag(r) % FLAGS;
    (void)part, (void)size;
    counts->n[ALL][flag]++;
    if (load_le32(r->ref_id) != load_le32(r->next_ref_id)) {
        counts->n[ELSEWHERE][flag]++;
        counts->n[SURELY][flag] += r->mapq >= SURE;
    }
    return 0;
}

/* -------------------------------------------------------------------- print */

struct table {
    uint64_t n[2][N_ROWS];       /* records that passed quality control, and records that failed it */
};

static struct table table_of(const struct flag_counts *counts)
{
    struct table t = {{{0}}};
    for (int i = 0; i < N_ROWS; i++)
        for (unsigned flag = 0; flag < FLAGS; flag++)
            if ((flag & rows[i].mask) == rows[i].value)
                t.n[(flag & BAM_FQCFAIL) != 0][i] += counts->n[rows[i].of][flag];
    return t;
}

/* Prints the share of a row in its base row, in percent, or `none` if the base row is 0. It calculates in 32 bits, as
 * samtools does. */
static void print_share(const struct table *t, int failed, int row, const char *end, const char *none, FILE *out)
{
    uint64_t n = t->n[failed][row], base = t->n[failed][rows[row].base];
    if (base == 0)
        fputs(none, out);
    else
        fprintf(out, "%.2f%s", (double)((float)n / (float)base) * 100.0, end);
}

static void print_text(const struct table *t, FILE *out)
{
    for (int i = 0; i < N_ROWS; i++) {
        fprintf(out, "%" PRIu64 " + %" PRIu64 " %s%s", t->n[0][i], t->n[1][i], i == TOTAL ? "in " : "", rows[i].name);
        if (rows[i].base != NONE) {
            fputs(" (", out);
            print_share(t, 0, i, "%", "N/A", out);
            fputs(" : ", out);
            print_share(t, 1, i, "%", "N/A", out);
            fputc(')', out);
        }
        fputc('\n', out);
    }
}

static void print_tsv(const struct table *t, FILE *out)
{
    for (int i = 0; i < N_ROWS; i++) {
        fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%s\n", t->n[0][i], t->n[1][i], rows[i].name);
        if (rows[i].base == NONE)
            continue;
        print_share(t, 0, i, "%", "N/A", out);
        fputc('\t', out);
        print_share(t, 1, i, "%", "N/A", out);
        fprintf(out, "\t%s %%\n", rows[i].name);
    }
}

static void print_object(const struct table *t, int failed, FILE *out)
{
    for (int i = 0; i < N_ROWS; i++) {
        const char *name = rows[i].json ? rows[i].json : rows[i].name;
        fprintf(out, "  \"%s\": %" PRIu64 "%s \n", name, t->n[failed][i], i + 1 < N_ROWS ? "," : "");
        if (rows[i].base == NONE)
            continue;
        fprintf(out, "  \"%s %%\": ", name);
        print_share(t, failed, i, "", "null", out);
        fputs(", \n", out);
    }
}

static void print_json(const struct table *t, FILE *out)
{
    fputs("{\n \"QC-passed reads\": { \n", out);
    print_object(t, 0, out);
    fputs(" },\n \"QC-failed reads\": { \n", out);
    print_object(t, 1, out);
    fputs(" }\n}\n", out);
}

static int print(void *sums, void *part, FILE *out, struct latch *latch)
{
    const struct flag_counts *counts = sums;
    struct table t = table_of(counts);
    (void)part, (void)latch;
    switch (counts->settings->format) {
    case FLAGSTAT_TEXT: print_text(&t, out); break;
    case FLAGSTAT_JSON: print_json(&t, out); break;
    case FLAGSTAT_TSV: print_tsv(&t, out); break;
    }
    return 0;
}

static void tell_numbers(const void *sums, struct counter_numbers *numbers)
{
    enum { MAPPED = 6, DUPLICATES = 4 };         /* rows */
    struct table t = table_of(sums);
    numbers->reads = t.n[0][TOTAL] + t.n[1][TOTAL];
    numbers->mapped = t.n[0][MAPPED] + t.n[1][MAPPED];
    numbers->duplicates = t.n[0][DUPLICATES] + t.n[1][DUPLICATES];
}

struct counter flagstat_counter(struct flagstat_settings *settings)
{
    return (struct counter){.command = "flagstat", .settings = settings, .add = add, .print = print,
                            .numbers = tell_numbers,
                            .sums = {open_counts, join_counts, free, memory_of_counts}};
}
