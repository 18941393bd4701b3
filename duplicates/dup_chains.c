/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/byte_hash.h"
#include "duplicates/dup_chains.h"
#include "duplicates/dup_optical.h"
#include "duplicates/dup_others.h"
#include "duplicates/small_pool.h"

/* A record in a tree. `next` runs through all of a tree, root first, in the order in which upstream's chain would hold
 * them: it decides between equal records. A link stays until its whole tree goes, for names and for those above. */
struct link {
    uint64_t number;
    int64_t leaves_at;           /* as in struct dup_member; then it is told of */
    struct link *above;          /* who won against it, or anyone further up; NULL: root */
    struct link *original;       /* whose name do has, as things stand */
    struct link *next;
    struct link *in_bucket;      /* the next one of the hash table's list */
    struct link *last;           /* root: the end of the list */
    struct link *older, *newer;  /* root: trees in the order of closed_at */
    int64_t closed_at;           /* root: when the last one of the tree leaves. Nobody joins then */
    int64_t score;
    uint64_t count;              /* dc */
    struct dup_spot spot;        /* if unread is DUP_NAME_OK */
    enum dup_name_fault unread;
    uint32_t group;
    bool pair_end, qc_fail, has_mate_score, elsewhere, optical;
    bool checked;                /* the chain pass has seen it */
    bool gone;                   /* told of: it has left the queue */
    uint8_t name_len;            /* 0: the name is not kept */
    char name[];
};

struct dup_chains {
    struct dup_chains_opt opt;
    bool follow;                 /* trees wait for the chain pass */
    struct link **buckets;       /* by number */
    size_t mask, n_links;
    struct link *oldest, *newest;   /* roots */
    struct byte_buffer heap;     /* uint64_t: numbers of links that are not gone, and of some that are dropped ... */
    size_t n_heap;               /* ... the smallest one on top */
    struct small_pool pool;
    struct byte_buffer dots;     /* room for a pass */
    uint64_t culprit;
};

enum { BUCKETS_LEAST = 1 << 8, DOTS_KEPT = 1 << 20 };
_Static_assert(sizeof(struct link) + 256 <= SMALL_POOL_MAX, "a link with the longest name");

/* ---- links by number ---- */

static struct link **bucket_of(const struct dup_chains *c, uint64_t number)
{
    return &c->buckets[byte_hash((const uint8_t *)&number, sizeof number, 0) & c->mask];
}

static struct link *link_find(const struct dup_chains *c, uint64_t number)
{
    struct link *link = *bucket_of(c, number);
    while (link && link->number != number)
        link = link->in_bucket;
    return link;
}

static int buckets_grow(struct dup_chains *c)
{
    size_t n = c->buckets ? 2 * (c->mask + 1) : BUCKETS_LEAST, n_old = c->buckets ? c->mask + 1 : 0;
    struct link **old = c->buckets, **buckets = calloc(n, sizeof(struct link *));
    if (!buckets)
        return -1;
    c->buckets = buckets;
    c->mask = n - 1;
    for (size_t i = 0; i < n_old; i++)
        for (struct link *link = old[i], *next; link; link = next) {
            struct link **bucket = bucket_of(c, link->number);
            next = link->in_bucket;
            link->in_bucket = *bucket;
            *bucket = link;
        }
    free(old);
    return 0;
}

/* ---- the smallest number ---- */

static uint64_t *heap_of(const struct dup_chains *c)
{
    return (uint64_t *)(void *)c->heap.p;
}

static int heap_push(struct dup_chains *c, uint64_t number)
{
    if (byte_buffer_reserve(&c->heap, (c->n_heap + 1) * sizeof number) < 0)
        return -1;
    uint64_t *heap = heap_of(c);
    size_t at = c->n_heap++;
    for (; at > 0 && number < heap[(at - 1) / 2]; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = number;
    return 0;
}

static void heap_pop(struct dup_chains *c)
{
    uint64_t *heap = heap_of(c), last = heap[--c->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < c->n_heap; at = child) {
        if (child + 1 < c->n_heap && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
}

/* The first one that has not left the queue; NULL: none. */
static struct link *first_link(struct dup_chains *c)
{
    struct link *link = NULL;
    while (c->n_heap > 0 && !(link = link_find(c, *heap_of(c))))
        heap_pop(c);
    return link;
}

uint64_t dup_chains_decided(struct dup_chains *c)
{
    const struct link *link = first_link(c);
    return link ? link->number : UINT64_MAX;
}

/* ---- links and trees ---- */

static void tree_leave(struct dup_chains *c, struct link *root)
{
    *(root->older ? &root->older->newer : &c->oldest) = root->newer;
    *(root->newer ? &root->newer->older : &c->newest) = root->older;
}

static void tree_enter(struct dup_chains *c, struct link *root)
{
    root->older = c->newest;
    root->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = root;
    c->newest = root;
}

/* closed_at never falls from one loss to the next, so the tree is now the newest. */
static void stay_open(struct dup_chains *c, struct link *root, int64_t closed_at)
{
    tree_leave(c, root);
    root->closed_at = closed_at;
    tree_enter(c, root);
}

/* The link of a member; a tree of its own if there is none yet. NULL: no memory. */
static struct link *link_of(struct dup_chains *c, const struct dup_member *m)
{
    struct link *link = link_find(c, m->number);
    if (link)
        return link;
    uint8_t name_len = c->follow ? m->name_len : 0;
    if (c->n_links > c->mask && buckets_grow(c) < 0)
        return NULL;
    link = small_pool_take(&c->pool, sizeof *link + name_len);
    if (!link || heap_push(c, m->number) < 0)
        return NULL;
    struct link **bucket = bucket_of(c, m->number);
    *link = (struct link){.number = m->number, .leaves_at = m->leaves_at, .in_bucket = *bucket, .last = link,
                          .score = m->score, .count = 1, .group = m->group, .pair_end = m->pair_end,
                          .qc_fail = m->qc_fail, .has_mate_score = m->has_mate_score, .elsewhere = m->elsewhere,
                          .name_len = name_len};
    if (name_len)
        memcpy(link->name, m->name, name_len);
    if (c->follow && c->opt.distance > 0)
        link->unread = dup_spots_read(c->opt.spots, link->name, &link->spot);
    *bucket = link;
    c->n_links++;
    tree_enter(c, link);
    return link;
}

static void link_drop(struct dup_chains *c, struct link *link)
{
    struct link **at = bucket_of(c, link->number);
    while (*at != link)
        at = &(*at)->in_bucket;
    *at = link->in_bucket;
    c->n_links--;
    small_pool_give(&c->pool, link, sizeof *link + link->name_len);
}

/* The root of its tree. The way up becomes shorter. */
static struct link *root_of(struct link *link)
{
    while (link->above) {
        if (link->above->above)
            link->above = link->above->above;
        link = link->above;
    }
    return link;
}

/* Hangs the loser's tree below the winner. A newcomer that lost comes right after the winner, and what hangs below it
 * at the end of the list; an incumbent that lost comes at the end, with all that hangs below it. */
static void join(struct dup_chains *c, struct link *winner, struct link *loser, bool newcomer_won)
{
    struct link *root = root_of(winner);
    assert(!loser->above && loser != root);      /* who can still lose has not lost yet */
    tree_leave(c, loser);
    loser->above = loser->original = winner;
    if (newcomer_won || !winner->next) {
        root->last->next = loser;
        root->last = loser->last;
    } else {
        root->last->next = loser->next;
        if (loser->next)
            root->last = loser->last;
        loser->next = winner->next;
        winner->next = loser;
    }
    stay_open(c, root, newcomer_won ? winner->leaves_at : loser->leaves_at);
}

/* ---- the pass ---- */

static void count_optical(const struct dup_chains *c, uint32_t group, bool pair_end)
{
    struct dup_counts *totals = &c->opt.totals[group];
    *(pair_end ? &totals->optical_pair : &totals->optical_single) += 1;
}

static void warn_unread(const struct dup_chains *c, const struct link *link)
{
    if (link->unread)
        dup_warnings_take(c->opt.warnings, DUP_WARNING_COORDINATES, link->name);
}

/* Lists all below the root that have not left as dots, optical duplicates of the root marked. */
static enum dup_fault list_dots(struct dup_chains *c, struct link *root)
{
    uint32_t n = 0;
    c->dots.n = 0;
    for (struct link *link = root->next; link; link = link->next) {
        if (link->gone)
            continue;
        warn_unread(c, link);
        if (link->pair_end && !link->has_mate_score) {
            c->culprit = link->number;
            return DUP_NO_MATE_SCORE;
        }
        struct dup_dot dot = {.name = link->name, .owner = link, .spot = link->spot, .score = link->score, .place = n++,
                              .pair_end = link->pair_end, .qc_fail = link->qc_fail};
        dot.optical = link->optical || (!link->unread && dup_spot_is_near(root->name, &root->spot, link->name,
                                                                          &link->spot, c->opt.distance));
        if (byte_buffer_append(&c->dots, &dot, sizeof dot) < 0)
            return DUP_NO_MEMORY;
    }
    return DUP_OK;
}

/* Marks who is an optical duplicate of the root, or of a better one. Nobody is where the root's name has no
 * coordinates. */
static enum dup_fault mark_optical(struct dup_chains *c, struct link *root)
{
    warn_unread(c, root);
    c->culprit = root->number;
    if (root->unread)
        return root->unread == DUP_NAME_NO_MATCH ? DUP_BAD_NAME : DUP_OK;
    enum dup_fault fault = list_dots(c, root);
    struct dup_dot *dots = (struct dup_dot *)(void *)c->dots.p;
    size_t n = c->dots.n / sizeof *dots;
    if (!fault && dup_optical_mark(dots, n, c->opt.distance) < 0)
        fault = DUP_NO_MEMORY;
    for (size_t i = 0; !fault && i < n; i++) {
        struct link *link = dots[i].owner;
        if (dots[i].optical && !link->optical) {
            count_optical(c, root->group, link->pair_end);
            if (c->opt.others && link->elsewhere)
                dup_others_retag(c->opt.others, link->name);
        }
        link->optical = dots[i].optical;
    }
    byte_buffer_trim(&c->dots, DOTS_KEPT);
    return fault;
}

static enum dup_type type_of(const struct dup_chains *c, bool optical)
{
    return c->opt.distance <= 0 ? DUP_TYPE_UNKNOWN : optical ? DUP_TYPE_SEQUENCING : DUP_TYPE_LIBRARY;
}

/* The chain pass over a tree, when the first one leaves that no pass has seen. */
static enum dup_fault check(struct dup_chains *c, struct link *root)
{
    root->checked = true;
    for (struct link *link = root->next; link; link = link->next)
        if (!link->gone) {
            link->original = root;
            link->checked = true;
        }
    return c->opt.distance > 0 ? mark_optical(c, root) : DUP_OK;
}

static enum dup_fault tell(struct dup_chains *c, const struct link *link)
{
    struct dup_verdict verdict = {.number = link->number, .duplicate = link->above, .count = link->count};
    if (verdict.duplicate && c->opt.names)
        verdict.original = link->original->name;
    if (verdict.duplicate)
        verdict.type = type_of(c, link->optical);
    return c->opt.settled(c->opt.context, &verdict) != 0 ? DUP_STOPPED : DUP_OK;
}

/* Drops a tree. */
static void forget(struct dup_chains *c, struct link *root)
{
    tree_leave(c, root);
    for (struct link *link = root, *next; link; link = next) {
        next = link->next;
        link_drop(c, link);
    }
}

enum dup_fault dup_chains_pass(struct dup_chains *c, int64_t before)
{
    enum dup_fault fault = DUP_OK;
    for (struct link *link; !fault && (link = first_link(c)) && (before == INT64_MAX || link->leaves_at <= before);) {
        heap_pop(c);
        if (c->follow && !link->checked)
            fault = check(c, root_of(link));
        if (!fault)
            fault = tell(c, link);
        link->gone = true;
    }
    while (!fault && c->oldest && (before == INT64_MAX || c->oldest->closed_at <= before))
        forget(c, c->oldest);
    return fault;
}

/* ---- losses ---- */

/* Whether the loser is an optical duplicate of the winner. A name that cannot be read counts. */
static bool is_optical(struct dup_chains *c, const struct dup_loss *loss)
{
    const struct dup_member *a = &loss->winner, *b = &loss->loser;
    struct dup_spot spot, other;
    bool bad = dup_spots_read(c->opt.spots, a->name, &spot);
    if (bad || dup_spots_read(c->opt.spots, b->name, &other)) {
        dup_warnings_take(c->opt.warnings, DUP_WARNING_COORDINATES, bad ? a->name : b->name);
        return false;
    }
    return dup_spot_is_near(a->name, &spot, b->name, &other, c->opt.distance);
}

/* What the winner counts more: as much as the loser, if it has just come; one, as an incumbent or against a single that
 * a pair end displaces. */
static uint64_t gain(const struct dup_loss *loss, const struct link *loser)
{
    bool takes_over = loss->newcomer_won && loss->winner.pair_end == loss->loser.pair_end;
    return takes_over && loser ? loser->count : 1;
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
    struct link *winner = link_of(c, &loss->winner), *loser = link_find(c, loss->loser.number);
    if (!winner)
        return DUP_NO_MEMORY;
    winner->count += gain(loss, loser);
    stay_open(c, winner, loss->newcomer_won ? loss->winner.leaves_at : loss->loser.leaves_at);
    if (loser) {
        tree_leave(c, loser);
        link_drop(c, loser);
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
    struct link *winner = link_of(c, &loss->winner), *loser = winner ? link_of(c, &loss->loser) : NULL;
    if (!loser)
        return DUP_NO_MEMORY;
    loser->optical = optical;
    winner->count += gain(loss, loser);
    join(c, winner, loser, loss->newcomer_won);
    return DUP_OK;
}

/* ---- */

struct dup_chains *dup_chains_new(const struct dup_chains_opt *opt)
{
    struct dup_chains *c = calloc(1, sizeof *c);
    if (c) {
        c->opt = *opt;
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
    free(c->dots.p);
    free(c);
}

uint64_t dup_chains_culprit(const struct dup_chains *c)
{
    return c->culprit;
}
