/* SPDX-License-Identifier: MIT */
/* The parts that our pages share: a head with the style, and text. A page needs no other file and runs no script; it is
 * legible on screens of 360 pixels and wider, on white and on black. */
#ifndef REPORT_MARKUP_H
#define REPORT_MARKUP_H

#include <stdio.h>

/* Begins a page: its subject, its headline, and two names of files with `between` (markup) between them. */
void report_markup_begin(FILE *to, const char *of, const char *headline, const char *first, const char *between,
                         const char *second);

/* Ends a page with a line in small letters: our version, and `second`. */
void report_markup_end(FILE *to, const char *version, const char *second);

/* Writes text with all markup characters escaped. */
void report_markup_text(FILE *to, const char *text);

/* Writes one word of a glossary and its meaning (markup). */
void report_markup_word(FILE *to, const char *word, const char *means);

/* Begins a folded section, which ends with REPORT_MARKUP_UNFOLD. summary: markup. */
void report_markup_fold(FILE *to, const char *summary);
#define REPORT_MARKUP_UNFOLD "</details></section>\n"

#endif
