/* SPDX-License-Identifier: MIT */
/* The output that a command is to write. The command line fills it in, and nothing changes it afterwards. Memory and
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
    bool no_pg;                  /* there is to be no @PG */
    bool verify;                 /* see sink_verify.h */
    bool copies;                 /* see copied_blocks.h; of a merge, or a sort that a merge can stand for, where the
                                  * output is compressed BAM */
    const char *checksum;        /* file for written_checksum(), "-": standard output; NULL: none */
    bool checksum_samtools;      /* it gets the table of `samtools checksum`; else our line */
    struct counter counters[COUNTERS];   /* n_counters: of the records as they are written */
    const char *counted[COUNTERS];   /* the file for what each prints, "-": standard output */
    size_t n_counters;
    void *counter_settings;      /* of all of them, in one piece; owned; NULL: there are none */
};

#endif
