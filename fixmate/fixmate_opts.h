/* SPDX-License-Identifier: MIT */
/* The options of `samtools fixmate`. cli/fixmate_args.c fills them in; they do not change after that. */
#ifndef FIXMATE_OPTS_H
#define FIXMATE_OPTS_H

#include "fixmate/fixmate.h"
#include "engine/engine_opts.h"

struct fixmate_opts {
    struct engine_opts common;     /* one input, and no temporary files: n_temp_prefixes is 0 */
    struct fixmate_rules rules;  /* all except `lengths`, which come from the header */
};

#endif
