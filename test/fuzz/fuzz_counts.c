/* SPDX-License-Identifier: MIT */
/* The counters of stats, flagstat, idxstats and coverage: their output is the same for the records in one range and in
 * ranges that are cut anywhere and joined, and so is their fault.
 *
 *   options | 16 cuts, each after a number of records | records */
#include <stdio.h>
#include "fuzz.h"
#include "base/endian_io.h"
#include "base/latch.h"
#include "stats/coverage.h"
#include "stats/flagstat.h"
#include "stats/idxstats.h"
#include "stats/stats_counter.h"
#include "stats/stats_settings.h"

enum { CUTS = 16, RECORDS = 64, PARTS = 3 };

struct records {
    uint8_t *each[RECORDS];
    uint32_t size[RECORDS];
    size_t n;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Prints the files beside the text, sorted. They have no defined order, because threads meet values in any order. */
static void print_files(const struct counter *c, void *sums, void *part, FILE *to, struct latch *latch)
{
    size_t n = c->files.n(sums), size;
    char **texts = must_alloc((n + 1) * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        FILE *file = open_memstream(&texts[i], &size);
        char *path = c->files.path(c->settings, sums, i);
        MUST(file && path && c->files.print(sums, part, i, file, latch) == 0);
        fprintf(file, "in %s\n", path);
        fclose(file);
        free(path);
    }
    qsort(texts, n, sizeof *texts, by_text);
    for (size_t i = 0; i < n; i++) {
        fputs(texts[i], to);
        free(texts[i]);
    }
    free(texts);
}

/* The printed text, to be freed. After a fault: its text and record. */
static char *finish(const struct counter *c, void *sums[2], void *part, size_t *size)
{
    static struct latch latch;
    uint64_t record = 0;
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    MUST(to);
    const char *fault = c->fault ? c->fault(part, &record) : NULL;
    MUST(c->sums.join(sums[0], sums[1]) == 0);
    if (fault)
        fprintf(to, "%llu %s", (unsigned long long)record, fault);
    else if (c->print(sums[0], part, to, &latch) < 0)
        fputs("refused", to);
    if (!fault && c->files.n)
        print_files(c, sums[0], part, to, &latch);
    fclose(to);
    return text;
}

static void *opened(const struct counter *c, const struct counter_store *store)
{
    void *kept = store->open ? store->open(c->settings) : NULL;
    MUST(kept || !store->open);
    return kept;
}

/* Joins a part, unless those before it have a fault: the program stops there. */
static void join(const struct counter *c, void **parts, int part)
{
    uint64_t record;
    MUST((c->fault && c->fault(parts[0], &record)) || c->part.join(parts[0], parts[part]) == 0);
}

/* Joins a counted part. If *held is a part, it is prepared with this one and joined before it; otherwise `hold` makes
 * this part wait for the next one. */
static void leave(const struct counter *c, void **parts, int part, int *held, bool hold)
{
    if (!*held && hold) {
        *held = part;
        return;
    }
    if (*held && c->pair)
        c->pair(parts[*held], parts[*held], parts[part]);
    if (*held)
        join(c, parts, *held);
    join(c, parts, part);
    *held = 0;
}

/* Counts the records, in a new range after each cut. */
static char *count(const struct counter *c, const struct records *records, const uint8_t cuts[CUTS], size_t *size)
{
    void *sums[2], *parts[PARTS];
    for (int i = 0; i < 2; i++)
        sums[i] = opened(c, &c->sums);
    for (int i = 0; i < PARTS; i++)
        parts[i] = opened(c, &c->part);
    size_t cut = 0, left = cuts ? cuts[0] % RECORDS : SIZE_MAX;
    int part = cuts != NULL, held = 0;
    for (size_t i = 0; i < records->n; i++) {
        if (left-- == 0) {
            if (parts[0])
                leave(c, parts, part, &held, cuts[cut] & 0x80);
            part = 1 + part % (PARTS - 1);
            cut = (cut + 1) % CUTS;
            left = cuts[cut] % RECORDS;
        }
        c->add(sums[cut % 2], parts[part], records->each[i], records->size[i]);
    }
    if (part > 0 && parts[0])
        leave(c, parts, part, &held, false);
    char *text = finish(c, sums, parts[0], size);
    for (int i = 0; i < 2; i++)
        c->sums.close(sums[i]);
    for (int i = 0; i < PARTS && parts[0]; i++)
        c->part.close(parts[i]);
    return text;
}

static void compare(const struct counter *c, const struct records *records, const uint8_t cuts[CUTS], bool in_order)
{
    size_t n, m;
    char *whole = count(c, records, NULL, &n), *joined = count(c, records, in_order ? NULL : cuts, &m);
    MUST(n == m && memcmp(whole, joined, n) == 0);
    free(whole);
    free(joined);
}

static void compare_stats(const struct records *records, const uint8_t cuts[CUTS], uint8_t options, sam_hdr_t *sam)
{
    struct stats_settings settings = stats_settings_default();
    struct latch latch = {0};
    settings.command_line = strdup("stats");
    settings.input = "in";
    settings.overlaps = options & 1;
    settings.trim_quality = options & 2 ? 20 : 0;
    settings.split_tag = options & 4 ? "RG" : NULL;
    settings.filtered = options & 8 ? BAM_FDUP : 0;
    settings.gc_bin = options & 16 ? 20 : 20000;
    settings.depth_step = options & 32 ? 3 : 1;
    struct counter c = stats_counter(&settings);
    MUST(settings.command_line && c.begin(&settings, sam, NULL, &latch) == 0);
    compare(&c, records, cuts, c.in_sequence(&settings));
    c.end(&settings);
}

/* Returns whether a CIGAR has more than a million bases: rings and columns grow to that size, for which fuzzing lacks
 * memory. */
static bool is_long(const uint8_t *record)
{
    uint64_t span = 0;
    for (uint32_t i = 0, n = load_le16(record + 16); i < n; i++) {
        uint32_t op = load_le32(record + 36 + record[12] + 4 * i);
        span += op >> 4;
    }
    return span > 1000 * 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sam_hdr_t *sam;
    struct feed f = {data, size};
    struct records records = {.n = 0};
    uint8_t options = feed_byte(&f), cuts[CUTS], record[FUZZ_RECORD_MAX];
    if (!sam)
        sam = fuzz_header();
    feed_copy(&f, cuts, CUTS);
    for (size_t n; records.n < RECORDS && (n = fuzz_record(&f, record)) > 0 && !is_long(record); records.n++) {
        records.each[records.n] = must_alloc(n);
        memcpy(records.each[records.n], record, n);
        records.size[records.n] = (uint32_t)n;
    }
    struct flagstat_settings flagstat = {.format = (enum flagstat_format)(options % 3)};
    struct idxstats_settings idxstats = {.path = "in", .any_order = options & 64, .sam = sam};
    struct coverage_settings coverage = coverage_settings_default();
    coverage.sam = sam;
    coverage.depth = options & 3;
    coverage.min_quality = options & 4 ? 20 : 0;
    struct counter counters[] = {flagstat_counter(&flagstat), idxstats_counter(&idxstats), coverage_counter(&coverage)};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        compare(&counters[i], &records, cuts, false);
    compare_stats(&records, cuts, options, sam);
    for (size_t i = 0; i < records.n; i++)
        free(records.each[i]);
    return 0;
}
