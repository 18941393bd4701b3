/* SPDX-License-Identifier: MIT */
/* Bases and qualities of barcodes, by position (BCC, QTQ, ..). samtools uses the first barcodes it sees to decide
 * what it counts of the later ones: none may be longer than the first one, and the first character that is not a
 * base sets the place of the separator. Records must be countable in any order. So barcodes are counted in groups,
 * by length and by the place of the first such character, and ranges of records keep which groups came first (struct
 * stats_barcode_order). At the end it is decided which parts of a group count:
 *
 *     ACGT-ACGT    bases before the character always count; those after it, and the qualities, count only if it stands
 *     bases ^      where the separator is, or if there is no such character
 */
#ifndef STATS_BARCODES_H
#define STATS_BARCODES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { BARCODE_TAGS = 4 };

/* "BC", "CR", "OX", "RX", and the tags of their qualities. */
extern const char stats_barcode_tags[BARCODE_TAGS][2][3];

struct barcode_group;

/* The counts, in any order. A zero-initialised struct is empty. */
struct stats_barcodes {
    struct barcode_group **groups;
    size_t n, room;
    size_t last[BARCODE_TAGS];   /* the group of the last barcode of a tag; mostly the next barcode is in it, too */
};

/* The first record of each length that has such a character, in the order of the records. A zero-initialised struct is
 * empty. */
struct barcode_first {
    int tag;
    uint32_t length, place;
};

struct stats_barcode_order {
    struct barcode_first *firsts;
    size_t n, room;
    uint32_t length[BARCODE_TAGS];       /* length of the first barcode; 0: there was none yet */
};

void stats_barcodes_free(struct stats_barcodes *b);

/* Counts a barcode, which is a text that is not empty, and its qualities, which may be NULL. Returns -1 if out of
 * memory. */
int stats_barcodes_add(struct stats_barcodes *b, struct stats_barcode_order *order, int tag, const char *text,
                       const char *qualities);

/* Adds the counts of `from`. Returns -1 if out of memory. */
int stats_barcodes_join(struct stats_barcodes *b, const struct stats_barcodes *from);

void stats_barcode_order_free(struct stats_barcode_order *order);
void stats_barcode_order_clear(struct stats_barcode_order *order);

/* Adds the order of the records that follow. Returns -1 if out of memory. */
int stats_barcode_order_join(struct stats_barcode_order *order, const struct stats_barcode_order *right);

/* Prints the sections of the tags that were seen. Returns -1 if out of memory. */
int stats_barcodes_print(const struct stats_barcodes *b, const struct stats_barcode_order *order, FILE *out);

#endif
