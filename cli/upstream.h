/* SPDX-License-Identifier: MIT */
/* Handing a command to the samtools we stand in front of. */
#ifndef UPSTREAM_H
#define UPSTREAM_H

/* Replaces this process by $SAMTOOLS_UPSTREAM, or else by the next `samtools`
 * on PATH that is not this program, with argv unchanged. Returns the exit
 * status, after a message, only when there is none. */
int upstream_exec(char **argv);

/* The path of that program, to be freed; NULL: there is none. */
char *upstream_find(void);

/* Call it for that program before it is started otherwise: if it calls `samtools`, that is not itself. */
void upstream_note(const char *path);

#endif
