/* SPDX-License-Identifier: MIT */
/* The forest of losses: records as links of trees, found by number and removed in the order of their numbers.
 * markdup/dup_chains.h decides what is reported of them. Serial. */
#ifndef DUP_LINKS_H
#define DUP_LINKS_H

#include "base/byte_buffer.h"
#include "markdup/dup_sets.h"
#include "markdup/small_pool.h"

/* What stands in the list of a tree: a link, or a run of those that are away. `next` runs through all of a tree, root
 * first, in the order in which upstream's chain would hold them: it decides between equal records. There may be
 * millions, so they refer to each other by handles of the pool. */
struct dup_node {
    uint32_t next;
    union {
        uint32_t above;          /* who won against it, or anyone further up */
        uint32_t tree;           /* of a root: its struct dup_tree, which has what roots need alone */
        uint32_t run;            /* of a link that leaves memory just now: where it goes */
    };
    uint32_t original;           /* whose name do has, as things stand */
    bool is_root : 1;
    bool checked : 1;            /* the chain pass has seen it */
    bool gone : 1;               /* settled: it has left the queue */
    bool away : 1;               /* a struct dup_run. All that follows is of links, and here for there is room */
    bool pair_end : 1, qc_fail : 1, has_mate_score : 1, elsewhere : 1, optical : 1;
    bool dropped : 1;            /* has no tree any more; goes when it is the first of those that have not left */
    bool plain : 1;              /* came, lost, and can never win: nobody asks for it */
    uint8_t name_len;            /* with its NUL; 0: the name is not kept */
};

/* A record. It stays until its whole tree goes, for names and for those above, unless it is plain. */
struct dup_link {
    struct dup_node node;
    union {
        uint32_t in_bucket;      /* the next one of the hash table's list */
        uint32_t in_log;         /* of a link that leaves memory just now: its place behind the log's end */
    };
    uint32_t later;              /* the next one of the line */
    uint64_t number;
    int64_t leaves_at;           /* as in struct dup_member; then it is settled */
    int64_t score;
    char name[];
};

/* Plain records that are in a file (markdup/spilled_links.h), and where their clusters are. */
struct dup_run {
    struct dup_node node;
    uint32_t n_left;             /* records that have not left */
    uint32_t chunk;              /* the clusters were put with others: what of them; 0: none are kept */
    uint32_t offset, size;       /* where they are in the chunk */
    uint64_t hash;               /* of the clusters */
};

/* A tree of losses. */
struct dup_tree {
    int64_t closed_at;           /* when the last one of the tree leaves. Nobody joins then */
    uint64_t count;              /* dc of the root */
    uint32_t root, last;         /* links: the first and the last one of the list */
    uint32_t older, newer;       /* trees in the order of closed_at */
    uint32_t group;              /* of the root */
};

struct dup_links {
    uint32_t *buckets;           /* links by number */
    size_t mask, n_links;
    uint32_t oldest, newest;     /* trees */
    uint32_t first, last;        /* the line: links that have not left, in the order of their numbers ... */
    struct byte_buffer heap;     /* ... but for stragglers: an incumbent may get its link long after it came */
    size_t n_heap;               /* the smallest number is on top */
    struct small_pool pool;      /* of links and trees */
};

/* *links is all zeros. -1: out of memory. */
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

static inline struct dup_run *dup_run_at(const struct dup_links *links, uint32_t handle)
{
    return small_pool_at(&links->pool, handle);
}

static inline struct dup_tree *dup_tree_at(const struct dup_links *links, uint32_t handle)
{
    return small_pool_at(&links->pool, handle);
}

/* The link of the record. 0: there is none. */
uint32_t dup_links_find(const struct dup_links *links, uint64_t number);

/* The link of a member; a tree of its own if there is none yet. named: its name may be wanted. 0: out of memory. */
uint32_t dup_links_take(struct dup_links *links, const struct dup_member *member, bool named);

/* The first one that has not left the queue, of those that are not away; 0: none. */
uint32_t dup_links_first(struct dup_links *links);

/* Takes away the first one. */
void dup_links_pop(struct dup_links *links);

/* The root of its tree. The way up becomes shorter. */
uint32_t dup_links_root(const struct dup_links *links, uint32_t node);

/* Hangs the loser's tree below the winner. */
void dup_links_join(struct dup_links *links, uint32_t winner, uint32_t loser, bool newcomer_won);

/* The tree closes at closed_at, which never falls from one loss to the next: it is now the newest. */
void dup_links_stay_open(struct dup_links *links, uint32_t tree, int64_t closed_at);

/* Ends the tree of a root that has lost and is not wanted any more. */
void dup_links_drop(struct dup_links *links, uint32_t root);

/* Ends the oldest tree, which has left. */
void dup_links_forget_oldest(struct dup_links *links);

/* A link cannot be found by its number any more. */
void dup_links_bucket_remove(struct dup_links *links, uint32_t link);

/* Gives the memory of a node back, which nothing refers to. */
void dup_links_give(struct dup_links *links, uint32_t node);

/* Gives most of the memory back if nothing waits, and tells whether. */
bool dup_links_rest(struct dup_links *links);

/* Bytes of memory. */
size_t dup_links_memory(const struct dup_links *links);

#endif
