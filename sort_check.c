/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bam1_bytes.h"
#include "bam_arena.h"
#include "bam_record.h"
#include "checksum_file.h"
#include "hts_threads.h"
#include "latch.h"
#include "out_file.h"
#include "sort_check.h"
#include "sort_key.h"
#include "sort_opts.h"

struct sort_check {
    const struct sort_opts *opts;
    const char *name;            /* of the input, for messages */
    samFile *file;
    htsThreadPool threads;       /* of it */
    sam_hdr_t *sam;
    struct sort_rule *rule;
    bam1_t *record;
    struct bam1_bytes now, before;   /* the record just read, and the one that precedes it */
    uint64_t n;                  /* records read */
    uint64_t checksum;           /* of them */
    struct out_file out;         /* of --checksum */
};

static int fail(const struct sort_check *c, const char *why)
{
    fprintf(stderr, "samtools sort --check: %s: %s.\n", c->name, why);
    return -1;
}

static int open_file(struct sort_check *c)
{
    const struct sort_opts *o = c->opts;
    c->file = sam_open(o->in, "r");
    if (!c->file)
        return fail(c, "cannot be opened as alignments");
    if ((o->reference && hts_set_fai_filename(c->file, o->reference) < 0)
        || (o->in_format.specific && hts_opt_apply(c->file, o->in_format.specific) < 0))
        return fail(c, "its reference or format options cannot be had");
    if (hts_threads_start(&c->threads, c->file, o->n_threads) < 0)
        return fail(c, "no memory for threads");
    if (!(c->sam = sam_hdr_read(c->file)))
        return fail(c, "the header cannot be read");
    c->record = bam_init1();
    c->rule = sort_rule_new(&o->order, c->sam);
    return c->record && c->rule ? 0 : fail(c, "out of memory");
}

static int offence(const struct sort_check *c)
{
    const struct bam_record *now = (const struct bam_record *)c->now.data;
    const struct bam_record *before = (const struct bam_record *)c->before.data;
    fprintf(stderr, "samtools sort --check: %s: record %" PRIu64 " (%s) belongs before record %" PRIu64
            " (%s).\n", c->name, c->n, bam_record_name(now), c->n - 1, bam_record_name(before));
    return -1;
}

/* Whether the record just read may follow the one before it. */
static int check_record(struct sort_check *c)
{
    const struct bam_record *now = (const struct bam_record *)c->now.data;
    const struct bam_record *before = (const struct bam_record *)c->before.data;
    uint64_t key, key_before;
    enum bam_fault fault = sort_key_make(c->rule, now, &key);
    if (fault)
        return fail(c, bam_fault_text(fault));
    if (c->n == 1)
        return 0;
    sort_key_make(c->rule, before, &key_before);
    if (key != key_before)
        return key > key_before ? 0 : offence(c);
    return sort_key_compare(c->rule, before, now) <= 0 ? 0 : offence(c);
}

static int check_all(struct sort_check *c)
{
    int status;
    while ((status = sam_read1(c->file, c->sam, c->record)) >= 0) {
        struct bam1_bytes before = c->before;
        c->before = c->now;
        c->now = before;
        c->n++;
        if (bam1_bytes_set(&c->now, c->record) < 0)
            return fail(c, "a record does not fit into BAM");
        if (check_record(c) < 0)
            return -1;
        c->checksum += bam_checksum(c->now.data, c->now.size);
    }
    return status == -1 ? 0 : fail(c, "a record cannot be read: the file is broken or truncated");
}

static int tell_checksum(struct sort_check *c)
{
    struct latch latch = {0};
    if (!c->opts->checksum
        || (out_file_open(&c->out, c->opts->checksum, &latch) == 0
            && checksum_file_write(&c->out, c->n, c->checksum, &latch) == 0 && out_file_commit(&c->out, &latch) == 0))
        return 0;
    return fail(c, latch.message);
}

int sort_check(const struct sort_opts *opts)
{
    struct sort_check c = {.opts = opts, .name = strcmp(opts->in, "-") == 0 ? "standard input" : opts->in,
                           .out.fd = -1};
    int failed = opts->order.by == SORT_MINHASH
               ? fail(&c, "-M cannot be checked: the sort changes the reads it ranks")
               : open_file(&c) < 0 || check_all(&c) < 0 || tell_checksum(&c) < 0;
    out_file_abandon(&c.out);
    bam1_bytes_free(&c.now);
    bam1_bytes_free(&c.before);
    bam_destroy1(c.record);
    sort_rule_free(c.rule);
    sam_hdr_destroy(c.sam);
    if (c.file)
        hts_close(c.file);
    hts_threads_end(&c.threads);
    latch_reraise();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
