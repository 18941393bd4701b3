/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include "bam_header.h"
#include "bam_index.h"
#include "bgzf_block.h"
#include "bgzf_sink.h"
#include "hts_writer.h"
#include "latch.h"
#include "record_sink.h"
#include "sort_opts.h"

struct record_sink {
    struct bgzf_sink *bgzf;      /* BAM; else NULL ... */
    struct hts_writer *hts;      /* ... and this */
    struct bam_index *index;     /* of BAM; NULL: none */
    uint8_t *header;             /* of BAM: the sink refers to it until it is finished */
    struct latch *latch;
    uint64_t n;
};

struct record_sink *record_sink_open(const struct sort_opts *opts, uint32_t n_slots, int fd, const char *path,
                                     struct latch *latch, struct stats *stats)
{
    struct record_sink *k = calloc(1, sizeof *k);
    if (!k) {
        latch_fail(latch, "out of memory");
        return NULL;
    }
    k->latch = latch;
    if (opts->out.format.format == bam) {
        struct bgzf_sink_options bgzf = {fd, path, opts->out.level, opts->n_threads, n_slots, latch, stats};
        k->bgzf = bgzf_sink_open(&bgzf);
    } else {
        struct hts_writer_options hts = {fd, path, &opts->out.format, opts->out.level, opts->n_threads,
                                         opts->memory, opts->reference, latch};
        k->hts = hts_writer_open(&hts);
    }
    if (k->bgzf || k->hts)
        return k;
    free(k);
    return NULL;
}

void record_sink_close(struct record_sink *k)
{
    if (!k)
        return;
    bgzf_sink_close(k->bgzf);
    hts_writer_close(k->hts);
    bam_index_free(k->index);
    free(k->header);
    free(k);
}

/* Puts bytes that may be longer than a block, cut into segments of BGZF_FILL. */
static int put_long(struct record_sink *k, const uint8_t *data, size_t size, bool is_record)
{
    for (uint32_t segment = 0; size > 0; segment++) {
        uint32_t n = size < BGZF_FILL ? (uint32_t)size : BGZF_FILL;
        if (bgzf_sink_put(k->bgzf, (struct bgzf_piece){data, n, is_record ? segment : BGZF_NO_RECORD}) < 0)
            return -1;
        data += n;
        size -= n;
    }
    return 0;
}

int record_sink_header(struct record_sink *k, sam_hdr_t *sam, const char *index, int index_format)
{
    size_t size;
    if (k->hts)
        return hts_writer_header(k->hts, sam, index);
    if (bam_header_bytes(sam, &k->header, &size) < 0)
        return latch_fail(k->latch, "out of memory for the header");
    if (index) {
        k->index = bam_index_new(sam, index_format, index);
        if (!k->index || bgzf_sink_set_index(k->bgzf, k->index) < 0)
            return latch_fail(k->latch, "out of memory for the index");
    }
    return put_long(k, k->header, size, false) < 0 ? -1 : bgzf_sink_flush(k->bgzf);
}

int record_sink_put(struct record_sink *k, const uint8_t *record, size_t size)
{
    k->n++;
    if (k->hts)
        return hts_writer_put(k->hts, record, size);
    if (size <= BGZF_FILL)
        return bgzf_sink_put(k->bgzf, (struct bgzf_piece){record, (uint32_t)size, 0});
    return bgzf_sink_flush(k->bgzf) < 0 ? -1 : put_long(k, record, size, true);
}

/* htslib's formats copy what they are given. */
uint64_t record_sink_mark(const struct record_sink *k)
{
    return k->hts ? 0 : bgzf_sink_mark(k->bgzf);
}

bool record_sink_passed(const struct record_sink *k, uint64_t mark)
{
    return k->hts || bgzf_sink_passed(k->bgzf, mark);
}

bool record_sink_will_pass(const struct record_sink *k, uint64_t mark)
{
    return k->hts || bgzf_sink_will_pass(k->bgzf, mark);
}

int record_sink_help(struct record_sink *k)
{
    return k->hts ? 0 : bgzf_sink_help(k->bgzf);
}

int record_sink_finish(struct record_sink *k)
{
    if (k->hts)
        return hts_writer_finish(k->hts);
    if (bgzf_sink_finish(k->bgzf) < 0)
        return -1;
    return k->index ? bam_index_save(k->index, k->latch) : 0;
}

uint64_t record_sink_count(const struct record_sink *k)
{
    return k->n;
}

uint64_t record_sink_checksum(const struct record_sink *k)
{
    return k->hts ? hts_writer_checksum(k->hts) : bgzf_sink_checksum(k->bgzf);
}
