/* SPDX-License-Identifier: MIT */
/* The BAM header (SAMv1 section 4.2): merging two, marking it as sorted, making its bytes. Serial. */
#ifndef BAM_HEADER_H
#define BAM_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct latch;
struct sort_order;
struct tag_values;

#define BAM_HEADER_MAGIC "BAM\1"

/* A header, and what was read with it. bam_header_free() frees all of it. */
struct bam_header {
    sam_hdr_t *sam;              /* owned */
    uint8_t *rest;               /* bytes of the stream that follow the header in its last block; owned */
    size_t rest_size;
    uint64_t size;               /* bytes of the header in the uncompressed stream; 0 if that is no BAM stream */
    int32_t n_unlisted;          /* references, the last ones, that the text of BAM has and its list lacks */
    bool is_shared;              /* sam is that of another input, too, which counts its memory */
    bool is_broken;              /* its lines cannot be parsed: sam has text and references as they stood, which can
                                  * only be copied ... */
    bool is_broken_sam;          /* ... and SAM with that text cannot be read */
};

void bam_header_free(struct bam_header *header);

/* Frees `rest` alone. */
void bam_header_drop_rest(struct bam_header *header);

/* Takes the references that are not in the list of BAM out of `sam`, which becomes a copy if there are any. -1: no
 * memory. */
int bam_header_drop_unlisted(struct bam_header *header);

/* The lengths of the references, by number; the caller frees them. NULL: out of memory. */
int64_t *bam_header_lengths(sam_hdr_t *sam);

/* Whether the two have the same references: names and lengths, in one order. */
bool bam_header_same_references(const sam_hdr_t *a, const sam_hdr_t *b);

/* Adds the lines of `from`, the header of another input, to `into`: @RG, @PG (see program_lines_merge()) and @CO lines
 * that are not there yet. The two must agree in @SQ, because records name references by number, and in @RG lines of the
 * same ID. `file`: that of `from`, for messages. values: empty, gets the PG values that change, for the caller to free,
 * also after an error; may be NULL. Returns how many programs got another ID. -1: failed, and the error is recorded in
 * the latch. */
int bam_header_merge(sam_hdr_t *into, sam_hdr_t *from, struct tag_values *values, const char *file,
                     struct latch *latch);

/* For a sort over MPI: warns that n @PG lines got another ID, and that PG tags did not, unless n is 0. */
void bam_header_warn_of_renamed(const char *file, int n);

/* Whether @HD says that the records are in this order (SO). -1: out of memory. */
int bam_header_says(sam_hdr_t *sam, const char *order);

/* Sets the order in @HD (SO, GO, SS), unless order is NULL, and adds a @PG line with command_line unless that is NULL.
 * unplaced: no record has a reference; this matters only for -M. Returns 0, or -1 if there is no memory. */
int bam_header_mark_sorted(sam_hdr_t *sam, const struct sort_order *order, bool unplaced,
                           const char *version, const char *command_line);

/* Whether a header with so many bytes of text can be written; warns if others may not read it. file: that of the
 * header, for messages. -1: it cannot, and the error is recorded in the latch. */
int bam_header_check_size(uint64_t text, enum htsExactFormat format, const char *file, struct latch *latch);

/* Makes the bytes of the header as they stand in the uncompressed stream. The caller frees *bytes. Returns
 * 0, or -1 if there is no memory, or the text is longer than BAM holds. A reference whose length does not fit gets the
 * largest one there is, as in htslib: see inputs_held(). */
int bam_header_bytes(sam_hdr_t *sam, uint8_t **bytes, size_t *size);

#endif
