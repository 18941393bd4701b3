/* SPDX-License-Identifier: MIT */
/* One pass over the bytes of a file, block by block: compressed or decompressed by tasks, written in order, and the
 * index made as the blocks get their places. */
#ifndef BGZIP_PASS_H
#define BGZIP_PASS_H

#include <stdbool.h>
#include <stdint.h>
#include "bgzip/block_cut.h"
#include "bgzip/gzi_index.h"

struct byte_window;
struct latch;

struct bgzip_pass_options {
    bool compress;               /* else it decompresses */
    struct byte_window *input;   /* stays the caller's, as all that follows */
    const char *path;            /* its name, for messages */
    int fd;                      /* of the output, written from its present position on */
    const char *out_path;        /* its name, for messages */
    int n_threads;               /* of the team */
    struct latch *latch;
    struct gzi_index *index;     /* gets the places of the blocks; NULL: they are not wanted */
    struct gzi_place before;     /* compressing: what the output holds already, for the index */
    /* compressing */
    int level;
    struct block_cut cut;        /* before the first block */
    /* decompressing */
    bool only_blocks;            /* plain gzip is an error */
    uint64_t file_begin;         /* bytes of the file before those of the input */
    uint64_t skip, most;         /* bytes of the data that are left out, and those at most that are written then */
};

/* The findings of a pass. */
struct bgzip_pass_result {
    uint64_t data;               /* bytes of decompressed data that it came past, those left out included */
    uint64_t compressed;         /* bytes that it compressed them to */
    bool lacks_eof_block;        /* of BGZF that was read to its end */
    bool lacks_places;           /* of CUT_PLACES: the input ended before some of them */
};

struct bgzip_pass;

/* NULL: failed, and the error is recorded in the latch. */
struct bgzip_pass *bgzip_pass_open(const struct bgzip_pass_options *options);

/* To be called once, by the main thread of a team. -1: failed, and the error is recorded in the latch. */
int bgzip_pass_run(struct bgzip_pass *pass, struct bgzip_pass_result *result);

/* Behind the parallel region, as late tasks still look at the slots. */
void bgzip_pass_close(struct bgzip_pass *pass);

#endif
