/* SPDX-License-Identifier: MIT */
/* Reads the header of an input. */
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

/* The last different headers that were read. A header with the same bytes as one of them is not parsed again, and
 * exists once. A zero-initialised struct is empty. */
struct known_headers {
    bool keeps_broken;           /* as in header_read() */
    struct known_header {
        uint64_t hash, size;     /* hash and size of its bytes in the uncompressed stream */
        sam_hdr_t *sam;
        int32_t n_unlisted;      /* as in bam_header */
    } each[8];
    size_t n;                    /* number of headers that were put in; each replaces the oldest */
    struct byte_buffer begin;    /* the blocks of the last BAM file, as they are compressed, up to the one in which its
                                  * header ends; empty: they are not known */
    struct known_header of_begin;    /* the header of that file, if `begin` is not empty */
    struct byte_buffer first;    /* scratch: the first bytes of a file that is being opened */
};

void known_headers_free(struct known_headers *known);

/* Takes the header from the first bytes of a regular file, if these are clearly BAM in BGZF and hold the complete
 * header. The header may be shared with others, and becomes the last one in `known`. The bytes after it in its last
 * block are dropped. codec: inflates the blocks. most: bytes that the header may take. 1: done. 0: the file is
 * something else, damaged or unusual, or its header is too long; then no error is recorded, and htslib detects what the
 * file is. -1: failed, and the error is recorded in the file's latch. */
int known_headers_read(struct known_headers *known, struct bam_header *header, const struct input_file *file,
                       struct bgzf_codec *codec, uint64_t most);

/* The place that a header is read from: one of these two is set. */
struct header_bytes {
    struct bgzf_source *blocks;  /* the header's blocks are taken */
    struct byte_window *plain;   /* the header is taken, and no byte after it */
};

/* Reads the header of a BAM file from its first bytes. It is an error if it takes more than `most` bytes. known: the
 * headers that were read before; the new header may be shared with one of them, and is added to them. NULL: the
 * header is not shared. keeps_broken: a header whose lines cannot be parsed is taken, too (is_broken). -1: failed, and
 * the error is recorded in the latch. */
int header_read(struct bam_header *header, struct header_bytes from, uint64_t most, struct known_headers *known,
                bool keeps_broken, const char *path, struct latch *latch);

/* Skips the bytes of the header again, from the beginning, and keeps once more the bytes after it in its last block.
 * -1: failed, and the error is recorded in the latch. */
int header_pass(struct bam_header *header, struct header_bytes from, const char *path, struct latch *latch);

/* Appends one more block, or as many plain bytes, to the text of a header, which may have at most `most` bytes. 1:
 * done; 0: the file ends there; -1: failed, and the error is recorded in the latch. */
int header_read_block(struct byte_buffer *text, struct header_bytes from, uint64_t most, const char *path,
                      struct latch *latch);

/* Makes a header from its bytes, as they are in the uncompressed stream. The caller owns the header. NULL: out of
 * memory, or the bytes are broken. */
sam_hdr_t *header_parse(const uint8_t *data, size_t size);

#endif
