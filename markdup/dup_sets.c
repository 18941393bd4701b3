/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_hash.h"
#include "markdup/dup_sets.h"
#include "markdup/small_pool.h"

struct dup_set {
    struct dup_key key;
    uint64_t owner;              /* its number */
    int64_t closed_at;           /* when the owner leaves the queue: M of the owner + window */
    struct dup_member best;
    uint32_t name;               /* name of best, in the pool; 0: not kept */
};

/* A slot of the hash table. A set is in the first free slot from its hash on. */
struct set_slot {
    uint32_t hash;               /* its lower 32 bits */
    uint32_t place;              /* 1 + position of the set in the ring; 0: the slot is free */
};

struct dup_sets {
    int64_t window;
    bool keep_names;
    dup_lost_fn *lost;
    void *context;
    struct dup_set *ring;        /* open sets, from `first` on, in the order in which they opened */
    size_t first, n, ring_mask;
    struct set_slot *slots;      /* twice as many as the ring has places */
    size_t slot_mask;
    struct small_pool names;
    uint64_t culprit;
};

enum { RING_LEAST = 1 << 6, RING_MOST = 1 << 30 };

const char *dup_fault_text(enum dup_fault fault)
{
    static const char *const texts[] = {
        [DUP_OK] = "no fault",
        [DUP_NO_MEMORY] = "no memory",
        [DUP_NO_MATE_SCORE] = "a paired read has no ms tag. Nothing was written; run samtools fixmate -m first",
        [DUP_BAD_NAME] = "the name of an original does not match the expression for coordinates",
        [DUP_STOPPED] = "stopped",
        [DUP_PAUSED] = "paused",
    };
    return texts[fault];
}

/* ---- the ring and its hash table ---- */

static void slot_put(struct dup_sets *s, uint32_t hash, size_t place)
{
    size_t at = hash & s->slot_mask;
    while (s->slots[at].place)
        at = (at + 1) & s->slot_mask;
    s->slots[at] = (struct set_slot){hash, (uint32_t)place + 1};
}

static uint32_t key_hash(const struct dup_key *key)
{
    return (uint32_t)byte_hash((const uint8_t *)key, sizeof *key, 0);
}

static struct dup_set *find(const struct dup_sets *s, const struct dup_key *key, uint32_t hash)
{
    for (size_t at = hash & s->slot_mask; s->slots[at].place; at = (at + 1) & s->slot_mask) {
        struct dup_set *set = &s->ring[s->slots[at].place - 1];
        if (s->slots[at].hash == hash && memcmp(&set->key, key, sizeof *key) == 0)
            return set;
    }
    return NULL;
}

/* Frees the slot of a set, and moves the sets after it that can now be nearer to their hash. */
static void slot_clear(struct dup_sets *s, uint32_t hash, size_t place)
{
    size_t hole = hash & s->slot_mask;
    while (s->slots[hole].place != place + 1)
        hole = (hole + 1) & s->slot_mask;
    for (size_t at = (hole + 1) & s->slot_mask; s->slots[at].place; at = (at + 1) & s->slot_mask) {
        size_t home = s->slots[at].hash & s->slot_mask;
        if (((at - home) & s->slot_mask) >= ((at - hole) & s->slot_mask)) {
            s->slots[hole] = s->slots[at];
            hole = at;
        }
    }
    s->slots[hole].place = 0;
}

/* Makes room for twice as many sets. */
static int grow(struct dup_sets *s)
{
    size_t size = s->ring ? 2 * (s->ring_mask + 1) : RING_LEAST;
    struct dup_set *ring = size <= RING_MOST ? malloc(size * sizeof *ring) : NULL;
    struct set_slot *slots = ring ? calloc(2 * size, sizeof *slots) : NULL;
    if (!slots) {
        free(ring);
        return -1;
    }
    for (size_t i = 0; i < s->n; i++)
        ring[i] = s->ring[(s->first + i) & s->ring_mask];
    free(s->ring);
    free(s->slots);
    s->ring = ring;
    s->slots = slots;
    s->first = 0;
    s->ring_mask = size - 1;
    s->slot_mask = 2 * size - 1;
    for (size_t i = 0; i < s->n; i++)
        slot_put(s, key_hash(&ring[i].key), i);
    return 0;
}

/* ---- names ---- */

static void forget(struct dup_sets *s, struct dup_set *set)
{
    small_pool_give(&s->names, set->name, set->best.name_len);
    set->name = 0;
}

/* Sets the best member, with a copy of its name. */
static int remember(struct dup_sets *s, struct dup_set *set, const struct dup_member *member, bool name)
{
    set->name = name ? small_pool_take(&s->names, member->name_len) : 0;
    set->best = *member;
    set->best.name = NULL;
    if (set->name)
        set->best.name = memcpy(small_pool_at(&s->names, set->name), member->name, member->name_len);
    return name && !set->name ? -1 : 0;
}

/* ---- tables ---- */

struct dup_sets *dup_sets_new(int64_t window, bool keep_names, dup_lost_fn *lost, void *context)
{
    struct dup_sets *s = calloc(1, sizeof *s);
    if (s) {
        s->window = window;
        s->keep_names = keep_names;
        s->lost = lost;
        s->context = context;
    }
    if (s && grow(s) < 0) {
        free(s);
        return NULL;
    }
    return s;
}

void dup_sets_free(struct dup_sets *s)
{
    if (!s)
        return;
    small_pool_free(&s->names);
    free(s->ring);
    free(s->slots);
    free(s);
}

void dup_sets_pass(struct dup_sets *s, int64_t before)
{
    while (s->n > 0 && (before == INT64_MAX || s->ring[s->first].closed_at <= before)) {
        struct dup_set *set = &s->ring[s->first];
        slot_clear(s, key_hash(&set->key), s->first);
        forget(s, set);
        s->first = (s->first + 1) & s->ring_mask;
        s->n--;
    }
}

uint64_t dup_sets_decided(const struct dup_sets *s)
{
    return s->n ? s->ring[s->first].owner : UINT64_MAX;
}

uint64_t dup_sets_culprit(const struct dup_sets *s)
{
    return s->culprit;
}

static enum dup_fault open_set(struct dup_sets *s, const struct dup_key *key, uint32_t hash,
                               const struct dup_entry *entry, const struct dup_member *member, bool name)
{
    if (s->n > s->ring_mask && grow(s) < 0)
        return DUP_NO_MEMORY;
    size_t place = (s->first + s->n) & s->ring_mask;
    struct dup_set *set = &s->ring[place];
    *set = (struct dup_set){.key = *key, .closed_at = member->leaves_at, .owner = entry->number};
    if (remember(s, set, member, name) < 0)
        return DUP_NO_MEMORY;
    slot_put(s, hash, place);
    s->n++;
    return DUP_OK;
}

/* Reports that the newcomer wins or loses, and keeps the winner. */
static enum dup_fault meet(struct dup_sets *s, struct dup_set *set, const struct dup_member *member, bool wins,
                           bool single)
{
    struct dup_loss loss = {.winner = wins ? *member : set->best, .loser = wins ? set->best : *member,
                            .newcomer_won = wins, .single = single};
    if (s->lost(s->context, &loss) != 0)
        return DUP_STOPPED;
    if (!wins)
        return DUP_OK;
    bool name = set->name;
    forget(s, set);
    return remember(s, set, member, name) < 0 ? DUP_NO_MEMORY : DUP_OK;
}

static struct dup_member member_of(const struct dup_sets *s, const struct dup_entry *entry)
{
    const struct dup_read *read = entry->read;
    bool pair_end = read->kind == DUP_PAIR_END;
    return (struct dup_member){
        .number = entry->number, .leaves_at = entry->reach + s->window, .name = entry->name,
        .name_len = entry->name_len,
        .score = pair_end ? read->pair_score : read->score,
        .group = read->group, .pair_end = pair_end, .qc_fail = read->qc_fail, .has_mate_score = read->has_mate_score,
        .elsewhere = read->elsewhere,
    };
}

/* Returns the set of the key that is open when the entry arrives. NULL: there was none; the entry has opened one,
 * unless there is a fault. */
static struct dup_set *find_or_open(struct dup_sets *s, const struct dup_key *key, const struct dup_entry *entry,
                                    const struct dup_member *member, bool name, enum dup_fault *fault)
{
    uint32_t hash = key_hash(key);
    dup_sets_pass(s, entry->before);
    struct dup_set *set = find(s, key, hash);
    *fault = set ? DUP_OK : open_set(s, key, hash, entry, member, name);
    return set;
}

enum dup_fault dup_sets_single(struct dup_sets *s, const struct dup_entry *entry, bool *leads)
{
    enum dup_fault fault;
    struct dup_member member = member_of(s, entry);
    struct dup_set *set = find_or_open(s, &entry->read->single, entry, &member, s->keep_names, &fault);
    *leads = !set || (!set->best.pair_end && (member.pair_end || member.score > set->best.score));
    if (!set)
        return fault;
    return member.pair_end && set->best.pair_end ? DUP_OK : meet(s, set, &member, *leads, true);
}

enum dup_fault dup_sets_pair(struct dup_sets *s, const struct dup_entry *entry)
{
    enum dup_fault fault;
    struct dup_member member = member_of(s, entry);
    struct dup_set *set = find_or_open(s, &entry->read->pair, entry, &member, true, &fault);
    if (!set)
        return fault;
    if (member.qc_fail != set->best.qc_fail)
        return meet(s, set, &member, set->best.qc_fail, false);
    if (!set->best.has_mate_score || !member.has_mate_score) {
        s->culprit = set->best.has_mate_score ? member.number : set->best.number;
        return DUP_NO_MATE_SCORE;
    }
    bool wins = member.score != set->best.score ? member.score > set->best.score
                                                : strcmp(member.name, set->best.name) < 0;
    return meet(s, set, &member, wins, false);
}
