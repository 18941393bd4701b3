/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "duplicates/dup_chains.h"
#include "duplicates/dup_optical.h"
#include "duplicates/dup_others.h"
#include "duplicates/small_pool.h"

/* A record in a tree. `next` runs through all of a tree, root first, in the order in which upstream's chain would hold
 * them: it decides between equal records. A link stays until its whole tree goes, for names and for those above. There
 * may be millions, so links refer to each other by handles of the pool, and what roots need alone is elsewhere. */
struct link {
    uint64_t number;
    int64_t leaves_at;           /* as in struct dup_member; then it is told of */
    int64_t score;
    uint32_t above;              /* who won against it, or anyone further up. A root: its struct tree */
    uint32_t original;           /* whose name do has, as things stand */
    uint32_t next;
    uint32_t in_bucket;          /* the next one of the hash table's list */
    uint32_t later;              /* the next one of the line */
    bool is_root : 1, pair_end : 1, qc_fail : 1, has_mate_score : 1, elsewhere : 1, optical : 1;
    bool checked : 1;            /* the chain pass has seen it */
    bool gone : 1;               /* told of: it has left the queue */
    bool dropped : 1;            /* has no tree any more; goes when it is the first of those that have not left */
    uint8_t name_len;            /* with its NUL; 0: the name is not kept */
    char name[];
};

/* What is known of a tree. */
struct tree {
    int64_t closed_at;           /* when the last one of the tree leaves. Nobody joins then */
    uint64_t count;              /* dc of the root */
    uint32_t root, last;         /* links: the first and the last one of the list */
    uint32_t older, newer;       /* trees in the order of closed_at */
    uint32_t group;              /* of the root */
};

/* A link that came after others with larger numbers. */
struct straggler {
    uint64_t number;
    uint32_t link;
};

struct dup_chains {
    struct dup_chains_opt opt;
    bool follow;                 /* trees wait for the chain pass */
    uint32_t *buckets;           /* links by number */
    size_t mask, n_links;
    uint32_t oldest, newest;     /* trees */
    uint32_t first, last;        /* the line: links that have not left, in the order of their numbers ... */
    struct byte_buffer heap;     /* ... but for stragglers: an incumbent may get its link long after it came */
    size_t n_heap;               /* the smallest number is on top */
    struct small_pool pool;      /* of links and trees */
    struct dup_dots dots;        /* of a pass */
    uint32_t group;              /* the read group that it counts for */
    uint64_t winner;             /* the number of a record whose coordinates were read last ... */
    struct dup_spot spot;        /* ... and what they are */
    enum dup_name_fault unread;
    uint64_t culprit;
};

enum { BUCKETS_LEAST = 1 << 8, POOL_KEPT = 1 << 20 };
_Static_assert(sizeof(struct link) + 256 <= SMALL_POOL_MAX, "a link with the longest name");

static struct link *link_at(const struct dup_chains *c, uint32_t handle)
{
    return small_pool_at(&c->pool, handle);
}

static struct tree *tree_at(const struct dup_chains *c, uint32_t handle)
{
    return small_pool_at(&c->pool, handle);
}

/* ---- links by number ---- */

/* Numbers that follow each other have buckets that do, mostly: records come in that order. */
static uint32_t *bucket_of(const struct dup_chains *c, uint64_t number)
{
    enum { NEAR = 16 };
    uint64_t hash = number / NEAR * 0x9e3779b97f4a7c15;
    return &c->buckets[((hash ^ hash >> 32) * NEAR + number % NEAR) & c->mask];
}

/* 0: there is none. */
static uint32_t link_find(const struct dup_chains *c, uint64_t number)
{
    uint32_t at = *bucket_of(c, number);
    while (at && link_at(c, at)->number != number)
        at = link_at(c, at)->in_bucket;
    return at;
}

static void bucket_put(struct dup_chains *c, uint32_t at)
{
    struct link *link = link_at(c, at);
    uint32_t *bucket = bucket_of(c, link->number);
    link->in_bucket = *bucket;
    *bucket = at;
}

static void bucket_remove(struct dup_chains *c, uint32_t at)
{
    uint32_t *there = bucket_of(c, link_at(c, at)->number);
    while (*there != at)
        there = &link_at(c, *there)->in_bucket;
    *there = link_at(c, at)->in_bucket;
    c->n_links--;
}

static int buckets_grow(struct dup_chains *c)
{
    size_t n_old = c->buckets ? c->mask + 1 : 0, n = c->buckets ? 2 * n_old : BUCKETS_LEAST;
    uint32_t *old = c->buckets, *buckets = calloc(n, sizeof *buckets);
    if (!buckets)
        return -1;
    c->buckets = buckets;
    c->mask = n - 1;
    for (size_t i = 0; i < n_old; i++)
        for (uint32_t at = old[i], next; at; at = next) {
            next = link_at(c, at)->in_bucket;
            bucket_put(c, at);
        }
    free(old);
    return 0;
}

/* ---- the smallest number ---- */

static struct straggler *heap_of(const struct dup_chains *c)
{
    return (struct straggler *)(void *)c->heap.p;
}

static int heap_push(struct dup_chains *c, struct straggler link)
{
    if (byte_buffer_reserve(&c->heap, (c->n_heap + 1) * sizeof link) < 0)
        return -1;
    struct straggler *heap = heap_of(c);
    size_t at = c->n_heap++;
    for (; at > 0 && link.number < heap[(at - 1) / 2].number; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = link;
    return 0;
}

static void heap_pop(struct dup_chains *c)
{
    struct straggler *heap = heap_of(c), last = heap[--c->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < c->n_heap; at = child) {
        if (child + 1 < c->n_heap && heap[child + 1].number < heap[child].number)
            child++;
        if (heap[child].number >= last.number)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
}

static int line_up(struct dup_chains *c, uint32_t at)
{
    struct link *link = link_at(c, at);
    if (c->first && link_at(c, c->last)->number > link->number)
        return heap_push(c, (struct straggler){link->number, at});
    *(c->first ? &link_at(c, c->last)->later : &c->first) = at;
    c->last = at;
    return 0;
}

static bool straggler_is_first(const struct dup_chains *c)
{
    return c->n_heap > 0 && (!c->first || heap_of(c)->number < link_at(c, c->first)->number);
}

/* Takes away the first one that has not left. */
static void pop_first(struct dup_chains *c)
{
    if (straggler_is_first(c))
        heap_pop(c);
    else
        c->first = link_at(c, c->first)->later;
}

static void link_free(struct dup_chains *c, uint32_t at)
{
    small_pool_give(&c->pool, at, offsetof(struct link, name) + link_at(c, at)->name_len);
}

/* The first one that has not left the queue; 0: none. */
static uint32_t first_link(struct dup_chains *c)
{
    for (uint32_t at; (at = straggler_is_first(c) ? heap_of(c)->link : c->first); link_free(c, at)) {
        if (!link_at(c, at)->dropped)
            return at;
        pop_first(c);
    }
    return 0;
}

uint64_t dup_chains_decided(struct dup_chains *c)
{
    uint32_t at = first_link(c);
    return at ? link_at(c, at)->number : UINT64_MAX;
}

/* ---- links and trees ---- */

static void tree_leave(struct dup_chains *c, uint32_t at)
{
    struct tree *tree = tree_at(c, at);
    *(tree->older ? &tree_at(c, tree->older)->newer : &c->oldest) = tree->newer;
    *(tree->newer ? &tree_at(c, tree->newer)->older : &c->newest) = tree->older;
}

static void tree_enter(struct dup_chains *c, uint32_t at)
{
    struct tree *tree = tree_at(c, at);
    tree->older = c->newest;
    tree->newer = 0;
    *(c->newest ? &tree_at(c, c->newest)->newer : &c->oldest) = at;
    c->newest = at;
}

/* Takes it from the others, and gives its memory back. */
static void tree_end(struct dup_chains *c, uint32_t at)
{
    tree_leave(c, at);
    small_pool_give(&c->pool, at, sizeof(struct tree));
}

/* closed_at never falls from one loss to the next, so the tree is now the newest. */
static void stay_open(struct dup_chains *c, uint32_t at, int64_t closed_at)
{
    tree_leave(c, at);
    tree_at(c, at)->closed_at = closed_at;
    tree_enter(c, at);
}

/* The link of a member; a tree of its own if there is none yet. 0: no memory. named: its name may be wanted. */
static uint32_t link_of(struct dup_chains *c, const struct dup_member *m, bool named)
{
    uint32_t at = link_find(c, m->number), tree;
    if (at)
        return at;
    uint8_t name_len = named ? m->name_len : 0;
    if ((c->n_links > c->mask && buckets_grow(c) < 0) || !(tree = small_pool_take(&c->pool, sizeof(struct tree)))
        || !(at = small_pool_take(&c->pool, offsetof(struct link, name) + name_len)))
        return 0;
    struct link *link = link_at(c, at);
    *tree_at(c, tree) = (struct tree){.count = 1, .root = at, .last = at, .group = m->group};
    *link = (struct link){.number = m->number, .leaves_at = m->leaves_at, .score = m->score, .above = tree,
                          .is_root = true, .pair_end = m->pair_end, .qc_fail = m->qc_fail,
                          .has_mate_score = m->has_mate_score, .elsewhere = m->elsewhere, .name_len = name_len};
    if (name_len)
        memcpy(link->name, m->name, name_len);
    if (line_up(c, at) < 0)
        return 0;
    bucket_put(c, at);
    c->n_links++;
    tree_enter(c, tree);
    return at;
}

/* The root of its tree. The way up becomes shorter. */
static uint32_t root_of(const struct dup_chains *c, uint32_t at)
{
    for (struct link *link; !(link = link_at(c, at))->is_root; at = link->above) {
        const struct link *above = link_at(c, link->above);
        if (!above->is_root)
            link->above = above->above;
    }
    return at;
}

/* Hangs the loser's tree below the winner. A newcomer that lost comes right after the winner, and what hangs below it
 * at the end of the list; an incumbent that lost comes at the end, with all that hangs below it. */
static void join(struct dup_chains *c, uint32_t winner, uint32_t loser, bool newcomer_won)
{
    struct link *won = link_at(c, winner), *lost = link_at(c, loser);
    uint32_t to = link_at(c, root_of(c, winner))->above, from = lost->above;
    assert(lost->is_root && from != to);         /* who can still lose has not lost yet */
    struct tree *tree = tree_at(c, to);
    uint32_t last = tree_at(c, from)->last;
    tree_end(c, from);
    lost->is_root = false;
    lost->above = lost->original = winner;
    if (newcomer_won || !won->next) {
        link_at(c, tree->last)->next = loser;
        tree->last = last;
    } else {
        link_at(c, tree->last)->next = lost->next;
        if (lost->next)
            tree->last = last;
        lost->next = won->next;
        won->next = loser;
    }
    stay_open(c, to, newcomer_won ? won->leaves_at : lost->leaves_at);
}

/* ---- the pass ---- */

static void count_optical(const struct dup_chains *c, uint32_t group, bool pair_end)
{
    struct dup_counts *totals = &c->opt.totals[group];
    *(pair_end ? &totals->optical_pair : &totals->optical_single) += 1;
}

/* Reads the coordinates in the link's name, if they are there; else warns. */
static enum dup_name_fault read_spot(const struct dup_chains *c, const struct link *link, struct dup_spot *spot)
{
    *spot = (struct dup_spot){.x = 0};
    enum dup_name_fault unread = dup_spots_read(c->opt.spots, link->name, spot);
    if (unread)
        dup_warnings_take(c->opt.warnings, DUP_WARNING_COORDINATES, link->name);
    return unread;
}

/* The next one below that has not left; 0: none. */
static uint32_t next_here(const struct dup_chains *c, uint32_t at)
{
    do
        at = link_at(c, at)->next;
    while (at && link_at(c, at)->gone);
    return at;
}

static void mark(void *chains, uint32_t at)
{
    const struct dup_chains *c = chains;
    struct link *link = link_at(c, at);
    if (link->optical)
        return;
    link->optical = true;
    count_optical(c, c->group, link->pair_end);
    if (c->opt.others && link->elsewhere)
        dup_others_retag(c->opt.others, link->name);
}

/* Links lie in the order of the input, not of the tile: fetches those that are needed soon. */
static void read_dots(void *chains, const uint32_t *links, size_t n, struct dup_dot *dots)
{
    enum { AHEAD = 8 };
    const struct dup_chains *c = chains;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            __builtin_prefetch(link_at(c, links[i + AHEAD]));
        const struct link *link = link_at(c, links[i]);
        dots[i] = (struct dup_dot){.name = link->name, .score = link->score, .pair_end = link->pair_end,
                                   .qc_fail = link->qc_fail, .optical = link->optical};
        dup_spots_read(c->opt.spots, link->name, &dots[i].spot);
    }
}

/* Lists all below the root that have not left, and marks optical duplicates of the root. */
static enum dup_fault list_dots(struct dup_chains *c, uint32_t root, const struct dup_spot *there)
{
    const char *name = link_at(c, root)->name;
    for (uint32_t at = root; (at = next_here(c, at));) {
        const struct link *link = link_at(c, at);
        struct dup_spot spot;
        enum dup_name_fault unread = read_spot(c, link, &spot);
        if (link->pair_end && !link->has_mate_score) {
            c->culprit = link->number;
            return DUP_NO_MATE_SCORE;
        }
        if (!unread && dup_spot_is_near(name, there, link->name, &spot, c->opt.distance))
            mark(c, at);
        if (dup_dots_add(&c->dots, at, link->name, &spot) < 0)
            return DUP_NO_MEMORY;
    }
    return DUP_OK;
}

/* Marks who is an optical duplicate of the root, or of a better one. Nobody is where the root's name has no
 * coordinates. */
static enum dup_fault mark_optical(struct dup_chains *c, uint32_t root)
{
    struct dup_members members = {read_dots, mark, c, c->opt.distance};
    struct dup_spot spot;
    enum dup_name_fault unread = read_spot(c, link_at(c, root), &spot);
    c->culprit = link_at(c, root)->number;
    c->group = tree_at(c, link_at(c, root)->above)->group;
    if (unread)
        return unread == DUP_NAME_NO_MATCH ? DUP_BAD_NAME : DUP_OK;
    enum dup_fault fault = list_dots(c, root, &spot);
    return fault ? fault : dup_dots_mark(&c->dots, &members) < 0 ? DUP_NO_MEMORY : DUP_OK;
}

static enum dup_type type_of(const struct dup_chains *c, bool optical)
{
    return c->opt.distance <= 0 ? DUP_TYPE_UNKNOWN : optical ? DUP_TYPE_SEQUENCING : DUP_TYPE_LIBRARY;
}

/* The chain pass over a tree, when the first one leaves that no pass has seen. */
static enum dup_fault check(struct dup_chains *c, uint32_t root)
{
    link_at(c, root)->checked = true;
    for (uint32_t at = root; (at = next_here(c, at));) {
        link_at(c, at)->original = root;
        link_at(c, at)->checked = true;
    }
    return c->opt.distance > 0 ? mark_optical(c, root) : DUP_OK;
}

static const char *name_of(const struct dup_chains *c, uint32_t at)
{
    assert(link_at(c, at)->name_len > 0);
    return link_at(c, at)->name;
}

static enum dup_fault tell(struct dup_chains *c, const struct link *link)
{
    struct dup_verdict verdict = {.number = link->number, .duplicate = !link->is_root};
    if (link->is_root)
        verdict.count = tree_at(c, link->above)->count;
    else if (c->opt.names)
        verdict.original = name_of(c, link->original);
    if (verdict.duplicate)
        verdict.type = type_of(c, link->optical);
    return c->opt.settled(c->opt.context, &verdict) != 0 ? DUP_STOPPED : DUP_OK;
}

/* Drops a tree. All of it has left. */
static void forget(struct dup_chains *c, uint32_t tree)
{
    for (uint32_t at = tree_at(c, tree)->root, next; at; at = next) {
        next = link_at(c, at)->next;
        assert(link_at(c, at)->gone);
        bucket_remove(c, at);
        link_free(c, at);
    }
    tree_end(c, tree);
}

enum dup_fault dup_chains_pass(struct dup_chains *c, int64_t before)
{
    enum dup_fault fault = DUP_OK;
    for (uint32_t at; !fault && (at = first_link(c));) {
        struct link *link = link_at(c, at);
        if (before != INT64_MAX && link->leaves_at > before)
            break;
        pop_first(c);
        if (c->follow && !link->checked)
            fault = check(c, root_of(c, at));
        if (!fault)
            fault = tell(c, link);
        link->gone = true;
    }
    while (!fault && c->oldest && (before == INT64_MAX || tree_at(c, c->oldest)->closed_at <= before))
        forget(c, c->oldest);
    if (!c->oldest && !c->first && !c->n_heap && small_pool_memory(&c->pool) > POOL_KEPT)
        small_pool_free(&c->pool);
    return fault;
}

/* ---- losses ---- */

/* Whether the loser is an optical duplicate of the winner, who mostly won before. A name that cannot be read counts. */
static bool is_optical(struct dup_chains *c, const struct dup_loss *loss)
{
    const struct dup_member *a = &loss->winner, *b = &loss->loser;
    struct dup_spot spot;
    if (a->number != c->winner)
        c->unread = dup_spots_read(c->opt.spots, a->name, &c->spot);
    c->winner = a->number;
    if (c->unread || dup_spots_read(c->opt.spots, b->name, &spot)) {
        dup_warnings_take(c->opt.warnings, DUP_WARNING_COORDINATES, c->unread ? a->name : b->name);
        return false;
    }
    return dup_spot_is_near(a->name, &c->spot, b->name, &spot, c->opt.distance);
}

/* What the winner counts more: as much as the loser, if it has just come; one, as an incumbent or against a single that
 * a pair end displaces. loser: its link, if it has one. */
static uint64_t gain(const struct dup_chains *c, const struct dup_loss *loss, uint32_t loser)
{
    bool takes_over = loss->newcomer_won && loss->winner.pair_end == loss->loser.pair_end;
    return takes_over && loser ? tree_at(c, link_at(c, loser)->above)->count : 1;
}

/* Without the pass: the loss is told, and what the loser counted is needed no more. */
static enum dup_fault tell_at_once(struct dup_chains *c, const struct dup_loss *loss, bool optical)
{
    struct dup_verdict verdict = {.number = loss->loser.number, .duplicate = true,
                                  .original = c->opt.names ? loss->winner.name : NULL,
                                  .type = type_of(c, optical)};
    if (c->opt.settled(c->opt.context, &verdict) != 0)
        return DUP_STOPPED;
    if (!c->opt.counts)
        return DUP_OK;
    uint32_t winner = link_of(c, &loss->winner, false), loser = link_find(c, loss->loser.number);
    if (!winner)
        return DUP_NO_MEMORY;
    uint32_t tree = link_at(c, winner)->above;
    tree_at(c, tree)->count += gain(c, loss, loser);
    stay_open(c, tree, loss->newcomer_won ? loss->winner.leaves_at : loss->loser.leaves_at);
    if (loser) {
        tree_end(c, link_at(c, loser)->above);
        bucket_remove(c, loser);
        link_at(c, loser)->dropped = true;
        if (link_at(c, loser)->gone)
            link_free(c, loser);
    }
    return DUP_OK;
}

enum dup_fault dup_chains_lose(struct dup_chains *c, const struct dup_loss *loss)
{
    bool optical = c->opt.distance > 0 && is_optical(c, loss);
    if (optical)
        count_optical(c, loss->loser.group, loss->loser.pair_end);
    if (c->opt.others && loss->loser.elsewhere
        && dup_others_add(c->opt.others, loss->loser.name, c->opt.names ? loss->winner.name : NULL,
                          type_of(c, optical), loss->loser.group) < 0)
        return DUP_NO_MEMORY;
    if (!c->follow)
        return tell_at_once(c, loss, optical);
    /* Without -d, nobody asks for the name of a newcomer that lost: what loses to it later is a newcomer, too, and gets
     * the root's for do before it is told of. */
    bool named = loss->newcomer_won || c->opt.distance > 0;
    uint32_t winner = link_of(c, &loss->winner, true), loser = winner ? link_of(c, &loss->loser, named) : 0;
    if (!loser)
        return DUP_NO_MEMORY;
    link_at(c, loser)->optical = optical;
    if (link_at(c, winner)->is_root)
        tree_at(c, link_at(c, winner)->above)->count += gain(c, loss, loser);
    join(c, winner, loser, loss->newcomer_won);
    return DUP_OK;
}

/* ---- */

struct dup_chains *dup_chains_new(const struct dup_chains_opt *opt)
{
    struct dup_chains *c = calloc(1, sizeof *c);
    if (c) {
        c->opt = *opt;
        c->winner = UINT64_MAX;
        c->follow = opt->pass && (opt->names || opt->distance > 0);
    }
    if (c && buckets_grow(c) < 0) {
        free(c);
        return NULL;
    }
    return c;
}

void dup_chains_free(struct dup_chains *c)
{
    if (!c)
        return;
    small_pool_free(&c->pool);
    free(c->buckets);
    free(c->heap.p);
    dup_dots_free(&c->dots);
    free(c);
}

size_t dup_chains_memory(const struct dup_chains *c)
{
    return small_pool_memory(&c->pool) + (c->mask + 1) * sizeof *c->buckets + c->heap.max;
}

uint64_t dup_chains_culprit(const struct dup_chains *c)
{
    return c->culprit;
}
