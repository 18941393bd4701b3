/* SPDX-License-Identifier: MIT */
/* Clusters that do not fit into memory: one list for each tile, which is read once all clusters are known. Otherwise
 * like markdup/dup_optical.h. Serial. */
#ifndef DUP_TILES_H
#define DUP_TILES_H

#include "markdup/dup_optical.h"
#include "markdup/dup_store.h"

/* Duplicates of one original, in order. A struct that is zero except for the store is empty. */
struct dup_tiles {
    const struct dup_store *store;
    struct name_table names;     /* names of tiles */
    struct byte_buffer lists;    /* struct tile_list, by number of the tile */
    size_t memory;               /* bytes that are not in the store */
    size_t enough;               /* limit at which they are stored */
};

/* Removes all clusters, and frees the memory. */
void dup_tiles_clear(struct dup_tiles *tiles);

/* Adds a cluster. member: the caller's number for it. -1: it failed, or out of memory. */
int dup_tiles_add(struct dup_tiles *tiles, const struct dup_cluster *cluster, uint64_t member);

/* As dup_clusters_mark(), for the members that were added. If a tile is alone in its group and has more bytes than the
 * store allows, its list is read twice. In other groups, only some of the tiles are in memory at a time. */
int dup_tiles_mark(struct dup_tiles *tiles, const struct dup_marker *to);

#endif
