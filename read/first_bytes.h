/* SPDX-License-Identifier: MIT */
/* Guesses the kind of a file that cannot be read, from its first bytes. */
#ifndef FIRST_BYTES_H
#define FIRST_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FIRST_BYTES = 40,            /* number of bytes that are looked at */
    FIRST_BYTES_TEXT = 4 * FIRST_BYTES + 1,
};

/* The message about an index that is given as input; %s: its path. */
#define FIRST_BYTES_INDEX "%s is an index and holds no reads. Give the file that it belongs to"

/* A kind of compression that neither we nor htslib read. */
struct packing {
    const char *name;            /* for messages */
    const char *undo;            /* the command that writes the plain bytes to standard output */
};

/* Returns the compression of the file that begins with these bytes. NULL: gzip, BGZF, no compression, or not known. */
const struct packing *first_bytes_packing(const uint8_t *bytes, size_t n);

/* Returns whether a file that cannot be read is an index, judged by its first bytes or by the ending of its name. */
bool first_bytes_are_index(const uint8_t *bytes, size_t n, const char *path);

/* Writes the bytes to text[FIRST_BYTES_TEXT] in printable form: at most FIRST_BYTES of them, and only the first line.
 * Bytes that are not printable ASCII are written as \xHH. Returns text. */
const char *first_bytes_show(const uint8_t *bytes, size_t n, char *text);

#endif
