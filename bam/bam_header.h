/* SPDX-License-Identifier: MIT */
/* The BAM header (SAMv1 section 4.2): read, marked as sorted, made into bytes. */
#ifndef BAM_HEADER_H
#define BAM_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct bgzf_source;
struct byte_source;
struct sort_order;
struct latch;

struct bam_header {
    sam_hdr_t *sam;              /* owned */
    uint8_t *rest;               /* stream bytes after the header, in its last block; owned */
    size_t rest_size;
    uint64_t size;               /* bytes of the header in the uncompressed stream; 0 if it is no BAM stream */
};

/* Takes the header that input has read, if it has; else reads it from the first
 * blocks of source, and refuses one that takes more than `most` bytes. -1: told to the latch. */
int bam_header_read(struct bam_header *header, struct byte_source *input, struct bgzf_source *source,
                    uint64_t most, const char *path, struct latch *latch);
void bam_header_free(struct bam_header *header);

/* Adds the lines of `from`, the header of another input, to `into`: @RG and @CO
 * that are not there yet, and @PG whose ID is not. The inputs must agree in @SQ,
 * since records name references by number, and in @RG of one ID. -1: told to the
 * latch, with file, which is that of `from`. */
int bam_header_merge(sam_hdr_t *into, sam_hdr_t *from, const char *file, struct latch *latch);

/* Notes the order in @HD (SO, GO, SS), and adds a @PG line with command_line
 * unless that is NULL. unplaced: no record has a reference, which matters for
 * -M only. -1: no memory. */
int bam_header_mark_sorted(sam_hdr_t *sam, const struct sort_order *order, bool unplaced,
                           const char *version, const char *command_line);

/* The header as it stands in the uncompressed stream; the caller frees *bytes.
 * -1: no memory, or a reference longer than 2^31-1. */
int bam_header_bytes(sam_hdr_t *sam, uint8_t **bytes, size_t *size);

#endif
