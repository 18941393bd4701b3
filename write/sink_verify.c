/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <libdeflate.h>
#include "bam/bam_record.h"
#include "codec/bgzf_block.h"
#include "base/endian_io.h"
#include "base/latch.h"
#include "write/sink_verify.h"
#include "order/sort_key.h"

/* Size of the longest record that is kept for comparison with the next block's first record; it bounds the memory. For
 * a longer record only the key is compared. */
enum { LONGEST_KEPT = BGZF_FILL };

struct verify_thread {
    struct libdeflate_decompressor *inflate;
    uint8_t *inflated;           /* BGZF_MAX_BLOCK bytes */
};

struct sink_verify {
    int n_threads;
    const struct sort_rule *rule;
    const char *path;
    struct latch *latch;
    struct verify_thread *threads;   /* one per thread, used by that thread only */
    struct verify_end last;      /* end of the block before; its record is `kept`, or NULL if it is too long. Used by
                                  * the thread that joins */
    uint8_t *kept;               /* copy of that record, LONGEST_KEPT bytes at most */
    atomic_bool is_unordered;    /* the main thread sets it before it puts unordered records */
};

static int alloc_all(struct sink_verify *v)
{
    int n = v->n_threads;
    v->kept = malloc(LONGEST_KEPT);
    v->threads = calloc((size_t)n + 1, sizeof *v->threads);
    if (!v->kept || !v->threads)
        return -1;
    for (int i = 0; i < n; i++) {
        v->threads[i].inflate = libdeflate_alloc_decompressor();
        v->threads[i].inflated = malloc(BGZF_MAX_BLOCK);
        if (!v->threads[i].inflate || !v->threads[i].inflated)
            return -1;
    }
    return 0;
}

struct sink_verify *sink_verify_new(int n_threads, const struct sort_rule *rule, const char *path, struct latch *latch)
{
    struct sink_verify *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    *v = (struct sink_verify){.n_threads = n_threads, .rule = rule, .path = path, .latch = latch};
    if (alloc_all(v) == 0)
        return v;
    sink_verify_free(v);
    return NULL;
}

void sink_verify_free(struct sink_verify *v)
{
    if (!v)
        return;
    for (int i = 0; v->threads && i < v->n_threads; i++) {
        if (v->threads[i].inflate)
            libdeflate_free_decompressor(v->threads[i].inflate);
        free(v->threads[i].inflated);
    }
    free(v->threads);
    free(v->kept);
    free(v);
}

size_t sink_verify_memory(int n_threads)
{
    enum { INFLATE = 16 << 10 };                 /* measured and rounded up, because libdeflate does not report it */
    return LONGEST_KEPT + (size_t)n_threads * (INFLATE + BGZF_MAX_BLOCK);
}

static int gives_back(const struct verify_thread *t, const uint8_t *block, uint32_t length, const uint8_t *data,
                      uint32_t n)
{
    struct bgzf_frame frame;
    if (bgzf_block_frame(block, length, &frame) != BGZF_OK || frame.size != length || frame.inflated_size != n)
        return 0;
    const uint8_t *footer = block + length - BGZF_FOOTER;
    return libdeflate_deflate_decompress(t->inflate, block + frame.data_offset,
                                         length - frame.data_offset - BGZF_FOOTER, t->inflated, n, NULL)
               == LIBDEFLATE_SUCCESS
        && memcmp(t->inflated, data, n) == 0 && libdeflate_crc32(0, t->inflated, n) == load_le32(footer);
}

int sink_verify_block(struct sink_verify *v, int thread, const uint8_t *block, uint32_t length,
                      const uint8_t *data, uint32_t n)
{
    if (gives_back(&v->threads[thread], block, length, data, n))
        return 0;
    return latch_fail(v->latch, "--verify: a block of %u bytes for %s does not inflate to its original data. "
                      "Memory or processor may be faulty, or this is our bug: please report it", n, v->path);
}

const uint8_t *sink_verify_inflated(const struct sink_verify *v, int thread)
{
    return v->threads[thread].inflated;
}

/* If the record before was not kept, only the keys are compared. */
static int may_follow(const struct sort_rule *rule, const struct verify_end *before, const struct verify_end *now)
{
    if (!before->record)
        return before->key <= now->key;
    return sort_key_in_order(rule, before->key, bam_record_at(before->record), now->key, bam_record_at(now->record));
}

static int offence(const struct sink_verify *v, const struct verify_end *now)
{
    return latch_fail(v->latch, "--verify: the output %s is out of order: record %s belongs before the preceding "
                      "record. Memory may be faulty, or this is our bug: please report it", v->path,
                      bam_record_name(bam_record_at(now->record)));
}

void sink_verify_forget_order(struct sink_verify *v)
{
    atomic_store_explicit(&v->is_unordered, true, memory_order_relaxed);
}

int sink_verify_order(const struct sink_verify *v, const struct record_ref *records, uint32_t n,
                      struct verify_ends *ends)
{
    *ends = (struct verify_ends){0};
    if (!v->rule || atomic_load_explicit(&v->is_unordered, memory_order_relaxed))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        struct verify_end now = {records[i].data, 0};
        if (records[i].segment != 0)
            continue;
        /* This cannot fail: the key was made before. */
        sort_key_make(v->rule, bam_record_at(now.record), &now.key);
        if (!ends->first.record)
            ends->first = now;
        else if (!may_follow(v->rule, &ends->last, &now))
            return offence(v, &now);
        ends->last = now;
    }
    return 0;
}

int sink_verify_join(struct sink_verify *v, const struct verify_ends *ends)
{
    if (!ends->first.record)
        return 0;
    if (!may_follow(v->rule, &v->last, &ends->first))
        return offence(v, &ends->first);
    size_t size = bam_record_size(bam_record_at(ends->last.record));
    v->last = (struct verify_end){size <= LONGEST_KEPT ? v->kept : NULL, ends->last.key};
    if (size <= LONGEST_KEPT)
        memcpy(v->kept, ends->last.record, size);
    return 0;
}
