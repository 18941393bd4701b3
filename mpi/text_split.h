/* SPDX-License-Identifier: MIT */
/* Splits a SAM file into parts. Each part begins at the start of a line, so it does not need a guess. */
#ifndef TEXT_SPLIT_H
#define TEXT_SPLIT_H

#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "base/byte_buffer.h"
#include "read/input_file.h"

struct text_split {
    struct input_file file;      /* the caller closes it */
    uint64_t first;              /* where the file's first record begins */
    sam_hdr_t *sam;              /* the caller takes ownership of this and of the sample */
    struct byte_buffer sample;   /* the file's first records, as BAM */
};

/* Reads the header and the sample of a regular file that begins as SAM does. `file` is set, and covers all of it from
 * its beginning on. -1: failed, and the error is recorded in its latch. */
int text_split_open(struct text_split *text);

/* Returns the offset of the first line that begins at or after `from`, or the file's size if none does. If reading
 * fails, the error is recorded in the latch. */
uint64_t text_split_find(const struct text_split *text, uint64_t from);

#endif
