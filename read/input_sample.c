/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/latch.h"
#include "codec/bgzf_block.h"
#include "read/input_format.h"
#include "read/input_sample.h"
#include "read/input.h"

enum {
    FILES = 8,                   /* the largest number of files that are read; the others are assumed to be like them */
    PLACES = 8,                  /* places in all of these files together; at least two in each */
    PLACE_IN = 512 << 10,        /* largest number of bytes read at a place: 4 MB of a file are read in some ms */
    PLACE_OUT = 1 << 20,         /* the same, inflated: 8 MB are deflated in a second at any level */
    READ_SIZE = PLACE_IN + BGZF_MAX_BLOCK,
    HEADER_READ_MAX = 64 << 20,  /* largest number of bytes of header blocks that are skipped */
    BLOCKS_MAX = 4096,           /* largest number of blocks of a place whose records are searched */
};

/* The sample while it is taken. */
struct sampler {
    struct input_sample *s;
    const struct input *in;
    struct bgzf_codec *codec;
    uint8_t *raw;                /* READ_SIZE bytes of the file */
    struct bam_key *found;       /* keys of one place */
    uint64_t inflated, deflated, bytes, n;       /* counts of this input: sizes of its blocks; bytes and number of the
                                                  * records in them */
};

/* ------------------------------------------------------------------ blocks */

/* Skips the blocks that contain nothing but the header. *offset: where the first other block begins; *skip: the bytes
 * of the header in that block. */
static int pass_header(struct sampler *m, uint64_t *offset, uint64_t *skip)
{
    *offset = 0;
    *skip = m->in->header.size;
    while (*offset < HEADER_READ_MAX) {
        ssize_t n = input_file_read_at(&m->in->format->file, m->raw, READ_SIZE, *offset);
        struct bgzf_frame frame;
        size_t at = 0;
        if (n < 0)
            return -1;
        while (bgzf_block_frame(m->raw + at, (size_t)n - at, &frame) == BGZF_OK) {
            if (frame.inflated_size > *skip)
                return 0;
            *skip -= frame.inflated_size;
            *offset += frame.size;
            at += frame.size;
        }
        if (at == 0)
            return 0;
    }
    return 0;
}

/* ------------------------------------------------------------------ places */

static void note_size(struct input_sample *s, const uint8_t *record)
{
    uint64_t size = bam_record_size(bam_record_at(record));
    s->largest = size > s->largest ? size : s->largest;
}

/* Notes the sizes of the records of a walk, and of the incomplete record after them. */
static void note_sizes(struct sampler *m, const struct bam_walk *walk)
{
    const struct bam_arena *a = &m->s->arena;
    for (size_t i = 0; i < walk->n; i++)
        note_size(m->s, bam_key_record(a->base, m->found[i]));
    if (walk->fault == BAM_CUT && a->bottom - walk->end >= BAM_FIXED)
        note_size(m->s, a->base + walk->end);
}

/* Lists the records of a walk, if it found any. */
static bool list_records(struct sampler *m, const struct bam_walk *walk)
{
    struct input_sample *s = m->s;
    if (walk->n == 0)
        return false;
    struct bam_key *keys = realloc(s->keys, (s->n + walk->n) * sizeof *keys);
    if (!keys)
        return false;
    s->keys = keys;
    memcpy(s->keys + s->n, m->found, walk->n * sizeof *keys);
    s->n += walk->n;
    s->bytes += walk->end - walk->start;
    m->n += walk->n;
    m->bytes += walk->end - walk->start;
    return true;
}

/* Inflates the blocks from `at` on into the arena, and lists where each begins in it. Returns the number of blocks.
 * A block that cannot be inflated ends the place: the sort will report it. */
static size_t sample_inflate(struct sampler *m, size_t at, size_t n, size_t most, uint64_t starts[BLOCKS_MAX])
{
    struct bam_arena *a = &m->s->arena;
    struct bgzf_frame frame;
    size_t n_blocks = 0, first = a->bottom;
    while (n_blocks < BLOCKS_MAX && at < most && a->bottom - first < PLACE_OUT
           && bgzf_block_frame(m->raw + at, n - at, &frame) == BGZF_OK) {
        uint64_t start = a->bottom;
        if (bgzf_block_inflate(m->codec, m->raw + at, &frame, bam_arena_take(a, frame.inflated_size)) != BGZF_OK) {
            a->bottom = start;
            break;
        }
        starts[n_blocks++] = start;
        m->inflated += frame.inflated_size;
        m->deflated += frame.size;
        at += frame.size;
    }
    m->s->inflated += a->bottom - first;
    return n_blocks;
}

/* Takes the records of at most `most` bytes of the file from `offset` on. known: a block begins there, and the first
 * record begins `skip` bytes after the start of the block; if not set, both must be found. */
static int take_place(struct sampler *m, uint64_t offset, size_t most, bool known, uint64_t skip)
{
    static const size_t MARGIN = PLACE_OUT + BGZF_MAX_BLOCK;
    uint64_t starts[BLOCKS_MAX];
    struct bam_arena *a = &m->s->arena;
    ssize_t n = input_file_read_at(&m->in->format->file, m->raw, most + BGZF_MAX_BLOCK, offset);
    if (n < 0)
        return -1;
    if (bam_arena_room(a) < MARGIN)
        return 0;
    size_t at = known ? 0 : bgzf_block_find(m->raw, (size_t)n);
    size_t n_blocks = sample_inflate(m, at, (size_t)n, most, starts);
    bool listed = false;
    if (known && n_blocks > 0 && starts[0] + skip <= a->bottom) {
        struct bam_walk walk = bam_arena_walk(a, starts[0] + skip, a->bottom, m->found);
        note_sizes(m, &walk);
        listed = list_records(m, &walk);
    }
    for (size_t i = 0; !known && i < n_blocks && !listed; i++) {
        struct bam_walk walk = bam_arena_guess(a, starts[i], a->bottom, m->found);
        listed = list_records(m, &walk);
        if (listed)
            note_sizes(m, &walk);
    }
    a->walked = a->bottom;
    return 0;
}

static int sample_input(struct sampler *m, size_t places)
{
    uint64_t size = m->in->format->size, offset, skip;
    m->inflated = m->deflated = m->bytes = m->n = 0;
    m->s->arena.n_ref = sam_hdr_nref(m->in->header.sam);
    if (pass_header(m, &offset, &skip) < 0)
        return -1;
    uint64_t left = size > offset ? size - offset : 0, n = (left + PLACE_IN - 1) / PLACE_IN;
    n = n < places ? n : places;
    for (uint64_t i = 0; i < n; i++)
        if (take_place(m, offset + (i ? i * (left - PLACE_IN) / (n - 1) : 0), PLACE_IN, i == 0, skip) < 0)
            return -1;
    if (m->n > 0) {
        double bytes = (double)left * (double)m->inflated / (double)m->deflated - (double)skip;
        m->s->all_bytes += bytes;
        m->s->all_records += bytes * (double)m->n / (double)m->bytes;
    }
    return 0;
}

int input_sample_take(struct input_sample *s, const struct inputs *in, struct latch *latch)
{
    enum { KEYS = (PLACE_OUT + BGZF_MAX_BLOCK) / BAM_MIN_RECORD + 1 };
    size_t step = (in->n + FILES - 1) / FILES, n_files = (in->n + step - 1) / step;
    size_t places = PLACES / n_files > 2 ? PLACES / n_files : 2;
    double all = 0, seen = 0;
    struct sampler m = {.s = s};
    *s = (struct input_sample){0};
    for (size_t i = 0; i < in->n; i++)
        if (in->each[i].format->framing != INPUT_BGZF || in->each[i].format->size == 0 || in->each[i].by_region)
            return 0;
    m.codec = bgzf_codec_new(BGZF_LEVEL_DEFAULT);
    m.raw = malloc(READ_SIZE);
    m.found = malloc(KEYS * sizeof *m.found);
    int result = -1;
    if (!m.codec || !m.raw || !m.found
        || bam_arena_init(&s->arena, 2 * n_files * places * (PLACE_OUT + BGZF_MAX_BLOCK)) < 0) {
        latch_fail(latch, "out of memory");
        goto out;
    }
    for (size_t i = 0; i < in->n; i++) {
        m.in = &in->each[i];
        all += (double)m.in->format->size;
        seen += i % step == 0 ? (double)m.in->format->size : 0;
        if (i % step == 0 && sample_input(&m, places) < 0)
            goto out;
    }
    s->all_bytes *= s->n ? all / seen : 0;
    s->all_records *= s->n ? all / seen : 0;
    result = 0;
out:
    bgzf_codec_free(m.codec);
    free(m.raw);
    free(m.found);
    return result;
}

void input_sample_close(struct input_sample *s)
{
    bam_arena_free(&s->arena);
    free(s->keys);
    *s = (struct input_sample){0};
}
