/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_hash.h"
#include "markdup/spilled_links.h"

/* Clusters that were stored at once; in the pool. */
struct stored_clusters {
    struct dup_place place;
    uint32_t n_bundles;          /* that have not left */
};

/* A cluster of a bundle, followed by its name. */
struct cluster {
    uint64_t seq, number;
    int64_t score;
    uint8_t name_len;            /* with its NUL */
    bool pair_end, qc_fail, has_mate_score, elsewhere;
};

/* The most losers of the log (PIECE) and bytes of clusters (CHUNK, at least CHUNK_LEAST) that are stored at once, both
 * at most 1 / PART of the store's memory. A bundle may have 1 / BUNDLE of such clusters. */
enum { PIECE = 2048, CHUNK = 1 << 18, CHUNK_LEAST = 1 << 11, PART = 16, BUNDLE = 4 };

void spilled_links_open(struct spilled_links *a, const struct dup_store *store, bool keeps_clusters)
{
    a->store = store;
    a->keeps_clusters = keeps_clusters;
    a->enough = store->most;
    a->piece = store->most / PART / sizeof(struct spilled_links_loss);
    a->piece = a->piece < PIECE ? a->piece + 1 : PIECE;
}

void spilled_links_rest(struct spilled_links *a)
{
    a->enough = a->store ? a->store->most : 0;
}

void spilled_links_free(struct spilled_links *a)
{
    free(a->pieces.p);
    free(a->head.p);
    free(a->tail.p);
    free(a->bytes.p);
    free(a->clusters.p);
    free(a->optical.p);
}

size_t spilled_links_memory(const struct spilled_links *a)
{
    return a->pieces.max + a->head.max + a->tail.max + a->bytes.max + a->clusters.max + a->optical.max;
}

/* ---- clusters ---- */

static struct stored_clusters *chunk_at(const struct dup_links *l, uint32_t handle)
{
    return small_pool_at(&l->pool, handle);
}

static int put_chunk(struct spilled_links *a, struct dup_links *l)
{
    if (a->chunk && a->store->put(a->store->context, a->bytes.p, a->bytes.n, &chunk_at(l, a->chunk)->place) < 0)
        return -1;
    a->chunk = 0;
    a->bytes.n = 0;
    return 0;
}

/* Begins the part of the chunk for the bundle's clusters. */
static int begin_part(struct spilled_links *a, struct dup_links *l, uint32_t bundle)
{
    if (!a->chunk && !(a->chunk = small_pool_take(&l->pool, sizeof(struct stored_clusters))))
        return -1;
    if (a->bytes.n == 0)
        *chunk_at(l, a->chunk) = (struct stored_clusters){.n_bundles = 0};
    chunk_at(l, a->chunk)->n_bundles++;
    dup_bundle_at(l, bundle)->chunk = a->chunk;
    dup_bundle_at(l, bundle)->offset = (uint32_t)a->bytes.n;
    return 0;
}

static size_t chunk_size(const struct spilled_links *a)
{
    size_t size = a->store->most / PART;
    return size < CHUNK_LEAST ? CHUNK_LEAST : size < CHUNK ? size : CHUNK;
}

/* Bytes of clusters that the bundle has in the chunk. */
static size_t part_size(const struct spilled_links *a, const struct dup_links *l, uint32_t bundle)
{
    return a->bytes.n - dup_bundle_at(l, bundle)->offset;
}

/* Ends the bundle. */
static int end_part(struct spilled_links *a, struct dup_links *l, uint32_t at)
{
    if (!at || !a->keeps_clusters)
        return 0;
    struct dup_bundle *bundle = dup_bundle_at(l, at);
    bundle->size = (uint32_t)(a->bytes.n - bundle->offset);
    bundle->hash = byte_hash(a->bytes.p + bundle->offset, bundle->size, 0);
    return a->bytes.n < chunk_size(a) ? 0 : put_chunk(a, l);
}

static int keep_cluster(struct spilled_links *a, const struct dup_link *link)
{
    struct cluster cluster;
    memset(&cluster, 0, sizeof cluster);                 /* also the padding */
    cluster.seq = a->n_logged + link->in_log;
    cluster.number = link->number;
    cluster.score = link->score;
    cluster.name_len = link->node.name_len;
    cluster.pair_end = link->node.pair_end;
    cluster.qc_fail = link->node.qc_fail;
    cluster.has_mate_score = link->node.has_mate_score;
    cluster.elsewhere = link->node.elsewhere;
    return byte_buffer_append(&a->bytes, &cluster, sizeof cluster) < 0 ? -1
         : byte_buffer_append(&a->bytes, link->name, cluster.name_len);
}

/* Frees the clusters of the bundle, all of whose links have left. */
static void drop_part(struct spilled_links *a, struct dup_links *l, const struct dup_bundle *bundle)
{
    struct stored_clusters *chunk = bundle->chunk ? chunk_at(l, bundle->chunk) : NULL;
    if (!chunk || --chunk->n_bundles > 0)
        return;
    a->store->drop(a->store->context, &chunk->place);
    small_pool_give(&l->pool, bundle->chunk, sizeof *chunk);
}

int spilled_links_read(struct spilled_links *a, const struct dup_links *l, uint32_t at)
{
    const struct dup_bundle *bundle = dup_bundle_at(l, at);
    a->clusters.n = bundle->size;
    return byte_buffer_reserve(&a->clusters, bundle->size) < 0 ? -1
         : a->store->get(a->store->context, &chunk_at(l, bundle->chunk)->place, bundle->offset, bundle->size,
                         bundle->hash, a->clusters.p);
}

bool spilled_links_next(const struct spilled_links *a, size_t *at, struct spilled_links_cluster *found)
{
    struct cluster cluster = {.seq = 0};
    const uint8_t *p;
    do {
        if (*at == a->clusters.n)
            return false;
        p = a->clusters.p + *at;
        memcpy(&cluster, p, sizeof cluster);
        *at += sizeof cluster + cluster.name_len;
    } while (cluster.seq < a->n_settled);
    *found = (struct spilled_links_cluster){
        .seq = cluster.seq, .number = cluster.number, .score = cluster.score, .pair_end = cluster.pair_end,
        .qc_fail = cluster.qc_fail, .has_mate_score = cluster.has_mate_score, .elsewhere = cluster.elsewhere,
        .name = (const char *)p + sizeof cluster};
    return true;
}

/* ---- the log ---- */

static int append(struct spilled_links *a, const struct spilled_links_loss *loss, bool optical)
{
    static const uint8_t none = 0;
    uint64_t seq = a->n_logged++;
    if (seq / 8 == a->optical.n && byte_buffer_append(&a->optical, &none, 1) < 0)
        return -1;
    if (optical)
        spilled_links_set_optical(a, seq);
    if (byte_buffer_append(&a->tail, loss, sizeof *loss) < 0)
        return -1;
    return a->tail.n < a->piece * sizeof *loss ? 0 : dup_store_put(a->store, &a->tail, &a->pieces);
}

/* Makes the next piece the head, after the head has been read. */
static int next_head(struct spilled_links *a)
{
    const struct dup_piece *pieces = (const struct dup_piece *)(const void *)a->pieces.p;
    a->at = a->head.n = 0;
    if (a->n_gone * sizeof *pieces == a->pieces.n) {
        struct byte_buffer head = a->head;
        a->head = a->tail;
        a->tail = head;
        a->pieces.n = a->n_gone = 0;
        return 0;
    }
    return dup_store_get(a->store, &pieces[a->n_gone++], true, &a->head);
}

int spilled_links_pop(struct spilled_links *a, struct dup_links *l)
{
    struct dup_bundle *bundle = dup_bundle_at(l, spilled_links_first(a)->bundle);
    bundle->node.gone = --bundle->n_left == 0;
    if (bundle->node.gone)
        drop_part(a, l, bundle);
    a->at += sizeof(struct spilled_links_loss);
    if (++a->n_settled == a->n_logged)
        a->n_settled = a->n_logged = a->optical.n = 0;
    return a->at < a->head.n ? 0 : next_head(a);
}

/* ---- bundles ---- */

static bool is_like(const struct dup_node *bundle, const struct dup_node *link)
{
    return bundle->checked == link->checked && (!bundle->checked || bundle->original == link->original);
}

static uint32_t begin_bundle(struct dup_links *l, const struct dup_node *like)
{
    uint32_t at = small_pool_take(&l->pool, sizeof(struct dup_bundle));
    if (at)
        *dup_bundle_at(l, at) = (struct dup_bundle){.node = {.above = like->above, .original = like->original,
                                                       .checked = like->checked, .away = true}};
    return at;
}

/* Gives the plain links of the line their positions in the log. They can no longer be found by number. */
static void count_line(struct dup_links *l)
{
    uint32_t n = 0;
    for (uint32_t at = l->first; at; at = dup_link_at(l, at)->later)
        if (dup_node_at(l, at)->plain) {
            dup_links_bucket_remove(l, at);
            dup_link_at(l, at)->in_log = n++;
        }
}

/* Finds the bundle that the link joins: the previous one if that has the same state and room; otherwise a new one. -1:
 * failed. */
static int bundle_for(struct spilled_links *a, struct dup_links *l, const struct dup_node *link, uint32_t *bundle)
{
    if (*bundle && is_like(dup_node_at(l, *bundle), link)
        && (!a->keeps_clusters || part_size(a, l, *bundle) < chunk_size(a) / BUNDLE))
        return 0;
    if (end_part(a, l, *bundle) < 0 || !(*bundle = begin_bundle(l, link)))
        return -1;
    return a->keeps_clusters ? begin_part(a, l, *bundle) : 0;
}

/* Removes plain links from the list of a tree. Those that have not left stay in the line, with their bundle. */
static int remove_plain_links(struct spilled_links *a, struct dup_links *l, struct dup_tree *tree)
{
    uint32_t before = tree->root, bundle = 0;
    for (uint32_t at = dup_node_at(l, before)->next, next; at; at = next) {
        struct dup_node *link = dup_node_at(l, at);
        next = link->next;
        if (!link->plain) {
            if (end_part(a, l, bundle) < 0)
                return -1;
            bundle = 0;
            before = at;
            continue;
        }
        if (link->gone) {
            dup_links_bucket_remove(l, at);
            dup_links_give(l, at);
        } else {
            if (bundle_for(a, l, link, &bundle) < 0 || (a->keeps_clusters && keep_cluster(a, dup_link_at(l, at)) < 0))
                return -1;
            if (before != bundle)
                dup_node_at(l, before)->next = bundle;
            before = bundle;
            dup_bundle_at(l, bundle)->n_left++;
            link->bundle = bundle;
        }
        dup_node_at(l, before)->next = next;
    }
    tree->last = before;
    return end_part(a, l, bundle);
}

/* Moves plain links from the line to the log. */
static int leave_line(struct spilled_links *a, struct dup_links *l)
{
    uint32_t *to = &l->first, last = 0;
    for (uint32_t at = l->first, next; at; at = next) {
        struct dup_link *link = dup_link_at(l, at);
        next = link->later;
        if (!link->node.plain) {
            *to = last = at;
            to = &link->later;
            continue;
        }
        struct spilled_links_loss loss = {link->number, link->leaves_at, link->node.bundle, 0};
        bool optical = link->node.optical;
        dup_links_give(l, at);
        if (append(a, &loss, optical) < 0)
            return -1;
    }
    *to = 0;
    l->last = last;
    return 0;
}

int spilled_links_leave(struct spilled_links *a, struct dup_links *l)
{
    if (!a->store || !a->store->is_open || l->pool.taken < a->enough)
        return 0;
    bool was_empty = a->n_logged == 0;
    count_line(l);
    for (uint32_t at = l->oldest; at; at = dup_tree_at(l, at)->newer)
        if (remove_plain_links(a, l, dup_tree_at(l, at)) < 0)
            return -1;
    if (put_chunk(a, l) < 0 || leave_line(a, l) < 0 || (was_empty && next_head(a) < 0))
        return -1;
    a->enough = 2 * l->pool.taken > a->store->most ? 2 * l->pool.taken : a->store->most;
    return 0;
}
