/* SPDX-License-Identifier: MIT */
/* The output that a command writes. The command line fills the struct in; it does not change after that. Memory and
 * threads: as in read/input_request.h. */
#ifndef OUTPUT_REQUEST_H
#define OUTPUT_REQUEST_H

#include <stdbool.h>
#include <htslib/hts.h>
#include "stats/counter.h"

struct output_request {
    char *path;                  /* "-": standard output; owned */
    htsFormat format;            /* with the options of --output-fmt-option; owned */
    int level;                   /* 0..9, or BGZF_LEVEL_DEFAULT */
    char *index;                 /* file for the index; NULL: none; owned */
    int index_format;            /* HTS_FMT_CSI, HTS_FMT_BAI or HTS_FMT_CRAI */
    const char *reference;       /* FASTA for CRAM; NULL: as htslib finds it */
    char *command_line;          /* for @PG CL; owned */
    bool no_pg;                  /* add no @PG line */
    bool verify;                 /* see sink_verify.h */
    bool copies;                 /* see copied_blocks.h; for a merge, or a sort that a merge can replace, if the output
                                  * is compressed BAM */
    const char *checksum;        /* file for written_checksum(), "-": standard output; NULL: none */
    bool checksum_samtools;      /* it gets the table of `samtools checksum`; otherwise our line */
    struct counter counters[COUNTERS];   /* n_counters: they count the records that are written */
    const char *counted[COUNTERS];   /* the file for each counter's text, "-": standard output */
    size_t n_counters;
    void *counter_settings;      /* settings of the counters of a command that writes records, in one allocation; owned;
                                  * NULL: none */
};

#endif
