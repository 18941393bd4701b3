/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "markdup/dup_tiles.h"

/* A cluster in a list, followed by its name. */
struct listed_cluster {
    uint64_t member;
    int64_t score;
    long x, y;
    uint8_t name_len;            /* with its NUL */
    bool pair_end, qc_fail, elsewhere, optical;
};

/* The clusters of one tile. */
struct tile_list {
    struct byte_buffer pieces;   /* struct dup_piece */
    struct byte_buffer tail;     /* bytes after them */
    size_t n, bytes;             /* clusters; their total bytes */
};

/* Clusters of a group, in memory. */
struct tile_group {
    struct byte_buffer bytes;    /* bytes of the lists, and names */
    struct dup_cluster *clusters;
    struct dup_placed *order;
    uint64_t *members;
    size_t n, n_open;            /* the scan continues from the first n_open in order[] */
};

/* Lists of fewer bytes stay in memory if the store allows a MiB; if it allows less, shorter ones do. */
enum { SHORT = 1 << 12, PART = 1 << 8 };

static struct tile_list *list_at(const struct dup_tiles *t, size_t i)
{
    return (struct tile_list *)(void *)t->lists.p + i;
}

void dup_tiles_clear(struct dup_tiles *t)
{
    for (size_t i = 0; i < t->lists.n / sizeof(struct tile_list); i++) {
        free(list_at(t, i)->pieces.p);
        free(list_at(t, i)->tail.p);
    }
    free(t->lists.p);
    name_table_free(&t->names);
    *t = (struct dup_tiles){.store = t->store};
}

static int store_list(struct dup_tiles *t, struct tile_list *list)
{
    if (dup_store_put(t->store, &list->tail, &list->pieces) < 0)
        return -1;
    t->memory -= list->tail.max;
    free(list->tail.p);
    list->tail = (struct byte_buffer){.p = NULL};
    return 0;
}

/* Stores all lists except short ones. */
static int leave(struct dup_tiles *t)
{
    size_t most = t->store->most, least = most / PART < SHORT ? most / PART : SHORT;
    for (size_t i = 0; i < t->lists.n / sizeof(struct tile_list); i++)
        if (list_at(t, i)->tail.n > least && store_list(t, list_at(t, i)) < 0)
            return -1;
    t->enough = 2 * t->memory > most ? 2 * t->memory : most;
    return 0;
}

static struct tile_list *list_of(struct dup_tiles *t, const struct dup_cluster *cluster)
{
    const char *text = cluster->name + cluster->coords.tile;
    int32_t number = name_table_find(&t->names, text, cluster->coords.n_tile);
    struct tile_list none = {.n = 0};
    if (number < 0 && ((number = name_table_add(&t->names, text, cluster->coords.n_tile)) < 0
                       || byte_buffer_append(&t->lists, &none, sizeof none) < 0))
        return NULL;
    return list_at(t, (size_t)number);
}

int dup_tiles_add(struct dup_tiles *t, const struct dup_cluster *cluster, uint64_t member)
{
    struct listed_cluster listed;
    struct tile_list *list = list_of(t, cluster);
    memset(&listed, 0, sizeof listed);           /* also the padding */
    listed.member = member;
    listed.score = cluster->score;
    listed.x = cluster->coords.x;
    listed.y = cluster->coords.y;
    listed.name_len = (uint8_t)(strlen(cluster->name) + 1);
    listed.pair_end = cluster->pair_end;
    listed.qc_fail = cluster->qc_fail;
    listed.elsewhere = cluster->elsewhere;
    listed.optical = cluster->optical;
    if (!list)
        return -1;
    size_t before = list->tail.max;
    if (byte_buffer_append(&list->tail, &listed, sizeof listed) < 0
        || byte_buffer_append(&list->tail, cluster->name, listed.name_len) < 0)
        return -1;
    list->n++;
    list->bytes += sizeof listed + listed.name_len;
    t->memory += list->tail.max - before;
    return t->memory > (t->enough ? t->enough : t->store->most) ? leave(t) : 0;
}

/* ---- groups ---- */

static int read_list(const struct dup_tiles *t, const struct tile_list *list, struct byte_buffer *to)
{
    const struct dup_piece *pieces = (const struct dup_piece *)(const void *)list->pieces.p;
    for (size_t i = 0; i < list->pieces.n / sizeof *pieces; i++)
        if (dup_store_get(t->store, &pieces[i], true, to) < 0)
            return -1;
    return byte_buffer_append(to, list->tail.p, list->tail.n);
}

/* Reads the cluster of a list that begins at *at, and moves *at past it. */
static struct dup_cluster read_cluster(const uint8_t *bytes, size_t *at, uint64_t *member)
{
    struct listed_cluster l;
    memcpy(&l, bytes + *at, sizeof l);
    const char *name = (const char *)bytes + *at + sizeof l;
    *at += sizeof l + l.name_len;
    *member = l.member;
    return (struct dup_cluster){.name = name, .coords = {.x = l.x, .y = l.y}, .score = l.score, .pair_end = l.pair_end,
                            .qc_fail = l.qc_fail, .elsewhere = l.elsewhere, .optical = l.optical};
}

/* Reads the clusters of a tile with this rank. There is room for all. */
static int read_tile(const struct dup_tiles *t, const struct tile_list *list, uint32_t rank, struct tile_group *g)
{
    size_t at = g->bytes.n;
    if (read_list(t, list, &g->bytes) < 0)
        return -1;
    for (; at < g->bytes.n; g->n++) {
        g->clusters[g->n] = read_cluster(g->bytes.p, &at, &g->members[g->n]);
        g->order[g->n] = (struct dup_placed){g->clusters[g->n].coords.x, rank, (uint32_t)g->n};
    }
    return 0;
}

static void group_free(const struct tile_group *g)
{
    free(g->bytes.p);
    free(g->clusters);
    free(g->order);
    free(g->members);
}

/* Copies the open clusters. There is room for all. */
static int take_open(const struct tile_group *from, struct tile_group *g)
{
    for (; g->n < from->n_open; g->n++) {
        size_t i = from->order[g->n].cluster;
        g->clusters[g->n] = from->clusters[i];
        g->members[g->n] = from->members[i];
        g->order[g->n] = from->order[g->n];
        g->order[g->n].cluster = (uint32_t)g->n;
        g->clusters[g->n].name = (const char *)g->bytes.p + g->bytes.n;
        if (byte_buffer_append(&g->bytes, from->clusters[i].name, strlen(from->clusters[i].name) + 1) < 0)
            return -1;
    }
    return 0;
}

/* Takes the open clusters of `before`, and reads tiles of [*from, to), which are one group, until they use the memory
 * allowed, but at least as many clusters as were open. *from: the first tile that was not read. */
static int read_tile_group(const struct dup_tiles *t, const struct dup_tile *tiles, size_t *from, size_t to,
                           const struct tile_group *before, struct tile_group *g)
{
    size_t begin = *from, n = before->n_open, bytes = n * UINT8_MAX;
    for (size_t i = begin; i < to; i++) {
        if (i > begin && n >= 2 * before->n_open && dup_group_memory(n) + bytes >= t->store->most)
            break;
        n += list_at(t, tiles[i].number)->n;
        bytes += list_at(t, tiles[i].number)->bytes;
        *from = i + 1;
    }
    g->clusters = malloc(n * sizeof *g->clusters);
    g->order = malloc(n * sizeof *g->order);
    g->members = malloc(n * sizeof *g->members);
    if (!g->clusters || !g->order || !g->members || byte_buffer_reserve(&g->bytes, bytes + 1) < 0
        || take_open(before, g) < 0)
        return -1;
    for (size_t i = begin; i < *from; i++)
        if (read_tile(t, list_at(t, tiles[i].number), (uint32_t)i, g) < 0)
            return -1;
    return 0;
}

/* Marks the tiles [from, to), which are one group, some tiles at a time. */
static int mark_group(const struct dup_tiles *t, const struct dup_tile *tiles, size_t from, size_t to,
                      const struct dup_marker *how)
{
    struct tile_group before, g = {.n = 0};
    int status = 0;
    while (from < to && status == 0) {
        before = g;
        g = (struct tile_group){.n = 0};
        status = read_tile_group(t, tiles, &from, to, &before, &g);
        group_free(&before);
        if (status == 0)
            status = dup_group_mark(g.clusters, g.order, g.n, how->distance, &g.n_open);
        for (size_t i = 0; i < g.n && status == 0; i++)
            if (g.clusters[i].optical)
                how->mark(how->context, g.members[i], &g.clusters[i]);
    }
    group_free(&g);
    return status;
}

/* ---- tiles that are alone in their groups ---- */

/* Gives the clusters in `bytes` to the cells. 1: the round has too many cells; -1: out of memory. */
static int give_clusters(struct dup_cells *cells, const struct byte_buffer *bytes, bool again,
                         const struct dup_marker *how)
{
    int status = 0;
    for (size_t at = 0; at < bytes->n && status == 0;) {
        uint64_t member;
        struct dup_cluster cluster = read_cluster(bytes->p, &at, &member);
        if (again)
            dup_cells_compare(cells, how, &cluster, member);
        else
            status = dup_cells_add(cells, how, &cluster, member);
    }
    return status;
}

/* Gives all clusters of the list to the cells, for one round; the last round also frees them. bytes: the clusters in
 * memory. */
static int give_list(const struct dup_tiles *t, const struct tile_list *list, struct dup_cells *cells,
                     struct byte_buffer *bytes, const struct dup_marker *how)
{
    const struct dup_piece *pieces = (const struct dup_piece *)(const void *)list->pieces.p;
    int status = 0;
    for (int again = 0; again < 2 && status == 0; again++) {
        bool last = again && cells->round == cells->more_rounds;
        for (size_t i = 0; i < list->pieces.n / sizeof *pieces && status == 0; i++) {
            bytes->n = 0;
            status = dup_store_get(t->store, &pieces[i], last, bytes) < 0 ? -1
                   : give_clusters(cells, bytes, again, how);
        }
        if (status == 0)
            status = give_clusters(cells, &list->tail, again, how);
    }
    return status;
}

/* Marks a tile in rounds. Their number is doubled if the cells of one need too much memory. */
static int mark_in_rounds(const struct dup_tiles *t, const struct tile_list *list, struct dup_cells *cells,
                          struct byte_buffer *bytes, const struct dup_marker *how)
{
    int status = 0;
    cells->most = t->store->most + 1;            /* 0 would be no limit */
    for (cells->round = cells->more_rounds = 0; cells->round <= cells->more_rounds && status >= 0;) {
        status = give_list(t, list, cells, bytes, how);
        if (status == 0) {
            dup_cells_end(cells, how);
            cells->round++;
            continue;
        }
        dup_cells_free(cells);
        cells->more_rounds = 2 * cells->more_rounds + 1;
        cells->round = 0;
    }
    cells->round = cells->more_rounds = 0;
    cells->most = 0;
    return status;
}

/* Marks a tile that is alone in its group. */
static int mark_list(const struct dup_tiles *t, const struct tile_list *list, struct dup_cells *cells,
                     const struct dup_marker *how)
{
    struct byte_buffer bytes = {.p = NULL};
    int status = 0;
    if (list->bytes > t->store->most)
        status = mark_in_rounds(t, list, cells, &bytes, how);
    else if (read_list(t, list, &bytes) < 0 || give_clusters(cells, &bytes, false, how) < 0
             || give_clusters(cells, &bytes, true, how) < 0)
        status = -1;
    else
        dup_cells_end(cells, how);
    free(bytes.p);
    return status;
}

int dup_tiles_mark(struct dup_tiles *t, const struct dup_marker *how)
{
    struct dup_cells cells = {.slots = NULL};
    size_t n = name_table_count(&t->names);
    struct dup_tile *tiles = malloc((n + 1) * sizeof *tiles);
    int status = tiles ? 0 : -1;
    if (tiles)
        dup_tiles_rank(&t->names, tiles);
    for (size_t from = 0, to; from < n && status == 0; from = to) {
        to = dup_tiles_group(tiles, n, from);
        status = to > from + 1 ? mark_group(t, tiles, from, to, how)
               : mark_list(t, list_at(t, tiles[from].number), &cells, how);
    }
    dup_cells_free(&cells);
    free(tiles);
    dup_tiles_clear(t);
    return status;
}
