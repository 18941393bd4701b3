/* SPDX-License-Identifier: MIT */
/* The inputs that a command is to read. The command line fills it in, and nothing changes it afterwards. How much
 * memory and how many threads that gets is not asked for here: the memory plan's rings say it
 * (base/memory_shares.h). */
#ifndef INPUT_REQUEST_H
#define INPUT_REQUEST_H

#include <stddef.h>
#include <htslib/hts.h>

struct input_request {
    char **paths;                /* in the order in which they are read, at least one; "-": standard input; owned */
    size_t n;
    char **indexes;              /* of the inputs, each NULL if it is beside its input; NULL: all are; owned */
    hts_opt *format_options;     /* --input-fmt-option; NULL: none; owned */
    const char *reference;       /* FASTA for CRAM; NULL: as htslib finds it */
};

#endif
