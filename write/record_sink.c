/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include "bam/bam_header.h"
#include "hts/hts_writer.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/progress.h"
#include "write/output_block.h"
#include "write/output_request.h"
#include "write/record_sink.h"
#include "write/sink_verify.h"
#include "base/clocks.h"

struct record_sink {
    struct output_blocks *blocks;   /* for BAM and SAM; otherwise NULL ... */
    struct bgzf_sink *bgzf;      /* sink of the blocks */
    struct hts_writer *hts;      /* ... and this */
    uint8_t *header;             /* for BAM: the blocks refer to it until they are finished */
    const struct engine *engine;
    struct progress *progress;   /* NULL: not shown */
    double cost;                 /* see record_cost() */
    uint64_t n;
    enum sink_form form;
};

size_t record_sink_memory(enum sink_form form, int n_threads, uint32_t n_slots, int level, size_t piece_size)
{
    return form == SINK_HTSLIB ? hts_writer_batches_memory(n_slots)
         : output_blocks_memory(form, n_threads, n_slots, level, piece_size);
}

/* Returns whether tasks make SAM with these options. With other options htslib makes it. */
static bool are_ours(const hts_opt *options)
{
    while (options && (options->opt == HTS_OPT_COMPRESSION_LEVEL || options->opt == HTS_OPT_NTHREADS))
        options = options->next;
    return !options;
}

enum sink_form record_sink_form(const struct output_request *request)
{
    const htsFormat *format = &request->format;
    if (format->format == bam)
        return SINK_BAM;
    if (format->format != sam || request->index || !are_ours(format->specific))
        return SINK_HTSLIB;
    return format->compression == no_compression ? SINK_SAM : SINK_SAM_GZ;
}

/* CPU time for a byte of records, relative to the time to inflate one from BAM: measured at -@ 1, by level of BAM; only
 * used to estimate the time of writing. */
static double record_cost(const struct output_request *request)
{
    static const double LEVELS[] = {1, 2, 5, 5, 6, 6, 6, 17, 80, 200}, BY_DEFAULT = 6, CRAM = 14, SAM = 1.5;
    int level = request->level;
    if (request->format.format == cram)
        return CRAM;
    if (request->format.format == sam && request->format.compression != bgzf)
        return SAM;
    return level < 0 || level > 9 ? BY_DEFAULT : LEVELS[level];
}

struct record_sink *record_sink_open(const struct output_request *request, const struct memory_rings *rings, int fd,
                                     const char *path, const struct engine *engine)
{
    struct record_sink *k = calloc(1, sizeof *k);
    if (!k) {
        latch_fail(engine->latch, "out of memory");
        return NULL;
    }
    k->engine = engine;
    k->cost = record_cost(request);
    k->form = record_sink_form(request);
    if (k->form != SINK_HTSLIB) {
        struct bgzf_sink_options bgzf = {
            .fd = fd,
            .path = path,
            .form = k->form,
            .level = request->level,
            .n_slots = rings->sink_slots,
            .piece_size = rings->out_piece_size,
            .copies = rings->job.copies,
            .engine = engine,
        };
        k->blocks = output_blocks_open(&bgzf);
    } else {
        k->hts = hts_writer_open(request, rings, fd, path, engine);
    }
    if (k->blocks)
        k->bgzf = output_blocks_sink(k->blocks);
    if (k->blocks || k->hts)
        return k;
    free(k);
    return NULL;
}

void record_sink_close(struct record_sink *k)
{
    if (!k)
        return;
    struct sink_verify *verify = record_sink_how(k)->verify;
    output_blocks_close(k->blocks);
    hts_writer_close(k->hts);
    sink_verify_free(verify);
    free(k->header);
    free(k);
}

static int put_sam_header(struct record_sink *k, sam_hdr_t *sam)
{
    const char *lines = sam_hdr_str(sam);
    if (!lines)
        return latch_fail(k->engine->latch, "out of memory for the header");
    output_blocks_how(k->blocks)->header = sam;
    return output_blocks_put_header(k->blocks, (const uint8_t *)lines, sam_hdr_length(sam));
}

int record_sink_set_index(struct record_sink *k, struct bam_index *index)
{
    if (!index || output_blocks_set_index(k->blocks, index) < 0)
        return latch_fail(k->engine->latch, "out of memory for the index");
    return 0;
}

int record_sink_header(struct record_sink *k, sam_hdr_t *sam, const char *index, bool beyond)
{
    size_t size;
    if (k->hts)
        return hts_writer_header(k->hts, sam, index, beyond);
    if (k->form != SINK_BAM)
        return put_sam_header(k, sam);
    if (bam_header_bytes(sam, &k->header, &size) < 0)
        return latch_fail(k->engine->latch, "out of memory for the header");
    return output_blocks_put_header(k->blocks, k->header, size) < 0 ? -1 : output_blocks_flush(k->blocks);
}

struct record_out_options *record_sink_how(const struct record_sink *k)
{
    return k->hts ? hts_writer_how(k->hts) : output_blocks_how(k->blocks);
}

void record_sink_forget_order(struct record_sink *k)
{
    if (record_sink_how(k)->verify)
        sink_verify_forget_order(record_sink_how(k)->verify);
}

void record_sink_set_progress(struct record_sink *k, struct progress *progress)
{
    k->progress = progress;
    progress->write_cost = k->cost;
}

static int put_hts(struct record_sink *k, const struct record_list *list)
{
    struct sink_verify *verify = hts_writer_how(k->hts)->verify;
    struct verify_ends ends;
    if (verify && (sink_verify_order(verify, list->records, (uint32_t)list->n, &ends) < 0
                   || sink_verify_join(verify, &ends) < 0))
        return -1;
    return hts_writer_put(k->hts, list->records, list->n);
}

/* Returns whether the first record of the list would be read as a header line: a reader of SAM treats lines that begin
 * with @ as header lines until the first other line. */
static bool begins_like_header(const struct record_sink *k, const struct record_list *list)
{
    return k->n == 0 && list->n > 0 && k->form != SINK_BAM && record_sink_how(k)->format == sam
        && *bam_record_name(bam_record_at(list->records[0].data)) == '@';
}

int record_sink_put(struct record_sink *k, const struct record_list *list)
{
    if (begins_like_header(k, list))
        return latch_fail(k->engine->latch, "%s: the name of the first record, %s, begins with @, so no program could "
                          "read the file as SAM. " RECORD_OUT_REMEDY, record_sink_how(k)->path,
                          bam_record_name(bam_record_at(list->records[0].data)));
    enum stage before = clocks_enter(k->engine->clocks, k->blocks ? STAGE_FILL : STAGE_CONVERT);
    int result = k->blocks ? output_blocks_put(k->blocks, list) : put_hts(k, list);
    k->n += list->n;
    clocks_records(k->engine->clocks, list->n);
    clocks_leave(k->engine->clocks, before, 0);
    progress_tick(k->progress);
    return result;
}

uint64_t record_sink_mark(const struct record_sink *k)
{
    return !k ? 0 : k->hts ? hts_writer_mark(k->hts) : bgzf_sink_mark(k->bgzf);
}

bool record_sink_passed(const struct record_sink *k, uint64_t mark)
{
    return !k || (k->hts ? hts_writer_passed(k->hts, mark) : bgzf_sink_passed(k->bgzf, mark));
}

bool record_sink_passed_of(const void *sink, uint64_t mark)
{
    return record_sink_passed(sink, mark);
}

bool record_sink_will_pass(const struct record_sink *k, uint64_t mark)
{
    return !k || (k->hts ? hts_writer_will_pass(k->hts, mark) : bgzf_sink_will_pass(k->bgzf, mark));
}

void record_sink_make_task(struct record_sink *k)
{
    if (k && k->bgzf)
        bgzf_sink_make_task(k->bgzf);
}

int record_sink_help(struct record_sink *k)
{
    return !k ? 0 : k->hts ? hts_writer_help(k->hts) : bgzf_sink_help(k->bgzf);
}

int record_sink_finish(struct record_sink *k)
{
    return k->hts ? hts_writer_finish(k->hts) : output_blocks_finish(k->blocks);
}

uint64_t record_sink_count(const struct record_sink *k)
{
    return k->n;
}

struct copied_count record_sink_copied(const struct record_sink *k)
{
    return k->blocks ? output_blocks_copied(k->blocks) : (struct copied_count){0};
}

uint64_t record_sink_checksum(const struct record_sink *k)
{
    return k->hts ? hts_writer_checksum(k->hts) : output_blocks_checksum(k->blocks);
}
