/* SPDX-License-Identifier: MIT */
/* Writes a text to a file. */
#ifndef OUT_TEXT_H
#define OUT_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct latch;
struct out_file;

/* Prints a text to memory; the caller checks the stream later. -1: failed; the error may be recorded in the
 * latch. */
typedef int out_text_fn(void *arg, FILE *to);

/* Writes the printed text to an open file; the caller finishes and commits the file, or abandons it. -1: failed, and
 * the error is recorded in the latch. */
int out_text_print(struct out_file *out, out_text_fn *print, void *arg, struct latch *latch);

/* Writes a text that is in memory in the same way. */
int out_text_write(struct out_file *out, const char *text, size_t size, struct latch *latch);

#endif
