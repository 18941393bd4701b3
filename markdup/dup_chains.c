/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include "markdup/spilled_links.h"
#include "markdup/dup_chains.h"
#include "markdup/dup_optical.h"
#include "markdup/dup_others.h"
#include "markdup/dup_tiles.h"

struct dup_chains {
    struct dup_chains_opt opt;
    bool follow;                 /* trees wait for the chain pass */
    struct dup_links links;
    struct spilled_links away;        /* links that are in files */
    struct dup_clusters clusters;        /* clusters of a pass; all clusters below the root are in memory */
    struct dup_tiles tiles;      /* tiles of a pass; some clusters are not in memory */
    uint32_t group;              /* the read group that is counted */
    uint64_t winner;             /* number of the record whose coordinates were read last ... */
    struct dup_coords coords;        /* ... and its coordinates */
    enum dup_name_fault unread;
    uint64_t culprit;
};

/* Numbers of members in a pass: the link's handle; or AWAY plus the position in the log. */
static const uint64_t AWAY = (uint64_t)1 << 63;

static struct dup_node *node_at(const struct dup_chains *c, uint32_t handle)
{
    return dup_node_at(&c->links, handle);
}

static struct dup_link *link_at(const struct dup_chains *c, uint32_t handle)
{
    return dup_link_at(&c->links, handle);
}

/* ---- the pass ---- */

static void count_optical(const struct dup_chains *c, uint32_t group, bool pair_end)
{
    struct dup_counts *totals = &c->opt.totals[group];
    *(pair_end ? &totals->optical_pair : &totals->optical_single) += 1;
}

/* Reads the coordinates in the name; warns if there are none. */
static enum dup_name_fault parse_coords(const struct dup_chains *c, const char *name, struct dup_coords *coords)
{
    *coords = (struct dup_coords){.x = 0};
    enum dup_name_fault unread = dup_coords_read(c->opt.coords_rule, name, coords);
    if (unread)
        dup_warnings_take(c->opt.warnings, DUP_WARNING_COORDINATES, name);
    return unread;
}

/* The next link below it that has not left; 0: none. */
static uint32_t next_here(const struct dup_chains *c, uint32_t at)
{
    do
        at = node_at(c, at)->next;
    while (at && node_at(c, at)->gone);
    return at;
}

/* Counts an optical duplicate that was not known before. */
static void found(const struct dup_chains *c, const struct dup_cluster *cluster)
{
    count_optical(c, c->group, cluster->pair_end);
    if (c->opt.others && cluster->elsewhere)
        dup_others_retag(c->opt.others, cluster->name);
}

static void mark(void *chains, uint64_t member, const struct dup_cluster *cluster)
{
    struct dup_chains *c = chains;
    bool away = member & AWAY;
    struct dup_node *node = away ? NULL : node_at(c, (uint32_t)member);
    if (!(away ? spilled_links_is_optical(&c->away, member & ~AWAY) : node->optical))
        found(c, cluster);
    if (away)
        spilled_links_set_optical(&c->away, member & ~AWAY);
    else
        node->optical = true;
}

static struct dup_cluster cluster_of(const struct dup_link *link)
{
    const struct dup_node *node = &link->node;
    return (struct dup_cluster){.name = link->name, .score = link->score, .pair_end = node->pair_end,
                            .qc_fail = node->qc_fail, .optical = node->optical, .elsewhere = node->elsewhere};
}

/* Links are in the order of the input, not of the tile: prefetches those needed soon. */
static void read_clusters(void *chains, const uint32_t *links, size_t n, struct dup_cluster *clusters)
{
    enum { AHEAD = 8 };
    const struct dup_chains *c = chains;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            __builtin_prefetch(link_at(c, links[i + AHEAD]));
        const struct dup_link *link = link_at(c, links[i]);
        clusters[i] = cluster_of(link);
        dup_coords_read(c->opt.coords_rule, link->name, &clusters[i].coords);
    }
}

static const uint64_t ALL_SCORED = UINT64_MAX;

/* The root of a pass. */
struct origin {
    const char *name;
    struct dup_coords coords;
    bool tiles;                  /* clusters are listed by tile */
};

/* Lists a cluster, and marks it if it is an optical duplicate of the root. unscored: the number of a pair end that
 * lacks its mate's score; otherwise ALL_SCORED. */
static enum dup_fault list_cluster(struct dup_chains *c, const struct origin *root, struct dup_cluster *cluster,
                                   uint64_t member, uint64_t unscored)
{
    enum dup_name_fault unread = parse_coords(c, cluster->name, &cluster->coords);
    if (unscored != ALL_SCORED) {
        c->culprit = unscored;
        return DUP_NO_MATE_SCORE;
    }
    if (!unread && dup_coords_are_near(root->name, &root->coords, cluster->name, &cluster->coords, c->opt.distance)) {
        mark(c, member, cluster);
        cluster->optical = true;
    }
    int status = root->tiles ? dup_tiles_add(&c->tiles, cluster, member)
                             : dup_clusters_add(&c->clusters, (uint32_t)member, cluster->name, &cluster->coords);
    return status < 0 ? DUP_STOPPED : DUP_OK;
}

static enum dup_fault list_bundle(struct dup_chains *c, const struct origin *root, uint32_t bundle)
{
    struct spilled_links_cluster away;
    if (spilled_links_read(&c->away, &c->links, bundle) < 0)
        return DUP_STOPPED;
    enum dup_fault fault = DUP_OK;
    for (size_t at = 0; !fault && spilled_links_next(&c->away, &at, &away);) {
        struct dup_cluster cluster = {.name = away.name, .score = away.score, .pair_end = away.pair_end,
                              .qc_fail = away.qc_fail, .elsewhere = away.elsewhere,
                              .optical = spilled_links_is_optical(&c->away, away.seq)};
        fault = list_cluster(c, root, &cluster, AWAY | away.seq,
                         away.pair_end && !away.has_mate_score ? away.number : ALL_SCORED);
    }
    return fault;
}

/* Lists all clusters below the root that have not left. */
static enum dup_fault list_clusters(struct dup_chains *c, struct origin *root, uint32_t from)
{
    enum dup_fault fault = DUP_OK;
    for (uint32_t at = from; !root->tiles && (at = next_here(c, at));)
        root->tiles = node_at(c, at)->away;
    for (uint32_t at = from; !fault && (at = next_here(c, at));) {
        if (node_at(c, at)->away) {
            fault = list_bundle(c, root, at);
            continue;
        }
        const struct dup_link *link = link_at(c, at);
        struct dup_cluster cluster = cluster_of(link);
        bool unscored = cluster.pair_end && !link->node.has_mate_score;
        fault = list_cluster(c, root, &cluster, at, unscored ? link->number : ALL_SCORED);
    }
    return fault;
}

/* Marks the optical duplicates of the root or of a better cluster. There are none if the root's name has no
 * coordinates. */
static enum dup_fault mark_optical(struct dup_chains *c, uint32_t at)
{
    struct dup_members members = {read_clusters, {c->opt.distance, mark, c}};
    struct origin root = {.name = link_at(c, at)->name};
    enum dup_name_fault unread = parse_coords(c, root.name, &root.coords);
    c->culprit = link_at(c, at)->number;
    c->group = dup_tree_at(&c->links, node_at(c, at)->tree)->group;
    if (unread)
        return unread == DUP_NAME_NO_MATCH ? DUP_BAD_NAME : DUP_OK;
    enum dup_fault fault = list_clusters(c, &root, at);
    if (fault)
        return fault;
    int status = root.tiles ? dup_tiles_mark(&c->tiles, &members.to) : dup_clusters_mark(&c->clusters, &members);
    return status < 0 ? DUP_STOPPED : DUP_OK;
}

static enum dup_type type_of(const struct dup_chains *c, bool optical)
{
    return c->opt.distance <= 0 ? DUP_TYPE_UNKNOWN : optical ? DUP_TYPE_SEQUENCING : DUP_TYPE_LIBRARY;
}

/* Makes the chain pass over a tree when the first record that no pass has seen leaves. */
static enum dup_fault check(struct dup_chains *c, uint32_t root)
{
    node_at(c, root)->checked = true;
    for (uint32_t at = root; (at = next_here(c, at));) {
        node_at(c, at)->original = root;
        node_at(c, at)->checked = true;
    }
    return c->opt.distance > 0 ? mark_optical(c, root) : DUP_OK;
}

static const char *name_of(const struct dup_chains *c, uint32_t at)
{
    assert(node_at(c, at)->name_len > 0);
    return link_at(c, at)->name;
}

static enum dup_fault settle(const struct dup_chains *c, const struct dup_verdict *verdict)
{
    int result = c->opt.settled(c->opt.context, verdict);
    return result < 0 ? DUP_STOPPED : result > 0 ? DUP_PAUSED : DUP_OK;
}

static enum dup_fault settle_link(struct dup_chains *c, const struct dup_link *link)
{
    const struct dup_node *node = &link->node;
    struct dup_verdict verdict = {.number = link->number, .duplicate = !node->is_root};
    if (node->is_root)
        verdict.count = dup_tree_at(&c->links, node->tree)->count;
    else if (c->opt.names)
        verdict.original = name_of(c, node->original);
    if (verdict.duplicate)
        verdict.type = type_of(c, node->optical);
    return settle(c, &verdict);
}

/* Removes the first record of the log. */
static enum dup_fault leave_away(struct dup_chains *c)
{
    struct spilled_links_loss loss = *spilled_links_first(&c->away);
    enum dup_fault fault = DUP_OK;
    if (!node_at(c, loss.bundle)->checked)
        fault = check(c, dup_links_root(&c->links, loss.bundle));
    struct dup_verdict verdict = {.number = loss.number, .duplicate = true,
                                  .type = type_of(c, spilled_links_is_optical(&c->away, spilled_links_seq(&c->away)))};
    if (c->opt.names)
        verdict.original = name_of(c, node_at(c, loss.bundle)->original);
    if (!fault)
        fault = settle(c, &verdict);
    return (!fault || fault == DUP_PAUSED) && spilled_links_pop(&c->away, &c->links) < 0 ? DUP_STOPPED : fault;
}

static enum dup_fault leave_here(struct dup_chains *c, uint32_t at)
{
    struct dup_link *link = link_at(c, at);
    enum dup_fault fault = DUP_OK;
    dup_links_pop(&c->links);
    if (c->follow && !link->node.checked)
        fault = check(c, dup_links_root(&c->links, at));
    if (!fault)
        fault = settle_link(c, link);
    link->node.gone = true;
    return fault;
}

/* Returns whether the first record to leave is in the log. *at: the first one that is not; 0: none. */
static bool is_away_first(struct dup_chains *c, uint32_t *at)
{
    const struct spilled_links_loss *loss = spilled_links_first(&c->away);
    *at = dup_links_first(&c->links);
    return loss && (!*at || loss->number < link_at(c, *at)->number);
}

uint64_t dup_chains_decided(struct dup_chains *c)
{
    uint32_t at;
    return is_away_first(c, &at) ? spilled_links_first(&c->away)->number : at ? link_at(c, at)->number : UINT64_MAX;
}

enum dup_fault dup_chains_pass(struct dup_chains *c, int64_t before)
{
    enum dup_fault fault = DUP_OK;
    while (!fault) {
        uint32_t at;
        bool away = is_away_first(c, &at);
        if (!away && !at)
            break;
        if (before != INT64_MAX
            && (away ? spilled_links_first(&c->away)->leaves_at : link_at(c, at)->leaves_at) > before)
            break;
        fault = away ? leave_away(c) : leave_here(c, at);
    }
    while (!fault && c->links.oldest
           && (before == INT64_MAX || dup_tree_at(&c->links, c->links.oldest)->closed_at <= before))
        dup_links_forget_oldest(&c->links);
    if (!fault && dup_links_rest(&c->links))
        spilled_links_rest(&c->away);
    return fault;
}

/* ---- losses ---- */

/* Returns whether the loser is an optical duplicate of the winner. The winner's coordinates are kept, because the next
 * loss usually has the same winner. A name that cannot be read is counted. */
static bool is_optical(struct dup_chains *c, const struct dup_loss *loss)
{
    const struct dup_member *a = &loss->winner, *b = &loss->loser;
    struct dup_coords coords;
    if (a->number != c->winner)
        c->unread = dup_coords_read(c->opt.coords_rule, a->name, &c->coords);
    c->winner = a->number;
    if (c->unread || dup_coords_read(c->opt.coords_rule, b->name, &coords)) {
        dup_warnings_take(c->opt.warnings, DUP_WARNING_COORDINATES, c->unread ? a->name : b->name);
        return false;
    }
    return dup_coords_are_near(a->name, &c->coords, b->name, &coords, c->opt.distance);
}

/* The increase of the winner's count: the loser's count if the winner is a newcomer; one if it is an incumbent, or a
 * pair end that displaces a single. loser: its link, if it has one. */
static uint64_t gain(const struct dup_chains *c, const struct dup_loss *loss, uint32_t loser)
{
    bool takes_over = loss->newcomer_won && loss->winner.pair_end == loss->loser.pair_end;
    return takes_over && loser ? dup_tree_at(&c->links, node_at(c, loser)->tree)->count : 1;
}

/* Without the chain pass, a loss is reported at once, and the loser's count is no longer needed. */
static enum dup_fault settle_at_once(struct dup_chains *c, const struct dup_loss *loss, bool optical)
{
    struct dup_verdict verdict = {.number = loss->loser.number, .duplicate = true,
                                  .original = c->opt.names ? loss->winner.name : NULL,
                                  .type = type_of(c, optical)};
    if (settle(c, &verdict) == DUP_STOPPED)
        return DUP_STOPPED;
    if (!c->opt.counts)
        return DUP_OK;
    uint32_t winner = dup_links_take(&c->links, &loss->winner, false);
    uint32_t loser = dup_links_find(&c->links, loss->loser.number);
    if (!winner)
        return DUP_NO_MEMORY;
    uint32_t tree = node_at(c, winner)->tree;
    dup_tree_at(&c->links, tree)->count += gain(c, loss, loser);
    dup_links_stay_open(&c->links, tree, loss->newcomer_won ? loss->winner.leaves_at : loss->loser.leaves_at);
    if (loser)
        dup_links_drop(&c->links, loser);
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
        return settle_at_once(c, loss, optical);
    /* Without -d, the name of a newcomer that lost is not needed: each later loser to it is a newcomer, too, and gets
     * the root's name for do before it is reported. */
    bool named = loss->newcomer_won || c->opt.distance > 0;
    uint32_t winner = dup_links_take(&c->links, &loss->winner, true);
    uint32_t loser = winner ? dup_links_take(&c->links, &loss->loser, named) : 0;
    if (!loser)
        return DUP_NO_MEMORY;
    node_at(c, loser)->optical = optical;
    node_at(c, loser)->plain = !loss->newcomer_won && !loss->loser.leads;
    if (node_at(c, winner)->is_root)
        dup_tree_at(&c->links, node_at(c, winner)->tree)->count += gain(c, loss, loser);
    dup_links_join(&c->links, winner, loser, loss->newcomer_won);
    return spilled_links_leave(&c->away, &c->links) < 0 ? DUP_STOPPED : DUP_OK;
}

/* ---- */

struct dup_chains *dup_chains_new(const struct dup_chains_opt *opt)
{
    struct dup_chains *c = calloc(1, sizeof *c);
    if (c) {
        c->opt = *opt;
        c->winner = UINT64_MAX;
        c->follow = opt->pass && (opt->names || opt->distance > 0);
        c->tiles.store = opt->store;
        if (opt->store)
            spilled_links_open(&c->away, opt->store, opt->distance > 0);
    }
    if (c && dup_links_open(&c->links) < 0) {
        free(c);
        return NULL;
    }
    return c;
}

void dup_chains_free(struct dup_chains *c)
{
    if (!c)
        return;
    dup_links_free(&c->links);
    spilled_links_free(&c->away);
    dup_clusters_free(&c->clusters);
    dup_tiles_clear(&c->tiles);
    free(c);
}

size_t dup_chains_memory(const struct dup_chains *c)
{
    return dup_links_memory(&c->links) + spilled_links_memory(&c->away);
}

uint64_t dup_chains_culprit(const struct dup_chains *c)
{
    return c->culprit;
}

