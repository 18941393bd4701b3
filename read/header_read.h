/* SPDX-License-Identifier: MIT */
/* Reading the header of an input. */
#ifndef HEADER_READ_H
#define HEADER_READ_H

#include <stdint.h>
#include "bam/bam_header.h"
#include "base/byte_buffer.h"

struct bgzf_source;
struct input_file;
struct latch;

/* The last headers that were read and differ: one of the same bytes is not parsed again, and is there once. Of all
 * zeros: none. */
struct known_headers {
    struct known_header {
        uint64_t hash, size;     /* of its bytes in the uncompressed stream */
        sam_hdr_t *sam;
    } each[8];
    size_t n;                    /* that were put in, each in the place of the oldest */
    struct byte_buffer begin;    /* of the last BAM file: its blocks up to the one in which its header ends, as they are
                                  * compressed; empty: they are not known */
    struct known_header of_begin;    /* its header, if there is a begin */
};

void known_headers_free(struct known_headers *known);

/* Makes the header, which was read, that of files which begin with the first n bytes of `file`. 0: of none. -1: failed,
 * and the error is recorded in the latch. */
int known_headers_begin(struct known_headers *known, const struct bam_header *header, const struct input_file *file,
                        uint64_t n);

/* The header of a file that begins so. */
struct bam_header known_headers_of_begin(const struct known_headers *known);

/* Reads the header of a BAM file from the first blocks of source. It is an error if it takes more than `most` bytes.
 * known: what was read before; the header may be shared with others, and is put in; NULL: it is not. -1: failed, and
 * the error is recorded in the latch. */
int header_read(struct bam_header *header, struct bgzf_source *source, uint64_t most, struct known_headers *known,
                const char *path, struct latch *latch);

/* Passes the blocks of the header again, from the beginning, and keeps anew what follows it in the last one. -1:
 * failed, and the error is recorded in the latch. */
int header_pass(struct bam_header *header, struct bgzf_source *source, const char *path, struct latch *latch);

/* Inflates one more block and appends it to the text of a header, which may get `most` bytes. 1: done; 0: the file ends
 * there; -1: failed, and the error is recorded in the latch. */
int header_read_block(struct byte_buffer *text, struct bgzf_source *source, uint64_t most, const char *path,
                      struct latch *latch);

/* Makes a header of its bytes as they stand in the uncompressed stream. It belongs to the caller. NULL: no memory, or
 * they are broken. */
sam_hdr_t *header_parse(const uint8_t *data, size_t size);

#endif
