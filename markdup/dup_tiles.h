/* SPDX-License-Identifier: MIT */
/* Clusters of which there are so many that they leave memory: in a list for each tile, which is read when all are
 * known. Otherwise as markdup/dup_optical.h has it. Serial. */
#ifndef DUP_TILES_H
#define DUP_TILES_H

#include "markdup/dup_optical.h"
#include "markdup/dup_store.h"

/* Duplicates of one original, in order. One of all zeros but for the store is empty. */
struct dup_tiles {
    const struct dup_store *store;
    struct name_table names;     /* of tiles */
    struct byte_buffer lists;    /* struct tile_list, by number of the tile */
    size_t memory;               /* bytes of what is not in the store */
    size_t enough;               /* with so many they leave */
};

/* Forgets all. */
void dup_tiles_clear(struct dup_tiles *tiles);

/* Adds a cluster. member: the caller's number for it. -1: it failed, or there is no memory. */
int dup_tiles_add(struct dup_tiles *tiles, const struct dup_cluster *cluster, uint64_t member);

/* As dup_clusters_mark(), with the members that were given. The list of a tile that is alone in its group and has more
 * bytes than the store allows is read twice. Of other groups, some tiles are in memory at a time. */
int dup_tiles_mark(struct dup_tiles *tiles, const struct dup_marker *to);

#endif
