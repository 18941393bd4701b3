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

enum { SWEEP_NAMES = 10000, SWEEP_RECORDS = 10000 };     /* those of samtools */

static void free_mate(struct waiting_mate *mate)
{
    free(mate->blocks);
    free(mate);
}

/* Takes out those whose last block ends before `pos`, or all. */
static void take_out(struct stats_mates *mates, bool all, int64_t pos)
{
    for (size_t i = 0; mates->n > 0 && i <= mates->mask; i++) {
        for (struct waiting_mate **at = &mates->buckets[i]; *at;) {
            struct waiting_mate *mate = *at;
            if (all || mate->blocks[mate->n_blocks - 1].end <= pos) {
                *at = mate->next;
                mates->n--;
                free_mate(mate);
            } else {
                at = &mate->next;
            }
        }
    }
}

void stats_mates_free(struct stats_mates *mates)
{
    take_out(mates, true, 0);
    free(mates->buckets);
    mates->buckets = NULL;
}

void stats_mates_sweep(struct stats_mates *mates, int64_t pos, bool is_new)
{
    mates->since++;
    if (mates->n > SWEEP_NAMES && mates->since > SWEEP_RECORDS) {
        take_out(mates, false, pos);
        mates->since = 0;
    }
    if (is_new) {
        take_out(mates, true, 0);
        mates->since = 0;
    }
}

static int grow(struct stats_mates *mates)
{
    size_t n = mates->buckets ? 2 * (mates->mask + 1) : 1024;
    struct waiting_mate **buckets = calloc(n, sizeof *buckets);
    if (!buckets)
        return -1;
    for (size_t i = 0; mates->buckets && i <= mates->mask; i++) {
        for (struct waiting_mate *mate = mates->buckets[i], *next; mate; mate = next) {
            next = mate->next;
            mate->next = buckets[mate->hash & (n - 1)];
            buckets[mate->hash & (n - 1)] = mate;
        }
    }
    free(mates->buckets);
    mates->buckets = buckets;
    mates->mask = n - 1;
    return 0;
}

/* Where the name is linked, or would be. */
static struct waiting_mate **find(const struct stats_mates *mates, uint64_t hash, const char *name, size_t name_n)
{
    struct waiting_mate **at = &mates->buckets[hash & mates->mask];
    while (*at && ((*at)->hash != hash || (*at)->name_n != name_n || memcmp((*at)->name, name, name_n) != 0))
        at = &(*at)->next;
    return at;
}

/* Lets a record wait with the blocks that come. NULL: no memory. */
static struct waiting_mate *enter(struct stats_mates *mates, uint64_t hash, const char *name, size_t name_n,
                                  uint32_t end)
{
    if (mates->n >= mates->mask && grow(mates) < 0)
        return NULL;
    struct waiting_mate *mate = malloc(sizeof *mate + name_n);
    if (!mate)
        return NULL;
    struct waiting_mate **bucket = &mates->buckets[hash & mates->mask];
    *mate = (struct waiting_mate){.next = *bucket, .hash = hash, .end = end, .name_n = (uint32_t)name_n};
    memcpy(mate->name, name, name_n);
    *bucket = mate;
    mates->n++;
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

/* Covers what a block does not share with those of the other end. */
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

int stats_mates_cover(struct stats_mates *mates, struct stats_ring *ring, const char *name, size_t name_n, uint32_t end,
                      const struct stats_block *blocks, size_t n)
{
    if (!mates->buckets && grow(mates) < 0)
        return -1;
    uint64_t hash = byte_hash((const uint8_t *)name, name_n, 0);
    struct waiting_mate **link = find(mates, hash, name, name_n), *mate = *link;
    if (!mate && n == 0)
        return 0;
    if (!mate && !(mate = enter(mates, hash, name, name_n, end)))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (mate->end != end) {
            cover_rest(mates, ring, mate, blocks[i]);
        } else {
            if (append(mate, &blocks[i]) < 0)
                return -1;
            stats_ring_cover(ring, blocks[i].begin, blocks[i].end);
        }
    }
    if (mate->end != end) {
        *link = mate->next;
        mates->n--;
        free_mate(mate);
    }
    return 0;
}
