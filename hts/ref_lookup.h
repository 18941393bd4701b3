/* SPDX-License-Identifier: MIT */
/* Where htslib finds the sequences of references for CRAM: in a FASTA, by checksum (M5) in the files that REF_CACHE and
 * REF_PATH name, or in the file that the UR tag names. */
#ifndef REF_LOOKUP_H
#define REF_LOOKUP_H

#include <htslib/sam.h>

/* The name of the first reference of the header that is in none of these places on this machine; NULL: all are found.
 * URLs are not requested. fasta may be NULL. */
const char *ref_lookup_missing(sam_hdr_t *header, const char *fasta);

#endif
