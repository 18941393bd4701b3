/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "bam/plain_header.h"
#include "base/engine.h"
#include "base/input_name.h"
#include "bgzf_omp.h"
#include "codec/bgzf_block.h"
#include "order/sort_key.h"
#include "read/input_format.h"
#include "read/input_part.h"
#include "read/input_request.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/message.h"
#include "read/header_read.h"
#include "read/passed_records.h"
#include "read/raw_records.h"
#include "read/read_ahead.h"
#include "read/input.h"

/* Takes the header of a part, and the records that come before its blocks. */
static int take_part(struct input *in, const struct input_part *part, struct latch *latch)
{
    in->header.sam = sam_hdr_dup(part->sam);
    in->header.rest = malloc(part->head_size + 1);
    if (!in->header.sam || !in->header.rest)
        return latch_fail(latch, "out of memory");
    if (part->head_size)
        memcpy(in->header.rest, part->head, part->head_size);
    in->header.rest_size = part->head_size;
    return 0;
}

bool input_goes_on(const struct input *in)
{
    const struct input_part *part = in->format ? in->format->opt.part : NULL;
    return part && !part->is_last;
}

/* Makes the source of the format's window. An input that will be suspended is read twice but counted once; its header
 * goes through no slot. */
static int open_source(struct input *in)
{
    bool suspends = input_format_may_suspend(in->format);
    const struct input_part *part = in->format->opt.part;
    struct bgzf_source_options from = {
        .input = in->format->window,
        .path = in->name,
        .n_sharing = in->n_sharing,
        .n_slots = suspends ? 1 : in->n_slots,
        .codecs = in->codecs,
        .engine = input_format_engine(in->format),
        .tail = part ? part->tail : NULL,
        .tail_size = part ? part->tail_size : 0,
        .goes_on = input_goes_on(in),
    };
    in->source = bgzf_source_open(&from);
    return in->source ? 0 : -1;
}

/* Returns whether the input is not in blocks, but is uncompressed BAM or its records. */
static bool is_raw(const struct input *in)
{
    return in->format->window && in->format->framing != INPUT_BGZF;
}

static struct header_bytes bytes_of(const struct input *in)
{
    return (struct header_bytes){in->source, in->source ? NULL : in->format->window};
}

/* Makes the stream of an input that is not in blocks. Its header was read before. */
static int open_raw(struct input *in)
{
    const struct input_options *how = &in->format->opt;
    in->raw = raw_records_open(in->format->window, sam_hdr_nref(in->header.sam), how->engine);
    if (!in->raw)
        return -1;
    in->stream = raw_records_stream(in->raw);
    return 0;
}

/* Takes the input's header. Do not call it for a part, which brings its own header. */
static int take_header(struct input *in, const struct inputs_options *how)
{
    struct input_format *format = in->format;
    if (format->known.sam) {
        in->header = format->known;
        format->known = (struct bam_header){.sam = NULL};
        return 0;
    }
    if (format->framing == INPUT_RECORDS)
        in->header.sam = input_format_header(format);
    else if (header_read(&in->header, bytes_of(in), how->header_max, how->known, how->keeps_broken, in->name,
                         how->engine->latch) < 0)
        return -1;
    return 0;
}

/* Returns whether records of the input are left out, changed or looked at by `passed`. */
static bool passes(const struct input *in)
{
    return in->format->filter || !record_remap_is_none(&in->remap) || in->merge || in->looks;
}

size_t input_memory(uint32_t n_slots)
{
    enum { OPEN_FILE = 48 << 10 };               /* with a buffer of htslib of up to 32 KiB */
    return OPEN_FILE + task_ring_memory(n_slots);
}

struct chunk_input input_chunks(const struct input *in)
{
    const struct input_options *how = &in->format->opt;
    return (struct chunk_input){.source = in->stream.producer ? NULL : in->source, .stream = in->stream,
                                .use = how->chunks, .path = in->name, .engine = how->engine};
}

/* From now on the input's records come through `passed`. */
static int open_passed(struct input *in, uint64_t n_before)
{
    struct passed_records_options records = {
        .in = input_chunks(in),
        .filter = in->format->filter,
        .merge = in->merge,
        .looks = in->looks,
        .regions = in->by_region ? &in->regions : NULL,
    };
    records.in.n_before = n_before;
    in->passed = passed_records_open(&records, &in->remap, &in->header);
    if (!in->passed)
        return -1;
    in->stream = chunk_reader_stream(passed_records_chunks(in->passed));
    return 0;
}

int input_open(struct input *in, const char *path, const struct input_part *part,
                    const struct inputs_options *how)
{
    const struct input_request *request = how->request;
    in->name = input_name_shown(path);
    struct input_options file = {
        .path = path,
        .piece_size = how->rings.piece_size,
        .n_pieces = how->rings.n_pieces,
        .htslib = how->rings.reader,
        .chunks = how->rings.chunks,
        .header_max = how->header_max,
        .reference = request->reference,
        .format_options = request->format_options,
        .part = part,
        .waits = how->waits,
        .shuts = how->shuts,
        .by_region = how->by_region,
        .far = how->far,
        .known = how->known,
        .codecs = how->codecs,
        .engine = how->engine,
    };
    if (!(in->format = input_format_open(&file)))
        return -1;
    in->n_slots = how->rings.source_slots;
    in->codecs = how->codecs;
    if (how->rings.job.in_chunks)
        in->n_sharing = 1 + (how->engine->n_threads - 1) / (int)how->rings.job.n_inputs;
    in->stream = in->format->stream;
    bool needs_source = in->format->framing == INPUT_BGZF && !in->format->known.sam;
    if (needs_source && open_source(in) < 0)
        return -1;
    if (part)
        return take_part(in, part, how->engine->latch);
    if (take_header(in, how) < 0)
        return -1;
    if (how->waits)
        return 0;
    if (is_raw(in) && open_raw(in) < 0)
        return -1;
    return passes(in) ? open_passed(in, 0) : 0;  /* before other headers are joined to its own */
}

int input_of_window(struct input *in, const char *path, struct byte_window *window, sam_hdr_t *sam,
                    const struct engine *engine)
{
    *in = (struct input){.name = input_name_shown(path), .header.sam = sam};
    if (!(in->raw = raw_records_open(window, sam_hdr_nref(sam), engine)))
        return -1;
    in->stream = raw_records_stream(in->raw);
    return 0;
}

/* Frees what can be read again when the input's turn comes. */
static void suspend(struct input *in)
{
    if (!input_format_may_suspend(in->format))
        return;
    bgzf_source_close(in->source);
    input_format_suspend(in->format);
    in->source = NULL;
    bam_header_drop_rest(&in->header);
}

int input_choose(struct input *in, struct ref_regions *regions, const char *index)
{
    in->regions = *regions;
    in->by_region = true;
    *regions = (struct ref_regions){.n = 0};
    return input_format_choose(in->format, in->header.size, &in->regions, index);
}

int inputs_join(struct inputs *inputs, struct input *in, struct latch *latch)
{
    if (in->header.sam == inputs->each->header.sam)
        return 0;
    int renamed = bam_header_merge(inputs->each->header.sam, in->header.sam, &in->remap.programs, in->name, latch);
    if (renamed <= 0)
        record_remap_free(&in->remap);
    return renamed < 0 ? -1 : 0;
}

/* Returns why the FASTA cannot be read. NULL: it can be read, or the path is NULL or a URL. */
static const char *fault_of_fasta(const char *path)
{
    struct stat st;
    if (!path || hisremote(path))
        return NULL;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return strerror(EISDIR);
    return access(path, R_OK) < 0 ? strerror(errno) : NULL;
}

/* Counts the inputs that need chunks at one time: the SAM inputs that wait with buffers, one for all others (the first,
 * or a suspended one), and one for all inputs whose records go through `passed`, each in its turn. */
static size_t count_sam(const struct inputs *inputs)
{
    size_t waiting = 0;
    bool any = false, pass = false;
    for (size_t i = 0; i < inputs->n; i++) {
        const struct input_format *format = inputs->each[i].format;
        if (!format)                             /* the records come from a window */
            continue;
        bool has_buffers = i > 0 && (format->window || format->stream.producer);
        waiting += has_buffers && input_format_is_sam(format);
        any |= !has_buffers && input_format_is_sam(format);
        pass |= passes(&inputs->each[i]);
    }
    return waiting + any + pass;
}

void inputs_count_header(struct inputs *inputs, sam_hdr_t *sam)
{
    inputs->header_size += sam_hdr_length(sam);
    inputs->parsed |= !plain_header_is(sam);
    inputs->n_references += (size_t)sam_hdr_nref(sam);
}

static void sum_up(struct inputs *inputs, const struct inputs_options *how)
{
    bool length_known = inputs->size_known = true;
    for (size_t i = 0; i < inputs->n; i++) {
        const struct input *in = &inputs->each[i];
        if (!in->header.is_shared)
            inputs_count_header(inputs, in->header.sam);
        if (!in->format) {
            length_known = inputs->size_known = false;
            continue;
        }
        inputs->n_converted += in->format->framing == INPUT_RECORDS;
        inputs->n_threads += in->format->reader && !in->format->containers;
        inputs->memory += in->format->memory;
        inputs->n_chunked += how->waits ? (size_t)input_format_is_sam(in->format) : 0;
        inputs->size += in->format->size;
        inputs->size_known = inputs->size_known && in->format->size > 0;
        inputs->length += in->format->length;
        length_known = length_known && in->format->length > 0;
    }
    if (!length_known)
        inputs->length = 0;
    inputs->n_chunked += (how->waits ? 0 : count_sam(inputs)) + (how->rings.job.in_chunks ? inputs->n : 0);
}

void inputs_complete(struct inputs *inputs, const struct inputs_options *how)
{
    const char *reference = how->request->reference, *fault = fault_of_fasta(reference);
    /* This is only a warning: if input or output were CRAM, htslib would have failed by now. */
    if (fault)
        message_warning("cannot read --reference '%s': %s. Only CRAM needs it", reference, fault);
    sum_up(inputs, how);
}

/* Raises the limit on open files for n inputs. False: not all of them can be open at the same time, so files must be
 * shut. */
static bool allow_files(size_t n)
{
    enum { OTHERS = 64, OTHERS_LEAST = 8 };      /* outputs, temporary files, pipes, libraries */
    return n == 1 || machine_open_files(n + OTHERS) >= n + OTHERS_LEAST;
}

/* Opens each input. A sort joins the headers of the other inputs to the first header, so no other input shares the
 * first header. */
static int open_each(struct inputs *inputs, const struct inputs_options *how, struct known_headers *known)
{
    const struct input_request *request = how->request;
    struct inputs_options each = *how;
    each.shuts = !allow_files(request->n);
    each.codecs = inputs->codecs;
    while (inputs->n < request->n) {
        size_t i = inputs->n++;
        struct input *in = &inputs->each[i];
        each.waits = i > 0 || how->waits;
        each.known = each.waits ? known : NULL;
        if (input_open(in, request->paths[i], NULL, &each) < 0)
            return -1;
        if (how->join ? how->join(how->arg, in) < 0 : i > 0 && inputs_join(inputs, in, how->engine->latch) < 0)
            return -1;
        suspend(in);
    }
    return 0;
}

int inputs_new(struct inputs *inputs, const struct inputs_options *how)
{
    const struct input_request *request = how->request;
    *inputs = (struct inputs){.each = calloc(request->n, sizeof *inputs->each)};
    inputs->n_codecs = how->engine->n_threads;
    inputs->codecs = calloc((size_t)inputs->n_codecs, sizeof *inputs->codecs);
    if (!inputs->each || !inputs->codecs)
        return latch_fail(how->engine->latch, "out of memory");
    const char *fault = fault_of_fasta(how->other_fasta);     /* reported before a pipe is waited for */
    if (fault)
        return latch_fail(how->engine->latch, "cannot read %s: %s. Nothing was read", how->other_fasta, fault);
    return 0;
}

int inputs_open(struct inputs *inputs, const struct inputs_options *how)
{
    struct known_headers known = {.keeps_broken = how->keeps_broken};
    if (inputs_new(inputs, how) < 0)
        return -1;
    int status = open_each(inputs, how, &known);
    known_headers_free(&known);
    if (status < 0)
        return -1;
    inputs_complete(inputs, how);
    return 0;
}

/* Lets the order look at the first records, which must be in memory: the rest of the header's block, otherwise the
 * first block after it. */
static int learn(struct input *in, struct sort_rule *rule)
{
    struct bam_header *h = &in->header;
    uint32_t size;
    int found = h->rest_size ? 0 : bgzf_source_peek(in->source, &size);
    if (found > 0) {
        uint8_t *block = realloc(h->rest, size);
        if (!block)
            return latch_fail(in->format->opt.engine->latch, "out of memory");
        h->rest = block;
        h->rest_size = size;
        if (bgzf_source_inflate(in->source, block) < 0)
            return -1;
    }
    sort_rule_learn_of(rule, h->rest, h->rest_size, sam_hdr_nref(h->sam));
    return found;
}

/* As learn(), for records that come in slices. */
static int learn_of_stream(struct input *in, struct sort_rule *rule)
{
    size_t size = 0;
    const uint8_t *records = chunk_reader_first(passed_records_chunks(in->passed), &size);
    sort_rule_learn_of(rule, records, size < BGZF_FILL ? size : BGZF_FILL, sam_hdr_nref(in->header.sam));
    return latch_tripped(in->format->opt.engine->latch) ? -1 : 0;
}

/* Makes the buffers that the input lacks. */
static int resume(struct input *in)
{
    if (!in->format)
        return 0;
    bool was_suspended = input_format_may_suspend(in->format);
    if (input_format_resume(in->format, in->header.sam) < 0)
        return -1;
    if (in->format->stream.producer && !in->passed)
        in->stream = in->format->stream;
    if (in->stream.producer)
        return 0;
    if (!is_raw(in) && !in->source && open_source(in) < 0)
        return -1;
    if (was_suspended && !in->by_region
            && header_pass(&in->header, bytes_of(in), in->name, in->format->opt.engine->latch) < 0)
        return -1;
    if (is_raw(in))
        return open_raw(in);
    return in->merge && in->merge->learns && learn(in, in->merge->learns) < 0 ? -1 : 0;
}

int input_begin(struct input *in)
{
    if (resume(in) < 0)
        return -1;
    bool is_stream = in->stream.producer;
    if (!in->passed && in->format && passes(in) && open_passed(in, 0) < 0)
        return -1;
    return is_stream && in->merge && in->merge->learns ? learn_of_stream(in, in->merge->learns) : 0;
}

void input_use_batches(const struct input *in, struct task_batches *batches)
{
    enum { THREADS_LEAST = 8 };
    if (in->format->opt.engine->n_threads < THREADS_LEAST)
        return;
    chunk_reader_use_batches(passed_records_chunks(in->passed), batches);
    if (in->format->ahead)
        read_ahead_use_batches(in->format->ahead, batches);
}

int input_pass_rest(struct input *in, uint64_t n_before, uint64_t bytes)
{
    assert(!in->passed);                         /* `passed` normalises names */
    bam_header_drop_rest(&in->header);
    in->header.size = bytes;
    return open_passed(in, n_before);
}

void input_end(struct input *in)
{
    if (in->source)
        bgzf_source_end(in->source);
    if (in->passed)
        passed_records_end(in->passed);
    if (in->raw)
        raw_records_end(in->raw);
    if (in->format)
        input_format_end(in->format);
    bam_header_drop_rest(&in->header);
}

static void close_buffers(struct input *in)
{
    bgzf_source_close(in->source);               /* the source is closed before what it reads from */
    passed_records_close(in->passed);
    raw_records_close(in->raw);
    input_format_close(in->format);
    in->source = NULL;
    in->raw = NULL;
    in->stream = (struct record_stream){.producer = NULL};
    in->passed = NULL;
    in->format = NULL;
}

void input_close(struct input *in)
{
    close_buffers(in);
    record_remap_free(&in->remap);
    free(in->regions.each);
    bam_header_free(&in->header);
}

int inputs_of_stream(struct inputs *inputs, const struct inputs *front, struct record_stream stream, sam_hdr_t *sam)
{
    struct input *in = calloc(1, sizeof *in);
    *inputs = *front;
    inputs->each = in;
    inputs->n = in ? 1 : 0;
    inputs->codecs = NULL;
    inputs->n_codecs = 0;
    if (!in)
        return -1;
    sam_hdr_incr_ref(sam);
    *in = (struct input){.name = front->each->name, .stream = stream, .header.sam = sam};
    return 0;
}

int inputs_held(const struct inputs *inputs, sam_hdr_t *sam, bool sorts)
{
    int n = 0, all = sam_hdr_nref(sam);
    for (size_t i = 0; i < inputs->n; i++) {
        const struct bam_header *header = &inputs->each[i].header;
        int held = header->size == 0 ? all : sorts ? all - header->n_unlisted : 0;
        n = held > n ? held : n;
    }
    return n;
}

void inputs_end(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->n; i++)
        close_buffers(&inputs->each[i]);
}

void inputs_close(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->n; i++)
        input_close(&inputs->each[i]);
    bgzf_codec_free_all(inputs->codecs, inputs->n_codecs);
    free(inputs->each);
    *inputs = (struct inputs){.each = NULL};
}
