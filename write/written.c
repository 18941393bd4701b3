/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bam/bam_header.h"
#include "codec/bgzf_block.h"
#include "hts/bam_index.h"
#include "hts/hts_file.h"
#include "bam/long_pos.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/message.h"
#include "base/record_stream.h"
#include "write/out_text.h"
#include "write/output_request.h"
#include "write/record_list.h"
#include "write/record_sink.h"
#include "write/samtools_checksum.h"
#include "write/sink_verify.h"
#include "write/written.h"
#include "base/version.h"
#include "stats/counts.h"
#include "stats/join_tree.h"

/* ---------------------------------------------------------- before reading */

static int open_file(struct out_file *file, const char *path, struct latch *latch)
{
    return path ? out_file_open(file, path, latch) : 0;
}

/* Refuses to write binary data to a terminal, as gzip does. The data would appear on the screen, or be changed on their
 * way through the terminal (docker -t). */
static int check_terminal(const struct written *f)
{
    const htsFormat *format = &f->request->format;
    bool is_text = format->format != bam && format->format != cram && format->compression == no_compression;
    if (is_text || !isatty(f->data.fd))
        return 0;
    return latch_fail(f->engine->latch, "%s is a terminal, and the output is binary. Use -o FILE, or | and another "
                      "program; -O sam is text. Nothing was read", f->data.path);
}

static int open_data(struct written *f, const struct memory_rings *rings)
{
    if (out_file_open(&f->data, f->request->path, f->engine->latch) < 0 || check_terminal(f) < 0)
        return -1;
    f->sink = record_sink_open(f->request, rings, f->data.fd, f->data.path, f->engine);
    return f->sink ? 0 : -1;
}

void written_begin(struct written *f, const struct output_request *request, const struct engine *engine)
{
    *f = (struct written){.request = request, .engine = engine, .data.fd = -1, .index.fd = -1, .checksum.fd = -1};
    for (size_t i = 0; i < COUNTERS; i++)
        f->counted[i].fd = -1;
}

int written_open(struct written *f, const struct memory_rings *rings, const char *input)
{
    const struct output_request *request = f->request;
    struct latch *latch = f->engine->latch;
    f->input = input;
    f->n_slots = rings->sink_slots;
    if (open_data(f, rings) < 0 || open_file(&f->checksum, request->checksum, latch) < 0)
        return -1;
    for (size_t i = 0; i < request->n_counters; i++)
        if (open_file(&f->counted[i], request->counted[i], latch) < 0)
            return -1;
    return 0;
}

bool written_takes_reference(const htsFormat *format)
{
    const hts_opt *option = format->specific;
    while (option && (option->opt != CRAM_OPT_NO_REF || !option->val.i))
        option = option->next;
    return format->format == cram && !option;
}

/* Returns the memory of the output. htslib keeps complete sequences of CRAM references, and at times two of them for
 * sorted records. References may be much longer than expected, so they get a third of all memory at most. */
struct output_use written_use(const struct output_request *request, sam_hdr_t *sam, const struct memory_rings *rings)
{
    const htsFormat *format = &request->format;
    bool is_cram = format->format == cram;
    int n = rings->job.n_threads;
    return (struct output_use){
        .htslib = rings->job.form == SINK_HTSLIB ? hts_file_use(is_cram, true, &rings->writer, n).bytes : 0,
        .is_cram = is_cram,
        .overhead = (request->verify ? sink_verify_memory(n) : 0)
                + (request->checksum_samtools ? samtools_checksum_memory(n, sam) : 0)
                + counts_memory(request->counters, request->n_counters, sam, n, rings->sink_slots, BGZF_MAX_BLOCK)
                + (request->n_counters > 0 ? join_tree_memory(rings->sink_slots) : 0),
        .references = written_takes_reference(format) ? 2 * (uint64_t)long_pos_longest(sam)
                    : request->index && !is_cram ? bam_index_memory(sam) : 0,
    };
}

/* Opens the file for the index. Refuses a reference that is too long for BAI before the sort. samtools would fail after
 * the sort, at the first read beyond 2^29. */
static int open_index(struct written *f, sam_hdr_t *sam)
{
    const char *path = f->request->index;
    const char *far = path && f->request->index_format == HTS_FMT_BAI ? bam_index_beyond_bai(sam) : NULL;
    if (far)
        return latch_fail(f->engine->latch, "%s: reference %s is longer than 2^29, which BAI cannot hold; make a CSI "
                          "index, with --write-index=csi or ##idx##NAME.csi. Nothing was read", path, far);
    return open_file(&f->index, path, f->engine->latch);
}

static int open_verify(struct written *f, const struct sort_rule *rule)
{
    enum sink_form form = record_sink_form(f->request);
    int n = form == SINK_BAM || form == SINK_SAM_GZ ? f->engine->n_threads : 0;
    if (!(record_sink_how(f->sink)->verify = sink_verify_new(n, rule, f->data.path, f->engine->latch)))
        return latch_fail(f->engine->latch, "out of memory for --verify");
    return 0;
}

/* Checks the references of the header only, as samtools does. */
static int check_references(const struct written *f, sam_hdr_t *sam, int n_held)
{
    const char *far = long_pos_fits(&f->request->format) ? NULL : long_pos_reference(sam, n_held, INT32_MAX);
    if (!far)
        return 0;
    return latch_fail(f->engine->latch, "%s: reference %s is longer than 2^31-1 and does not fit into BAM or CRAM; "
                      "use -O sam. Nothing was read", f->input, far);
}

/* Checks the size of the header as it will be written, with its new @PG line and @HD. */
static int check_header_size(const struct written *f, sam_hdr_t *sam)
{
    enum { REST_OF_LINES = 256 };
    uint64_t text = sam_hdr_length(sam) + strlen(f->request->command_line) + REST_OF_LINES;
    return bam_header_check_size(text, f->request->format.format, f->input, f->engine->latch);
}

static int open_samtools(struct written *f)
{
    if (!(f->samtools = samtools_checksum_new(f->engine->n_threads)))
        return latch_fail(f->engine->latch, "out of memory for --checksum");
    record_sink_how(f->sink)->samtools = f->samtools;
    return 0;
}

static int open_counts(struct written *f, sam_hdr_t *sam)
{
    const struct counts_options how = {
        .counters = f->request->counters,
        .n = f->request->n_counters,
        .path = f->request->path,
        .n_slots = f->n_slots,
        .engine = f->engine,
    };
    record_sink_how(f->sink)->counts = f->counts = counts_open(&how, sam, NULL);
    return f->counts ? 0 : -1;
}

int written_keep_header(struct written *f, const struct bam_header *header, bool needs_program)
{
    static const char broken[] = "%s: its header lines are broken, so %s. Nothing was written; %s";
    bool adds = !f->request->no_pg;
    enum htsExactFormat format = f->request->format.format;
    if (adds && needs_program)
        return latch_fail(f->engine->latch, broken, f->input, "no @PG line can be added to them", "use --no-PG");
    if (format == cram || (format != bam && header->is_broken_sam))
        return latch_fail(f->engine->latch, broken, f->input,
                          format == cram ? "CRAM cannot hold them" : "no program could read them in SAM", "use -O bam");
    message_warning("%s: its header lines are broken. They are copied unchanged%s", f->input,
                    adds ? ", without a @PG line" : "");
    f->keeps_header = true;
    return 0;
}

int written_prepare(struct written *f, sam_hdr_t *sam, int n_held, const struct sort_rule *rule)
{
    return check_references(f, sam, n_held) < 0 || check_header_size(f, sam) < 0 || open_index(f, sam) < 0
        || (f->request->verify && open_verify(f, rule) < 0)
        || (f->request->checksum_samtools && open_samtools(f) < 0)
        || (f->request->n_counters > 0 && open_counts(f, sam) < 0) ? -1 : 0;
}

/* ----------------------------------------------------------------- writing */

int written_header(struct written *f, sam_hdr_t *sam, const struct sort_order *order, bool unplaced,
                      bool beyond)
{
    const struct output_request *request = f->request;
    const char *line = request->no_pg ? NULL : request->command_line;
    if (!f->keeps_header && bam_header_mark_sorted(sam, order, unplaced, version_of_both(), line) < 0)
        return latch_fail(f->engine->latch, "%s: the header could not be changed", f->input);
    if (out_file_begin(&f->data, f->engine->latch) < 0 || out_file_begin(&f->index, f->engine->latch) < 0)
        return -1;
    const char *index = request->index ? out_file_name(&f->index) : NULL;
    bool in_blocks = index && record_sink_form(request) == SINK_BAM;
    if (in_blocks && written_index(f, bam_index_new(sam, request->index_format, index)) < 0)
        return -1;
    return record_sink_header(f->sink, sam, index, beyond);
}

int written_index(struct written *f, struct bam_index *index)
{
    f->bam_index = index;
    return record_sink_set_index(f->sink, index);
}

int written_checksum(struct out_file *out, struct tally tally, struct latch *latch)
{
    char line[80];
    int size = snprintf(line, sizeof line, "records=%" PRIu64 " xxh3sum=%016" PRIx64 "\n", tally.n,
                        tally.checksum);
    return out_text_write(out, line, (size_t)size, latch);
}

/* The text of one checksum, or of one counter. */
struct printed {
    struct samtools_checksum *sum;
    const char *path;
    struct counts *counts;
    size_t number;
};

static int print_checksum(void *printed, FILE *to)
{
    const struct printed *p = printed;
    return samtools_checksum_print(p->sum, p->path, to);
}

static int print_counts(void *printed, FILE *to)
{
    const struct printed *p = printed;
    return counts_print(p->counts, p->number, to);
}

int written_samtools(struct out_file *out, struct samtools_checksum *sum, const char *path, struct latch *latch)
{
    struct printed printed = {.sum = sum, .path = path};
    return out_text_print(out, print_checksum, &printed, latch);
}

int written_counts(struct written *f, struct counts *counts)
{
    struct printed printed = {.counts = counts};
    int status = 0;
    for (; printed.number < f->request->n_counters && status == 0; printed.number++) {
        status = counted_files_write(&f->more, counts, printed.number, f->engine->latch);
        if (status == 0)
            status = out_text_print(&f->counted[printed.number], print_counts, &printed, f->engine->latch);
    }
    if (counts && status == 0)
        f->numbers = counts_numbers(counts);
    return status;
}

/* Finishes the sink and the index, compares the records that went through the sink with those that came in, and writes
 * the checksum and the counts. */
static int finish(struct written *f, struct tally in)
{
    if (record_sink_finish(f->sink) < 0 || (f->bam_index && bam_index_save(f->bam_index, f->engine->latch) < 0))
        return -1;
    struct tally out = {.n = record_sink_count(f->sink), .checksum = record_sink_checksum(f->sink)};
    if (tally_compare(in, out, "in the output", f->input, f->engine->latch) < 0)
        return -1;
    if (written_counts(f, f->counts) < 0)
        return -1;
    if (f->samtools)
        return written_samtools(&f->checksum, f->samtools, f->request->path, f->engine->latch);
    return f->request->checksum ? written_checksum(&f->checksum, in, f->engine->latch) : 0;
}

int written_all(struct written *f, const struct list_stream *stream)
{
    struct record_list list;
    struct tally given;
    int found;
    while ((found = list_stream_next(stream, &list, f->engine)) > 0)
        if (record_sink_put(f->sink, &list) < 0)
            return -1;
    return found < 0 || stream->end(stream->producer, &given) < 0 ? -1 : finish(f, given);
}

/* ----------------------------------------------------------------- the end */

enum { BESIDE = 2 + COUNTERS };

/* The files other than the data, in the order in which they are put in place. */
static void list_beside(struct written *f, struct out_file *files[BESIDE])
{
    size_t n = 0;
    files[n++] = &f->checksum;
    for (size_t i = 0; i < COUNTERS; i++)
        files[n++] = &f->counted[i];
    files[n] = &f->index;
}

void written_abandon(struct written *f)
{
    struct out_file *beside[BESIDE];
    list_beside(f, beside);
    out_file_abandon(&f->data);
    for (size_t i = 0; i < BESIDE; i++)
        out_file_abandon(beside[i]);
    counted_files_abandon(&f->more);
}

/* The data come last: while the data are old and the index is new, readers only complain about the index. If the data
 * cannot be put in place, written_commit() removes the new files. */
static int commit(struct written *f, struct out_file *beside[BESIDE])
{
    struct latch *latch = f->engine->latch;
    for (size_t i = 0; i < BESIDE; i++)
        if (out_file_finish(beside[i], latch) < 0)
            return -1;
    if (out_file_finish(&f->data, latch) < 0)
        return -1;
    for (size_t i = 0; i < BESIDE; i++)
        if (out_file_commit(beside[i], latch) < 0)
            return -1;
    if (counted_files_commit(&f->more, latch) < 0)
        return -1;
    if (out_file_commit(&f->data, latch) == 0)
        return 0;
    counted_files_take_back(&f->more);
    return -1;
}

int written_commit(struct written *f)
{
    struct out_file *beside[BESIDE];
    list_beside(f, beside);
    latch_hide_signals(true);                    /* signals between two files, too */
    bool failed = commit(f, beside) < 0;
    for (size_t i = 0; failed && i < BESIDE; i++)
        out_file_remove(beside[i]);
    written_abandon(f);
    latch_hide_signals(false);
    return failed ? -1 : 0;
}

void written_close(struct written *f)
{
    if (!f)
        return;
    record_sink_close(f->sink);
    bam_index_free(f->bam_index);
    samtools_checksum_free(f->samtools);
    counts_close(f->counts);
    if (f->request)
        written_abandon(f);
    counted_files_close(&f->more);
    f->sink = NULL;
    f->bam_index = NULL;
    f->samtools = NULL;
    f->counts = NULL;
}
