/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "write/samtools_checksum.h"
#include "write/written.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/out_file.h"
#include "base/message.h"
#include "cli/sort_check.h"
#include "read/record_pass.h"
#include "read/input.h"
#include "order/sort_key.h"
#include "engine/limits.h"
#include "engine/engine_memory.h"
#include "engine/engine_opts.h"
#include "base/task_ring.h"

static const char NO_MEMORY[] = "out of memory for --checksum";

struct sort_check {
    const struct engine_opts *opts;
    struct latch latch;
    struct inputs in;       /* one */
    struct sort_rule *rule;
    struct record_pass pass;
    struct byte_buffer before;   /* the record before, if n is not 0 */
    uint64_t key_before;
    uint64_t n;                  /* records read */
    uint64_t checksum;           /* of them */
    struct samtools_checksum *samtools;   /* of them; NULL: not wanted */
    struct out_file out;         /* of --checksum */
};

/* Sums of the main thread are number 0, those of a slot the numbers above. */
static int sums_of(const struct record_found *found)
{
    return 1 + (int)found->slot;
}

static void add_to_samtools(struct sort_check *c, const struct record_found *found)
{
    samtools_checksum_clear(c->samtools, sums_of(found));
    for (uint64_t i = 0; i < found->n; i++) {
        const struct bam_record *r = record_found_at(found, i);
        if (samtools_checksum_add(c->samtools, sums_of(found), (const uint8_t *)r, bam_record_size(r)) < 0)
            latch_fail(&c->latch, NO_MEMORY);
    }
}

/* The number of the first record that belongs before the one before it; 0: none does. */
static uint64_t look(void *check, const struct record_found *found)
{
    struct sort_check *c = check;
    if (c->samtools)
        add_to_samtools(c, found);
    for (uint64_t i = 1; i < found->n; i++)
        if (!sort_key_in_order(c->rule, found->keys[i - 1].sort, record_found_at(found, i - 1), found->keys[i].sort,
                               record_found_at(found, i)))
            return i;
    return 0;
}

/* `at` belongs before the record before it, which is number n. */
static int tell_offence(struct sort_check *c, const struct bam_record *at, const struct bam_record *before, uint64_t n)
{
    return latch_fail(&c->latch, "%s: record %" PRIu64 " (%s) belongs before record %" PRIu64 " (%s)",
                      engine_opts_input(c->opts), n + 1, bam_record_name(at), n, bam_record_name(before));
}

static int take_records(void *check, const struct record_found *found)
{
    struct sort_check *c = check;
    const struct bam_record *first = record_found_at(found, 0), *last = record_found_at(found, found->n - 1);
    const struct bam_record *before = (const struct bam_record *)c->before.p;
    if (c->n > 0 && !sort_key_in_order(c->rule, c->key_before, before, found->keys[0].sort, first))
        return tell_offence(c, first, before, c->n);
    if (found->seen)
        return tell_offence(c, record_found_at(found, found->seen), record_found_at(found, found->seen - 1),
                            c->n + found->seen);
    c->n += found->n;
    c->checksum += found->checksum;
    c->key_before = found->keys[found->n - 1].sort;
    c->before.n = 0;
    if (byte_buffer_append(&c->before, last, bam_record_size(last)) < 0)
        return latch_fail(&c->latch, "out of memory for a record of %zu bytes", bam_record_size(last));
    if (c->samtools && samtools_checksum_join(c->samtools, sums_of(found)) < 0)
        return latch_fail(&c->latch, NO_MEMORY);
    return 0;
}

static int open_all(struct sort_check *c)
{
    const struct engine_opts *opts = c->opts;
    if (opts->order.by == SORT_MINHASH)
        return latch_fail(&c->latch, "-M cannot be checked: the sort changes the reads it ranks");
    struct inputs_options how = engine_memory_pass(opts, &c->latch);
    if (inputs_open(&c->in, &how) < 0)
        return -1;
    sam_hdr_t *sam = c->in.each->header.sam;
    c->rule = sort_rule_new(&opts->order, sam);
    if (!c->rule)
        return latch_fail(&c->latch, "out of memory");
    if (opts->order.by == SORT_COORDINATE && c->in.n_converted)
        sort_rule_expect_far(c->rule);
    struct record_pass_options pass = {
        .input = c->in.each, .rule = c->rule, .look = look, .next = take_records, .arg = c, .latch = &c->latch};
    if (record_pass_open(&c->pass, &pass) < 0)
        return -1;
    if (opts->out.checksum_samtools && !(c->samtools = samtools_checksum_new(2 + (int)c->pass.n_slots)))
        return latch_fail(&c->latch, NO_MEMORY);
    return 0;
}

static int tell_checksum(struct sort_check *c)
{
    if (!c->opts->out.checksum)
        return 0;
    return out_file_open(&c->out, c->opts->out.checksum, &c->latch) < 0
        || (c->samtools ? written_samtools(&c->out, c->samtools, c->opts->in.paths[0], &c->latch)
            : written_checksum(&c->out, (struct tally){c->n, c->checksum}, &c->latch)) < 0
        || out_file_finish(&c->out, &c->latch) < 0 || out_file_commit(&c->out, &c->latch) < 0
          ? -1 : 0;
}

static void in_team(void *check)
{
    record_pass_run(&((struct sort_check *)check)->pass);
}

int sort_check(const struct engine_opts *opts)
{
    struct sort_check c = {.opts = opts, .out.fd = -1};
    machine_share_heaps();
    if (open_all(&c) == 0) {
        task_team(limits_threads(opts, c.in.n_converted), in_team, &c);
        if (!latch_tripped(&c.latch))
            tell_checksum(&c);
    }
    out_file_abandon(&c.out);
    record_pass_close(&c.pass);
    sort_rule_free(c.rule);
    inputs_close(&c.in);
    samtools_checksum_free(c.samtools);
    free(c.before.p);
    latch_reraise();
    if (!latch_tripped(&c.latch))
        return EXIT_SUCCESS;
    message_error("%s.", c.latch.message);
    return EXIT_FAILURE;
}
