/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "bgzf_block.h"
#include "bgzf_slot.h"
#include "bgzf_source.h"
#include "byte_source.h"
#include "latch.h"
#include "stats.h"

enum {
    N_PIECES = 3,                /* one being read into, one being inflated, one in between */
};

/* A buffer of compressed input. */
struct piece {
    uint8_t *data;
    size_t size;                 /* bytes read; master */
    uint64_t file_offset;        /* of data[0]; master */
    atomic_int users;            /* blocks handed out and not yet inflated: master adds, tasks subtract */
};

struct source_slot {
    atomic_int state;            /* bgzf_slot.h */
    struct bgzf_frame frame;     /* these four: master, before READY */
    const uint8_t *compressed;
    struct piece *piece;
    struct bgzf_source_block block;
    enum bgzf_fault fault;       /* claimer, before DONE */
};

struct bgzf_source {
    struct bgzf_source_options opt;
    int framed;                  /* BGZF blocks; else plain bytes, cut anywhere */
    enum stage reading;          /* what reading the input is */
    struct piece pieces[N_PIECES];
    unsigned piece;              /* the one being scanned; master, as all below but codecs */
    size_t at;                   /* where in it */
    int at_eof;                  /* read() returned 0 */
    int eof_block;               /* the last block seen was the empty one of 28 bytes */
    int peeked;                  /* frame is the block at `at` */
    struct bgzf_frame frame;
    struct source_slot *slots;
    uint64_t head, tail;         /* blocks handed out, blocks taken back */
    uint64_t help;               /* no READY slot before this one */
    bgzf_inflated_fn *inflated;
    void *inflated_arg;
    struct bgzf_codec **codecs;  /* one per thread, each used by its thread only */
};

static struct bgzf_codec **codecs_new(int n_threads, int level)
{
    struct bgzf_codec **codecs = calloc((size_t)n_threads, sizeof *codecs);
    for (int i = 0; codecs && i < n_threads; i++) {
        codecs[i] = bgzf_codec_new(level);
        if (!codecs[i]) {
            while (i-- > 0)
                bgzf_codec_free(codecs[i]);
            free(codecs);
            return NULL;
        }
    }
    return codecs;
}

static void codecs_free(struct bgzf_codec **codecs, int n_threads)
{
    for (int i = 0; codecs && i < n_threads; i++)
        bgzf_codec_free(codecs[i]);
    free(codecs);
}

static int source_alloc(struct bgzf_source *s)
{
    s->slots = calloc(s->opt.n_slots, sizeof *s->slots);
    s->codecs = codecs_new(s->opt.n_threads, 0);
    for (int i = 0; i < N_PIECES; i++)
        if (!(s->pieces[i].data = malloc(s->opt.piece_size)))
            return -1;
    return s->slots && s->codecs ? 0 : -1;
}

struct bgzf_source *bgzf_source_open(const struct bgzf_source_options *options)
{
    struct bgzf_source *s = calloc(1, sizeof *s);
    if (!s) {
        latch_fail(options->latch, "%s: out of memory", options->path);
        return NULL;
    }
    s->opt = *options;
    s->framed = byte_source_framing(options->input) == BYTES_BGZF;
    s->reading = byte_source_framing(options->input) == BYTES_RECORDS ? STAGE_CONVERT : STAGE_READ;
    if (source_alloc(s) == 0)
        return s;
    latch_fail(options->latch, "%s: out of memory for read buffers; try fewer threads (-@)", options->path);
    bgzf_source_close(s);
    return NULL;
}

void bgzf_source_close(struct bgzf_source *s)
{
    if (!s)
        return;
    for (int i = 0; i < N_PIECES; i++)
        free(s->pieces[i].data);
    codecs_free(s->codecs, s->opt.n_threads);
    free(s->slots);
    free(s);
}

void bgzf_source_on_inflated(struct bgzf_source *s, bgzf_inflated_fn *fn, void *arg)
{
    s->inflated = fn;
    s->inflated_arg = arg;
}

static enum bgzf_fault source_inflate(struct bgzf_source *s, const uint8_t *p,
                                      const struct bgzf_frame *frame, uint8_t *dst)
{
    enum stage before = stats_enter(s->opt.stats, STAGE_INFLATE);
    enum bgzf_fault fault = BGZF_OK;
    if (s->framed)
        fault = bgzf_block_inflate(s->codecs[omp_get_thread_num()], p, frame, dst);
    else
        memcpy(dst, p, frame->size);
    stats_leave(s->opt.stats, before, frame->inflated_size);
    return fault;
}

/* Inflates the block of a claimed slot. */
static void source_run(struct bgzf_source *s, struct source_slot *slot)
{
    if (!latch_tripped(s->opt.latch)) {
        slot->fault = source_inflate(s, slot->compressed, &slot->frame, slot->block.data);
        if (!slot->fault && s->inflated)
            s->inflated(s->inflated_arg, &slot->block);
    }
    atomic_fetch_sub_explicit(&slot->piece->users, 1, memory_order_release);
    slot_pass(&slot->state, SLOT_DONE);
}

/* Runs one block that nobody has claimed yet; 0 if there is none. */
static int source_help(struct bgzf_source *s)
{
    if (s->help < s->tail)
        s->help = s->tail;
    for (; s->help < s->head; s->help++) {
        struct source_slot *slot = &s->slots[s->help % s->opt.n_slots];
        if (slot_claim(&slot->state)) {
            source_run(s, slot);
            return 1;
        }
    }
    return 0;
}

/* Moves on to the next piece, which begins with what is left of this one. */
static int source_rotate(struct bgzf_source *s)
{
    struct piece *from = &s->pieces[s->piece], *to = &s->pieces[(s->piece + 1) % N_PIECES];
    unsigned spins = 0;
    enum stage before = stats_enter(s->opt.stats, STAGE_WAIT);
    while (atomic_load_explicit(&to->users, memory_order_acquire) > 0 && !latch_tripped(s->opt.latch))
        if (!source_help(s))
            slot_pause(&spins);
    stats_leave(s->opt.stats, before, 0);
    if (latch_tripped(s->opt.latch))
        return -1;
    to->size = from->size - s->at;
    to->file_offset = from->file_offset + s->at;
    memcpy(to->data, from->data + s->at, to->size);
    s->piece = (s->piece + 1) % N_PIECES;
    s->at = 0;
    return 0;
}

/* Reads once into the current piece, or a fresh one when it is full. */
static int source_read(struct bgzf_source *s)
{
    if (s->pieces[s->piece].size == s->opt.piece_size && source_rotate(s) < 0)
        return -1;
    struct piece *p = &s->pieces[s->piece];
    enum stage before = stats_enter(s->opt.stats, s->reading);
    ssize_t n = byte_source_read(s->opt.input, p->data + p->size, s->opt.piece_size - p->size);
    stats_leave(s->opt.stats, before, n > 0 ? (uint64_t)n : 0);
    if (n < 0)
        return -1;
    s->at_eof = n == 0;
    p->size += (size_t)n;
    return 0;
}

/* The frame of the block at p; plain bytes make a block of all that is there. */
static enum bgzf_fault frame_at(const struct bgzf_source *s, const uint8_t *p, size_t avail,
                                struct bgzf_frame *frame)
{
    if (avail == 0)
        return BGZF_MORE;
    if (s->framed)
        return bgzf_block_frame(p, avail, frame);
    frame->size = frame->inflated_size = avail < BGZF_FILL ? (uint32_t)avail : BGZF_FILL;
    frame->data_offset = 0;
    return BGZF_OK;
}

/* Finds the next block, empty or not, as bgzf_source_peek() does. */
static int source_frame(struct bgzf_source *s)
{
    for (;;) {
        struct piece *p = &s->pieces[s->piece];
        size_t avail = p->size - s->at;
        enum bgzf_fault fault = frame_at(s, p->data + s->at, avail, &s->frame);
        if (fault == BGZF_OK)
            return 1;
        if (fault == BGZF_MORE && s->at_eof && avail == 0)
            return 0;
        if (fault != BGZF_MORE || s->at_eof)
            return latch_fail(s->opt.latch, "%s: at file offset %llu: %s. Nothing was written; check "
                              "that the file is complete", s->opt.path,
                              (unsigned long long)(p->file_offset + s->at), bgzf_fault_text(fault));
        if (source_read(s) < 0)
            return -1;
    }
}

int bgzf_source_peek(struct bgzf_source *s, uint32_t *inflated_size)
{
    while (!s->peeked) {
        int found = source_frame(s);
        if (found <= 0)
            return found;
        if (s->frame.inflated_size > 0) {
            s->peeked = 1;
            s->eof_block = 0;
        } else {
            s->eof_block = s->frame.size == BGZF_EOF_SIZE;
            s->at += s->frame.size;
        }
    }
    *inflated_size = s->frame.inflated_size;
    return 1;
}

int bgzf_source_ring_full(const struct bgzf_source *s)
{
    return s->head - s->tail == s->opt.n_slots;
}

void bgzf_source_hand_out(struct bgzf_source *s, uint8_t *dst)
{
    struct piece *p = &s->pieces[s->piece];
    uint32_t index = (uint32_t)(s->head++ % s->opt.n_slots);
    struct source_slot *slot = &s->slots[index];
    slot->frame = s->frame;
    slot->compressed = p->data + s->at;
    slot->piece = p;
    slot->fault = BGZF_OK;
    slot->block = (struct bgzf_source_block){p->file_offset + s->at, dst, s->frame.inflated_size, index};
    atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
    slot_pass(&slot->state, SLOT_READY);
    s->at += s->frame.size;
    s->peeked = 0;

    #pragma omp task default(none) firstprivate(s, slot)
    if (slot_claim(&slot->state))
        source_run(s, slot);
}

static int block_failed(struct bgzf_source *s, uint64_t file_offset, enum bgzf_fault fault)
{
    return latch_fail(s->opt.latch, "%s: block at file offset %llu: %s. Nothing was written; get a "
                      "good copy of the file", s->opt.path, (unsigned long long)file_offset,
                      bgzf_fault_text(fault));
}

int bgzf_source_inflate(struct bgzf_source *s, uint8_t *dst)
{
    struct piece *p = &s->pieces[s->piece];
    enum bgzf_fault fault = source_inflate(s, p->data + s->at, &s->frame, dst);
    if (fault)
        return block_failed(s, p->file_offset + s->at, fault);
    s->at += s->frame.size;
    s->peeked = 0;
    return 0;
}

/* Helps until the block of the slot is inflated. */
static void source_wait(struct bgzf_source *s, const struct source_slot *slot)
{
    unsigned spins = 0;
    enum stage before = stats_enter(s->opt.stats, STAGE_WAIT);
    while (slot_state(&slot->state) != SLOT_DONE)
        if (!source_help(s))
            slot_pause(&spins);
    stats_leave(s->opt.stats, before, 0);
}

int bgzf_source_take(struct bgzf_source *s, int wait, struct bgzf_source_block *block)
{
    if (s->head == s->tail)
        return 0;
    struct source_slot *slot = &s->slots[s->tail % s->opt.n_slots];
    if (slot_state(&slot->state) != SLOT_DONE) {
        if (!wait)
            return 0;
        source_wait(s, slot);
    }
    *block = slot->block;
    slot_pass(&slot->state, SLOT_FREE);
    s->tail++;
    if (slot->fault)
        return block_failed(s, block->file_offset, slot->fault);
    return latch_tripped(s->opt.latch) ? -1 : 1;
}

int bgzf_source_saw_eof_block(const struct bgzf_source *s)
{
    return s->eof_block || !s->framed;
}

size_t bgzf_source_memory(int n_threads, uint32_t n_slots, size_t piece_size)
{
    return N_PIECES * piece_size + n_slots * sizeof(struct source_slot) + (size_t)n_threads * bgzf_codec_memory(0);
}
