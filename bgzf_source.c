/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codec/bam_inflate.h"
#include "codec/bgzf_block.h"
#include "bgzf_source.h"
#include "base/byte_window.h"
#include "base/latch.h"
#include "base/message.h"
#include "base/stats.h"
#include "base/task_ring.h"

_Static_assert((int)BYTE_WINDOW_KEPT >= (int)BGZF_MAX_BLOCK, "a block that is not whole yet fits");

struct source_slot {
    struct bgzf_frame frame;     /* these four: master, before READY */
    const uint8_t *compressed;
    atomic_int *users;           /* of those bytes, held until they are inflated */
    struct bgzf_source_block block;
    enum bgzf_fault fault;       /* claimer, before DONE */
};

struct bgzf_source {
    struct bgzf_source_options opt;
    int eof_block;               /* the last block seen was the empty one of 28 bytes; main thread, as all but codecs */
    int peeked;                  /* frame is the block at the window's beginning */
    struct bgzf_frame frame;
    struct source_slot *slots;
    struct task_ring ring;       /* of them: inflating one is its work */
    bgzf_source_inflated_fn *inflated;
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

static void source_run(void *source, uint32_t index);

static int source_alloc(struct bgzf_source *s)
{
    struct task_ring_options ring = {.n_slots = s->opt.n_slots, .n_threads = s->opt.n_threads, .run = source_run, .arg = s};
    if (task_ring_open(&s->ring, &ring) < 0)
        return -1;
    s->slots = calloc(s->opt.n_slots, sizeof *s->slots);
    s->codecs = codecs_new(s->opt.n_threads, 0);
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
    codecs_free(s->codecs, s->opt.n_threads);
    task_ring_close(&s->ring, !latch_tripped(s->opt.latch));
    free(s->slots);
    free(s);
}

void bgzf_source_on_inflated(struct bgzf_source *s, bgzf_source_inflated_fn *fn, void *arg)
{
    s->inflated = fn;
    s->inflated_arg = arg;
}

static enum bgzf_fault source_inflate(struct bgzf_source *s, const uint8_t *p,
                                      const struct bgzf_frame *frame, uint8_t *dst)
{
    enum stage before = stats_enter(s->opt.stats, STAGE_INFLATE);
    enum bgzf_fault fault = BGZF_OK;
    if (s->opt.framed)
        fault = bgzf_block_inflate(s->codecs[task_thread()], p, frame, dst);
    else
        memcpy(dst, p, frame->size);
    stats_leave(s->opt.stats, before, s->opt.text_size ? 0 : frame->inflated_size);
    return fault;
}

/* Inflates the block of a claimed slot. */
static void source_run(void *source, uint32_t index)
{
    struct bgzf_source *s = source;
    struct source_slot *slot = &s->slots[index];
    if (!latch_tripped(s->opt.latch)) {
        slot->fault = source_inflate(s, slot->compressed, &slot->frame, slot->block.data);
        if (!slot->fault && s->inflated)
            s->inflated(s->inflated_arg, &slot->block);
    }
    byte_window_release(slot->users);
}

static bool source_help(void *source)
{
    struct bgzf_source *s = source;
    return task_ring_help(&s->ring);
}

/* The frame of the block at p; plain bytes make a block of all that is there. */
static enum bgzf_fault frame_at(const struct bgzf_source *s, const uint8_t *p, size_t avail,
                                struct bgzf_frame *frame)
{
    if (avail == 0)
        return BGZF_MORE;
    if (s->opt.framed)
        return bgzf_block_frame(p, avail, frame);
    uint32_t most = s->opt.text_size ? s->opt.text_size : BGZF_FILL;
    frame->size = frame->inflated_size = avail < most ? (uint32_t)avail : most;
    frame->data_offset = 0;
    return BGZF_OK;
}

/* Finds the next block, empty or not, as bgzf_source_peek() does. */
static int source_frame(struct bgzf_source *s)
{
    struct byte_window *w = s->opt.input;
    enum bgzf_fault fault;
    int more = 1;
    while ((fault = frame_at(s, w->data, w->size, &s->frame)) == BGZF_MORE && more > 0) {
        task_ring_make_task(&s->ring);           /* who knows how long it takes to get more */
        more = byte_window_more(w, source_help, s);
    }
    if (fault == BGZF_OK)
        return 1;
    if (more < 0 || (more == 0 && w->size == 0))
        return more;
    return latch_fail(s->opt.latch, "%s: at file offset %llu: %s. Nothing was written; check that the file is "
                      "complete", s->opt.path, (unsigned long long)w->offset, bgzf_fault_text(fault));
}

/* The peeked block is done with. */
static void source_pass(struct bgzf_source *s)
{
    byte_window_skip(s->opt.input, s->frame.size);
    s->peeked = 0;
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
            source_pass(s);
        }
    }
    *inflated_size = s->frame.inflated_size;
    return 1;
}

uint32_t bgzf_source_slots(const struct bgzf_source *s)
{
    return s->opt.n_slots;
}

int bgzf_source_ring_full(const struct bgzf_source *s)
{
    return task_ring_full(&s->ring);
}

void bgzf_source_hand_out(struct bgzf_source *s, uint8_t *dst)
{
    struct byte_window *w = s->opt.input;
    uint32_t index = task_ring_next(&s->ring);
    struct source_slot *slot = &s->slots[index];
    slot->frame = s->frame;
    slot->compressed = w->data;
    slot->users = byte_window_hold(w);
    slot->fault = BGZF_OK;
    slot->block = (struct bgzf_source_block){w->offset, dst, s->frame.inflated_size, index};
    source_pass(s);
    task_ring_hand_out(&s->ring);
}

static int block_failed(struct bgzf_source *s, uint64_t file_offset, enum bgzf_fault fault)
{
    return latch_fail(s->opt.latch, "%s: block at file offset %llu: %s. Nothing was written; get a "
                      "good copy of the file", s->opt.path, (unsigned long long)file_offset,
                      bgzf_fault_text(fault));
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

int bgzf_source_take(struct bgzf_source *s, int wait, struct bgzf_source_block *block)
{
    if (task_ring_empty(&s->ring))
        return 0;
    uint32_t index = task_ring_oldest(&s->ring);
    if (task_ring_state(&s->ring, index) != TASK_DONE) {
        if (!wait)
            return 0;
        task_ring_wait(&s->ring, index, TASK_DONE, NULL, s->opt.stats);
    }
    *block = s->slots[index].block;
    enum bgzf_fault fault = s->slots[index].fault;
    task_ring_take(&s->ring);
    if (fault)
        return block_failed(s, block->file_offset, fault);
    return latch_tripped(s->opt.latch) ? -1 : 1;
}

int bgzf_source_saw_eof_block(const struct bgzf_source *s)
{
    return s->eof_block || !s->opt.framed;
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
