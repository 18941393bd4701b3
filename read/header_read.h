/* SPDX-License-Identifier: MIT */
/* Reading the header of an input. */
#ifndef HEADER_READ_H
#define HEADER_READ_H

#include <stdint.h>
#include "bam/bam_header.h"

struct bgzf_source;
struct input_format;
struct latch;

/* Takes the header from input if that has read it already. Otherwise reads it from the first blocks
 * of source, and fails if it takes more than `most` bytes. Returns 0, or -1: failed, and the error
 * is recorded in the latch. */
int header_read(struct bam_header *header, struct input_format *input, struct bgzf_source *source,
                uint64_t most, const char *path, struct latch *latch);

#endif
