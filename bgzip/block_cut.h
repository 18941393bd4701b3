/* SPDX-License-Identifier: MIT */
/* Where the data of one block end and those of the next begin: what is compressed depends on that, and nothing else. */
#ifndef BLOCK_CUT_H
#define BLOCK_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gzi_index;

enum cut_kind {
    CUT_ANYWHERE,                /* blocks as full as can be */
    CUT_LINES,                   /* text: a block ends with a line, unless the line is longer than a block */
    CUT_RECORDS,                 /* uncompressed BAM: the same with records, which the encoder then knows */
    CUT_PLACES,                  /* where an index says, and no block fuller than can be */
};

/* Zeros with a kind are the state before the first block. */
struct block_cut {
    enum cut_kind kind;
    const struct gzi_index *places;   /* of CUT_PLACES */
    size_t n_places;             /* those before it are passed */
    uint64_t at;                 /* bytes in the blocks so far */
    /* of CUT_RECORDS */
    uint64_t next;               /* the number that tells where the next part of BAM begins lies here */
    int at_what;                 /* which number that is */
    uint32_t refs;               /* references that follow in the header */
};

/* How many of data[n] make the next block. n: BGZF_FILL, or fewer where the input ends. */
uint32_t block_cut_next(struct block_cut *cut, const uint8_t *data, uint32_t n);

/* After the last block: whether the index has blocks that begin behind it. */
bool block_cut_lacks_places(const struct block_cut *cut);

#endif
