/* SPDX-License-Identifier: MIT */
/* Compares the sequences of a FASTA with the checksums of the header: M5 of @SQ (SAMv1 section 1.3) is the MD5 of the
 * sequence in capital letters. A FASTA of another assembly changes bases of CRAM. htslib compares too little: nothing
 * when it reads a slice with several references, and nothing when it writes before 1.21. */
#ifndef REF_SUMS_H
#define REF_SUMS_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>

struct latch;
struct ref_sums;

/* header and fasta belong to the caller and must live as long as the sums; path: the CRAM, for messages. NULL: out of
 * memory, and the error is recorded in the latch. */
struct ref_sums *ref_sums_new(sam_hdr_t *header, const char *fasta, const char *path, struct latch *latch);
void ref_sums_free(struct ref_sums *sums);

/* Returns hts_file_fasta(), or NULL if the user turned the comparison off. */
const char *ref_sums_fasta(const char *reference, const hts_opt *options);

/* Any thread may call the next three functions. A reference without M5, or one that is missing in the FASTA, is
 * accepted. */

/* Compares this reference, unless another call has begun that. It needs some 10 ns of CPU time for each base (htslib
 * 1.16). -1: its sequence differs or cannot be read, and the error is recorded in the latch. */
int ref_sums_check(struct ref_sums *sums, int32_t reference);

/* Notes a reference for ref_sums_check_seen(), which compares all noted references. */
void ref_sums_see(struct ref_sums *sums, int32_t reference);
int ref_sums_check_seen(struct ref_sums *sums);

/* Compares all references until one differs. Called when htslib has failed. -1: a sequence differs or cannot be read,
 * and the error is recorded in the latch. */
int ref_sums_check_all(struct ref_sums *sums);

#endif
