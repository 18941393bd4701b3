/* SPDX-License-Identifier: MIT */
/* A BGZF source over a file by its path; of BAM without compression, its window alone. */
#ifndef UNIT_SOURCE_H
#define UNIT_SOURCE_H

#include "bgzf_omp.h"
#include "read/header_read.h"
#include "read/input_format.h"
#include "base/engine.h"
#include "base/latch.h"
#include "unit.h"

enum { UNIT_SOURCE_SLOTS = 96 };

struct unit_source {
    struct input_format *format;
    struct bgzf_source *blocks;
    struct engine engine;
};

/* -1: failed, and the error is recorded in the latch. */
static inline int unit_source_open_ring(struct unit_source *s, const char *path, int n_threads,
                                        uint32_t n_slots, size_t piece_size, struct latch *latch)
{
    struct input_options from = {.path = path, .engine = &s->engine, .piece_size = piece_size, .n_pieces = 16};
    s->engine = (struct engine){.latch = latch, .n_threads = n_threads};
    s->blocks = NULL;
    s->format = input_format_open(&from);
    if (!s->format)
        return -1;
    if (s->format->framing != INPUT_BGZF)
        return 0;
    struct bgzf_source_options options = {
        .input = s->format->window,
        .path = path,
        .n_slots = n_slots,
        .engine = &s->engine,
    };
    s->blocks = bgzf_source_open(&options);
    return s->blocks ? 0 : -1;
}

static inline int unit_source_open(struct unit_source *s, const char *path, int n_threads,
                                   size_t piece_size, struct latch *latch)
{
    return unit_source_open_ring(s, path, n_threads, UNIT_SOURCE_SLOTS, piece_size, latch);
}

static inline struct header_bytes unit_header_bytes(const struct unit_source *s)
{
    return (struct header_bytes){s->blocks, s->blocks ? NULL : s->format->window};
}

static inline void unit_source_close(struct unit_source *s)
{
    bgzf_source_close(s->blocks);
    input_format_close(s->format);
}

#endif
