/* SPDX-License-Identifier: MIT */
/* `samtools help`: all commands, ours and those of the samtools behind us. `samtools --version`. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdio.h>

/* Runs the samtools behind us to learn its commands. Where there is none, says what to do about it. */
void commands_print(FILE *to);

/* `samtools --version`: the first line is "samtools " and SAMTOOLS_VERSION. */
void commands_version(FILE *to);

/* `samtools --version-only`. */
void commands_version_only(FILE *to);

#endif
