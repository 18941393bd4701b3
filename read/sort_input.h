/* SPDX-License-Identifier: MIT */
/* The inputs of a sort, all open from the start, so that what is wrong with a header is
 * told before anything is read. */
#ifndef SORT_INPUT_H
#define SORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/bam_header.h"
#include "plan/memory_plan.h"

struct bgzf_source;
struct byte_source;
struct latch;
struct sort_opts;
struct stats;

struct sort_input {
    const char *name;            /* for messages */
    struct byte_source *bytes;
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
    bool far;                    /* as in hts_reader_options */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* Opens opts->in and opts->more, reads their headers, and adds those of the others to the
 * first one's. -1: told to the latch; to be closed all the same. */
int sort_inputs_open(struct sort_inputs *inputs, const struct sort_inputs_options *options);

/* Behind the parallel region: tasks that came too late still look at the sources. */
void sort_inputs_close(struct sort_inputs *inputs);

/* How many of them are not BAM. */
int sort_inputs_converted(const struct sort_inputs *inputs);

/* Bytes of memory that decoding takes, and of the headers as text; of those that are open. */
size_t sort_inputs_memory(const struct sort_inputs *inputs);
size_t sort_inputs_header_size(const struct sort_inputs *inputs);

/* How many @SQ lines there are in all of them. */
size_t sort_inputs_references(const struct sort_inputs *inputs);

/* Bytes of all the files; what is not known counts as nothing, and then *known is false. */
uint64_t sort_inputs_size(const struct sort_inputs *inputs, bool *known);

/* Bytes to be read of all the files, as they are in them; 0: not known of each. */
uint64_t sort_inputs_length(const struct sort_inputs *inputs);

#endif
