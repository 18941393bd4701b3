/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bam_arena.h"
#include "bam_record.h"
#include "byte_source.h"
#include "checksum_file.h"
#include "latch.h"
#include "out_file.h"
#include "sort_check.h"
#include "sort_key.h"
#include "sort_opts.h"

struct check_record {
    uint8_t *data;
    size_t size, max;
};

struct sort_check {
    const struct sort_opts *opts;
    const char *name;            /* of the input, for messages */
    struct latch latch;
    struct byte_source *in;      /* as records, whatever the input is */
    _Atomic bool far;            /* its own; nobody asks here */
    sam_hdr_t *sam;
    struct sort_rule *rule;
    struct check_record now, before; /* the record just read, and the one that precedes it */
    uint64_t n;                  /* records read */
    uint64_t checksum;           /* of them */
    struct out_file out;         /* of --checksum */
};

static int fail(struct sort_check *c, const char *why)
{
    return latch_fail(&c->latch, "%s: %s", c->name, why);
}

static int open_file(struct sort_check *c)
{
    const struct sort_opts *o = c->opts;
    struct byte_source_options how = {o->in, o->n_threads, o->memory, o->reference, o->in_format.specific, &c->far,
                                      &c->latch, true};
    if (!(c->in = byte_source_open(&how)))
        return -1;
    c->sam = byte_source_header(c->in);
    c->rule = sort_rule_new(&o->order, c->sam);
    return c->rule ? 0 : fail(c, "out of memory");
}

static int offence(struct sort_check *c)
{
    const struct bam_record *now = (const struct bam_record *)c->now.data;
    const struct bam_record *before = (const struct bam_record *)c->before.data;
    return latch_fail(&c->latch, "%s: record %" PRIu64 " (%s) belongs before record %" PRIu64 " (%s)", c->name, c->n,
                      bam_record_name(now), c->n - 1, bam_record_name(before));
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

/* All n bytes, or none at the end. How many; -1: told. */
static ssize_t read_whole(struct sort_check *c, uint8_t *to, size_t n)
{
    size_t done = 0;
    ssize_t got = 1;
    while (done < n && (got = byte_source_read(c->in, to + done, n - done)) > 0)
        done += (size_t)got;
    return got < 0 || (got == 0 && done > 0) ? fail(c, "a record is cut") : (ssize_t)done;
}

/* 1: the next record is there; 0: there is none; -1: told. */
static int read_record(struct sort_check *c)
{
    uint8_t size_field[4];
    struct check_record *r = &c->now;
    ssize_t got = read_whole(c, size_field, sizeof size_field);
    if (got <= 0)
        return (int)got;
    r->size = sizeof size_field + load_le32(size_field);
    if (r->size > r->max) {
        free(r->data);
        r->max = 2 * r->size;
        if (!(r->data = malloc(r->max)))
            return fail(c, "out of memory");
    }
    memcpy(r->data, size_field, sizeof size_field);
    return read_whole(c, r->data + sizeof size_field, r->size - sizeof size_field) > 0 ? 1 : -1;
}

static int check_all(struct sort_check *c)
{
    int status;
    while ((status = read_record(c)) > 0) {
        c->n++;
        if (check_record(c) < 0)
            return -1;
        c->checksum += bam_checksum(c->now.data, c->now.size);
        struct check_record before = c->before;
        c->before = c->now;
        c->now = before;
    }
    return status;
}

static int tell_checksum(struct sort_check *c)
{
    if (!c->opts->checksum)
        return 0;
    return out_file_open(&c->out, c->opts->checksum, &c->latch) < 0
        || checksum_file_write(&c->out, c->n, c->checksum, &c->latch) < 0
        || out_file_commit(&c->out, &c->latch) < 0 ? -1 : 0;
}

int sort_check(const struct sort_opts *opts)
{
    struct sort_check c = {.opts = opts, .name = strcmp(opts->in, "-") == 0 ? "standard input" : opts->in,
                           .out.fd = -1};
    int failed = opts->order.by == SORT_MINHASH
               ? fail(&c, "-M cannot be checked: the sort changes the reads it ranks")
               : open_file(&c) < 0 || check_all(&c) < 0 || tell_checksum(&c) < 0;
    out_file_abandon(&c.out);
    free(c.now.data);
    free(c.before.data);
    sort_rule_free(c.rule);
    sam_hdr_destroy(c.sam);
    byte_source_close(c.in);
    if (!failed)
        return EXIT_SUCCESS;
    fprintf(stderr, "samtools sort --check: %s.\n", c.latch.message);
    return EXIT_FAILURE;
}
