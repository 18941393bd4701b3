/* SPDX-License-Identifier: MIT */
/* The parts of read names that markdup uses: the position of the cluster on the flow cell, and barcodes. Serial; no
 * I/O. Threads may share an open rule. */
#ifndef DUP_NAME_H
#define DUP_NAME_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

/* The coordinates in a name. The tile is the text that must be equal: everything before x, or a group of an
 * expression. */
struct dup_coords {
    long x, y;
    uint8_t tile, n_tile;        /* its start in the name, and its size */
};

/* The reason why a name has no coordinates. */
enum dup_name_fault {
    DUP_NAME_OK,
    DUP_NAME_UNLIKE,             /* neither 3, 4, 6 nor 7 colons */
    DUP_NAME_NO_X, DUP_NAME_NO_Y,   /* there is no number */
    DUP_NAME_NO_MATCH,           /* the expression, or one of its groups, does not match */
};

/* The rules for reading coordinates: by colons, or by an expression of the user. */
struct dup_coords_rule {
    bool by_regex;
    regex_t regex;               /* POSIX, extended */
    unsigned char x, y, tile;    /* numbers of its groups; tile 0: no tile */
};

/* Opens the rule. regex NULL: by colons. order: "txy", "tyx", "xyt", "yxt", "xty", "ytx", "xy" or "yx"; NULL: "txy".
 * The first coordinate is used as x, even if its letter is y, as in samtools. Returns NULL, or the fault, a constant
 * string; then nothing is open. */
const char *dup_coords_open(struct dup_coords_rule *rule, const char *regex, const char *order);
void dup_coords_close(struct dup_coords_rule *rule);

/* Reads the coordinates of a name of at most 254 bytes. */
enum dup_name_fault dup_coords_read(const struct dup_coords_rule *rule, const char *name, struct dup_coords *coords);

/* Returns whether two clusters are within `distance` of each other, in x and in y, on one tile. */
bool dup_coords_are_near(const char *name, const struct dup_coords *coords, const char *other,
                         const struct dup_coords *there, long distance);

/* Returns what group `group` of a barcode's expression matches in the name: *n bytes. NULL: no match. */
const char *dup_barcode_find(const regex_t *regex, unsigned group, const char *name, int *n);

/* The expression of --barcode-name, and the number of its group that is the barcode. */
#define DUP_BARCODE_NAME "([0-9A-Za-z]+:){7}([!-?A-~]+)"
enum { DUP_BARCODE_NAME_GROUP = 2 };

/* The hash of a barcode, Bob Jenkins' one-at-a-time hash. Keys hold only the hash. */
uint32_t dup_barcode_hash(const char *text, int n);

#endif
