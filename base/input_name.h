/* SPDX-License-Identifier: MIT */
/* Names of files as htslib reads them. */
#ifndef INPUT_NAME_H
#define INPUT_NAME_H

#include <stdbool.h>

/* The local path that a file:// URL means; any other name as it is. Not to be freed. */
const char *input_name_local(const char *name);

/* The file that an input's name means, to be freed; NULL: out of memory. Without ##idx## and the name of an index that
 * follows, which a sort does not need, and without "preload:", which would have the file in memory twice. */
char *input_name_file(const char *name);

/* The name as messages say it: "standard input" for "-". */
const char *input_name_shown(const char *name);

/* Whether it is a regular file that is there; "-": whether standard input is. */
bool input_name_is_file(const char *name);

/* Whether bytes go through it only once and in order: "-", a URL, or what is there and no regular file. */
bool input_name_is_stream(const char *name);

/* Whether htslib would take the name for a URL, which can be read but not written. */
bool input_name_is_url(const char *name);

#endif
