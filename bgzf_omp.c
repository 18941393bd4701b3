/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_window.h"
#include "hts/hts_file.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/message.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "bgzf_omp.h"
#include "codec/bam_inflate.h"
#include "codec/bgzf_block.h"
#include "codec/frame_list.h"
#include "codec/gzip_blocks.h"

/* ------------------------------------------------------------------ the source */

_Static_assert((int)BYTE_WINDOW_KEPT >= (int)BGZF_MAX_BLOCK, "a block that is not whole yet fits");

struct source_slot {
    struct bgzf_frame frame;     /* these five fields: set by the main thread, before READY */
    const uint8_t *compressed;
    atomic_int *users;           /* users of the compressed bytes, which are held until they are inflated; NULL: the
                                  * data are already in place */
    uint8_t *keep;               /* where the compressed bytes are copied to; NULL: they are not copied */
    struct bgzf_source_block block;
    enum bgzf_fault fault;       /* set by the claimer, before DONE, only if there is a fault: a write takes the cache
                                  * line */
};

/* Bytes that are already inflated. */
struct inflated_bytes {
    const uint8_t *p;
    size_t n;
};

struct bgzf_source {
    struct bgzf_source_options opt;
    int eof_block;               /* the last block was the empty one of 28 bytes; main thread only, like every field but
                                  * the codecs */
    int peeked;                  /* `frame` describes the block at the window's beginning */
    struct bgzf_frame frame;     /* its size is 0 if the block comes from `span` or `gzip` */
    struct gzip_blocks *gzip;    /* plain gzip with which the input continues; NULL: there is none here */
    struct inflated_bytes back, tail;    /* what is left of the bytes that were put back, and of the tail */
    struct inflated_bytes *span; /* `back` or `tail` if the peeked block comes from it; else NULL */
    uint8_t *put_back;           /* where `back` lies */
    struct source_slot *slots;
    struct task_ring ring;       /* ring of the slots; its work is to inflate the block of a slot */
    bgzf_source_inflated_fn *inflated;
    void *inflated_arg;
    struct bgzf_codec **codecs;  /* one for each thread: the codecs of the options, or the source's own */
};

static void source_run(void *source, uint32_t index);

static int source_alloc(struct bgzf_source *s)
{
    struct task_ring_options ring = {.n_slots = s->opt.n_slots,
                                     .n_threads = s->opt.n_sharing ? s->opt.n_sharing : s->opt.engine->n_threads,
                                     .large_batches = !s->opt.is_text, .run = source_run, .arg = s};
    if (task_ring_open(&s->ring, &ring) < 0)
        return -1;
    s->slots = calloc(s->opt.n_slots, sizeof *s->slots);
    s->codecs = s->opt.codecs ? s->opt.codecs : calloc((size_t)s->opt.engine->n_threads, sizeof *s->codecs);
    return s->slots && s->codecs ? 0 : -1;
}

struct bgzf_source *bgzf_source_open(const struct bgzf_source_options *options)
{
    struct bgzf_source *s = calloc(1, sizeof *s);
    if (!s) {
        latch_fail(options->engine->latch, "%s: out of memory", options->path);
        return NULL;
    }
    s->opt = *options;
    s->tail = (struct inflated_bytes){options->tail, options->tail_size};
    if (source_alloc(s) == 0)
        return s;
    latch_fail(options->engine->latch, "%s: out of memory for read buffers; try fewer threads (-@)", options->path);
    bgzf_source_close(s);
    return NULL;
}

/* A late task does not find a READY slot, and reads nothing else of the source. */
void bgzf_source_end(struct bgzf_source *s)
{
    if (s->codecs != s->opt.codecs)
        bgzf_codec_free_all(s->codecs, s->opt.engine->n_threads);
    gzip_blocks_close(s->gzip);
    free(s->slots);
    free(s->put_back);
    s->codecs = NULL;
    s->gzip = NULL;
    s->slots = NULL;
    s->put_back = NULL;
}

void bgzf_source_close(struct bgzf_source *s)
{
    if (!s)
        return;
    bgzf_source_end(s);
    task_ring_close(&s->ring, !latch_tripped(s->opt.engine->latch));
    free(s);
}

void bgzf_source_use_batches(struct bgzf_source *s, struct task_batches *batches)
{
    task_ring_use_batches(&s->ring, batches);
}

void bgzf_source_on_inflated(struct bgzf_source *s, bgzf_source_inflated_fn *fn, void *arg)
{
    s->inflated = fn;
    s->inflated_arg = arg;
}

static enum bgzf_fault source_inflate(struct bgzf_source *s, const uint8_t *p,
                                      const struct bgzf_frame *frame, uint8_t *dst)
{
    enum stage before = clocks_enter(s->opt.engine->clocks, STAGE_INFLATE);
    enum bgzf_fault fault = BGZF_OK;
    if (frame->size == 0)
        memcpy(dst, s->span ? s->span->p : s->gzip->data, frame->inflated_size);
    else
        fault = bgzf_block_inflate(bgzf_codec_of(s->codecs, task_thread(), 0), p, frame, dst);
    clocks_leave(s->opt.engine->clocks, before, s->opt.is_text ? 0 : frame->inflated_size);
    return fault;
}

/* Inflates the block of a claimed slot. */
static void source_run(void *source, uint32_t index)
{
    struct bgzf_source *s = source;
    struct source_slot *slot = &s->slots[index];
    if (!latch_tripped(s->opt.engine->latch)) {
        enum bgzf_fault fault = slot->users ? source_inflate(s, slot->compressed, &slot->frame, slot->block.data)
                                            : BGZF_OK;
        if (slot->keep && !fault)
            memcpy(slot->keep, slot->compressed, slot->frame.size);
        if (fault)
            slot->fault = fault;
        else if (s->inflated)
            s->inflated(s->inflated_arg, &slot->block);
    }
    if (slot->users)
        byte_window_release(slot->users);
}

static bool source_help(void *source)
{
    return task_ring_help(&((struct bgzf_source *)source)->ring);
}

/* Finds the frame of the window's first block. */
static enum bgzf_fault first_frame(const struct byte_window *w, struct bgzf_frame *frame)
{
    return w->size == 0 ? BGZF_MORE : frame_list_frame(w->frames, w->offset, w->data, w->size, frame);
}

static int block_failed(struct bgzf_source *s, uint64_t file_offset, enum bgzf_fault fault)
{
    bool no_memory = fault == BGZF_NO_MEMORY;
    return latch_fail(s->opt.engine->latch, "%s: block at file offset %llu: %s. Nothing was written; %s%s", s->opt.path,
                      (unsigned long long)file_offset, bgzf_fault_text(fault),
                      no_memory ? "try fewer threads (-@)" : "get a good copy of the file",
                      no_memory ? "" : latch_index_hint(s->opt.engine->latch));
}

/* The input continues with plain gzip, which gzip and htslib accept, too. Decompresses the next bytes, on this
 * thread. */
static int gzip_frame(struct bgzf_source *s)
{
    if (!s->gzip && !(s->gzip = gzip_blocks_open(s->opt.input)))
        return block_failed(s, s->opt.input->offset, BGZF_NO_MEMORY);
    task_ring_make_task(&s->ring);               /* decompression takes long */
    enum stage before = clocks_enter(s->opt.engine->clocks, STAGE_INFLATE);
    enum bgzf_fault fault = gzip_blocks_next(s->gzip, s->opt.input, source_help, s);
    clocks_leave(s->opt.engine->clocks, before, 0);
    s->frame = (struct bgzf_frame){.inflated_size = s->gzip->size};
    if (fault)
        return block_failed(s, s->gzip->begin, fault);
    if (s->gzip->size > 0)
        return 1;
    gzip_blocks_close(s->gzip);
    s->gzip = NULL;
    return 1;
}

static int span_frame(struct bgzf_source *s, struct inflated_bytes *span)
{
    s->span = span;
    s->frame = (struct bgzf_frame){.inflated_size = span->n < BGZF_FILL ? (uint32_t)span->n : BGZF_FILL};
    return 1;
}

/* Like bgzf_source_peek(), but the block may be empty. */
static int source_frame(struct bgzf_source *s)
{
    struct byte_window *w = s->opt.input;
    enum bgzf_fault fault;
    int more = 1;
    if (s->back.n)
        return span_frame(s, &s->back);
    if (s->gzip)
        return gzip_frame(s);
    while ((fault = first_frame(w, &s->frame)) == BGZF_MORE && more > 0) {
        task_ring_make_task(&s->ring);           /* more input may take long to arrive */
        more = byte_window_more(w, source_help, s);
    }
    if (fault == BGZF_OK)
        return 1;
    if (fault == BGZF_NOT_BGZF && !s->opt.engine->latch->by_index)
        return gzip_frame(s);
    if (more == 0 && w->size == 0 && s->tail.n)
        return span_frame(s, &s->tail);
    if (more < 0 || (more == 0 && w->size == 0))
        return more;
    if (s->opt.engine->latch->by_index)                  /* the index does not name complete blocks */
        return hts_file_wrong_index(s->opt.path, s->opt.engine->latch);
    return latch_fail(s->opt.engine->latch, "%s: at file offset %llu: %s. Nothing was written; check that the file is "
                      "complete", s->opt.path, (unsigned long long)w->offset, bgzf_fault_text(fault));
}

/* Moves past the peeked block. Without a list of frames, prefetches the end of the next block and the header after
 * it. */
static void source_pass(struct bgzf_source *s)
{
    struct byte_window *w = s->opt.input;
    byte_window_skip(w, s->frame.size);
    s->peeked = 0;
    if (s->span) {
        s->span->p += s->frame.inflated_size;
        s->span->n -= s->frame.inflated_size;
        s->span = NULL;
    }
    if (w->frames)
        return;
    const uint8_t *end = w->data + bgzf_block_guess_end(w->data, w->size);
    __builtin_prefetch(end - 4);                 /* bgzf_block_frame() reads these bytes, from one cache line or two */
    __builtin_prefetch(end + BGZF_HEADER - 1);
}

int bgzf_source_peek(struct bgzf_source *s, uint32_t *inflated_size)
{
    for (uint8_t none; !s->peeked;) {
        int found = source_frame(s);
        if (found <= 0)
            return found;
        bool is_gzip = s->frame.size == 0;
        s->peeked = s->frame.inflated_size > 0;
        if (!s->span)
            s->eof_block = is_gzip || (!s->peeked && s->frame.size == BGZF_EOF_SIZE);
        if (s->peeked || is_gzip)
            continue;
        if (bgzf_source_inflate(s, &none) < 0)   /* if a fault made its size 0, records would be lost */
            return -1;
    }
    *inflated_size = s->frame.inflated_size;
    return 1;
}

uint32_t bgzf_source_slots(const struct bgzf_source *s)
{
    return s->opt.n_slots;
}

uint64_t bgzf_source_offset(const struct bgzf_source *s)
{
    return s->opt.input->offset;
}

int bgzf_source_ring_full(const struct bgzf_source *s)
{
    return task_ring_full(&s->ring);
}

uint32_t bgzf_source_compressed_size(const struct bgzf_source *s)
{
    return s->frame.size > 0 && bgzf_block_is_plain(s->opt.input->data, &s->frame) ? s->frame.size : 0;
}

void bgzf_source_hand_out(struct bgzf_source *s, uint8_t *dst, uint8_t *keep)
{
    struct byte_window *w = s->opt.input;
    uint32_t index = task_ring_next(&s->ring);
    struct source_slot *slot = &s->slots[index];
    bool is_here = s->frame.size == 0;
    slot->frame = s->frame;
    slot->compressed = w->data;
    slot->keep = keep;
    slot->users = is_here ? NULL : byte_window_hold(w);
    slot->fault = BGZF_OK;
    slot->block = (struct bgzf_source_block){w->offset, dst, s->frame.inflated_size, index};
    if (is_here) {
        slot->block.file_offset = s->span ? w->offset : s->gzip->begin;
        source_inflate(s, NULL, &s->frame, dst);
    }
    source_pass(s);
    task_ring_hand_out(&s->ring);
}

void bgzf_source_make_task(struct bgzf_source *s)
{
    task_ring_make_task(&s->ring);
}

int bgzf_source_inflate(struct bgzf_source *s, uint8_t *dst)
{
    const struct byte_window *w = s->opt.input;
    enum bgzf_fault fault = source_inflate(s, w->data, &s->frame, dst);
    if (fault)
        return block_failed(s, w->offset, fault);
    source_pass(s);
    return 0;
}

void bgzf_source_skip(struct bgzf_source *s)
{
    clocks_leave(s->opt.engine->clocks, clocks_enter(s->opt.engine->clocks, STAGE_INFLATE),
                 s->opt.is_text ? 0 : s->frame.inflated_size);
    source_pass(s);
}

int bgzf_source_take(struct bgzf_source *s, int wait, struct bgzf_source_block *block)
{
    if (task_ring_empty(&s->ring))
        return 0;
    uint32_t index = task_ring_oldest(&s->ring);
    if (!wait && task_ring_state(&s->ring, index) != TASK_DONE)
        return 0;
    task_ring_wait(&s->ring, index, TASK_DONE, NULL, s->opt.engine->clocks);
    *block = s->slots[index].block;
    enum bgzf_fault fault = s->slots[index].fault;
    task_ring_take(&s->ring);
    if (fault)
        return block_failed(s, block->file_offset, fault);
    return latch_tripped(s->opt.engine->latch) ? -1 : 1;
}

int bgzf_source_put_back(struct bgzf_source *s, const uint8_t *bytes, size_t n)
{
    bool takes_gzip = s->peeked && s->frame.size == 0 && !s->span;   /* such bytes cannot be decompressed again */
    size_t more = takes_gzip ? s->frame.inflated_size : 0;
    assert(task_ring_empty(&s->ring) && !s->put_back);
    if (!(s->put_back = malloc(n + more)))
        return latch_fail(s->opt.engine->latch, "%s: out of memory for its records", s->opt.path);
    memcpy(s->put_back, bytes, n);
    if (more)
        memcpy(s->put_back + n, s->gzip->data, more);
    s->back = (struct inflated_bytes){s->put_back, n + more};
    s->span = NULL;
    s->peeked = 0;
    return 0;
}

int bgzf_source_saw_eof_block(const struct bgzf_source *s)
{
    return s->eof_block || s->opt.goes_on;
}

void bgzf_source_warn_of_end(const struct bgzf_source *s)
{
    if (!bgzf_source_saw_eof_block(s))
        message_warning("%s: EOF marker is absent. The input is probably truncated", s->opt.path);
}

size_t bgzf_source_memory(int n_threads, uint32_t n_slots)
{
    return n_slots * sizeof(struct source_slot) + task_ring_memory(n_slots)
         + (size_t)n_threads * (bgzf_codec_memory(0) + bam_inflate_memory());
}

/* -------------------------------------------------------------------- the sink */

enum {
    /* Bytes of a piece. Parallel file systems and network disks want 512 KiB and more. With 1 MiB, -u takes three times
     * the system time and more (ext4, Linux 6.18, a virtual machine). */
    PIECE_LEAST = 64 << 10, PIECE_MOST = 512 << 10,
    ENDS = 16,                   /* parts of the memory, which are freed at the same time */
};
_Static_assert((int)BGZF_MAX_BLOCK <= (int)PIECE_LEAST, "a block lies in two pieces at most");

struct bgzf_sink {
    struct bgzf_sink_options opt;
    uint8_t *compressed;         /* C: BGZF_MAX_BLOCK bytes per slot; NULL: the owner makes the bytes */
    struct bgzf_codec **codecs;  /* one for each thread: see bgzf_codec_of() */
    uint8_t *filled;             /* BGZF_MAX_BLOCK bytes per thread: the data of its block */
    bool begun;                  /* the ring's next slot is being filled; main thread */
    struct task_ring ring;       /* ring of the slots of U and C; the ticket releases them */
    struct task_ring ends;       /* each slot frees part of the memory, when all blocks are written */
    struct bgzf_ticket *ticket;
};

static void sink_run(void *sink, uint32_t index);

/* Frees every ENDS-th codec from `number` on. Parts 0 and 1 also free one large buffer each. */
static void free_part(void *sink, uint32_t number)
{
    struct bgzf_sink *k = sink;
    uint8_t **large = number == 0 ? &k->compressed : number == 1 ? &k->filled : NULL;
    for (int i = (int)number; k->codecs && i < k->opt.engine->n_threads; i += ENDS) {
        bgzf_codec_free(k->codecs[i]);
        k->codecs[i] = NULL;
    }
    if (large) {
        free(*large);
        *large = NULL;
    }
}

/* Deflated blocks are written in pieces. Without pieces, BAM (of level 0) has one writer. */
static int ticket_alloc(struct bgzf_sink *k)
{
    bool is_bam = k->opt.form == SINK_BAM, has_pieces = is_bam && k->opt.piece_size > 0;
    struct bgzf_ticket_options ticket = {
        .fd = k->opt.fd, .path = k->opt.path, .ring = &k->ring, .n_slots = k->opt.n_slots,
        .engine = k->opt.engine, .n_writers = is_bam && !has_pieces ? 1 : bgzf_ticket_writers(k->opt.engine->n_threads),
        .piece_size = has_pieces ? k->opt.piece_size : 0, .placed = k->opt.placed, .arg = k->opt.arg};
    k->ticket = bgzf_ticket_open(&ticket);
    return k->ticket ? 0 : -1;
}

static int sink_alloc(struct bgzf_sink *k)
{
    struct task_ring_options ring = {.n_slots = k->opt.n_slots, .n_threads = k->opt.engine->n_threads,
                                     .large_batches = true, .run = sink_run, .arg = k, .run_releases = true};
    struct task_ring_options ends = {.n_slots = ENDS, .run = free_part, .arg = k};
    if (task_ring_open(&k->ring, &ring) < 0 || task_ring_open(&k->ends, &ends) < 0 || ticket_alloc(k) < 0)
        return -1;
    if (k->opt.form != SINK_BAM)
        return 0;
    k->compressed = malloc((size_t)k->opt.n_slots * BGZF_MAX_BLOCK);
    k->codecs = calloc((size_t)k->opt.engine->n_threads, sizeof *k->codecs);
    k->filled = malloc((size_t)k->opt.engine->n_threads * BGZF_MAX_BLOCK);
    return k->compressed && k->codecs && k->filled ? 0 : -1;
}

struct bgzf_sink *bgzf_sink_open(const struct bgzf_sink_options *options)
{
    struct bgzf_sink *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->opt = *options;
    if (sink_alloc(k) == 0)
        return k;
    bgzf_sink_close(k);
    return NULL;
}

void bgzf_sink_close(struct bgzf_sink *k)
{
    if (!k)
        return;
    for (uint32_t i = 0; i < ENDS; i++)
        free_part(k, i);
    task_ring_close(&k->ring, !latch_tripped(k->opt.engine->latch));
    task_ring_close(&k->ends, false);
    bgzf_ticket_close(k->ticket);
    free(k->codecs);
    free(k);
}

/* Copies the block that the owner kept, after a check that it claims to hold these data. Returns the length of the
 * block. 0: no block is kept. An error is recorded in the latch. */
static uint32_t copy_kept(struct bgzf_sink *k, uint32_t index, const uint8_t *data, uint32_t size, uint8_t *block)
{
    uint32_t length = 0;
    const uint8_t *kept = k->opt.copies ? k->opt.kept(k->opt.arg, index, &length) : NULL;
    if (!kept)
        return 0;
    if (!bgzf_block_claims(kept, length, data, size)) {
        latch_fail(k->opt.engine->latch, "writing %s failed: the records of a block that is copied have changed since "
                   "it was read. Memory may be faulty, or this is our bug: please report it", k->opt.path);
        return 1;
    }
    memcpy(block, kept, length);
    return length;
}

/* Makes the bytes of a claimed slot's block: fills and deflates the block, or lets the owner make the bytes. Returns
 * their number. After an error, it returns any number, and nothing is written. */
static uint32_t sink_deflate(struct bgzf_sink *k, uint32_t index, const uint8_t **bytes)
{
    if (latch_tripped(k->opt.engine->latch))
        return 1;
    if (k->opt.form != SINK_BAM)
        return k->opt.make(k->opt.arg, index, bytes);
    struct bgzf_codec *codec = bgzf_codec_of(k->codecs, task_thread(), k->opt.level);
    if (!codec) {
        latch_fail(k->opt.engine->latch, BGZF_SINK_NO_MEMORY, k->opt.path);
        return 1;
    }
    uint8_t *block = k->compressed + (size_t)index * BGZF_MAX_BLOCK, *data = bgzf_block_stored_data(codec, block);
    if (!data)
        data = k->filled + (size_t)task_thread() * BGZF_MAX_BLOCK;
    uint32_t size = k->opt.fill(k->opt.arg, index, data);
    enum stage before = clocks_enter(k->opt.engine->clocks, STAGE_DEFLATE);
    uint32_t length = copy_kept(k, index, data, size, block);
    if (length == 0)
        length = bgzf_block_deflate(codec, data, size, block);
    clocks_leave(k->opt.engine->clocks, before, size);
    if (k->opt.deflated)
        k->opt.deflated(k->opt.arg, index, data, block, length);
    *bytes = block;
    return length;
}

static void sink_run(void *sink, uint32_t index)
{
    struct bgzf_sink *k = sink;
    const uint8_t *bytes = NULL;
    uint32_t length = sink_deflate(k, index, &bytes);
    bgzf_ticket_finish(k->ticket, index, bytes, length);
    if (k->opt.finished)
        k->opt.finished(k->opt.arg, index);
}

void bgzf_sink_make_task(struct bgzf_sink *k)
{
    task_ring_make_task(&k->ring);
}

int bgzf_sink_help(struct bgzf_sink *k)
{
    return task_ring_help(&k->ring);
}

static int wait_for_slot(struct bgzf_sink *k, uint32_t slot)
{
    task_ring_wait(&k->ring, slot, TASK_FREE, k->opt.engine->latch, k->opt.engine->clocks);
    return latch_tripped(k->opt.engine->latch) ? -1 : 0;
}

int bgzf_sink_wait(struct bgzf_sink *k, uint32_t slot)
{
    bgzf_ticket_flush(k->ticket, true);
    int result = wait_for_slot(k, slot);
    bgzf_ticket_flush(k->ticket, false);
    return result;
}

int bgzf_sink_begin(struct bgzf_sink *k, uint32_t *slot)
{
    *slot = task_ring_next(&k->ring);
    if (wait_for_slot(k, *slot) < 0)
        return -1;
    bgzf_ticket_begin(k->ticket, task_ring_head(&k->ring));
    k->begun = true;
    return 0;
}

int bgzf_sink_hand_out(struct bgzf_sink *k)
{
    if (!k->begun)
        return 0;
    k->begun = false;
    task_ring_hand_out(&k->ring);
    return latch_tripped(k->opt.engine->latch) ? -1 : 0;
}

uint64_t bgzf_sink_mark(const struct bgzf_sink *k)
{
    return task_ring_head(&k->ring) + k->begun * (1u + k->opt.copies);
}

bool bgzf_sink_passed(const struct bgzf_sink *k, uint64_t mark)
{
    return bgzf_ticket_passed(k->ticket, mark);
}

bool bgzf_sink_will_pass(const struct bgzf_sink *k, uint64_t mark)
{
    return mark <= task_ring_head(&k->ring);
}

int bgzf_sink_finish(struct bgzf_sink *k)
{
    if (bgzf_sink_hand_out(k) < 0)
        return -1;
    for (uint32_t i = 0; i < k->opt.n_slots; i++)
        if (bgzf_sink_wait(k, i) < 0)
            return -1;
    task_ring_hand_out_all(&k->ends);
    return bgzf_ticket_end(k->ticket, bgzf_block_eof, k->opt.form == SINK_SAM ? 0 : BGZF_EOF_SIZE);
}

size_t bgzf_sink_piece_size(int n_threads, int level, size_t memory)
{
    size_t size = level == 0 ? 0 : PIECE_MOST;
    while (size > PIECE_LEAST && bgzf_ticket_pieces(bgzf_ticket_writers(n_threads), size) > memory)
        size /= 2;
    return size;
}

size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level, size_t piece_size)
{
    return task_ring_memory(n_slots + ENDS) + bgzf_ticket_memory(n_slots) + n_slots * (size_t)BGZF_MAX_BLOCK
         + (size_t)n_threads * (bgzf_codec_memory(level) + BGZF_MAX_BLOCK)
         + bgzf_ticket_pieces(bgzf_ticket_writers(n_threads), piece_size);
}
