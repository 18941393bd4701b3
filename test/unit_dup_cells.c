/* SPDX-License-Identifier: MIT */
/* Optical duplicates of tiles that are alone in their groups, in memory and in files, against a scan that compares all
 * with all. */
#include "unit.h"
#include <limits.h>
#include <stdio.h>
#include "base/byte_hash.h"
#include "markdup/dup_tiles.h"
#include "test/must.h"

enum { DOTS = 2500, NAME = 16 };

struct flow_cell {
    struct dup_cluster clusters[DOTS];
    char names[DOTS][NAME];
    bool marked[DOTS];
    struct byte_buffer stored;   /* the stored bytes, one after another */
    size_t n_puts, n_gets, n_drops, n_marks;
    size_t marks_before;         /* marks before the last get() */
};

static int put(void *cell, const void *data, size_t n, struct dup_place *place)
{
    struct flow_cell *f = cell;
    *place = (struct dup_place){.offset = f->stored.n, .size = (uint32_t)n};
    f->n_puts++;
    return byte_buffer_append(&f->stored, data, n);
}

static int get(void *cell, const struct dup_place *place, size_t offset, size_t n, uint64_t hash, void *data)
{
    struct flow_cell *f = cell;
    memcpy(data, f->stored.p + place->offset + offset, n);
    f->n_gets++;
    f->marks_before = f->n_marks;
    return byte_hash(data, n, 0) == hash ? 0 : -1;
}

static void drop(void *cell, const struct dup_place *place)
{
    (void)place;
    ((struct flow_cell *)cell)->n_drops++;
}

static void mark(void *cell, uint64_t member, const struct dup_cluster *cluster)
{
    struct flow_cell *f = cell;
    assert_string_equal(cluster->name, f->names[member]);
    f->marked[member] = true;
    f->n_marks++;
}

static void fill(struct flow_cell *f, uint64_t *seed, unsigned wide)
{
    static const long far[] = {LONG_MIN, LONG_MIN + 1, LONG_MAX, LONG_MAX - 1, -1, 0};
    for (unsigned i = 0; i < DOTS; i++) {
        struct dup_cluster *cluster = &f->clusters[i];
        snprintf(f->names[i], NAME, "%c%u", "tu"[unit_below(seed, 2)], unit_below(seed, 10000) * DOTS + i);
        *cluster = (struct dup_cluster){.name = f->names[i], .score = unit_below(seed, 9),
                                .pair_end = unit_below(seed, 8), .qc_fail = unit_below(seed, 8) == 0, .optical = unit_below(seed, 50) == 0,
                                .coords = {.x = (long)unit_below(seed, wide) - (long)wide / 2,
                                         .y = (long)unit_below(seed, wide) - (long)wide / 2, .n_tile = 1}};
        if (unit_below(seed, 8) == 0)
            *(unit_below(seed, 2) ? &cluster->coords.x : &cluster->coords.y) = far[unit_below(seed, N_OF(far))];
    }
}

static bool is_near(long a, long b, long distance)
{
    return a < b ? (uint64_t)b - (uint64_t)a <= (uint64_t)distance : (uint64_t)a - (uint64_t)b <= (uint64_t)distance;
}

static bool is_better(const struct dup_cluster *a, const struct dup_cluster *b)
{
    if (a->pair_end != b->pair_end || a->qc_fail != b->qc_fail)
        return a->pair_end != b->pair_end ? a->pair_end : b->qc_fail;
    return a->score != b->score ? a->score > b->score : strcmp(a->name, b->name) < 0;
}

static bool is_optical(const struct flow_cell *f, const struct dup_cluster *cluster, long distance)
{
    for (const struct dup_cluster *other = f->clusters; other < f->clusters + DOTS; other++)
        if (*other->name == *cluster->name && is_near(other->coords.x, cluster->coords.x, distance)
            && is_near(other->coords.y, cluster->coords.y, distance) && is_better(other, cluster))
            return true;
    return cluster->optical;
}

static void mark_all(struct flow_cell *f, long distance, size_t most)
{
    struct dup_store store = {.put = put, .get = get, .drop = drop, .context = f, .most = most};
    struct dup_tiles tiles = {.store = &store};
    memset(f->marked, 0, sizeof f->marked);
    f->n_puts = f->n_gets = f->n_drops = f->n_marks = f->marks_before = f->stored.n = 0;
    for (uint64_t i = 0; i < DOTS; i++)
        assert_int_equal(dup_tiles_add(&tiles, &f->clusters[i], i), 0);
    assert_int_equal(dup_tiles_mark(&tiles, &(struct dup_marker){distance, mark, f}), 0);
    assert_int_equal(f->n_drops, f->n_puts);
}

static void tile_unlike_the_plain_way(void **state)
{
    static struct flow_cell f;
    static const struct { unsigned wide; long distance; } kinds[] = {
        {60, 10}, {900, 3}, {300, 1}, {4, 1}, {900, INT_MAX}};
    uint64_t seed = 5;
    size_t n_optical = 0;
    (void)state;
    for (size_t kind = 0; kind < N_OF(kinds); kind++) {
        fill(&f, &seed, kinds[kind].wide);
        for (size_t most = 0; most <= 1 << 20; most = most ? 16 * most : 1 << 16) {
            mark_all(&f, kinds[kind].distance, most);
            for (size_t i = 0; i < DOTS; i++) {
                assert_int_equal(f.marked[i], is_optical(&f, &f.clusters[i], kinds[kind].distance));
                n_optical += f.marked[i];
            }
        }
    }
    assert_in_range(n_optical, DOTS, 12 * DOTS);
    free(f.stored.p);
}

/* Moves the clusters to these n tiles. */
static void move(struct flow_cell *f, uint64_t *seed, const char *const *tiles, unsigned n)
{
    for (unsigned i = 0; i < DOTS; i++) {
        const char *tile = tiles[unit_below(seed, n)];
        snprintf(f->names[i], NAME, "%s%u", tile, unit_below(seed, 10) * DOTS + i);
        f->clusters[i].coords.n_tile = (uint8_t)strlen(tile);
    }
}

static const struct dup_cluster *clusters_sorted;        /* by_tile() compares them */

static int by_tile(const void *x, const void *y)
{
    const struct dup_cluster *a = clusters_sorted + *(const unsigned *)x, *b = clusters_sorted + *(const unsigned *)y;
    int order = a->coords.n_tile != b->coords.n_tile ? a->coords.n_tile - b->coords.n_tile
              : memcmp(a->name, b->name, a->coords.n_tile);
    return order ? order : a->coords.x != b->coords.x ? (a->coords.x > b->coords.x ? 1 : -1) : a < b ? -1 : 1;
}

static bool same_tile(const struct dup_cluster *a, const struct dup_cluster *b)
{
    return a->coords.n_tile == b->coords.n_tile && memcmp(a->name, b->name, a->coords.n_tile) == 0;
}

/* Marks as upstream does, which scans a group from each of its clusters on. A smaller x is always close. */
static void scan(const struct flow_cell *f, long distance, bool *marked)
{
    static unsigned order[DOTS];
    clusters_sorted = f->clusters;
    for (unsigned i = 0; i < DOTS; i++) {
        order[i] = i;
        marked[i] = f->clusters[i].optical;
    }
    qsort(order, DOTS, sizeof *order, by_tile);
    for (size_t from = 0, i = 0; i < DOTS; i++) {
        const struct dup_cluster *a = &f->clusters[order[i]], *first = &f->clusters[order[from]];
        if (a->coords.n_tile == first->coords.n_tile && !same_tile(a, first))
            first = &f->clusters[order[from = i]];
        for (size_t k = i + 1; k < DOTS; k++) {
            const struct dup_cluster *b = &f->clusters[order[k]];
            bool ends = b->coords.n_tile == first->coords.n_tile && !same_tile(b, first);
            if (ends || (b->coords.x > a->coords.x && !is_near(a->coords.x, b->coords.x, distance)))
                break;
            if (is_near(a->coords.y, b->coords.y, distance))
                marked[order[is_better(a, b) ? k : i]] = true;
        }
    }
}

/* Tiles of several lengths are one group; only a few are in memory. */
static void tiles_of_several_lengths_unlike_the_scan(void **state)
{
    static const char *const tiles[] = {"a", "b", "cc", "dd", "ee", "fff", "ggg", "hhhh"};
    static struct flow_cell f;
    static bool wanted[DOTS];
    uint64_t seed = 7;
    (void)state;
    for (long distance = 1; distance < 2000; distance *= 7) {
        fill(&f, &seed, 900);
        move(&f, &seed, tiles, N_OF(tiles));
        scan(&f, distance, wanted);
        for (size_t most = 0; most <= 1 << 20; most = most ? 16 * most : 1 << 16) {
            mark_all(&f, distance, most);
            assert_memory_equal(f.marked, wanted, sizeof wanted);
        }
    }
    free(f.stored.p);
}

/* If memory is short, some tiles of a group are marked before others are read. */
static void large_group_takes_much_memory(void **state)
{
    static const char *const tiles[] = {"a", "bb", "ccc"};
    static struct flow_cell f;
    uint64_t seed = 8;
    (void)state;
    fill(&f, &seed, 900);
    move(&f, &seed, tiles, N_OF(tiles));
    mark_all(&f, 100, 1 << 14);
    assert_int_equal(f.n_gets, f.n_puts);
    assert_in_range(f.marks_before, 1, f.n_marks - 1);
    free(f.stored.p);
}

/* A tile is read twice, and again if it has more cells than memory allows. */
static void large_tile_takes_much_memory(void **state)
{
    static struct flow_cell f;
    uint64_t seed = 6;
    (void)state;
    fill(&f, &seed, 900);
    mark_all(&f, INT_MAX, 1 << 14);
    assert_in_range(f.n_puts, 2, 100);
    assert_int_equal(f.n_gets, 2 * f.n_puts);
    mark_all(&f, 3, 1 << 14);
    assert_true(f.n_gets > 4 * f.n_puts);
    mark_all(&f, 3, 1 << 19);
    assert_int_equal(f.n_gets, 0);
    free(f.stored.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tile_unlike_the_plain_way), cmocka_unit_test(tiles_of_several_lengths_unlike_the_scan),
        cmocka_unit_test(large_group_takes_much_memory), cmocka_unit_test(large_tile_takes_much_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
