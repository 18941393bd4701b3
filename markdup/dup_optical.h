/* SPDX-License-Identifier: MIT */
/* Finds the duplicates of one original that are optical duplicates of each other. Serial. */
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
    uint32_t tile;               /* rank of the cluster's tile */
    uint32_t cluster;                /* index in clusters[] */
};

struct dup_tile {
    const char *text;
    size_t n;
    uint32_t number;             /* in the order in which they were found */
};

/* The duplicates to compare. A member is a number of the caller, whose functions return the cluster for it. */
struct dup_members {
    /* Fills clusters[n]. */
    void (*read)(void *context, const uint32_t *members, size_t n, struct dup_cluster *clusters);
    struct dup_marker to;        /* its context is also passed to read() */
};

/* Duplicates of one original, in order. A zero-initialised struct is empty. */
struct dup_clusters {
    struct byte_buffer list;     /* struct tile_member */
    struct name_table tiles;
    struct dup_cells cells;
};

void dup_clusters_free(struct dup_clusters *clusters);

/* Adds a member; its tile is copied. -1: out of memory. */
int dup_clusters_add(struct dup_clusters *clusters, uint32_t member, const char *name, const struct dup_coords *coords);

/* Marks each cluster that has a better one close to it. Two clusters are close if samtools' scan finds them: both are
 * in one group, |dy| <= distance, and dx <= distance, where the scan from one reaches the other. Groups and scan:
 *
 *   clusters in the order of length of the tile's name, tile, x:
 *   [9: x 100 300 900] [11: x 150 200] | [12: x 120 ...           tiles with the lengths 1, 2, 2
 *   \____________________________________________ ...
 *   A group ends before a tile whose name is as long as that of the group's first tile, but differs from it. So the
 *   last of the tiles with the shortest names is in one group with all tiles that have longer names. The scan from a
 *   cluster continues until it reaches an x that is larger by more than the distance; a smaller x does not stop it.
 *
 * If two clusters are equally good, the order decides. A group of one tile is the usual case. It takes n steps, and
 * memory as in markdup/dup_cells.h. Other groups take n log n steps, and 160 bytes for each cluster of the largest
 * group. All clusters are removed. Returns 0, or -1 if out of memory. */
int dup_clusters_mark(struct dup_clusters *clusters, const struct dup_members *members);

/* Parts of dup_clusters_mark(). Sorts the tiles of the names: tiles[] has room for all. */
void dup_tiles_rank(const struct name_table *found, struct dup_tile *tiles);

/* Returns the end of the group that begins with tiles[from]; there are n tiles. samtools' scan compares each tile with
 * the first one of the group, and distinguishes two tiles only if their names have the same length. */
size_t dup_tiles_group(const struct dup_tile *tiles, size_t n, size_t from);

/* Marks the clusters of a group of many tiles. order: one entry for each, in any order; it is sorted. *n_open, if
 * n_open is not NULL: the number of clusters whose scan continues after the last one. They come first in order[] then,
 * sorted. Call it again with them and the tiles that follow. -1: out of memory. */
int dup_group_mark(struct dup_cluster *clusters, struct dup_placed *order, size_t n, long distance, size_t *n_open);

/* Bytes that dup_group_mark() needs for n clusters, including the clusters and their order, but not their names. */
size_t dup_group_memory(size_t n);

#endif
