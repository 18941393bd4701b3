/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hts/bam_index.h"
#include "bam/bam_record.h"
#include "bam/long_pos.h"
#include "base/byte_buffer.h"
#include "base/latch.h"

enum {
    MIN_SHIFT = 14, BAI_LEVELS = 5,              /* values of BAI (SAMv1 section 5.1.1), and the default of CSI */
    CSI_SLACK = 256,                             /* bases that htslib adds to the longest reference */
};

struct bam_index {
    sam_hdr_t *sam;
    int format;
    const char *path;            /* NULL: only the log is used */
    hts_idx_t *idx;              /* made with the first block of records */
    uint64_t end;                /* virtual offset after the last record */
    int64_t begin;               /* where the last record begins */
    int32_t ref_id;              /* reference of the last record; -1 before the first one */
    struct byte_buffer log;
};

const char *bam_index_beyond_bai(sam_hdr_t *sam)
{
    return long_pos_reference(sam, sam_hdr_nref(sam), (int64_t)1 << (MIN_SHIFT + 3 * BAI_LEVELS));
}

/* Measured with htslib 1.16: one read in each of the smallest bins of 3.2 Gb took 91 bytes for each bin. */
uint64_t bam_index_memory(sam_hdr_t *sam)
{
    enum { BIN = 96 };
    uint64_t bins = 0;
    for (int i = 0; i < sam_hdr_nref(sam); i++)
        bins += ((uint64_t)sam_hdr_tid2len(sam, i) >> MIN_SHIFT) + 1;
    return bins * BIN;
}

static int levels(const struct bam_index *index)
{
    int n = 0;
    int64_t longest = long_pos_longest(index->sam);
    if (index->format == HTS_FMT_BAI)
        return BAI_LEVELS;
    for (int64_t span = (int64_t)1 << MIN_SHIFT; span < longest + CSI_SLACK; span <<= 3)
        n++;
    return n;
}

struct bam_index *bam_index_new(sam_hdr_t *sam, int format, const char *path)
{
    struct bam_index *index = calloc(1, sizeof *index);
    if (index)
        *index = (struct bam_index){.sam = sam, .format = format, .path = path, .ref_id = -1};
    return index;
}

sam_hdr_t *bam_index_header(const struct bam_index *index)
{
    return index->sam;
}

const struct byte_buffer *bam_index_log(const struct bam_index *index)
{
    return &index->log;
}

static int log_block(struct byte_buffer *log, const struct bam_index_block *block,
                     const struct bam_index_entry *entries)
{
    size_t size = block->n * sizeof *entries;
    if (byte_buffer_reserve(log, log->n + sizeof *block + size) < 0)
        return -1;
    memcpy(log->p + log->n, block, sizeof *block);
    memcpy(log->p + log->n + sizeof *block, entries, size);
    log->n += sizeof *block + size;
    return 0;
}

void bam_index_free(struct bam_index *index)
{
    if (!index)
        return;
    free(index->log.p);
    hts_idx_destroy(index->idx);
    free(index);
}

bool bam_index_takes(const struct bam_index *index, const uint8_t *record, size_t size)
{
    return bam_record_fits(bam_record_at(record), size)
        && !bam_record_check(record, size, sam_hdr_nref(index->sam)).fault;
}

struct bam_index_entry bam_index_entry(const uint8_t *record, uint32_t after)
{
    const struct bam_record *r = bam_record_at(record);
    int64_t begin = bam_record_pos(r);
    return (struct bam_index_entry){begin, begin + bam_record_ref_span(r), bam_record_ref_id(r), after,
                                    !(bam_record_flag(r) & BAM_FUNMAP)};
}

static int start(struct bam_index *index, uint64_t offset)
{
    index->end = offset << 16;
    index->idx = hts_idx_init(sam_hdr_nref(index->sam), index->format, index->end, MIN_SHIFT, levels(index));
    return index->idx ? 0 : -1;
}

/* htslib would refuse such a record with an error line of its own. */
static bool is_before_last(const struct bam_index *index, const struct bam_index_entry *e)
{
    return e->ref_id >= 0 && e->ref_id == index->ref_id && e->begin < index->begin;
}

uint32_t bam_index_add(struct bam_index *index, uint64_t offset, uint32_t size, uint64_t next,
                       const struct bam_index_entry *entries, uint32_t n)
{
    struct bam_index_block block = {offset, next, size, n};
    if (!index->path)
        return log_block(&index->log, &block, entries) < 0 ? 0 : n;
    if (!index->idx && start(index, offset) < 0)
        return 0;
    errno = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct bam_index_entry *e = &entries[i];
        if (is_before_last(index, e))
            return i;
        /* A reader that has used up a block is at the start of the next one. */
        index->end = e->after < size ? offset << 16 | e->after : next << 16;
        if (hts_idx_push(index->idx, e->ref_id, e->begin, e->end, index->end, e->mapped) < 0)
            return i;
        index->ref_id = e->ref_id;
        index->begin = e->begin;
    }
    return n;
}

/* ERANGE: the record ends after the longest reference, for which an index has room. */
int bam_index_refuse(sam_hdr_t *sam, const struct bam_index_entry *e, const char *name, const char *path,
                     struct latch *latch)
{
    const char *shown = name ? name : "(of unknown name)";
    if (errno == ERANGE)
        return latch_fail(latch, "%s: record %s reaches to base %lld of %s, which has %lld bases by its @SQ line, and "
                                 "the index has no room for that. Check that the header is that of these reads, or "
                                 "write no index",
                          path, shown, (long long)e->end, sam_hdr_tid2name(sam, e->ref_id),
                          (long long)sam_hdr_tid2len(sam, e->ref_id));
    if (errno == ENOMEM)
        return latch_fail(latch, "%s: out of memory for the index", path);
    return latch_fail(latch, "%s: record %s is not in coordinate order, so there can be no index. Sort the input "
                      "first, or write no index", path, shown);
}

int bam_index_save(struct bam_index *index, struct latch *latch)
{
    if (!index->idx && start(index, 0) < 0)
        return latch_fail(latch, "out of memory for the index");
    if (hts_idx_finish(index->idx, index->end) < 0
        || hts_idx_save_as(index->idx, NULL, index->path, index->format) < 0)
        return latch_fail(latch, "writing the index failed: %s", strerror(errno));
    return 0;
}
