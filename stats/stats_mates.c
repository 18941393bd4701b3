/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/byte_hash.h"
#include "stats/stats_mates.h"

struct waiting_mate {
    struct waiting_mate *next;   /* in its bucket */
    uint64_t hash;
    struct stats_block *blocks;
    size_t n_blocks, room;
    uint32_t end, name_n;
    char name[];
};

enum { SWEEP_NAMES = 10000, SWEEP_RECORDS = 10000 };     /* the values of samtools */

static void free_mate(struct waiting_mate *mate)
{
    free(mate->blocks);
    free(mate);
}

/* Removes the mates whose last block ends before `pos`, or all mates. Returns how many it removed. */
static size_t take_out(struct mate_table *table, bool all, int64_t pos)
{
    size_t before = table->n;
    for (size_t i = 0; table->n > 0 && i <= table->mask; i++) {
        for (struct waiting_mate **at = &table->buckets[i]; *at;) {
            struct waiting_mate *mate = *at;
            if (all || mate->blocks[mate->n_blocks - 1].end <= pos) {
                *at = mate->next;
                table->n--;
                free_mate(mate);
            } else {
                at = &mate->next;
            }
        }
    }
    return before - table->n;
}

void mate_table_free(struct mate_table *table)
{
    take_out(table, true, 0);
    free(table->buckets);
    table->buckets = NULL;
}

void stats_mates_sweep(struct stats_mates *mates, int64_t pos, bool is_new)
{
    mates->since++;
    if (mates->n > SWEEP_NAMES && mates->since > SWEEP_RECORDS) {
        mates->n -= (uint32_t)take_out(mates->table, false, pos);
        mates->since = 0;
    }
    if (is_new) {
        mates->n -= (uint32_t)take_out(mates->table, true, 0);
        mates->since = 0;
    }
}

static int grow(struct mate_table *table)
{
    size_t n = table->buckets ? 2 * (table->mask + 1) : 1024;
    struct waiting_mate **buckets = calloc(n, sizeof *buckets);
    if (!buckets)
        return -1;
    for (size_t i = 0; table->buckets && i <= table->mask; i++) {
        for (struct waiting_mate *mate = table->buckets[i], *next; mate; mate = next) {
            next = mate->next;
            mate->next = buckets[mate->hash & (n - 1)];
            buckets[mate->hash & (n - 1)] = mate;
        }
    }
    free(table->buckets);
    table->buckets = buckets;
    table->mask = n - 1;
    return 0;
}

/* Returns the place where the name is linked, or would be linked. */
static struct waiting_mate **find(const struct mate_table *table, uint64_t hash, const char *name, size_t name_n)
{
    struct waiting_mate **at = &table->buckets[hash & table->mask];
    while (*at && ((*at)->hash != hash || (*at)->name_n != name_n || memcmp((*at)->name, name, name_n) != 0))
        at = &(*at)->next;
    return at;
}

/* Enters a record that waits with the blocks that are added to it. Returns NULL if out of memory. */
static struct waiting_mate *enter(struct mate_table *table, uint64_t hash, const char *name, size_t name_n,
                                  uint32_t end)
{
    if (table->n >= table->mask && grow(table) < 0)
        return NULL;
    struct waiting_mate *mate = malloc(sizeof *mate + name_n);
    if (!mate)
        return NULL;
    struct waiting_mate **bucket = &table->buckets[hash & table->mask];
    *mate = (struct waiting_mate){.next = *bucket, .hash = hash, .end = end, .name_n = (uint32_t)name_n};
    memcpy(mate->name, name, name_n);
    *bucket = mate;
    table->n++;
    return mate;
}

static int append(struct waiting_mate *mate, const struct stats_block *block)
{
    void *grown = byte_buffer_grow(mate->blocks, mate->n_blocks, &mate->room, sizeof *mate->blocks);
    if (!grown)
        return -1;
    mate->blocks = grown;
    mate->blocks[mate->n_blocks++] = *block;
    return 0;
}

/* Covers the parts of a block that it does not share with the blocks of the other end. */
static void cover_rest(struct stats_mates *mates, struct stats_ring *ring, const struct waiting_mate *other,
                       struct stats_block block)
{
    for (size_t i = 0; i < other->n_blocks; i++) {
        const struct stats_block *seen = &other->blocks[i];
        if (block.begin >= seen->end)
            continue;
        if (block.end <= seen->begin)
            break;
        if (block.begin < seen->begin) {
            stats_ring_cover(ring, block.begin, seen->begin);
            block.begin = seen->begin;
        }
        if (block.end <= seen->end) {
            mates->removed += (uint64_t)(block.end - block.begin);
            return;
        }
        mates->removed += (uint64_t)(seen->end - block.begin);
        block.begin = seen->end;
    }
    stats_ring_cover(ring, block.begin, block.end);
}

/* Takes the template that waits at *link out of the table. */
static void remove_mate(struct stats_mates *mates, struct waiting_mate **link)
{
    struct waiting_mate *mate = *link;
    *link = mate->next;
    mates->table->n--;
    mates->n--;
    free_mate(mate);
}

int stats_mates_cover(struct stats_mates *mates, struct stats_ring *ring, const char *name, size_t name_n, uint32_t end,
                      const struct stats_block *blocks, size_t n)
{
    struct mate_table *table = mates->table;
    if (!table->buckets && grow(table) < 0)
        return -1;
    uint64_t hash = byte_hash((const uint8_t *)name, name_n, 0);
    struct waiting_mate **link = find(table, hash, name, name_n);
    if (n > 0 && blocks->begin == -1) {      /* samtools takes such a block for the end of the record */
        if (*link && (*link)->end != end) {
            remove_mate(mates, link);
            link = find(table, hash, name, name_n);
        }
        blocks++, n--;           /* no other block begins there */
    }
    struct waiting_mate *mate = *link;
    if (!mate && n == 0)
        return 0;
    if (!mate) {
        if (!(mate = enter(table, hash, name, name_n, end)))
            return -1;
        mates->n++;
    }
    for (size_t i = 0; i < n; i++) {
        if (mate->end != end) {
            cover_rest(mates, ring, mate, blocks[i]);
        } else {
            if (append(mate, &blocks[i]) < 0)
                return -1;
            stats_ring_cover(ring, blocks[i].begin, blocks[i].end);
        }
    }
    if (mate->end != end)
        remove_mate(mates, link);
    return 0;
}
