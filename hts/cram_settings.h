/* SPDX-License-Identifier: MIT */
/* The options, besides the user's, that make htslib write CRAM that gives the same records back. htslib 1.13, 1.16,
 * 1.21 and 1.24 were tried, each with every option that sets the source of references (test_cram_out.py):
 *
 *   option                    | goes wrong                                                        | in htslib
 *   --------------------------+-------------------------------------------------------------------+-------------
 *   with a reference (FASTA)  | a slice whose reads all begin after the reference's end cannot    | all
 *                             | be read again; nor, before 1.21, one of several references        |
 *   embed_ref=1               | the same                                                          | before 1.21
 *   embed_ref=2, and if a     | bases after the reference's end become N; before 1.21 also: it    | before 1.24
 *   reference is not found    | crashes on reads without SEQ, hangs, fails except by coordinate   |
 *   neither, before 1.16      | fails                                                             | before 1.16
 *   any                       | drops RG tags that name no @RG line                               | before 1.16
 *
 * no_ref=1 has none of the faults above except the last, whose records record_out refuses. CRAM version 2 adds bases to
 * mapped reads without SEQ. It adds qualities to mapped reads without them if a reference is missing or the user sets
 * no_ref=1 or embed_ref=2. Every htslib does so, and record_out refuses such reads. */
#ifndef CRAM_SETTINGS_H
#define CRAM_SETTINGS_H

#include <stdbool.h>
#include <htslib/hts.h>
#include <htslib/sam.h>

/* The state of the output when all records are read. */
struct cram_settings_case {
    int htslib;                  /* its version, see htslib_version.h */
    const hts_opt *options;      /* the user's */
    const char *reference;       /* FASTA; NULL: none */
    sam_hdr_t *header;           /* htslib parses it when it needs a line */
    bool beyond;                 /* a record begins after the end of its reference */
};

enum cram_reference {
    CRAM_AS_TOLD,                /* as the user's options state */
    CRAM_NO_REF,                 /* no_ref=1 */
    CRAM_NO_EMBED,               /* embed_ref=0: a missing reference is an error */
};

struct cram_settings {
    enum cram_reference reference;
    const char *why;             /* the reason, for a warning; NULL: no warning */
    const char *fasta;           /* FASTA whose sequences are used and must be those of the header; NULL: none */
    bool needs_seq;              /* mapped reads without SEQ would get one, ... */
    bool needs_quals;            /* ... and so would those without qualities */
};

/* Returns whether the user's options make htslib crash at the first mapped record: no_ref=1 with embed_ref=1, which
 * needs a reference to embed. With embed_ref=2, no_ref=1 has priority. */
bool cram_settings_clash(const hts_opt *options);

/* Returns how CRAM must be written so that the same records are read again. */
struct cram_settings cram_settings_choose(const struct cram_settings_case *which);

/* The version of CRAM to request before the user's options, which may request another; NULL: htslib's default. 3.1 is a
 * draft before htslib 1.18, and the default since 1.22. */
const char *cram_settings_version(int htslib);

/* Returns whether this htslib compares the sequences that it uses with the header's M5 when it writes. */
bool cram_settings_compares_sums(int htslib);

/* Returns whether this htslib drops RG tags that name no @RG line. */
bool cram_settings_drops_groups(int htslib);

#endif
