/* SPDX-License-Identifier: MIT */
/* Links that are in files. Most losers are plain: they came, lost, and can never win. When links take more memory than
 * the store allows, all plain ones leave:
 *
 *   list of a tree   root - p - p - p - w - p - p        p: plain, w: has won
 *   becomes          root - a(3) ------ w - a(2)         a: a run (struct dup_run), for plain ones that are adjacent
 *
 *   the log          number, leaves_at, a | number, leaves_at, a | ...     in the order of the input, of all trees
 *
 *   the clusters     seq, number, score, name | seq, ...      of each run, in its order; only if names are asked for
 *
 * The log is read once, from its beginning, as its losers leave. Each run has one state: the chain pass sees all of it
 * or nothing. Clusters are read by each pass. Serial. */
#ifndef SPILLED_LINKS_H
#define SPILLED_LINKS_H

#include "markdup/dup_links.h"
#include "markdup/dup_store.h"

/* A loser in the log. */
struct spilled_links_loss {
    uint64_t number;
    int64_t leaves_at;
    uint32_t run;                /* its struct dup_run */
    uint32_t unused;             /* 0: no byte is left to chance */
};

/* A loser as the chain pass asks for it. */
struct spilled_links_cluster {
    uint64_t seq;                /* its place in the log */
    uint64_t number;
    int64_t score;
    bool pair_end, qc_fail, has_mate_score, elsewhere;
    const char *name;
};

/* One of all zeros has no store, and nothing leaves. */
struct spilled_links {
    const struct dup_store *store;   /* NULL: none */
    size_t enough;               /* bytes of links with which they leave */
    size_t piece;                /* losers of the log that are put at once */
    struct byte_buffer pieces;   /* of the log: struct dup_piece, from n_gone on */
    size_t n_gone;
    struct byte_buffer head, tail;   /* of the log: before what was put, and behind it */
    size_t at;                   /* bytes of head that were read */
    uint64_t n_logged, n_settled; /* losers that the log has had since it was last empty; of them those that left */
    bool keeps_clusters;
    struct byte_buffer bytes;    /* of clusters that are not yet put ... */
    uint32_t chunk;              /* ... and what they will be in, in the links' pool; 0: none */
    struct byte_buffer clusters;     /* of a run */
    struct byte_buffer optical;  /* a bit for each loser of the log, by seq */
};

/* keeps_clusters: they are asked for. What `store` points to stays the caller's. */
void spilled_links_open(struct spilled_links *away, const struct dup_store *store, bool keeps_clusters);
void spilled_links_free(struct spilled_links *away);

/* Lets all plain links leave, if links take enough, and the store is open. -1: it failed, or there is no memory. */
int spilled_links_leave(struct spilled_links *away, struct dup_links *links);

/* The first one that has not left the queue; NULL: there is none. */
static inline const struct spilled_links_loss *spilled_links_first(const struct spilled_links *away)
{
    return away->n_logged > away->n_settled ? (const void *)(away->head.p + away->at) : NULL;
}

/* Its place in the log. */
static inline uint64_t spilled_links_seq(const struct spilled_links *away)
{
    return away->n_settled;
}

/* The first one has left. -1: as above. */
int spilled_links_pop(struct spilled_links *away, struct dup_links *links);

/* Reads the clusters of a run. -1: as above. */
int spilled_links_read(struct spilled_links *away, const struct dup_links *links, uint32_t run);

/* The next one that has not left, of those that were read: *at is its place among them, at first 0. False: there is
 * none. Its name lives until others are read. */
bool spilled_links_next(const struct spilled_links *away, size_t *at, struct spilled_links_cluster *cluster);

/* Whether a loser of the log is an optical duplicate. */
static inline bool spilled_links_is_optical(const struct spilled_links *away, uint64_t seq)
{
    return away->optical.p[seq / 8] >> seq % 8 & 1;
}

static inline void spilled_links_set_optical(struct spilled_links *away, uint64_t seq)
{
    away->optical.p[seq / 8] |= (uint8_t)(1 << seq % 8);
}

/* Call it when no link waits: the limit at which links leave falls back to that of the store. */
void spilled_links_rest(struct spilled_links *away);

/* Bytes of memory, without links. */
size_t spilled_links_memory(const struct spilled_links *away);

#endif
