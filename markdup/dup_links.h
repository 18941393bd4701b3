/* SPDX-License-Identifier: MIT */
/* The forest of losses: records as links of trees, found by number and removed in the order of their numbers.
 * markdup/dup_chains.h decides what is reported about them. Serial. */
#ifndef DUP_LINKS_H
#define DUP_LINKS_H

#include "base/byte_buffer.h"
#include "markdup/dup_sets.h"
#include "markdup/small_pool.h"

/* An entry in the list of a tree: a link, or a bundle of links in files. `next` leads through the full tree, root
 * first, in the order of samtools' chain, which decides between equal records. There may be millions of nodes, so they
 * refer to each other by handles of the pool. */
struct dup_node {
    uint32_t next;
    union {
        uint32_t above;          /* the record that won against it, or one further up */
        uint32_t tree;           /* for a root: its struct dup_tree, which has the fields that only roots need */
        uint32_t bundle;         /* while a link is moved out of memory: the bundle that receives it */
    };
    uint32_t original;           /* the record whose name do has so far */
    bool is_root : 1;
    bool checked : 1;            /* the chain pass has seen it */
    bool gone : 1;               /* it has left the queue and was reported */
    bool away : 1;               /* a struct dup_bundle; the fields below belong to links and are here to save space */
    bool pair_end : 1, qc_fail : 1, has_mate_score : 1, elsewhere : 1, optical : 1;
    bool dropped : 1;            /* is no longer in a tree; freed when it is the first one that has not left */
    bool plain : 1;              /* arrived, lost, and can never win: no later record needs it */
    uint8_t name_len;            /* length of the name with its NUL; 0: the name is not kept */
};

/* A record. It stays until its tree ends, for its name and for the links above it, unless it is plain. */
struct dup_link {
    struct dup_node node;
    union {
        uint32_t in_bucket;      /* next in the list of the hash table's bucket */
        uint32_t in_log;         /* while the link is moved out of memory: its position after the log's end */
    };
    uint32_t later;              /* next in the line */
    uint64_t number;
    int64_t leaves_at;           /* as in struct dup_member; the link is reported then */
    int64_t score;
    char name[];
};

/* Plain records that are in a file (markdup/spilled_links.h), and the location of their clusters. */
struct dup_bundle {
    struct dup_node node;
    uint32_t n_left;             /* records that have not left */
    uint32_t chunk;              /* the chunk that holds the clusters; 0: none are kept */
    uint32_t offset, size;       /* their location in the chunk */
    uint64_t hash;               /* hash of the clusters */
};

/* A tree of losses. */
struct dup_tree {
    int64_t closed_at;           /* when the last record of the tree leaves; no record can join after that */
    uint64_t count;              /* dc of the root */
    uint32_t root, last;         /* first and last link of the list */
    uint32_t older, newer;       /* trees in the order of closed_at */
    uint32_t group;              /* group of the root */
};

struct dup_links {
    uint32_t *buckets;           /* links by number */
    size_t mask, n_links;
    uint32_t oldest, newest;     /* trees */
    uint32_t first, last;        /* the line: links that have not left, in order of their numbers ... */
    struct byte_buffer heap;     /* ... except stragglers: an incumbent may get its link long after it arrived */
    size_t n_heap;               /* the smallest number is on top */
    struct small_pool pool;      /* memory of links and trees */
};

/* *links must be zero-initialised. -1: out of memory. */
int dup_links_open(struct dup_links *links);
void dup_links_free(struct dup_links *links);

static inline struct dup_node *dup_node_at(const struct dup_links *links, uint32_t handle)
{
    return small_pool_at(&links->pool, handle);
}

static inline struct dup_link *dup_link_at(const struct dup_links *links, uint32_t handle)
{
    return small_pool_at(&links->pool, handle);
}

static inline struct dup_bundle *dup_bundle_at(const struct dup_links *links, uint32_t handle)
{
    return small_pool_at(&links->pool, handle);
}

static inline struct dup_tree *dup_tree_at(const struct dup_links *links, uint32_t handle)
{
    return small_pool_at(&links->pool, handle);
}

/* The link of the record; 0: none. */
uint32_t dup_links_find(const struct dup_links *links, uint64_t number);

/* Returns the link of a member. A member that has none gets one, in a new tree. named: its name may be needed. 0: out
 * of memory. */
uint32_t dup_links_take(struct dup_links *links, const struct dup_member *member, bool named);

/* The first link in memory that has not left the queue; 0: none. */
uint32_t dup_links_first(struct dup_links *links);

/* Removes the first link from the queue. */
void dup_links_pop(struct dup_links *links);

/* Returns the root of the node's tree, and shortens the path to it. */
uint32_t dup_links_root(const struct dup_links *links, uint32_t node);

/* Makes the loser's tree a child of the winner. */
void dup_links_join(struct dup_links *links, uint32_t winner, uint32_t loser, bool newcomer_won);

/* Sets the time at which the tree closes and makes it the newest. closed_at never falls from one loss to the next. */
void dup_links_stay_open(struct dup_links *links, uint32_t tree, int64_t closed_at);

/* Ends the tree of a root that has lost and is no longer needed. */
void dup_links_drop(struct dup_links *links, uint32_t root);

/* Ends the oldest tree, all of whose records have left. */
void dup_links_forget_oldest(struct dup_links *links);

/* Removes a link from the index by number. */
void dup_links_bucket_remove(struct dup_links *links, uint32_t link);

/* Frees a node that nothing refers to. */
void dup_links_give(struct dup_links *links, uint32_t node);

/* Returns whether nothing is waiting. If so, frees the memory of links and trees when it is large. */
bool dup_links_rest(struct dup_links *links);

/* Bytes of memory. */
size_t dup_links_memory(const struct dup_links *links);

#endif
