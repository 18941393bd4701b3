/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_hash.h"
#include "base/engine.h"
#include "base/latch.h"
#include "sormadup/orphans.h"

enum {
    BITS_LEAST = 12,             /* for a table, which has 2^BITS places ... */
    BEYOND = 1024,               /* ... and these, for numbers whose home is at the end and taken */
    RANGE_BITS = 8, RANGES = 1 << RANGE_BITS,    /* ranges of a run, which are read back one after another */
};

/* Numbers in ascending order, with gaps of zeros between them; each is at its home or after it, with no gap between the
 * two. So numbers that leave the table are sorted. */
struct mate_numbers {
    uint64_t *places;            /* the last one is always 0 */
    size_t n_places, n;
    unsigned bits;
};

struct orphans {
    struct orphans_options opt;
    struct mate_numbers table;
    unsigned bits_most;          /* limit of the table, while records are read */
    struct spill_store *files;   /* NULL: nothing was spilled */
    struct spill_place (*runs)[RANGES];
    size_t n_runs;
};

/* ------------------------------------------------------------------- table */

static int open_table(struct mate_numbers *t, unsigned bits)
{
    *t = (struct mate_numbers){.bits = bits, .n_places = ((size_t)1 << bits) + BEYOND};
    return (t->places = calloc(t->n_places, sizeof *t->places)) ? 0 : -1;
}

static void free_table(struct mate_numbers *t)
{
    free(t->places);
    t->places = NULL;
}

enum entered { ENTERED, MEETS_HALF, NO_ROOM };

static enum entered enter(struct mate_numbers *t, uint64_t mate)
{
    size_t at = mate >> (64 - t->bits), gap;
    while (t->places[at] && t->places[at] <= (mate | 1)) {
        if ((t->places[at++] | 1) == (mate | 1))
            return t->places[at - 1] == mate ? ENTERED : MEETS_HALF;
    }
    for (gap = at; t->places[gap];)
        gap++;
    if (gap + 1 == t->n_places || t->n >= (t->n_places - BEYOND) / 4 * 3)
        return NO_ROOM;
    memmove(t->places + at + 1, t->places + at, (gap - at) * sizeof *t->places);
    t->places[at] = mate;
    t->n++;
    return ENTERED;
}

/* Moves all numbers into a table that is twice as large. There is room: homes are no nearer to each other, so no number
 * is farther from its home than before. */
static int grow(struct orphans *m)
{
    struct mate_numbers larger;
    if (open_table(&larger, m->table.bits + 1) < 0)
        return latch_fail(m->opt.store.engine->latch, "%s: out of memory for %zu reads without mates", m->opt.path,
                          m->table.n);
    for (size_t i = 0; i < m->table.n_places; i++)
        if (m->table.places[i])
            enter(&larger, m->table.places[i]);
    free_table(&m->table);
    m->table = larger;
    return 0;
}

/* -------------------------------------------------------------------- runs */

static int prepare_files(struct orphans *m)
{
    uint64_t room;
    if (m->files)
        return 0;
    return (m->files = spill_store_open(&m->opt.store)) ? spill_store_prepare(m->files, &room) : -1;
}

static struct spill_place *add_run(struct orphans *m)
{
    struct spill_place (*runs)[RANGES] = realloc(m->runs, (m->n_runs + 1) * sizeof *runs);
    if (!runs) {
        latch_fail(m->opt.store.engine->latch, "out of memory for temporary data");
        return NULL;
    }
    m->runs = runs;
    return m->runs[m->n_runs++];
}

/* Writes the table as a run, and empties it. */
static int write_run(struct orphans *m)
{
    struct mate_numbers *t = &m->table;
    struct spill_place *run;
    size_t n = 0, from = 0;
    if (prepare_files(m) < 0 || !(run = add_run(m)))
        return -1;
    for (size_t i = 0; i < t->n_places; i++)
        if (t->places[i])
            t->places[n++] = t->places[i];
    for (uint64_t range = 0; range < RANGES; range++) {
        size_t end = from;
        while (end < n && t->places[end] >> (64 - RANGE_BITS) == range)
            end++;
        size_t size = (end - from) * sizeof *t->places;
        run[range] = (struct spill_place){.size = 0};
        if (size && spill_store_put(m->files, t->places + from, size, &run[range]) < 0)
            return -1;
        run[range].hash = byte_hash((const uint8_t *)(t->places + from), size, 0);
        from = end;
    }
    memset(t->places, 0, t->n_places * sizeof *t->places);
    t->n = 0;
    return 0;
}

/* A number of a range, shortened for a table that has only this range: the bits that all share are left out. Never
 * 0. */
static uint64_t inner_mate(uint64_t mate)
{
    return mate >> 1 << (RANGE_BITS + 1) | 2 | (mate & 1);
}

/* ------------------------------------------------------------------- mates */

static int put(struct orphans *m, uint64_t mate)
{
    enum entered entered;
    while ((entered = enter(&m->table, mate)) == NO_ROOM)
        if ((m->table.bits < m->bits_most ? grow(m) : write_run(m)) < 0)
            return -1;
    return entered == ENTERED ? 0
         : latch_fail(m->opt.store.engine->latch, "%s: the records are not grouped by name, because some mates are "
                      "apart. Nothing was written; use --collate", m->opt.path);
}

int orphans_put(void *orphans, const uint64_t *mates, size_t n)
{
    struct orphans *m = orphans;
    for (size_t i = 0; i < n; i++)
        if (put(m, mates[i]) < 0)
            return -1;
    return 0;
}

static int put_again(struct orphans *m, struct spill_place place, uint64_t *mates)
{
    if (place.size == 0)
        return 0;
    if (spill_store_get(m->files, place, mates) < 0)
        return -1;
    if (byte_hash((const uint8_t *)mates, place.size, 0) != place.hash)
        return spill_store_damaged(m->files, place);
    for (size_t i = 0; i < place.size / sizeof *mates; i++)
        if (put(m, inner_mate(mates[i])) < 0)
            return -1;
    return 0;
}

/* Compares one range of all runs, in a table that grows as needed, because no run is added any more. */
static int compare_range(struct orphans *m, size_t range, uint64_t *mates)
{
    memset(m->table.places, 0, m->table.n_places * sizeof *m->table.places);
    m->table.n = 0;
    for (size_t i = 0; i < m->n_runs; i++)
        if (put_again(m, m->runs[i][range], mates) < 0)
            return -1;
    return 0;
}

/* The most bytes of a run's range. */
static size_t largest_range(const struct orphans *m)
{
    size_t most = 0;
    for (size_t i = 0; i < m->n_runs * RANGES; i++)
        most = m->runs[i / RANGES][i % RANGES].size > most ? m->runs[i / RANGES][i % RANGES].size : most;
    return most;
}

static int compare_runs(struct orphans *m)
{
    uint64_t *mates = malloc(largest_range(m) + 1);
    int status = open_table(&m->table, BITS_LEAST) < 0 || !mates
               ? latch_fail(m->opt.store.engine->latch, "out of memory for temporary data") : 0;
    m->bits_most = UINT_MAX;
    for (size_t range = 0; range < RANGES && status == 0; range++)
        status = compare_range(m, range, mates);
    free(mates);
    free_table(&m->table);
    return status;
}

int orphans_end(struct orphans *m)
{
    int status = m->files ? write_run(m) : 0;
    free_table(&m->table);                       /* it is large: clearing it for each range would take long */
    return m->files && status == 0 ? compare_runs(m) : status;
}

/* ---------------------------------------------------------- open and close */

/* While a table grows, a second one of half its size exists. */
static unsigned bits_within(size_t memory)
{
    enum { BITS_MOST = 26 };                     /* 512 MiB */
    unsigned bits = BITS_LEAST;
    while (bits < BITS_MOST && (((size_t)1 << (bits + 1)) + BEYOND) * sizeof(uint64_t) / 2 * 3 <= memory)
        bits++;
    return bits;
}

struct orphans *orphans_open(const struct orphans_options *options)
{
    struct orphans *m = calloc(1, sizeof *m);
    if (m && open_table(&m->table, BITS_LEAST) == 0) {
        m->opt = *options;
        m->bits_most = bits_within(options->memory);
        return m;
    }
    free(m);
    latch_fail(options->store.engine->latch, "%s: out of memory", options->path);
    return NULL;
}

void orphans_close(struct orphans *m)
{
    if (!m)
        return;
    spill_store_close(m->files);
    free_table(&m->table);
    free(m->runs);
    free(m);
}
