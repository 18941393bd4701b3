/* SPDX-License-Identifier: MIT */
/* The parts that our pages have in common: a head with the style, and text. A page needs no other file and runs no
 * script; it is legible from 360 pixels on, on white and on black. */
#ifndef REPORT_MARKUP_H
#define REPORT_MARKUP_H

#include <stdio.h>

/* Begins a page: what it is of, its headline, and two names of files with `between` (markup) between them. */
void report_markup_begin(FILE *to, const char *of, const char *headline, const char *first, const char *between,
                         const char *second);

/* Ends a page with a line in small letters: our version, and what is given. */
void report_markup_end(FILE *to, const char *version, const char *second);

/* Writes text in which no character is markup. */
void report_markup_text(FILE *to, const char *text);

/* Writes one word of a glossary and what it means (markup). */
void report_markup_word(FILE *to, const char *word, const char *means);

/* Begins a section that is folded; it ends with REPORT_MARKUP_UNFOLD. summary: markup. */
void report_markup_fold(FILE *to, const char *summary);
#define REPORT_MARKUP_UNFOLD "</details></section>\n"

#endif
