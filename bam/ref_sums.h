/* SPDX-License-Identifier: MIT */
/* Compares the sequences of a FASTA with the checksums of the header: M5 of @SQ (SAMv1 section 1.3) is the MD5 of the
 * sequence in capital letters. A FASTA of another assembly changes bases of CRAM, and htslib compares too little: of
 * what it reads nothing where a slice has several references, of what it writes nothing before 1.21. */
#ifndef REF_SUMS_H
#define REF_SUMS_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>

struct latch;
struct ref_sums;

/* header and fasta stay the caller's, as long as the sums are used; path is the CRAM, for messages. NULL: out of
 * memory, and the error is recorded in the latch. */
struct ref_sums *ref_sums_new(sam_hdr_t *header, const char *fasta, const char *path, struct latch *latch);
void ref_sums_free(struct ref_sums *sums);

/* The FASTA that the user named, or an option of the format names; NULL: none, or checksums are not to be compared. */
const char *ref_sums_fasta(const char *reference, const hts_opt *options);

/* These three may be called by any thread. A reference without M5, or that the FASTA lacks, is taken as it is. */

/* Compares this reference, unless that has begun before. It takes some 10 ns of CPU time for a base (htslib 1.16). -1:
 * it is another, or cannot be read, and the error is recorded in the latch. */
int ref_sums_check(struct ref_sums *sums, int32_t reference);

/* Remembers a reference for ref_sums_check_seen(), which compares all that were seen. */
void ref_sums_see(struct ref_sums *sums, int32_t reference);
int ref_sums_check_seen(struct ref_sums *sums);

/* Compares one reference after the other until one is another: for when htslib has failed. -1 likewise. */
int ref_sums_check_all(struct ref_sums *sums);

#endif
