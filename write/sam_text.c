/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "base/byte_buffer.h"
#include "hts/hts_file.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "bgzf_omp.h"
#include "codec/bgzf_block.h"
#include "write/record_list.h"
#include "write/record_out.h"
#include "write/sam_text.h"
#include "write/sink_verify.h"

/* Lines have some 1.3 times the bytes of their records, and up to 4 times if they hold arrays of small numbers. All
 * slots together have room for TEXT_KEPT bytes each. A long line takes the room of several slots. */
enum { TEXT_FIRST = 2 * BGZF_MAX_BLOCK, TEXT_KEPT = 4 * BGZF_MAX_BLOCK, LINE_KEPT = BGZF_MAX_BLOCK };

struct text_thread {
    struct record_out record;
    kstring_t line;
    struct byte_buffer text;     /* text to be deflated */
};

struct text_slot {
    struct byte_buffer out;      /* bytes to be written */
    size_t room;                 /* bytes that `out` may keep; set by the main thread, as is sam_text.room */
};

struct sam_text {
    struct bgzf_sink_options opt;
    const struct record_out_options *how;
    struct bgzf_codec **codecs;  /* this and the next one: one for each thread; NULL: the text stays plain */
    struct text_thread *threads;
    struct text_slot *slots;
    size_t room;                 /* sum of the rooms of all slots */
};

static int alloc_all(struct sam_text *t)
{
    t->threads = calloc((size_t)t->opt.engine->n_threads, sizeof *t->threads);
    t->slots = calloc(t->opt.n_slots, sizeof *t->slots);
    if (!t->threads || !t->slots)
        return -1;
    if (t->opt.form != SINK_SAM_GZ)
        return 0;
    t->codecs = calloc((size_t)t->opt.engine->n_threads, sizeof *t->codecs);
    return t->codecs ? 0 : -1;
}

struct sam_text *sam_text_new(const struct bgzf_sink_options *sink, const struct record_out_options *how)
{
    struct sam_text *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->opt = *sink;
    t->how = how;
    if (alloc_all(t) == 0)
        return t;
    sam_text_free(t);
    return NULL;
}

void sam_text_free(struct sam_text *t)
{
    if (!t)
        return;
    for (int i = 0; t->threads && i < t->opt.engine->n_threads; i++) {
        record_out_close(&t->threads[i].record);
        free(t->threads[i].line.s);
        free(t->threads[i].text.p);
    }
    for (uint32_t i = 0; t->slots && i < t->opt.n_slots; i++)
        free(t->slots[i].out.p);
    bgzf_codec_free_all(t->codecs, t->opt.engine->n_threads);
    free(t->threads);
    free(t->slots);
    free(t);
}

/* ---- main thread: the room of all slots ---- */

/* The most bytes of a line, not counting the names of references. A base and its quality take 3/2 bytes and become two
 * characters. In the rest, one byte becomes five characters at most: an element of an array. */
static size_t longest_line(const struct record_ref *r)
{
    size_t bases = load_le32(bam_record_at(r->data)->seq_len), most = (size_t)r->size * 2 / 3;
    return 5 * (size_t)r->size - (bases < most ? bases : most) * 11 / 2;
}

/* A long line takes its room twice, because it is made beside the text that it is appended to. */
bool sam_text_begin(struct sam_text *t, uint32_t slot, const struct record_ref *line)
{
    size_t wanted = line ? 2 * longest_line(line) : 0, all = (size_t)t->opt.n_slots * TEXT_KEPT;
    wanted = wanted > TEXT_KEPT ? wanted : TEXT_KEPT;
    t->room -= t->slots[slot].room;
    t->slots[slot].room = 0;
    if (t->room > 0 && t->room + wanted > all)
        return false;
    t->slots[slot].room = wanted;
    t->room += wanted;
    return true;
}

void sam_text_give_back(struct sam_text *t, uint32_t slot)
{
    struct text_slot *s = &t->slots[slot];
    t->room -= s->room;
    free(s->out.p);
    *s = (struct text_slot){0};
}

/* Makes room for `more` bytes. It grows by less than doubling, because there are many buffers. */
static int make_room(struct sam_text *t, struct byte_buffer *to, size_t more)
{
    size_t size = to->n + more, wanted = to->n ? size + size / 8 : size;
    if (size <= to->max || byte_buffer_resize(to, wanted > TEXT_FIRST ? wanted : TEXT_FIRST) == 0)
        return 0;
    return latch_fail(t->opt.engine->latch, "out of memory for %zu bytes of SAM", size);
}

/* ---- lines ---- */

static int append(struct sam_text *t, struct byte_buffer *to, const void *bytes, size_t n)
{
    if (make_room(t, to, n) < 0)
        return -1;
    memcpy(to->p + to->n, bytes, n);
    to->n += n;
    return 0;
}

static int append_record(struct sam_text *t, struct byte_buffer *to, const struct record_ref *r, uint64_t *checksum)
{
    struct text_thread *own = &t->threads[task_thread()];
    if (record_out_take(&own->record, t->how, r->data, r->size, checksum) < 0)
        return -1;
    errno = 0;
    if (sam_format1(t->how->header, &own->record.b, &own->line) <= 0 || kputc('\n', &own->line) < 0)
        return latch_fail(t->opt.engine->latch, "writing %s failed: %s", t->opt.path,
                          hts_file_cause(errno));
    return append(t, to, own->line.s, own->line.l);
}

static int append_records(struct sam_text *t, struct byte_buffer *to, const struct record_ref *records, uint32_t n,
                          uint64_t *checksum)
{
    enum { AHEAD = 3 };
    for (uint32_t i = 0; i < n; i++) {
        const struct record_ref *r = &records[i];
        if (i + AHEAD < n)
            record_list_prefetch(&r[AHEAD]);
        if (append_record(t, to, r, checksum) < 0)
            return -1;
    }
    return 0;
}

/* ---- blocks ---- */

static int put_block(struct sam_text *t, const uint8_t *data, uint32_t n, struct byte_buffer *out)
{
    int thread = task_thread();
    if (make_room(t, out, BGZF_MAX_BLOCK) < 0)
        return -1;
    struct bgzf_codec *codec = bgzf_codec_of(t->codecs, thread, t->opt.level);
    if (!codec)
        return latch_fail(t->opt.engine->latch, BGZF_SINK_NO_MEMORY, t->opt.path);
    uint8_t *block = out->p + out->n;
    uint32_t length = bgzf_block_deflate(codec, data, n, block);
    out->n += length;
    struct sink_verify *verify = t->how->verify;
    return verify ? sink_verify_block(verify, thread, block, length, data, n) : 0;
}

/* Cuts the text into blocks of about the same size. If all but the last were full, that one could be tiny. */
static int put_text(struct sam_text *t, const struct byte_buffer *text, struct byte_buffer *out)
{
    enum stage before = clocks_enter(t->opt.engine->clocks, STAGE_DEFLATE);
    size_t n_blocks = (text->n + BGZF_FILL - 1) / BGZF_FILL, at = 0;
    for (size_t i = 1; i <= n_blocks; i++) {
        size_t to = text->n * i / n_blocks;
        if (put_block(t, text->p + at, (uint32_t)(to - at), out) < 0)
            break;
        at = to;
    }
    clocks_leave(t->opt.engine->clocks, before, at);
    return at < text->n ? -1 : 0;
}

/* ---- both ---- */

/* The buffer for the lines of a slot's block. */
static struct byte_buffer *begin(struct sam_text *t, uint32_t slot)
{
    struct text_slot *s = &t->slots[slot];
    byte_buffer_trim(&s->out, s->room);
    t->threads[task_thread()].record.slot = slot;
    return t->codecs ? &t->threads[task_thread()].text : &s->out;
}

/* Ends the slot's block, and frees the memory of the thread's long lines. Returns the number of bytes of the block,
 * which the sink keeps in 31 bits. 0: failed, and the error is recorded in the latch. */
static uint32_t end(struct sam_text *t, uint32_t slot, const uint8_t **bytes)
{
    struct text_thread *own = &t->threads[task_thread()];
    struct byte_buffer *out = &t->slots[slot].out;
    record_out_trim(&own->record, LINE_KEPT);
    if (own->line.m > LINE_KEPT) {
        free(own->line.s);
        own->line = (kstring_t){0};
    }
    if (t->codecs && put_text(t, &own->text, out) < 0)
        return 0;
    byte_buffer_trim(&own->text, 4 * TEXT_KEPT);
    *bytes = out->p;
    if (out->n > INT32_MAX)
        latch_fail(t->opt.engine->latch, "writing %s failed: a line is longer than 2^31-1 bytes", t->opt.path);
    return out->n > INT32_MAX ? 0 : (uint32_t)out->n;
}

uint32_t sam_text_header(struct sam_text *t, uint32_t slot, const struct record_ref *part, const uint8_t **bytes)
{
    return append(t, begin(t, slot), part->data, part->size) < 0 ? 0 : end(t, slot, bytes);
}

uint32_t sam_text_records(struct sam_text *t, uint32_t slot, const struct record_ref *records, uint32_t n,
                          uint64_t *checksum, const uint8_t **bytes)
{
    *checksum = 0;
    return append_records(t, begin(t, slot), records, n, checksum) < 0 ? 0 : end(t, slot, bytes);
}

size_t sam_text_memory(bool blocks, int level, int n_threads, uint32_t n_slots)
{
    size_t codec = blocks ? bgzf_codec_memory(level) + 4 * TEXT_KEPT : 0;
    return n_slots * (sizeof(struct text_slot) + TEXT_KEPT)
         + (size_t)n_threads * (sizeof(struct text_thread) + codec + 3 * LINE_KEPT);
}
