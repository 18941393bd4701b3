/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/prefetch.h"
#include "markdup/dup_optical.h"

/* The arrays that are sorted are small and contiguous: comparisons that follow pointers to coordinates and names would
 * wait for memory. */

/* A cluster of a group, by y. */
struct high {
    long y;
    uint32_t cluster;                /* number of the cluster in the group */
};

/* One sweep over a group, in its order. A cluster, numbered from 0, is active from its own turn until the scan from it
 * would have stopped. The next cluster is compared with the active ones that are close in y. The leaves of both trees
 * are the clusters of the group, in the order of y. */
struct sweep {
    const struct dup_placed *order;
    struct high *by_y;
    bool *optical;               /* for each cluster: whether it is optical. The next two fields have an entry for each
                                  * cluster, too */
    uint32_t *leaf;
    uint32_t *rank;              /* the best cluster has 0 */
    uint32_t *by_rank;           /* the cluster of each rank */
    uint32_t *best;              /* tree of active clusters: the smallest rank below a node; UINT32_MAX: none */
    uint32_t *worst;             /* tree of active clusters that are not marked: the largest rank + 1; 0: none */
    uint32_t *heap;              /* active clusters, smallest x on top */
    size_t n_heap, n_leaves;     /* a power of two */
    long distance;
    size_t n;
};

/* A member of the list, and the number of its tile. */
struct tile_member {
    uint32_t member, tile;
};

enum { LIST_KEPT = 1 << 20, READ = 64 };     /* bytes of the list kept for the next call; clusters read at once */

static int sign(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_length(const void *x, const void *y)
{
    const struct dup_tile *a = x, *b = y;
    return a->n != b->n ? sign((int64_t)a->n, (int64_t)b->n) : memcmp(a->text, b->text, a->n);
}

static int by_place(const void *x, const void *y)
{
    const struct dup_placed *a = x, *b = y;
    return a->tile != b->tile ? sign(a->tile, b->tile) : a->x != b->x ? sign(a->x, b->x) : sign(a->cluster, b->cluster);
}

static int by_y(const void *x, const void *y)
{
    const struct high *a = x, *b = y;
    return a->y != b->y ? sign(a->y, b->y) : sign(a->cluster, b->cluster);
}

static int by_number(const void *x, const void *y)
{
    return sign(*(const uint32_t *)x, *(const uint32_t *)y);
}

/* Orders the better cluster first. */
static int by_worth(const void *x, const void *y)
{
    return dup_worth_compare(x, y);
}

/* ---- trees: node 1 is the root, the children of i are 2i and 2i + 1 ---- */

static void tree_set(uint32_t *tree, size_t n_leaves, size_t leaf, uint32_t value, bool smallest)
{
    size_t at = n_leaves + leaf;
    tree[at] = value;
    for (at /= 2; at > 0; at /= 2) {
        uint32_t a = tree[2 * at], b = tree[2 * at + 1];
        tree[at] = (a < b) == smallest ? a : b;
    }
}

/* The smallest or largest value of the leaves [from, to). */
static uint32_t tree_get(const uint32_t *tree, size_t n_leaves, size_t from, size_t to, bool smallest)
{
    uint32_t found = smallest ? UINT32_MAX : 0;
    for (from += n_leaves, to += n_leaves; from < to; from /= 2, to /= 2) {
        if (from & 1) {
            found = (tree[from] < found) == smallest ? tree[from] : found;
            from++;
        }
        if (to & 1) {
            to--;
            found = (tree[to] < found) == smallest ? tree[to] : found;
        }
    }
    return found;
}

/* ---- the heap of active clusters ---- */

static bool is_left(const struct sweep *s, uint32_t a, uint32_t b)
{
    return s->order[a].x < s->order[b].x;
}

static void sweep_push(struct sweep *s, uint32_t cluster)
{
    size_t at = s->n_heap++;
    for (; at > 0 && is_left(s, cluster, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = cluster;
}

static uint32_t sweep_pop(struct sweep *s)
{
    uint32_t top = s->heap[0], last = s->heap[--s->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < s->n_heap; at = child) {
        if (child + 1 < s->n_heap && is_left(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_left(s, s->heap[child], last))
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = last;
    return top;
}

/* ---- the sweep ---- */

static long subtract_capped(long v, long distance)
{
    return v < LONG_MIN + distance ? LONG_MIN : v - distance;
}

static long more(long v, long distance)
{
    return v > LONG_MAX - distance ? LONG_MAX : v + distance;
}

/* The first leaf whose y is at least y, or larger than y if `larger`. */
static size_t leaf_from(const struct sweep *s, long y, bool larger)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        long there = s->by_y[middle].y;
        if (larger ? there > y : there >= y)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void mark(struct sweep *s, uint32_t cluster)
{
    s->optical[cluster] = true;
    tree_set(s->worst, s->n_leaves, s->leaf[cluster], 0, false);
}

static void sweep_cluster(struct sweep *s, uint32_t cluster)
{
    long x = s->order[cluster].x, y = s->by_y[s->leaf[cluster]].y;
    uint32_t rank = s->rank[cluster];
    while (s->n_heap > 0 && s->order[s->heap[0]].x < subtract_capped(x, s->distance)) {
        uint32_t gone = sweep_pop(s);
        tree_set(s->best, s->n_leaves, s->leaf[gone], UINT32_MAX, true);
        tree_set(s->worst, s->n_leaves, s->leaf[gone], 0, false);
    }
    size_t from = leaf_from(s, subtract_capped(y, s->distance), false), to = leaf_from(s, more(y, s->distance), true);
    if (tree_get(s->best, s->n_leaves, from, to, true) < rank)
        s->optical[cluster] = true;
    for (uint32_t worse; (worse = tree_get(s->worst, s->n_leaves, from, to, false)) > rank + 1;)
        mark(s, s->by_rank[worse - 1]);
    tree_set(s->best, s->n_leaves, s->leaf[cluster], rank, true);
    if (!s->optical[cluster])
        tree_set(s->worst, s->n_leaves, s->leaf[cluster], rank + 1, false);
    sweep_push(s, cluster);
}

/* Clusters and names are in the order of the list, not of the group: prefetches those needed soon. */
PREFETCH_FN void fetch_ahead(const struct dup_cluster *clusters, const struct dup_placed *order, size_t i, size_t n)
{
    enum { AHEAD = 8 };
    if (i + 2 * AHEAD < n)
        __builtin_prefetch(&clusters[order[i + 2 * AHEAD].cluster]);
    if (i + AHEAD < n)
        __builtin_prefetch(clusters[order[i + AHEAD].cluster].name);
}

/* Length of the common beginning of all names of the group. */
static size_t common_bytes(const struct dup_cluster *clusters, const struct dup_placed *order, size_t n)
{
    const char *first = clusters[order[0].cluster].name;
    size_t common = strlen(first);
    for (size_t i = 1; i < n; i++) {
        fetch_ahead(clusters, order, i, n);
        const char *name = clusters[order[i].cluster].name;
        size_t same = 0;
        while (same < common && name[same] == first[same])
            same++;
        common = same;
    }
    return common;
}

/* Numbers that have the order of strcmp(). */
static uint64_t begin_of(const char *text)
{
    uint64_t begin = 0;
    for (int i = 0; i < 8; i++) {
        begin = begin << 8 | (uint8_t)*text;
        text += *text != 0;
    }
    return begin;
}

/* Sorts the clusters of the group by y and by worth. worths: room for n. */
static void rank_clusters(struct sweep *s, const struct dup_cluster *clusters, struct dup_worth *worths)
{
    size_t common = common_bytes(clusters, s->order, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        fetch_ahead(clusters, s->order, i, s->n);
        const struct dup_cluster *cluster = &clusters[s->order[i].cluster];
        s->optical[i] = cluster->optical;
        s->by_y[i] = (struct high){cluster->coords.y, i};
        worths[i] = dup_worth_of(cluster);
        worths[i].begin = begin_of(cluster->name + common);
        worths[i].cluster = i;
    }
    qsort(s->by_y, s->n, sizeof *s->by_y, by_y);
    qsort(worths, s->n, sizeof *worths, by_worth);
    for (uint32_t i = 0; i < s->n; i++) {
        s->leaf[s->by_y[i].cluster] = i;
        s->by_rank[i] = worths[i].cluster;
        s->rank[worths[i].cluster] = i;
    }
}

/* Moves the open clusters to the front. Returns their number. */
static size_t put_open_first(const struct sweep *s, struct dup_placed *order)
{
    qsort(s->heap, s->n_heap, sizeof *s->heap, by_number);
    for (size_t i = 0; i < s->n_heap; i++)
        order[i] = order[s->heap[i]];
    return s->n_heap;
}

int dup_group_mark(struct dup_cluster *clusters, struct dup_placed *order, size_t n, long distance, size_t *n_open)
{
    qsort(order, n, sizeof *order, by_place);
    struct sweep s = {.order = order, .n = n, .distance = distance, .n_leaves = 1};
    while (s.n_leaves < n)
        s.n_leaves *= 2;
    s.by_y = malloc(n * sizeof *s.by_y);
    s.optical = malloc(n * sizeof *s.optical);
    s.leaf = malloc((4 * n + 4 * s.n_leaves) * sizeof *s.leaf);
    struct dup_worth *worths = malloc(n * sizeof *worths);
    bool enough = s.by_y && s.optical && s.leaf && worths;
    if (enough) {
        s.rank = s.leaf + n;
        s.by_rank = s.rank + n;
        s.heap = s.by_rank + n;
        s.best = s.heap + n;
        s.worst = s.best + 2 * s.n_leaves;
        memset(s.best, 0xff, 2 * s.n_leaves * sizeof *s.best);
        memset(s.worst, 0, 2 * s.n_leaves * sizeof *s.worst);
        rank_clusters(&s, clusters, worths);
        for (uint32_t i = 0; i < n; i++)
            sweep_cluster(&s, i);
        for (size_t i = 0; i < n; i++)
            clusters[order[i].cluster].optical = s.optical[i];
        if (n_open)
            *n_open = put_open_first(&s, order);
    }
    free(s.by_y);
    free(s.optical);
    free(s.leaf);
    free(worths);
    return enough ? 0 : -1;
}

size_t dup_group_memory(size_t n)
{
    enum { WORDS = 12 };                         /* words of a cluster: leaf, rank, by_rank, heap, and up to 4 in each
                                                  * tree */
    return n * (sizeof(struct dup_cluster) + sizeof(struct dup_placed) + sizeof(struct high) + sizeof(struct dup_worth)
                + sizeof(bool) + WORDS * sizeof(uint32_t));
}

/* ---- tiles ---- */

void dup_tiles_rank(const struct name_table *found, struct dup_tile *tiles)
{
    size_t n = name_table_count(found);
    for (size_t i = 0; i < n; i++) {
        const char *text = name_table_at(found, i);
        tiles[i] = (struct dup_tile){text, strlen(text), (uint32_t)i};
    }
    qsort(tiles, n, sizeof *tiles, by_length);
}

size_t dup_tiles_group(const struct dup_tile *tiles, size_t n, size_t from)
{
    size_t to = from + 1;
    while (to < n && tiles[to].n != tiles[from].n)
        to++;
    return to;
}

/* Lists the members by tile, in order on each. ends[i]: end of the members of tile i. */
static void divide(const struct tile_member *list, size_t n, const uint32_t *ranks, size_t n_tiles, uint32_t *members,
                   uint32_t *ends)
{
    memset(ends, 0, n_tiles * sizeof *ends);
    for (size_t i = 0; i < n; i++)
        ends[ranks[list[i].tile]]++;
    for (uint32_t i = 0, sum = 0; i < n_tiles; i++) {
        uint32_t count = ends[i];
        ends[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        members[ends[ranks[list[i].tile]]++] = list[i].member;
}

/* Marks the clusters of a group of one tile. */
static int mark_alone(const struct dup_members *how, struct dup_cells *cells, const uint32_t *members, uint32_t n)
{
    struct dup_cluster clusters[READ];
    for (int again = 0; again < 2; again++)
        for (uint32_t from = 0; from < n; from += READ) {
            uint32_t n_read = n - from < READ ? n - from : READ;
            if (n > READ || !again)
                how->read(how->to.context, members + from, n_read, clusters);
            for (uint32_t i = 0; i < n_read; i++)
                if (again)
                    dup_cells_compare(cells, &how->to, &clusters[i], members[from + i]);
                else if (dup_cells_add(cells, &how->to, &clusters[i], members[from + i]) < 0)
                    return -1;
        }
    dup_cells_end(cells, &how->to);
    return 0;
}

/* Marks the clusters of the tiles [from, to), which are one group of several tiles. */
static int mark_tiles(const struct dup_members *how, const uint32_t *members, const uint32_t *ends, uint32_t from,
                      uint32_t to)
{
    uint32_t begin = from ? ends[from - 1] : 0, n = ends[to - 1] - begin, tile = from;
    struct dup_cluster *clusters = malloc(n * sizeof *clusters);
    struct dup_placed *order = malloc(n * sizeof *order);
    int status = -1;
    if (clusters && order) {
        how->read(how->to.context, members + begin, n, clusters);
        for (uint32_t i = 0; i < n; i++) {
            while (begin + i >= ends[tile])
                tile++;
            order[i] = (struct dup_placed){clusters[i].coords.x, tile, i};
        }
        status = dup_group_mark(clusters, order, n, how->to.distance, NULL);
        for (uint32_t i = 0; i < n; i++)
            if (clusters[i].optical)
                how->to.mark(how->to.context, members[begin + i], &clusters[i]);
    }
    free(clusters);
    free(order);
    return status;
}

static int mark_groups(const struct dup_members *how, struct dup_cells *cells, const uint32_t *members,
                       const struct dup_tile *tiles, uint32_t n_tiles, const uint32_t *ends)
{
    for (uint32_t from = 0, to; from < n_tiles; from = to) {
        to = (uint32_t)dup_tiles_group(tiles, n_tiles, from);
        uint32_t begin = from ? ends[from - 1] : 0, n = ends[to - 1] - begin;
        if (n > 1 && (to > from + 1 ? mark_tiles(how, members, ends, from, to)
                                    : mark_alone(how, cells, members + begin, n)) < 0)
            return -1;
    }
    return 0;
}

/* ---- clusters ---- */

void dup_clusters_free(struct dup_clusters *clusters)
{
    free(clusters->list.p);
    name_table_free(&clusters->tiles);
    dup_cells_free(&clusters->cells);
}

int dup_clusters_add(struct dup_clusters *clusters, uint32_t member, const char *name, const struct dup_coords *coords)
{
    const char *text = name + coords->tile;
    int32_t number = name_table_find(&clusters->tiles, text, coords->n_tile);
    if (number < 0 && (number = name_table_add(&clusters->tiles, text, coords->n_tile)) < 0)
        return -1;
    struct tile_member listed = {member, (uint32_t)number};
    return byte_buffer_append(&clusters->list, &listed, sizeof listed);
}

int dup_clusters_mark(struct dup_clusters *clusters, const struct dup_members *how)
{
    const struct tile_member *list = (const struct tile_member *)(const void *)clusters->list.p;
    size_t n = clusters->list.n / sizeof *list, n_tiles = name_table_count(&clusters->tiles);
    struct dup_tile *tiles = malloc((n_tiles + 1) * sizeof *tiles);
    uint32_t *members = malloc((n + 2 * n_tiles + 1) * sizeof *members);
    int status = -1;
    if (tiles && members) {
        uint32_t *ranks = members + n, *ends = ranks + n_tiles;
        dup_tiles_rank(&clusters->tiles, tiles);
        for (size_t i = 0; i < n_tiles; i++)
            ranks[tiles[i].number] = (uint32_t)i;
        divide(list, n, ranks, n_tiles, members, ends);
        byte_buffer_trim(&clusters->list, LIST_KEPT);
        status = mark_groups(how, &clusters->cells, members, tiles, (uint32_t)n_tiles, ends);
    }
    free(tiles);
    free(members);
    name_table_free(&clusters->tiles);
    clusters->tiles = (struct name_table){.mask = 0};
    clusters->list.n = 0;
    return status;
}
