/* SPDX-License-Identifier: MIT */
/* Records for markdup's core: three shards find the same duplicates as one, and every record that has lost has an
 * original.
 *
 *   mode, options | window | distance | records */
#include "fuzz.h"
#include "test/dup_driver.h"

enum { RECORDS = 24 };

/* A record after the previous one: its start is not lower on the same reference. */
static void take(struct dup_record *r, const struct dup_record *last, const struct bam_record *bytes)
{
    r->name = bam_record_name(bytes);
    r->ref = bam_record_ref_id(bytes);
    r->ends_all = r->ref == -1 && r->read.start == -1;
    if (last && last->ref == r->ref && r->read.start < last->read.start)
        r->read.start = last->read.start;
}

static size_t read_all(struct feed *f, const struct dup_rule *rule, struct dup_record *records,
                       uint8_t (*bytes)[FUZZ_RECORD_MAX])
{
    size_t n = 0;
    while (n < RECORDS && fuzz_record(f, bytes[n]) > 0) {
        const struct bam_record *r = (const struct bam_record *)bytes[n];
        enum bam_fault fault = dup_key_make(rule, r, &records[n].read);
        MUST(!fault || fault == BAM_NO_MC || fault == BAM_BAD_MC);
        MUST(records[n].read.score >= 0 && records[n].read.score <= 255 * (int64_t)load_le32(r->seq_len));
        if (!fault) {
            take(&records[n], n > 0 ? &records[n - 1] : NULL, r);
            n++;
        }
    }
    return n;
}

static void compare(const struct dup_record *a, const struct dup_record *b, const struct dup_chains_opt *opt)
{
    MUST(a->lost == b->lost && a->type == b->type && a->count == b->count);
    MUST(!a->original == !b->original && (!a->original || strcmp(a->original, b->original) == 0));
    MUST(!a->lost || !opt->names || a->original);
    MUST(!a->lost || !opt->distance || a->type != DUP_TYPE_UNKNOWN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[RECORDS][FUZZ_RECORD_MAX];
    static struct dup_record records[RECORDS], again[RECORDS];
    struct feed f = {data, size};
    unsigned wanted = feed_byte(&f);
    struct dup_coords_rule colons = {.by_regex = false};
    struct dup_counts counts[2] = {{.read = 0}, {.read = 0}};
    struct dup_rule rule = {.mode = wanted & 1 ? DUP_BY_SEQUENCE : DUP_BY_TEMPLATE, .include_fails = wanted & 2};
    if (wanted & 4)
        memcpy(rule.barcode_tag, "BX", 2);
    struct dup_driver d = {.records = records, .shards = 1, .window = feed_byte(&f) * 4, .counts = &counts[0],
                           .opt = {.names = wanted & 8, .counts = wanted & 16, .pass = wanted & 32,
                                   .distance = feed_byte(&f), .coords_rule = &colons}};
    d.n = read_all(&f, &rule, records, bytes);
    memcpy(again, records, sizeof again);
    struct dup_driver e = d;
    e.records = again;
    e.shards = 3;
    e.away = true;
    e.counts = &counts[1];
    enum dup_fault fault = driver_run(&d);
    MUST(!fault || fault == DUP_NO_MATE_SCORE);
    MUST(driver_run(&e) == fault);
    for (size_t i = 0; i < d.n && !fault; i++)
        compare(&records[i], &again[i], &d.opt);
    MUST(fault || memcmp(&counts[0], &counts[1], sizeof counts[0]) == 0);
    driver_free(&d);
    driver_free(&e);
    return 0;
}
