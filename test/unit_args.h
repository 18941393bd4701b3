/* SPDX-License-Identifier: MIT */
/* Command lines for the parsers of cli/. */
#ifndef UNIT_ARGS_H
#define UNIT_ARGS_H

#include <getopt.h>
#include "unit.h"

enum { MAX_WORDS = 40 };

/* getopt keeps its place between calls; a process has only one command line. */
static inline void unit_reset_getopt(void)
{
    char *none[] = {"none", NULL};
    optind = 0;
    getopt(1, none, "");
}

/* Puts "samtools" and the words of text, separated by single blanks, into argv, followed by NULL. Returns their number.
 * They stay in text. */
static inline int unit_words(char *text, char *argv[MAX_WORDS + 1])
{
    static char samtools[] = "samtools";
    int argc = 0;
    argv[argc++] = samtools;
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        MUST(argc < MAX_WORDS);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return argc;
}

#endif
