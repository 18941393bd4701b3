/* SPDX-License-Identifier: MIT */
/* The BAM header (SAMv1 section 4.2): merges two headers, marks one as sorted, makes its bytes. Serial. */
#ifndef BAM_HEADER_H
#define BAM_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_magic.h"

struct latch;
struct sort_order;
struct tag_values;

/* A header and the data that were read with it. bam_header_free() frees all of it. */
struct bam_header {
    sam_hdr_t *sam;              /* owned */
    uint8_t *rest;               /* bytes of the stream that follow the header in its last block; owned */
    size_t rest_size;
    uint64_t size;               /* bytes of the header in the uncompressed stream; 0 if the input is not BAM */
    int32_t n_unlisted;  /* number of references, the last ones, that are in the text of BAM and not in its list */
    bool is_shared;              /* another input uses the same sam and accounts for its memory */
    bool is_broken;  /* its lines cannot be parsed: sam has text and references as read, which can only be copied ... */
    bool is_broken_sam;          /* ... and SAM with that text cannot be read */
};

void bam_header_free(struct bam_header *header);

/* Returns the bytes that headers with `size` bytes of text and n @SQ lines take, those of the inputs and of the output.
 * parsed: htslib parses them; if not set, all are plain (plain_header.h). */
size_t bam_header_memory(size_t size, size_t n, bool parsed);

/* Frees `rest` only. */
void bam_header_drop_rest(struct bam_header *header);

/* Removes the references that are not in the list of BAM from `sam`, which becomes a copy if there are any. -1: out of
 * memory. */
int bam_header_drop_unlisted(struct bam_header *header);

/* The lengths of the references, by number; the caller frees them. NULL: out of memory. */
int64_t *bam_header_lengths(sam_hdr_t *sam);

/* Returns whether the two have the same references: names and lengths, in the same order. */
bool bam_header_same_references(const sam_hdr_t *a, const sam_hdr_t *b);

/* Adds the lines of `from`, the header of another input, to `into`: the @RG, @PG (see program_lines_merge()) and @CO
 * lines that `into` lacks. The two must agree in @SQ, because records name references by number, and in @RG lines of
 * the same ID. file: path of `from`, for messages. values: empty; gets the PG values that change; may be NULL. The
 * caller frees it, even after an error. Returns the number of programs that got another ID. -1: failed, and the error
 * is recorded in the latch. */
int bam_header_merge(sam_hdr_t *into, sam_hdr_t *from, struct tag_values *values, const char *file,
                     struct latch *latch);

/* Returns whether @HD states this order (SO). -1: out of memory. */
int bam_header_says(sam_hdr_t *sam, const char *order);

/* Sets the order in @HD (SO, GO, SS) unless order is NULL, and adds a @PG line with command_line unless that is NULL.
 * unplaced: no record has a reference; used only for -M. Returns 0, or -1 if out of memory. */
int bam_header_mark_sorted(sam_hdr_t *sam, const struct sort_order *order, bool unplaced,
                           const char *version, const char *command_line);

/* Checks that a header with `text` bytes of text can be written, and warns if other programs may not read it. file: its
 * path, for messages. -1: it cannot be written, and the error is recorded in the latch. */
int bam_header_check_size(uint64_t text, enum htsExactFormat format, const char *file, struct latch *latch);

/* Makes the bytes of the header as they stand in the uncompressed stream. The caller frees *bytes. Returns 0; -1 if out
 * of memory, or if the text is longer than BAM holds. A reference length that does not fit becomes the largest one that
 * does, as in htslib: see inputs_held(). */
int bam_header_bytes(sam_hdr_t *sam, uint8_t **bytes, size_t *size);

#endif
