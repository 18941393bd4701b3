/* SPDX-License-Identifier: MIT */
/* The order that the records get. */
#ifndef SORT_ORDER_H
#define SORT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum sort_by {
    SORT_COORDINATE,
    SORT_NAME_NATURAL,           /* -n */
    SORT_NAME_ASCII,             /* -N */
    SORT_NAME_PICARD,            /* --picard: htsjdk's queryname order */
    SORT_TAG,                    /* -t TAG, then by `then` */
    SORT_TEMPLATE,               /* --template-coordinate */
    SORT_MINHASH,                /* -M, see minhash.h */
    SORT_COLLATE,                /* order of `samtools collate`, see collate_key.h */
};

/* The order that the command line requests. */
struct sort_order {
    enum sort_by by;
    enum sort_by then;           /* SORT_TAG only: SORT_COORDINATE or a name order */
    char tag[2];                 /* SORT_TAG only */
    int kmer;                    /* this and the four below are for SORT_MINHASH only */
    int window;
    bool no_reverse, squash;
    const char *index_fasta;     /* -I; NULL: none */
    uint32_t n_bins;             /* SORT_COLLATE only */
};

#endif
