/* SPDX-License-Identifier: MIT */
/* An input of any format as a stream of BAM bytes. BAM is given as it is. SAM is parsed by our tasks (sam_reader), and
 * all other formats are decoded by htslib (hts_reader). */
#ifndef INPUT_FORMAT_H
#define INPUT_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "read/input_options.h"

struct byte_window;
struct input_format;

enum input_framing {
    INPUT_BGZF,                  /* a BAM file: BGZF blocks, the header first */
    INPUT_RAW_BAM,               /* the same without compression */
    INPUT_RECORDS,               /* BAM records only; the header is input_format_header() */
};

/* Opens the input, reads its header unless it is BAM, and starts to read ahead. NULL: failed, and the error is
 * recorded in the latch. */
struct input_format *input_format_open(const struct input_options *options);
void input_format_close(struct input_format *input);

enum input_framing input_format_framing(const struct input_format *input);

/* The bytes, in order. The window is valid until the input is closed. */
struct byte_window *input_format_window(struct input_format *input);

/* The header of INPUT_RECORDS, which belongs to the caller from then on. NULL for BAM. */
sam_hdr_t *input_format_header(struct input_format *input);

/* Bytes of memory that decoding takes, about; 0 for BAM. */
size_t input_format_memory(const struct input_format *input);

/* Size of a BAM file in bytes; 0: it is not known (a pipe, a URL), or the input is not BAM. */
uint64_t input_format_size(const struct input_format *input);

/* Bytes that are read of a file, SAM text too; 0: it is not known, or htslib reads the file. */
uint64_t input_format_length(const struct input_format *input);

#endif
