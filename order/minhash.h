/* SPDX-License-Identifier: MIT */
/* Minimiser order, `samtools sort -M`: reads with a reference by coordinate,
 * then the others by the smallest hash of their k-mers, so that reads of one
 * place of the genome come together and compress well. Serial.
 *
 *   raw record --minhash_rank--> rank --minhash_apply--> turned to the strand of
 *   its minimiser, the rank kept in the record --sort--> --minhash_finish--> output
 *
 * A read without reference leaves the sort with POS, PNEXT and TLEN unset, so
 * those fields hold its rank until then (and so do spilled records: keys can be
 * made from them again):
 *
 *   pos       hash, upper 31 bits         next_pos  hash, lower 31 bits
 *   tlen      offset                      flag 0x10 the last rule
 *
 * References are numbered below MINHASH_REF_MAX. */
#ifndef MINHASH_H
#define MINHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/bam_record.h"
#include "order/sort_key.h"

#define MINHASH_REF_MAX ((int32_t)1 << 30)

enum { MINHASH_KMER_MAX = 31, MINHASH_HASH_BITS = 62, MINHASH_OFFSET_BITS = 17 };

/* The settings of -M, -K, -R and -H, and the index of -I. Does not change once
 * made; threads share it. */
struct minhash;

/* The place of a read without reference. The lower hash comes first, then the
 * lower offset, then the forward strand (of the turned read). */
struct minhash_rank {
    uint64_t hash;               /* 62 bits; with an index: where in the FASTA the read would begin, - (k - 1) */
    uint32_t offset;             /* last base of the minimiser in the turned read, capped; 0: no k-mer, or an index */
    bool reverse;                /* the minimiser is on the other strand: minhash_apply() turns the read */
};

/* Uses kmer (clipped to 1..31), window, no_reverse, squash and index_fasta of the
 * order. With an index reads the whole FASTA (or any other file htslib reads) and
 * says "Building index ... done" on stderr. NULL: no memory, or a FASTA that
 * cannot be read, of which the cause was printed to stderr. */
struct minhash *minhash_new(const struct sort_order *order);
void minhash_free(struct minhash *m);

/* Bytes of memory that its index takes. */
size_t minhash_memory(const struct minhash *m);

/* Whether -M orders the record by rank (it has no reference) or by coordinate.
 * For the latter apply and finish are not called. */
static inline bool minhash_applies(const struct bam_record *r)
{
    return bam_record_ref_id(r) < 0;
}

/* The rank of a checked record without reference, as it came in. */
void minhash_rank(const struct minhash *m, const struct bam_record *r, struct minhash_rank *rank);

/* Once per record: turns it if the rank says so (reverse complement of SEQ,
 * reversed QUAL, flag ^ 0x10; tags stay), and keeps the rank in it. The size
 * does not change. */
void minhash_apply(struct bam_record *r, const struct minhash_rank *rank);

/* What minhash_apply() kept; reverse is always false, the read being turned. */
struct minhash_rank minhash_kept(const struct bam_record *r);

/* The key of an applied record without reference, or of any placed one:
 * if a comes before b then key(a) <= key(b). */
uint64_t minhash_key(const struct minhash *m, const struct bam_record *r);

/* Whether equal keys are always ties: with an index, or up to -K 22. */
bool minhash_decides(const struct minhash *m);

/* The whole order over applied and placed records: < 0, 0 (a tie), > 0. */
int minhash_compare(const struct bam_record *a, const struct bam_record *b);

/* Puts away the rank: the record as it is written. minhash_key() and
 * minhash_compare() no longer apply. */
static inline void minhash_finish(struct bam_record *r)
{
    store_le32(r->pos, UINT32_MAX);
    store_le32(r->next_pos, UINT32_MAX);
    store_le32(r->tlen, 0);
}

#endif
