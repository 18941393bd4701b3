/* SPDX-License-Identifier: MIT */
/* Reading the header of an input. */
#ifndef HEADER_READ_H
#define HEADER_READ_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_header.h"
#include "base/byte_buffer.h"

struct bgzf_codec;
struct bgzf_source;
struct byte_window;
struct input_file;
struct latch;

/* The last headers that were read and differ: one of the same bytes is not parsed again, and is there once. Of all
 * zeros: none. */
struct known_headers {
    bool keeps_broken;           /* as in header_read() */
    struct known_header {
        uint64_t hash, size;     /* of its bytes in the uncompressed stream */
        sam_hdr_t *sam;
        int32_t n_unlisted;      /* as in bam_header */
    } each[8];
    size_t n;                    /* that were put in, each in the place of the oldest */
    struct byte_buffer begin;    /* of the last BAM file: its blocks up to the one in which its header ends, as they are
                                  * compressed; empty: they are not known */
    struct known_header of_begin;    /* its header, if there is a begin */
    struct byte_buffer first;    /* scratch: the first bytes of a file that is being opened */
};

void known_headers_free(struct known_headers *known);

/* Takes the header from the first bytes of a regular file, if these are plainly BAM in BGZF and hold all of it. The
 * header may be shared with others, and becomes the last one in `known`; what follows it in its last block is dropped.
 * codec: inflates. most: bytes that the header may take. 1: done. 0: the file is something else, damaged or unusual, or
 * its header is too long; then no error is recorded, and htslib shall say what the file is. -1: failed, and the error
 * is recorded in the file's latch. */
int known_headers_read(struct known_headers *known, struct bam_header *header, const struct input_file *file,
                       struct bgzf_codec *codec, uint64_t most);

/* Where a header is read from: one of these two. */
struct header_bytes {
    struct bgzf_source *blocks;  /* the header's blocks are taken */
    struct byte_window *plain;   /* the header is taken, and no byte behind it */
};

/* Reads the header of a BAM file from its first bytes. It is an error if it takes more than `most` bytes.
 * known: what was read before; the header may be shared with others, and is put in; NULL: it is not. keeps_broken: a
 * header whose lines cannot be parsed is taken, too (is_broken). -1: failed, and the error is recorded in the latch. */
int header_read(struct bam_header *header, struct header_bytes from, uint64_t most, struct known_headers *known,
                bool keeps_broken, const char *path, struct latch *latch);

/* Passes the bytes of the header again, from the beginning, and keeps anew what follows it in the last block. -1:
 * failed, and the error is recorded in the latch. */
int header_pass(struct bam_header *header, struct header_bytes from, const char *path, struct latch *latch);

/* Appends one more block, or as many plain bytes, to the text of a header, which may get `most` bytes. 1: done; 0: the
 * file ends there; -1: failed, and the error is recorded in the latch. */
int header_read_block(struct byte_buffer *text, struct header_bytes from, uint64_t most, const char *path,
                      struct latch *latch);

/* Makes a header of its bytes as they stand in the uncompressed stream. It belongs to the caller. NULL: out of memory,
 * or they are broken. */
sam_hdr_t *header_parse(const uint8_t *data, size_t size);

#endif
