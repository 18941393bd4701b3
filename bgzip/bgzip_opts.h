/* SPDX-License-Identifier: MIT */
/* The options of `bgzip`. cli/bgzip_main.c fills them in; they do not change after that. */
#ifndef BGZIP_OPTS_H
#define BGZIP_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bgzip_mode {
    BGZIP_COMPRESS,
    BGZIP_DECOMPRESS,
    BGZIP_TEST,                  /* -t: decompresses, and writes nothing */
    BGZIP_REINDEX,               /* -r: the same, and writes the index */
};

struct bgzip_opts {
    enum bgzip_mode mode;
    bool to_stdout;              /* -c */
    bool keep;                   /* -k: the input stays */
    bool index;                  /* -i: also makes an index while compressing */
    bool rebgzip;                /* -g: blocks begin where the index states */
    bool binary;                 /* --binary: blocks end anywhere */
    bool ranged;                 /* -b or -s: `size` bytes from `offset` on */
    int force;                   /* number of -f given */
    int level;                   /* 0..9, or BGZF_LEVEL_DEFAULT */
    int n_threads;
    uint64_t offset;             /* -b: bytes of decompressed data */
    uint64_t size;               /* -s; UINT64_MAX: up to the end */
    const char *index_name;      /* -I; NULL: not given */
    const char *output;          /* -o; NULL: not given */
    char **files;                /* the names given; they point into argv */
    size_t n_files;              /* 0: standard input */
};

#endif
