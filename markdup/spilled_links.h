/* SPDX-License-Identifier: MIT */
/* Links that are in files. Most losers are plain: they arrived, lost, and can never win. When links use more memory
 * than the store allows, all plain ones are stored:
 *
 *   list of a tree   root - p - p - p - w - p - p        p: plain, w: has won
 *   becomes          root - a(3) ------ w - a(2)         a: a struct dup_bundle, for plain ones that are adjacent
 *
 *   the log          number, leaves_at, a | number, leaves_at, a | ...     in the order of the input, of all trees
 *
 *   the clusters     seq, number, score, name | seq, ...      of each bundle, in its order; only if needed (-d)
 *
 * The log is read once, from its start, as its losers leave. Each bundle has one state: the chain pass sees all or
 * nothing. Each pass reads the clusters. Serial. */
#ifndef SPILLED_LINKS_H
#define SPILLED_LINKS_H

#include "markdup/dup_links.h"
#include "markdup/dup_store.h"

/* A loser in the log. */
struct spilled_links_loss {
    uint64_t number;
    int64_t leaves_at;
    uint32_t bundle;             /* its struct dup_bundle */
    uint32_t unused;             /* 0, so that all bytes are defined */
};

/* A loser as the chain pass needs it. */
struct spilled_links_cluster {
    uint64_t seq;                /* its position in the log */
    uint64_t number;
    int64_t score;
    bool pair_end, qc_fail, has_mate_score, elsewhere;
    const char *name;
};

/* A zero-initialised struct has no store, and nothing is stored. */
struct spilled_links {
    const struct dup_store *store;   /* NULL: none */
    size_t enough;               /* bytes of links at which they are stored */
    size_t piece;                /* losers of the log that are stored at once */
    struct byte_buffer pieces;   /* stored pieces of the log: each is a struct dup_piece; the first n_gone are no longer
                                  * used */
    size_t n_gone;
    struct byte_buffer head, tail;   /* the losers of the log that are in memory: before the stored ones, and after
                                      * them */
    size_t at;                   /* bytes of head that were read */
    uint64_t n_logged, n_settled; /* losers added to the log since it was last empty; those among them that have left */
    bool keeps_clusters;
    struct byte_buffer bytes;    /* bytes of clusters that are not stored yet ... */
    uint32_t chunk;              /* ... and their chunk, in the links' pool; 0: none */
    struct byte_buffer clusters;     /* clusters of a bundle */
    struct byte_buffer optical;  /* one bit for each loser of the log, by seq */
};

/* keeps_clusters: they are needed. The caller owns all objects that `store` points to. */
void spilled_links_open(struct spilled_links *away, const struct dup_store *store, bool keeps_clusters);
void spilled_links_free(struct spilled_links *away);

/* Stores all plain links if links use enough memory and the store is open. -1: it failed, or out of memory. */
int spilled_links_leave(struct spilled_links *away, struct dup_links *links);

/* The first loser that has not left the queue; NULL: none. */
static inline const struct spilled_links_loss *spilled_links_first(const struct spilled_links *away)
{
    return away->n_logged > away->n_settled ? (const void *)(away->head.p + away->at) : NULL;
}

/* The position of that loser in the log. */
static inline uint64_t spilled_links_seq(const struct spilled_links *away)
{
    return away->n_settled;
}

/* Removes that loser from the log. -1: as above. */
int spilled_links_pop(struct spilled_links *away, struct dup_links *links);

/* Reads the clusters of a bundle. -1: as above. */
int spilled_links_read(struct spilled_links *away, const struct dup_links *links, uint32_t bundle);

/* The next cluster of those read that has not left: *at is its position, at first 0. False: there is none. Its name is
 * valid until others are read. */
bool spilled_links_next(const struct spilled_links *away, size_t *at, struct spilled_links_cluster *cluster);

/* Returns whether a loser of the log is an optical duplicate. */
static inline bool spilled_links_is_optical(const struct spilled_links *away, uint64_t seq)
{
    return away->optical.p[seq / 8] >> seq % 8 & 1;
}

static inline void spilled_links_set_optical(struct spilled_links *away, uint64_t seq)
{
    away->optical.p[seq / 8] |= (uint8_t)(1 << seq % 8);
}

/* Call it when no link waits: resets the limit at which links are stored to that of the store. */
void spilled_links_rest(struct spilled_links *away);

/* Bytes of memory, without links. */
size_t spilled_links_memory(const struct spilled_links *away);

#endif
