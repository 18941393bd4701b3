/* SPDX-License-Identifier: MIT */
/* Chooses where the data of one block end and those of the next begin. The compressed output depends on this choice
 * only. */
#ifndef BLOCK_CUT_H
#define BLOCK_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gzi_index;

enum cut_kind {
    CUT_ANYWHERE,                /* blocks as full as possible */
    CUT_LINES,                   /* text: a block ends with a line, unless the line is longer than a block */
    CUT_RECORDS,                 /* uncompressed BAM: the same with records, which the encoder then knows */
    CUT_PLACES,                  /* where an index states, but no block fuller than possible */
};

/* A zero-initialised struct with a kind is the state before the first block. */
struct block_cut {
    enum cut_kind kind;
    const struct gzi_index *places;   /* offsets where CUT_PLACES ends blocks */
    size_t n_places;             /* number of places that are passed */
    uint64_t at;                 /* bytes in the blocks so far */
    /* for CUT_RECORDS */
    uint64_t next;               /* offset of the number that gives the start of the next part of BAM */
    int at_what;                 /* which number that is */
    uint32_t refs;               /* references that follow in the header */
};

/* The number of bytes of data[n] for the next block. n: BGZF_FILL, or fewer at the end of the input. */
uint32_t block_cut_next(struct block_cut *cut, const uint8_t *data, uint32_t n);

/* Returns whether the index has blocks that begin after the last block. */
bool block_cut_lacks_places(const struct block_cut *cut);

#endif
