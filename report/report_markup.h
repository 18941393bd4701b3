/* SPDX-License-Identifier: MIT */
/* What our pages have in common: a head with the style, and text. A page needs no other file and runs no script; it is
 * legible from 360 pixels on, on white and on black. */
#ifndef REPORT_MARKUP_H
#define REPORT_MARKUP_H

#include <stdio.h>

/* Begins a page, up to its heading; two names of files are under it, `between` them (markup). */
void report_markup_begin(FILE *to, const char *heading, const char *first, const char *between, const char *second);

/* Ends a page with a line in small letters: our version, and what is given. */
void report_markup_end(FILE *to, const char *version, const char *second);

/* Writes text in which no character is markup. */
void report_markup_text(FILE *to, const char *text);

/* Writes one word of a glossary and what it means (markup). */
void report_markup_word(FILE *to, const char *word, const char *means);

#endif
