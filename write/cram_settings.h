/* SPDX-License-Identifier: MIT */
/* What htslib must be told, beyond the user's options, to write CRAM that gives the same records back. htslib 1.13,
 * 1.16, 1.21 and 1.24 were tried, each with every option that says where references come from (test_cram_out.py):
 *
 *   option                    | goes wrong                                                        | in htslib
 *   --------------------------+-------------------------------------------------------------------+-------------
 *   with a reference (FASTA)  | a slice whose reads all begin behind the reference's end cannot   | all
 *                             | be read again; nor, before 1.21, one of several references        |
 *   embed_ref=1               | the same                                                          | before 1.21
 *   embed_ref=2, and where a  | bases behind the reference's end become N; before 1.21 also: it   | before 1.24
 *   reference is not found    | crashes on reads without SEQ, hangs, and fails but by coordinate  |
 *   none of both, before 1.16 | fails                                                             | before 1.16
 *   any                       | drops RG tags that name no @RG line                               | before 1.16
 *
 * no_ref=1 has none of the faults above, but of the last line, which record_out refuses. Version 2 of CRAM gives mapped
 * reads without SEQ some bases. It gives mapped reads without qualities some where not all references are had or the
 * user wants no_ref=1 or embed_ref=2. So it is with every htslib, and record_out refuses them. */
#ifndef CRAM_SETTINGS_H
#define CRAM_SETTINGS_H

#include <stdbool.h>
#include <htslib/hts.h>
#include <htslib/sam.h>

/* The output as it is when all records are read. */
struct cram_settings_case {
    int htslib;                  /* its version, see htslib_version.h */
    const hts_opt *options;      /* the user's */
    const char *reference;       /* FASTA; NULL: none */
    sam_hdr_t *header;           /* htslib parses it when it is asked */
    bool beyond;                 /* a record begins behind the end of its reference */
};

enum cram_reference {
    CRAM_AS_TOLD,                /* as the user's options have it */
    CRAM_NO_REF,                 /* no_ref=1 */
    CRAM_NO_EMBED,               /* embed_ref=0: a reference that is not found is an error */
};

struct cram_settings {
    enum cram_reference reference;
    const char *why;             /* for a warning; NULL: there is nothing to tell */
    const char *fasta;           /* whose sequences are used, and must be those of the header; NULL: none */
    bool needs_seq;              /* mapped reads that lack SEQ would get some, ... */
    bool needs_quals;            /* ... and so would those that lack qualities */
};

/* Whether the user's options are ones with which htslib crashes at the first mapped record: no_ref=1 with embed_ref=1,
 * which wants a reference to embed. With embed_ref=2, no_ref=1 counts. */
bool cram_settings_clash(const hts_opt *options);

struct cram_settings cram_settings_choose(const struct cram_settings_case *which);

/* The version of CRAM to ask for before the user's options are applied, which may ask for another; NULL: htslib's own.
 * 3.1 is a draft before htslib 1.18, and the default since 1.22. */
const char *cram_settings_version(int htslib);

/* Whether that htslib compares the sequences that it uses with the header's M5 when it writes. */
bool cram_settings_compares_sums(int htslib);

/* Whether that htslib drops RG tags which name no @RG line. */
bool cram_settings_drops_groups(int htslib);

#endif
