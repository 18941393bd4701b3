/* SPDX-License-Identifier: MIT */
/* The inputs that a command is to read. The command line fills it in, and nothing changes it afterwards. The request
 * does not contain memory and threads: these are in the memory plan's rings (base/memory_shares.h). */
#ifndef INPUT_REQUEST_H
#define INPUT_REQUEST_H

#include <stddef.h>
#include <htslib/hts.h>

struct input_request {
    char **paths;                /* the paths in the order in which they are read, at least one; "-": standard input;
                                  * owned */
    size_t n;
    char **indexes;              /* indexes of the inputs; an entry is NULL if the index is beside its input; NULL: all
                                  * are beside their inputs; owned */
    hts_opt *format_options;     /* --input-fmt-option; NULL: none; owned */
    const char *reference;       /* FASTA for CRAM; NULL: the one that htslib finds */
};

#endif
