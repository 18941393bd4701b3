/* SPDX-License-Identifier: MIT */
/* One pass over the bytes of a file, block by block: tasks compress or decompress them, they are written in order, and
 * the index is made as the blocks get their places. */
#ifndef BGZIP_PASS_H
#define BGZIP_PASS_H

#include <stdbool.h>
#include <stdint.h>
#include "bgzip/block_cut.h"
#include "bgzip/gzi_index.h"

struct byte_window;
struct engine;

struct bgzip_pass_options {
    bool compress;               /* otherwise it decompresses */
    struct byte_window *input;   /* owned by the caller, as are all below */
    const char *path;            /* its name, for messages */
    int fd;                      /* the output, written from its current position on */
    const char *out_path;        /* its name, for messages */
    const struct engine *engine;
    struct gzi_index *index;     /* gets the places of the blocks; NULL: not needed */
    struct gzi_place before;     /* when compressing: the bytes that the output holds already, for the index */
    /* compressing */
    int level;
    struct block_cut cut;        /* state before the first block */
    /* decompressing */
    bool only_blocks;            /* plain gzip is an error */
    uint64_t file_begin;         /* bytes of the file before the first byte of the input */
    uint64_t skip, most;         /* bytes of the data that are skipped, and the largest number that is written after
                                  * them */
};

/* The results of a pass. */
struct bgzip_pass_result {
    uint64_t data;               /* bytes of decompressed data, including those skipped */
    uint64_t compressed;         /* compressed bytes that it made */
    bool lacks_eof_block;        /* for BGZF that was read to its end */
    bool lacks_places;           /* for CUT_PLACES: the input ended before some of them */
};

struct bgzip_pass;

/* NULL: failed, and the error is recorded in the latch. */
struct bgzip_pass *bgzip_pass_open(const struct bgzip_pass_options *options);

/* Runs the pass. Call it once, on the main thread of a team. -1: failed, and the error is recorded in the latch. */
int bgzip_pass_run(struct bgzip_pass *pass, struct bgzip_pass_result *result);

/* Call it after the parallel region, because late tasks still read the slots. */
void bgzip_pass_close(struct bgzip_pass *pass);

#endif
