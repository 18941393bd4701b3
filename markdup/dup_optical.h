/* SPDX-License-Identifier: MIT */
/* Which duplicates of one original are optical duplicates of each other. Serial. */
#ifndef DUP_OPTICAL_H
#define DUP_OPTICAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/name_table.h"
#include "markdup/dup_cells.h"

/* A cluster in the order of tiles and x. */
struct dup_placed {
    long x;
    uint32_t tile;               /* its rank among the tiles */
    uint32_t cluster;                /* its place in clusters[] */
};

struct dup_tile {
    const char *text;
    size_t n;
    uint32_t number;             /* in the order in which they were found */
};

/* Whose duplicates are compared. A member is a number of the caller's, who is asked for what belongs to it. */
struct dup_members {
    /* Fills clusters[n]. */
    void (*read)(void *context, const uint32_t *members, size_t n, struct dup_cluster *clusters);
    struct dup_marker to;        /* its context is also that of read() */
};

/* Duplicates of one original, in order. A zero-initialised struct is empty. */
struct dup_clusters {
    struct byte_buffer list;     /* struct listed */
    struct name_table tiles;
    struct dup_cells cells;
};

void dup_clusters_free(struct dup_clusters *clusters);

/* Adds a member, of which the tile is kept. -1: out of memory. */
int dup_clusters_add(struct dup_clusters *clusters, uint32_t member, const char *name, const struct dup_coords *coords);

/* Marks each one that has a better one close to it. Close means what upstream's scan sees: both are in one group,
 * |dy| <= distance, and dx <= distance, where the scan from the one reaches the other. Groups and scan:
 *
 *   clusters in the order of length of tile, tile, x:
 *   [9: x 100 300 900] [11: x 150 200] | [12: x 120 ...           tiles with the lengths 1, 2, 2
 *   \____________________________________________ ...
 *   A group ends before a tile that is as long as the group's first one, and another. So the last of the shortest tiles
 *   is in one group with all longer ones. The scan from a cluster goes on until it meets an x that is larger by more
 *   than the distance; smaller ones do not stop it.
 *
 * Between equal ones the order decides. Of groups of one tile, which most are, takes n steps, and what
 * markdup/dup_cells.h says. Of others, n log n steps and 160 bytes for each cluster of the largest. Then there are no
 * clusters any more. Returns 0, or -1 if there is no memory. */
int dup_clusters_mark(struct dup_clusters *clusters, const struct dup_members *members);

/* Its parts. Sorts the tiles of the names: tiles[] has room for all. */
void dup_tiles_rank(const struct name_table *found, struct dup_tile *tiles);

/* Where the group ends that begins with tiles[from], of n: upstream's scan tells two tiles apart only where they have
 * the same length, and compares each with the first one. */
size_t dup_tiles_group(const struct dup_tile *tiles, size_t n, size_t from);

/* Marks the clusters of a group of many tiles. order: of each, in any order; it is sorted. *n_open, if it is not
 * NULL: the scan from so many goes on behind the last one. They come first in order[] then, sorted. Call it again
 * with them and the tiles that follow. -1: out of memory. */
int dup_group_mark(struct dup_cluster *clusters, struct dup_placed *order, size_t n, long distance, size_t *n_open);

/* Bytes that this takes for n clusters, with them and their order, but without their names. */
size_t dup_group_memory(size_t n);

#endif
