/* SPDX-License-Identifier: MIT */
/* Minimiser order, `samtools sort -M`. Reads with a reference come first, by coordinate. The others follow by the
 * smallest hash of their k-mers, so that reads from one place of the genome come together and compress well. Serial.
 *
 * A read without reference leaves the sort with POS, PNEXT and TLEN unset. From minhash_apply(), which turns it to the
 * strand of its minimiser, to minhash_finish() these fields hold its rank, even in spilled records: pos the upper 31
 * bits of the hash, next_pos the lower ones, tlen the offset; flag 0x10 decides last. */
#ifndef MINHASH_H
#define MINHASH_H

#include "bam/bam_record.h"
#include "base/sort_order.h"

/* References must be numbered below this: a key leaves 30 bits for them. */
#define MINHASH_REF_MAX ((int32_t)1 << 30)

/* The longest k-mer, the bits of a hash (2 for each base of that k-mer), and the bits of an offset. */
enum { MINHASH_KMER_MAX = 31, MINHASH_HASH_BITS = 62, MINHASH_OFFSET_BITS = 17 };

/* The settings of -M, -K, -R and -H, and the index of -I. Threads share it; it does not change while they do. */
struct minhash;

/* The place of a read without reference in the order: the lower hash comes first, then the lower offset, then the
 * forward strand (of the turned read). */
struct minhash_rank {
    /* 62 bits. With an index: the place in the FASTA where the read would begin, minus (k - 1) */
    uint64_t hash;
    /* last base of the minimiser in the turned read, capped; 0 without a k-mer or with an index */
    uint32_t offset;
    bool reverse;                /* the minimiser is on the other strand, so minhash_apply() turns the read */
};

/* Makes the settings from the order; kmer is clipped to 1..31. They suffice for the keys of reads that keep their
 * ranks. The caller owns the order's FASTA. NULL: out of memory. */
struct minhash *minhash_new(const struct sort_order *order);
void minhash_free(struct minhash *m);

/* Builds the index of -I, which minhash_rank() needs; does nothing without -I. Reads all of the FASTA, or of any other
 * file that htslib reads. tells: prints "Building index ... done" or "... failed: FILE: CAUSE" to stderr. Returns NULL,
 * or the cause of a failure. */
const char *minhash_build_index(struct minhash *m, bool tells);

/* Frees the memory of the index. No read can be ranked after that; keys stay the same. */
void minhash_drop_index(struct minhash *m);

/* Bytes of memory that the index takes; 0 without one. */
size_t minhash_memory(const struct minhash *m);

/* Returns whether -M orders the record by its rank, because it has no reference. Other records are ordered by
 * coordinate; minhash_apply() and minhash_finish() are not called for them. */
static inline bool minhash_applies(const struct bam_record *r)
{
    return bam_record_ref_id(r) < 0;
}

/* Finds the rank of a checked record without reference, unchanged since it was read. */
void minhash_rank(const struct minhash *m, const struct bam_record *r, struct minhash_rank *rank);

/* Stores the rank in the record. If the rank requires it, turns the read first: SEQ becomes its reverse complement,
 * QUAL is reversed, flag 0x10 is flipped; tags stay. The size does not change. Call it once per record. */
void minhash_apply(struct bam_record *r, const struct minhash_rank *rank);
/* Only stores the rank. */
void minhash_keep(struct bam_record *r, const struct minhash_rank *rank);

/* The rank that minhash_apply() kept. `reverse` is always false, because the read has been turned. */
struct minhash_rank minhash_kept(const struct bam_record *r);

/* The key of a record after minhash_apply(), or of any record with a reference. If a comes before b in
 * the order, then key(a) <= key(b). */
uint64_t minhash_key(const struct minhash *m, const struct bam_record *r);

/* Returns whether equal keys are always ties. True with an index and up to -K 22. */
bool minhash_decides(const struct minhash *m);

/* Compares two records by the full order: records after minhash_apply() and records with a reference. Returns < 0, 0 (a
 * tie) or > 0. */
int minhash_compare(const struct bam_record *a, const struct bam_record *b);

/* Removes the rank, so that the record can be written. minhash_key() and minhash_compare() must not be called for it
 * after that. */
static inline void minhash_finish(struct bam_record *r)
{
    store_le32(r->pos, UINT32_MAX);
    store_le32(r->next_pos, UINT32_MAX);
    store_le32(r->tlen, 0);
}

#endif
