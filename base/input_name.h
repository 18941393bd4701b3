/* SPDX-License-Identifier: MIT */
/* File names as htslib reads them. */
#ifndef INPUT_NAME_H
#define INPUT_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The local path of a file:// URL; any other name unchanged. Not to be freed. */
const char *input_name_local(const char *name);

/* The file that an input's name stands for, to be freed; NULL: out of memory. It lacks ##idx## and the index name after
 * it, which a sort does not need, and "preload:", which would keep the file in memory twice. */
char *input_name_file(const char *name);

/* Splits FILE##idx##INDEX. Returns INDEX; NULL: there is none. n may be NULL. *n: the number of bytes in FILE, which
 * is the complete name if there is no INDEX. */
const char *input_name_index(const char *name, size_t *n);

/* The name without its folder: what follows its last slash. */
const char *input_name_base(const char *name);

/* The name for messages: "standard input" for "-". */
const char *input_name_shown(const char *name);

/* Returns whether the name is that of an existing regular file; for "-", whether standard input is one. */
bool input_name_is_file(const char *name);

/* Returns whether its bytes can be read only once and in order: "-", a URL, or an existing file that is not regular. */
bool input_name_is_stream(const char *name);

/* Returns whether htslib would treat the name as a URL, which can be read but not written. */
bool input_name_is_url(const char *name);

#endif
