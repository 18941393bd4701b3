/* SPDX-License-Identifier: MIT */
/* Which duplicates of one original are optical duplicates of each other. Serial. */
#ifndef DUP_OPTICAL_H
#define DUP_OPTICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "duplicates/dup_name.h"

/* A duplicate on the flow cell. */
struct dup_dot {
    const char *name;
    struct dup_spot spot;
    int64_t score;               /* of a pair end with its mate's */
    bool pair_end, qc_fail;
    bool optical;                /* in and out; once set it stays */
};

/* Marks each dot that has a better one close to it. Close means what upstream's scan sees: both are in one group,
 * |dy| <= distance, and dx <= distance, where the scan from the one reaches the other. Groups and scan:
 *
 *   dots in the order of length of tile, tile, x:
 *   [9: x 100 300 900] [11: x 150 200] | [12: x 120 ...           tiles with the lengths 1, 2, 2
 *   \____________________________________________ ...
 *   A group ends before a tile that is as long as the group's first one, and another. So the last of the shortest tiles
 *   is in one group with all longer ones. The scan from a dot goes on until it meets an x that is larger by more than
 *   the distance; smaller ones do not stop it.
 *
 * Between equal ones the place in dots[] decides. Takes n log n steps and, beside the dots, 16 bytes for each and 90
 * for each of the largest group. Returns 0, or -1 if there is no memory. */
int dup_optical_mark(struct dup_dot *dots, size_t n, long distance);

#endif
