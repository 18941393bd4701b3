/* SPDX-License-Identifier: MIT */
/* What the command line of `samtools fixmate` asks for. cli/fixmate_args.c makes it; nothing changes it afterwards. */
#ifndef FIXMATE_OPTS_H
#define FIXMATE_OPTS_H

#include "fixmate/fixmate.h"
#include "engine/engine_opts.h"

struct fixmate_opts {
    struct engine_opts common;     /* one input, and no temporary files: n_temp_prefixes is 0 */
    struct fixmate_rules rules;  /* but the lengths, which the header tells */
};

#endif
