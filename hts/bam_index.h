/* SPDX-License-Identifier: MIT */
/* The index of the BAM file that is being written (SAMv1 section 5, CSIv1). htslib makes it. */
#ifndef BAM_INDEX_H
#define BAM_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>

struct byte_buffer;
struct latch;
struct bam_index;

/* The fields of a record that the index needs. Made in the deflate task. */
struct bam_index_entry {
    int64_t begin, end;          /* covered reference bases, counted from 0, half open */
    int32_t ref_id;
    uint32_t after;              /* bytes of the block up to the record's end */
    int mapped;
};

/* The name of a reference that is too long for BAI (more than 2^29 bases); NULL: none. */
const char *bam_index_beyond_bai(sam_hdr_t *sam);

/* Approximate bytes of memory for an index of all these references. */
uint64_t bam_index_memory(sam_hdr_t *sam);

/* format: HTS_FMT_CSI or HTS_FMT_BAI. path must live as long as the index. It is NULL if another process writes the
 * start of the file; then bam_index_add() only logs the entries, and bam_index_log() is the only other function that
 * may be called. NULL: out of memory. */
struct bam_index *bam_index_new(sam_hdr_t *sam, int format, const char *path);
void bam_index_free(struct bam_index *index);

/* The header with the references of the index. */
sam_hdr_t *bam_index_header(const struct bam_index *index);

/* The logged entries: for each block a struct bam_index_block, and its entries. */
const struct byte_buffer *bam_index_log(const struct bam_index *index);

/* A block as given to bam_index_add(). */
struct bam_index_block {
    uint64_t offset, next;
    uint32_t size, n;
};

/* Returns whether the record still has a reference of the header and can be entered: see bam_record_fits(). */
bool bam_index_takes(const struct bam_index *index, const uint8_t *record, size_t size);

/* The entry of such a record, which ends `after` bytes into its block. */
struct bam_index_entry bam_index_entry(const uint8_t *record, uint32_t after);

/* Adds a block that was written. Call it in output order, from the first block that holds records on. offset: offset of
 * the block in the file; size: its uncompressed bytes; next: offset of the next block; entries: entries of the n
 * records that end in the block. Returns n; if less, the entry of that number is not in coordinate order, htslib
 * refused it, or memory ran out: bam_index_refuse(), called next, tells these apart by errno. */
uint32_t bam_index_add(struct bam_index *index, uint64_t offset, uint32_t size, uint64_t next,
                       const struct bam_index_entry *entries, uint32_t n);

/* Records in the latch why a record cannot be put into the index of a file. errno: as the failed call left it. name: of
 * the record; NULL: unknown. Returns -1. */
int bam_index_refuse(sam_hdr_t *sam, const struct bam_index_entry *entry, const char *name, const char *path,
                     struct latch *latch);

/* Writes the index to its path. -1: failed, and the error is recorded in the latch. */
int bam_index_save(struct bam_index *index, struct latch *latch);

#endif
