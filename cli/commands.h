/* SPDX-License-Identifier: MIT */
/* `samtools help`: all commands there are, ours and those of the samtools behind us. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdio.h>

/* Runs the samtools behind us to learn its commands. Where there is none, says what to do about it. */
void commands_print(FILE *to);

#endif
