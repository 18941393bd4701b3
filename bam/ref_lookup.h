/* SPDX-License-Identifier: MIT */
/* Where htslib finds the sequences of references for CRAM: in a FASTA, by checksum (M5) in the files that REF_CACHE and
 * REF_PATH name, or in the file of an UR tag. */
#ifndef REF_LOOKUP_H
#define REF_LOOKUP_H

#include <htslib/sam.h>

/* The name of the first reference of the header that is in none of these places on this machine; NULL: all are. URLs
 * are not asked. fasta may be NULL. */
const char *ref_lookup_missing(sam_hdr_t *header, const char *fasta);

#endif
