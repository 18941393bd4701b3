/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_window.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "bgzf_omp.h"
#include "bgzip/bgzip_pass.h"
#include "bgzip/gzi_index.h"
#include "codec/bgzf_block.h"
#include "codec/frame_list.h"
#include "codec/gzip_blocks.h"

enum {
    /* Blocks in use: enough for every thread while a writer collects some. A slot needs 128 KiB. */
    SLOTS = 32, SLOTS_PER_THREAD = 8,
    PIECES_MEMORY = 4 << 20,      /* bytes for the buffers of the writers */
};
_Static_assert((int)BYTE_WINDOW_KEPT >= (int)BGZF_MAX_BLOCK, "a block that is not whole yet fits");

/* The input or output of a slot of the sink. The main thread writes it before the block is handed out, except where
 * noted. */
struct pass_block {
    const uint8_t *from;         /* data, or a BGZF block; NULL: the bytes are in `data` */
    atomic_int *users;           /* users of those bytes, which are held until they are used */
    uint32_t size;               /* bytes of data */
    uint32_t begin, end;         /* the part of them that is written */
    struct bgzf_frame frame;
    uint64_t file_offset;
    uint8_t *data;               /* decompressed bytes, written by its task */
    enum bgzf_fault fault;       /* written by its task */
};

struct bgzip_pass {
    struct bgzip_pass_options opt;
    struct bgzip_pass_result *result;
    struct bgzf_sink *sink;
    struct pass_block *blocks;   /* block of each slot */
    uint8_t *data;               /* bytes of all blocks */
    struct bgzf_codec **codecs;  /* one for each thread */
    uint64_t placed;  /* bytes of data in the blocks that have places; used by the thread that holds the ticket */
};

/* ------------------------------------------------------------------- tasks */

static uint32_t fill(void *pass, uint32_t slot, uint8_t *data)
{
    const struct pass_block *block = &((struct bgzip_pass *)pass)->blocks[slot];
    memcpy(data, block->from, block->size);
    byte_window_release(block->users);
    return block->size;
}

static void add_place(struct bgzip_pass *p, uint64_t file, uint64_t data)
{
    if (p->opt.index && file > 0 && gzi_index_add(p->opt.index, (struct gzi_place){file, data}) < 0)
        latch_fail(p->opt.engine->latch, "%s: out of memory for the index", p->opt.path);
}

static void compressed_placed(void *pass, uint32_t slot, uint64_t place, uint64_t next)
{
    struct bgzip_pass *p = pass;
    add_place(p, p->opt.before.file + place, p->opt.before.data + p->placed);
    p->placed += p->blocks[slot].size;
    p->result->compressed = next;
}

/* Bytes of a damaged block are not written: its fault ends the pass before that, in decompressed_placed(). */
static uint32_t undo_block(void *pass, uint32_t slot, const uint8_t **bytes)
{
    struct bgzip_pass *p = pass;
    struct pass_block *block = &p->blocks[slot];
    if (block->from) {
        block->fault = bgzf_block_inflate(bgzf_codec_of(p->codecs, task_thread(), 0), block->from, &block->frame,
                                          block->data);
        byte_window_release(block->users);
    }
    *bytes = block->data + block->begin;
    return block->end - block->begin;
}

static int block_failed(struct bgzip_pass *p, uint64_t file_offset, const char *fault)
{
    return latch_fail(p->opt.engine->latch, "%s: at file offset %llu: %s", p->opt.path, (unsigned long long)file_offset,
                      fault);
}

/* Called in the order of the file, so that the first fault is reported. */
static void decompressed_placed(void *pass, uint32_t slot, uint64_t place, uint64_t next)
{
    struct bgzip_pass *p = pass;
    const struct pass_block *block = &p->blocks[slot];
    (void)place, (void)next;
    if (block->fault)
        block_failed(p, block->file_offset, bgzf_fault_text(block->fault));
}

/* ------------------------------------------------------------- main thread */

static int out_of_memory(struct bgzip_pass *p)
{
    return latch_fail(p->opt.engine->latch, "%s: out of memory; try fewer threads (-@)", p->opt.path);
}

static int alloc_pass(struct bgzip_pass *p)
{
    const struct bgzip_pass_options *o = &p->opt;
    bool compress = o->compress;
    uint32_t n_slots = SLOTS + SLOTS_PER_THREAD * (uint32_t)o->engine->n_threads;
    struct bgzf_sink_options how = {
        .fd = o->fd, .path = o->out_path, .form = compress ? SINK_BAM : SINK_SAM, .level = o->level,
        .engine = o->engine, .n_slots = n_slots, .fill = fill,
        .make = undo_block, .placed = compress ? compressed_placed : decompressed_placed, .arg = p,
    };
    how.piece_size = compress ? bgzf_sink_piece_size(o->engine->n_threads, o->level, PIECES_MEMORY) : 0;
    p->blocks = calloc(n_slots, sizeof *p->blocks);
    p->codecs = calloc((size_t)o->engine->n_threads, sizeof *p->codecs);
    p->data = compress ? NULL : malloc((size_t)n_slots * BGZF_MAX_BLOCK);
    if (!p->blocks || !p->codecs || (!compress && !p->data))
        return out_of_memory(p);
    for (uint32_t i = 0; p->data && i < n_slots; i++)
        p->blocks[i].data = p->data + (size_t)i * BGZF_MAX_BLOCK;
    p->sink = bgzf_sink_open(&how);
    return p->sink ? 0 : latch_fail(o->engine->latch, BGZF_SINK_NO_MEMORY, o->out_path);
}

static bool help(void *sink)
{
    return bgzf_sink_help(sink);
}

/* As byte_window_more(). */
static int more(struct bgzip_pass *p)
{
    bgzf_sink_make_task(p->sink);                /* it may take long until there is more */
    return byte_window_more(p->opt.input, help, p->sink);
}

static int bgzip_pass_compress(struct bgzip_pass *p)
{
    struct byte_window *w = p->opt.input;
    struct block_cut cut = p->opt.cut;
    for (;;) {
        int got = 1;
        uint32_t slot;
        while (w->size < BGZF_FILL && (got = more(p)) > 0)
            ;
        if (got < 0 || (w->size > 0 && bgzf_sink_begin(p->sink, &slot) < 0))
            return -1;
        if (w->size == 0)
            break;
        struct pass_block *block = &p->blocks[slot];
        block->from = w->data;
        block->users = byte_window_hold(w);
        block->size = block_cut_next(&cut, w->data, w->size < BGZF_FILL ? (uint32_t)w->size : BGZF_FILL);
        byte_window_skip(w, block->size);
        if (bgzf_sink_hand_out(p->sink) < 0)
            return -1;
    }
    p->result->data = cut.at;
    p->result->lacks_places = block_cut_lacks_places(&cut);
    if (bgzf_sink_finish(p->sink) < 0)
        return -1;
    p->result->compressed += BGZF_EOF_SIZE;
    return 0;
}

/* Faults of earlier blocks come first, and the bytes before this fault are written. */
static int fault_here(struct bgzip_pass *p, uint64_t file_offset, const char *fault)
{
    return bgzf_sink_finish(p->sink) < 0 ? -1 : block_failed(p, file_offset, fault);
}

enum { FOUND = 1, FOUND_GZIP };

/* Finds the frame of the next block. FOUND_GZIP: plain gzip begins here; 0: the input ends here; -1: failed. */
static int find_frame(struct bgzip_pass *p, struct bgzf_frame *frame)
{
    struct byte_window *w = p->opt.input;
    enum bgzf_fault fault;
    int got = 1;
    while ((fault = frame_list_frame(w->frames, w->offset, w->data, w->size, frame)) == BGZF_MORE && got > 0)
        got = more(p);
    if (fault == BGZF_OK)
        return FOUND;
    if (got < 0 || (got == 0 && w->size == 0))
        return got;
    if (fault == BGZF_NOT_BGZF && !p->opt.only_blocks)
        return FOUND_GZIP;
    return fault_here(p, p->opt.file_begin + w->offset, bgzf_fault_text(fault));
}

/* Finds the part of the next n bytes to be written. False: none of them. */
static bool find_part(struct bgzip_pass *p, uint32_t n, uint32_t *begin, uint32_t *end)
{
    uint64_t from = p->result->data, skip = p->opt.skip, left = p->opt.most;
    *begin = skip <= from ? 0 : skip - from < n ? (uint32_t)(skip - from) : n;
    left -= from + *begin > skip ? from + *begin - skip : 0;
    *end = left < n - *begin ? *begin + (uint32_t)left : n;
    p->result->data += n;
    return *begin < *end;
}

static bool is_done(const struct bgzip_pass *p)
{
    return p->result->data >= p->opt.skip && p->result->data - p->opt.skip >= p->opt.most;
}

/* Checks a block without data, because its data would not show that its size was changed to 0. */
static int check_empty(struct bgzip_pass *p, const struct bgzf_frame *frame)
{
    const struct byte_window *w = p->opt.input;
    uint8_t none;
    enum bgzf_fault fault = bgzf_block_inflate(bgzf_codec_of(p->codecs, task_thread(), 0), w->data, frame, &none);
    p->result->lacks_eof_block = frame->size != BGZF_EOF_SIZE;
    return fault ? fault_here(p, p->opt.file_begin + w->offset, bgzf_fault_text(fault)) : 0;
}

/* Hands out the block at the start of the window. -1: stop. */
static int deal_block(struct bgzip_pass *p, const struct bgzf_frame *frame)
{
    struct byte_window *w = p->opt.input;
    uint64_t offset = p->opt.file_begin + w->offset;
    uint32_t slot, begin, end;
    if (frame->inflated_size == 0) {
        if (check_empty(p, frame) < 0)
            return -1;
        byte_window_skip(w, frame->size);
        return 0;
    }
    p->result->lacks_eof_block = true;
    add_place(p, offset, p->result->data);
    if (find_part(p, frame->inflated_size, &begin, &end)) {
        if (bgzf_sink_begin(p->sink, &slot) < 0)
            return -1;
        struct pass_block *block = &p->blocks[slot];
        *block = (struct pass_block){.from = w->data, .users = byte_window_hold(w), .size = frame->inflated_size,
                                     .begin = begin, .end = end, .frame = *frame, .file_offset = offset,
                                     .data = block->data};
        if (bgzf_sink_hand_out(p->sink) < 0)
            return -1;
    }
    byte_window_skip(w, frame->size);
    return 0;
}

/* Hands out bytes that were decompressed on the main thread. */
static int deal_bytes(struct bgzip_pass *p, const uint8_t *data, uint32_t n)
{
    uint32_t slot, begin, end;
    if (!find_part(p, n, &begin, &end))
        return 0;
    if (bgzf_sink_begin(p->sink, &slot) < 0)
        return -1;
    memcpy(p->blocks[slot].data, data, n);
    p->blocks[slot] = (struct pass_block){.size = n, .begin = begin, .end = end, .data = p->blocks[slot].data};
    return bgzf_sink_hand_out(p->sink);
}

/* Decompresses one member of plain gzip, on the main thread. */
static int deal_member(struct bgzip_pass *p, struct gzip_blocks *g)
{
    p->result->lacks_eof_block = false;
    while (!g->ended && !is_done(p)) {
        bgzf_sink_make_task(p->sink);            /* it may take long until there is more */
        enum bgzf_fault fault = gzip_blocks_next(g, p->opt.input, help, p->sink);
        if (deal_bytes(p, g->data, g->size) < 0)
            return -1;
        if (fault)
            return fault == BGZF_NO_MEMORY ? out_of_memory(p) : fault_here(p, p->opt.file_begin + g->begin,
                   fault == BGZF_MORE ? "the file ends inside the gzip data that begin here (truncated file?)"
                                      : "the gzip data that begin here are damaged");
    }
    return 0;
}

static int decompress_member(struct bgzip_pass *p)
{
    struct gzip_blocks *blocks = gzip_blocks_open(p->opt.input);
    int result = blocks ? deal_member(p, blocks) : out_of_memory(p);
    gzip_blocks_close(blocks);
    return result;
}

static int bgzip_pass_decompress(struct bgzip_pass *p)
{
    struct bgzf_frame frame;
    while (!is_done(p)) {
        int found = find_frame(p, &frame);
        if (found == 0)
            break;
        if (found < 0 || (found == FOUND_GZIP ? decompress_member(p) : deal_block(p, &frame)) < 0)
            return -1;
    }
    if (is_done(p))
        p->result->lacks_eof_block = false;      /* it was not checked */
    return bgzf_sink_finish(p->sink);
}

int bgzip_pass_run(struct bgzip_pass *p, struct bgzip_pass_result *result)
{
    p->result = result;
    *result = (struct bgzip_pass_result){0};
    return p->opt.compress ? bgzip_pass_compress(p) : bgzip_pass_decompress(p);
}

struct bgzip_pass *bgzip_pass_open(const struct bgzip_pass_options *options)
{
    struct bgzip_pass *p = calloc(1, sizeof *p);
    if (!p) {
        latch_fail(options->engine->latch, "%s: out of memory", options->path);
        return NULL;
    }
    p->opt = *options;
    if (alloc_pass(p) == 0)
        return p;
    bgzip_pass_close(p);
    return NULL;
}

void bgzip_pass_close(struct bgzip_pass *p)
{
    if (!p)
        return;
    bgzf_sink_close(p->sink);
    bgzf_codec_free_all(p->codecs, p->opt.engine->n_threads);
    free(p->data);
    free(p->blocks);
    free(p);
}
