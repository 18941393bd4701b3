/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "bam/record_checksum.h"
#include "bam/bam_record.h"
#include "codec/bgzf_block.h"
#include "bgzf_source.h"
#include "base/byte_buffer.h"
#include "write/samtools_checksum.h"
#include "write/sort_files.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/out_file.h"
#include "base/message.h"
#include "cli/sort_check.h"
#include "read/sort_input.h"
#include "order/sort_key.h"
#include "plan/memory_plan.h"
#include "plan/sort_limits.h"
#include "plan/sort_opts.h"
#include "base/task_ring.h"

enum {
    SLOTS_MIN = 8, SLOTS_PER_THREAD = 4,         /* blocks inflated ahead: each has 64 KiB */
    PIECE = 256 << 10,                           /* bytes per read */
    HEADER_LEAST = 1 << 30,                      /* bytes of a header that are taken with any -m */
};

struct sort_check {
    const struct sort_opts *opts;
    struct latch latch;
    struct sort_inputs in;       /* one */
    struct sort_rule *rule;
    int32_t n_ref;
    uint8_t *ring;               /* blocks, on their way */
    uint32_t n_slots;
    uint64_t n_blocks;           /* handed out */
    struct byte_buffer cut;      /* the record that a block has ended in, as far as it came */
    struct byte_buffer kept;     /* the last record of the block before */
    const uint8_t *before;       /* the record before: in a block, cut or kept; NULL: this is the first */
    uint64_t key_before;
    uint64_t n;                  /* records read */
    uint64_t checksum;           /* of them */
    struct samtools_checksum *samtools;   /* of them; NULL: not wanted */
    struct out_file out;         /* of --checksum */
};

static int append(struct sort_check *c, struct byte_buffer *to, const uint8_t *bytes, size_t n)
{
    if (byte_buffer_reserve(to, to->n + n) < 0)
        return latch_fail(&c->latch, "out of memory for a record of %zu bytes", to->n + n);
    if (n)
        memcpy(to->p + to->n, bytes, n);
    to->n += n;
    return 0;
}

/* ----------------------------------------------------------------- records */

/* Checks the record at `at` and whether it may follow the one before it. Afterwards it is the record before, and stays
 * where it is until the next block. Returns its size in the block; 0 if it is not whole; -1: failed, and the error is
 * recorded in the latch. */
static ssize_t take_record(struct sort_check *c, uint8_t *at, size_t avail)
{
    struct bam_verdict verdict = bam_record_check(at, avail, c->n_ref);
    struct bam_record *now = (struct bam_record *)at;
    uint64_t key;
    if (verdict.fault == BAM_CUT)
        return 0;
    size_t size = bam_record_size(now);          /* before it may become shorter */
    c->n++;
    if (!verdict.fault && verdict.needs_fix && bam_record_fix(now) < 0)
        return latch_fail(&c->latch, "out of memory");
    enum bam_fault fault = verdict.fault ? verdict.fault : sort_key_make(c->rule, now, &key);
    if (fault >= BAM_NO_MC)                      /* the record is sound, so it has a name */
        return latch_fail(&c->latch, "%s: record %" PRIu64 " (%s): %s", sort_opts_input(c->opts), c->n,
                          bam_record_name(now), bam_fault_text(fault));
    if (fault)
        return latch_fail(&c->latch, "%s: record %" PRIu64 ": %s", sort_opts_input(c->opts), c->n,
                          bam_fault_text(fault));
    if (c->before && !sort_key_in_order(c->rule, c->key_before, (const struct bam_record *)c->before, key, now))
        return latch_fail(&c->latch, "%s: record %" PRIu64 " (%s) belongs before record %" PRIu64 " (%s)",
                          sort_opts_input(c->opts), c->n, bam_record_name(now), c->n - 1,
                          bam_record_name((const struct bam_record *)c->before));
    c->checksum += record_checksum(at, bam_record_size(now));
    if (c->samtools && samtools_checksum_add(c->samtools, 0, at, bam_record_size(now)) < 0)
        return latch_fail(&c->latch, "out of memory for --checksum");
    c->before = at;
    c->key_before = key;
    return (ssize_t)size;
}

/* Bytes that the record begun in `cut` still lacks; its fixed fields come first. */
static size_t lacking(const struct sort_check *c)
{
    size_t whole = c->cut.n < BAM_FIXED ? BAM_FIXED : bam_record_size((const struct bam_record *)c->cut.p);
    return whole > c->cut.n ? whole - c->cut.n : 0;
}

/* Goes on with the record in `cut`. Returns how many bytes of the block it used, or -1: failed, and the error is
 * recorded in the latch. */
static ssize_t complete(struct sort_check *c, const uint8_t *block, size_t size)
{
    size_t used = 0;
    while (lacking(c) > 0 && used < size) {
        size_t part = lacking(c) < size - used ? lacking(c) : size - used;
        if (append(c, &c->cut, block + used, part) < 0)
            return -1;
        used += part;
    }
    ssize_t whole = take_record(c, c->cut.p, c->cut.n);
    if (whole > 0)
        c->cut.n = 0;
    return whole < 0 ? -1 : (ssize_t)used;
}

/* Keeps what is still of use in the block, whose place is needed for another one. */
static int keep(struct sort_check *c, const uint8_t *rest, size_t size)
{
    if (c->before && c->before != c->kept.p) {
        c->kept.n = 0;
        if (append(c, &c->kept, c->before, bam_record_size((const struct bam_record *)c->before)) < 0)
            return -1;
        c->before = c->kept.p;
    }
    return append(c, &c->cut, rest, size);
}

/* The next bytes of the stream of records. */
static int check_bytes(struct sort_check *c, uint8_t *data, size_t size)
{
    uint8_t *at = data, *end = data + size;
    ssize_t used = c->cut.n ? complete(c, data, size) : 0;
    while (used >= 0 && (at += used) < end && (used = take_record(c, at, (size_t)(end - at))) > 0)
        ;
    return used < 0 ? -1 : keep(c, at, (size_t)(end - at));
}

/* ------------------------------------------------------------------ blocks */

static int take_block(struct sort_check *c, int wait)
{
    struct bgzf_source_block block;
    int taken = bgzf_source_take(c->in.each->source, wait, &block);
    return taken > 0 && check_bytes(c, block.data, block.size) < 0 ? -1 : taken;
}

static int check_all(struct sort_check *c)
{
    struct bgzf_source *source = c->in.each->source;
    uint32_t size;
    int taken = check_bytes(c, c->in.each->header.rest, c->in.each->header.rest_size);
    while (taken >= 0 && bgzf_source_peek(source, &size) > 0) {
        if (bgzf_source_ring_full(source) && take_block(c, 1) < 0)
            return -1;
        bgzf_source_hand_out(source, c->ring + c->n_blocks++ % c->n_slots * BGZF_MAX_BLOCK);
        while ((taken = take_block(c, 0)) > 0)
            ;
    }
    while (taken >= 0 && (taken = take_block(c, 1)) > 0)
        ;
    if (taken < 0 || latch_tripped(&c->latch))
        return -1;
    if (c->cut.n)
        return latch_fail(&c->latch, "%s: the file ends inside record %" PRIu64 ": it is truncated",
                          sort_opts_input(c->opts), c->n + 1);
    bgzf_source_warn_of_end(source);
    return 0;
}

/* Few blocks, for no record stays; for SAM and CRAM what a sort would give them. */
static struct memory_rings plan_rings(const struct sort_opts *opts, uint32_t n_slots)
{
    struct memory_job job = {
        .all = sort_limits_memory(opts),
        .n_threads = opts->n_threads,
        .n_inputs = 1,
        .found = BGZF_MAX_BLOCK,
        .thread_space = sort_limits_thread_space(),
    };
    struct memory_rings rings = memory_plan_rings(&job);
    rings.source_slots = n_slots;
    rings.piece_size = PIECE;
    return rings;
}

static int open_all(struct sort_check *c)
{
    const struct sort_opts *opts = c->opts;
    if (opts->order.by == SORT_MINHASH)
        return latch_fail(&c->latch, "-M cannot be checked: the sort changes the reads it ranks");
    c->n_slots = SLOTS_MIN + SLOTS_PER_THREAD * (uint32_t)opts->n_threads;
    struct sort_inputs_options how = {
        .request = &opts->in,
        .rings = plan_rings(opts, c->n_slots),
        .header_max = opts->memory > HEADER_LEAST ? opts->memory : HEADER_LEAST,
        .far = true,
        .latch = &c->latch,
    };
    if (sort_inputs_open(&c->in, &how) < 0)
        return -1;
    sam_hdr_t *sam = c->in.each->header.sam;
    c->n_ref = sam_hdr_nref(sam);
    c->rule = sort_rule_new(&opts->order, sam);
    c->ring = malloc((size_t)c->n_slots * BGZF_MAX_BLOCK);
    c->samtools = opts->out.checksum_samtools ? samtools_checksum_new(1) : NULL;
    if (!c->rule || !c->ring || (opts->out.checksum_samtools && !c->samtools))
        return latch_fail(&c->latch, "out of memory");
    if (opts->order.by == SORT_COORDINATE && c->in.n_converted)
        sort_rule_expect_far(c->rule);
    return 0;
}

static int tell_checksum(struct sort_check *c)
{
    if (!c->opts->out.checksum)
        return 0;
    return out_file_open(&c->out, c->opts->out.checksum, &c->latch) < 0
        || (c->samtools ? sort_files_samtools(&c->out, c->samtools, c->opts->in.paths[0], &c->latch)
            : sort_files_checksum(&c->out, c->n, c->checksum, &c->latch)) < 0
        || out_file_finish(&c->out, &c->latch) < 0 || out_file_commit(&c->out, &c->latch) < 0
          ? -1 : 0;
}

static void in_team(void *check)
{
    check_all(check);
}

int sort_check(const struct sort_opts *opts)
{
    struct sort_check c = {.opts = opts, .out.fd = -1};
    machine_share_heaps();
    if (open_all(&c) == 0) {
        task_team(sort_limits_threads(opts, c.in.n_converted), in_team, &c);
        if (!latch_tripped(&c.latch))
            tell_checksum(&c);
    }
    out_file_abandon(&c.out);
    sort_rule_free(c.rule);
    sort_inputs_close(&c.in);
    free(c.ring);
    samtools_checksum_free(c.samtools);
    free(c.cut.p);
    free(c.kept.p);
    latch_reraise();
    if (!latch_tripped(&c.latch))
        return EXIT_SUCCESS;
    message_error("%s.", c.latch.message);
    return EXIT_FAILURE;
}
