/* SPDX-License-Identifier: MIT */
/* The inputs of a sort. All are open from the start, so that a broken header is found before any record is read. */
#ifndef SORT_INPUT_H
#define SORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/bam_header.h"
#include "base/memory_shares.h"

struct bgzf_source;
struct input_format;
struct latch;
struct sort_opts;
struct stats;

struct sort_input {
    const char *name;            /* for messages */
    struct input_format *format;
    struct bgzf_source *source;
    struct bam_header header;
};

struct sort_inputs {
    struct sort_input *each;     /* in the order in which they are read */
    size_t n;
};

struct sort_inputs_options {
    const struct sort_opts *opts;
    struct memory_rings rings;   /* of each one's source, and what SAM and other formats may take */
    uint64_t header_max;         /* bytes of a header */
    bool far;                    /* as in input_options */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* Opens opts->in and opts->more, reads their headers, and adds those of the others to the first one's. -1: failed, and
 * the error is recorded in the latch; close them all the same. */
int sort_inputs_open(struct sort_inputs *inputs, const struct sort_inputs_options *options);

/* Call it after the parallel region, because late tasks still look at the sources. */
void sort_inputs_close(struct sort_inputs *inputs);

/* How many of them are not BAM. */
int sort_inputs_converted(const struct sort_inputs *inputs);

/* Bytes of memory that decoding takes, and bytes of the headers as text. Only open inputs count. */
size_t sort_inputs_memory(const struct sort_inputs *inputs);
size_t sort_inputs_header_size(const struct sort_inputs *inputs);

/* How many @SQ lines there are in all of them. */
size_t sort_inputs_references(const struct sort_inputs *inputs);

/* Sum of input_format_size(). *known: false if one of them is not known. */
uint64_t sort_inputs_size(const struct sort_inputs *inputs, bool *known);

/* Sum of input_format_length(); 0: one of them is not known. */
uint64_t sort_inputs_length(const struct sort_inputs *inputs);

#endif
