/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "base/task_ring.h"
#include "mpi/mpi_wait.h"
#include "mpi/output_gather.h"
#include "mpi/shared_file.h"

enum {
    CHUNK = 512 << 10,           /* bytes: a chunk stays in a cache while it is copied */
    COPIERS = 8,                 /* threads at most, as many as a file system can serve for one node */
    EOF_BLOCK = 28,              /* bytes; SAMv1 section 4.1.2 */
};

/* Removes the EOF block. */
static int cut_end(int fd, const char *path, struct latch *latch)
{
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < EOF_BLOCK || ftruncate(fd, end - EOF_BLOCK) < 0)
        return latch_fail(latch, "%s: its end cannot be cut: %s", path, strerror(errno));
    return 0;
}

/* Returns whether this rank and rank 0 share the memory of one host. Every rank calls it. */
static bool is_beside_first(void)
{
    MPI_Comm host;
    int rank, first;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, host);
    MPI_Comm_free(&host);
    return first == 0;
}

/* Every rank calls it. Before other ranks write to rank 0's file from their hosts, rank 0's own bytes must have left
 * its host: where the blocks of two ranks meet, both write to one page. Returns what shared_file_open() returns; -1 at
 * rank 0. */
static int share_file(const struct mpi_team *team, const struct output_part *part, struct latch *latch)
{
    struct shared_file file = {.fd = -1};
    bool beside = is_beside_first(), all_beside = mpi_team_all(beside);
    if (team->rank == 0) {
        file = shared_file_describe(part->fd, part->name);
        if (!all_beside && file.name[0] && fsync(part->fd) < 0)
            latch_fail(latch, "writing %s failed: %s", part->path, strerror(errno));
    }
    mpi_wait_bcast(&file, sizeof file, MPI_BYTE, 0);
    return team->rank > 0 ? shared_file_open(&file, beside) : -1;
}

static int put(int fd, const char *path, uint8_t *chunk, size_t n, uint64_t at, struct latch *latch)
{
    struct iovec iov = {chunk, n};
    return out_file_write_at(fd, path, &iov, 1, (off_t)at, latch);
}

/* Reads a chunk at this place of the part. Returns the number of bytes, or -1. */
static ssize_t get(const struct output_part *part, uint8_t *chunk, uint64_t at, uint64_t size, struct latch *latch)
{
    size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
    ssize_t got = pread(part->fd, chunk, n, (off_t)at);
    if (got <= 0)
        return latch_fail(latch, "reading %s failed: %s", part->path, got < 0 ? strerror(errno) : "it is too short");
    return got;
}

static int send_file(const struct output_part *part, uint64_t size, struct latch *latch)
{
    uint8_t *chunk = malloc(CHUNK);
    if (!chunk)
        return latch_fail(latch, "out of memory");
    for (uint64_t at = 0; at < size && !latch_tripped(latch);) {
        ssize_t got = get(part, chunk, at, size, latch);
        if (got > 0)
            mpi_wait_send(chunk, (int)got, MPI_BYTE, 0, MPI_TEAM_BLOCKS);
        at += got > 0 ? (uint64_t)got : 0;
    }
    free(chunk);
    return latch_tripped(latch) ? -1 : 0;
}

/* This rank's blocks on their way to rank 0's file. */
struct copying {
    const struct output_part *part;
    int shared;                  /* descriptor of rank 0's file */
    uint64_t place, size;        /* where this rank's blocks lie in that file */
    struct task_ring ring;       /* a slot for each thread that copies ... */
    uint8_t *chunks;             /* ... and a buffer of CHUNK bytes for each slot */
    _Atomic uint64_t next;       /* the first chunk that no thread has begun with */
    struct latch *latch;
};

/* Copies chunks until there are no more. */
static void copy_chunks(void *copying, uint32_t slot)
{
    struct copying *c = copying;
    uint8_t *chunk = c->chunks + (size_t)slot * CHUNK;
    uint64_t at;
    while (!latch_tripped(c->latch) && (at = atomic_fetch_add(&c->next, 1) * CHUNK) < c->size)
        for (uint64_t end = c->size - at < CHUNK ? c->size : at + CHUNK; at < end && !latch_tripped(c->latch);) {
            ssize_t got = get(c->part, chunk, at, end, c->latch);
            if (got > 0 && put(c->shared, c->part->path, chunk, (size_t)got, c->place + at, c->latch) == 0)
                at += (uint64_t)got;
        }
}

static void copy_in_team(void *copying)
{
    struct copying *c = copying;
    task_ring_hand_out_all(&c->ring);
    task_ring_take_all(&c->ring, NULL);
}

static int copy_file(const struct output_part *part, int shared, uint64_t place, uint64_t size, struct latch *latch)
{
    int n_threads = part->n_threads < COPIERS ? part->n_threads : COPIERS;
    struct copying c = {.part = part, .shared = shared, .place = place, .size = size, .latch = latch};
    struct task_ring_options ring = {.n_slots = (uint32_t)n_threads, .run = copy_chunks, .arg = &c};
    c.chunks = malloc((size_t)n_threads * CHUNK);
    if (c.chunks && task_ring_open(&c.ring, &ring) == 0)
        task_team(n_threads, copy_in_team, &c);
    else
        latch_fail(latch, "out of memory");
    task_ring_close(&c.ring, true);
    free(c.chunks);
    return latch_tripped(latch) ? -1 : 0;
}

static int receive_file(int from, const struct output_part *part, uint64_t place, uint64_t size, uint8_t *chunk,
                        struct latch *latch)
{
    while (size > 0) {
        int n = mpi_wait_receive(chunk, CHUNK, MPI_BYTE, from, MPI_TEAM_BLOCKS);
        if (put(part->fd, part->path, chunk, (size_t)n, place, latch) < 0)
            return -1;
        place += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Returns the bytes of this rank's blocks. The EOF block counts if no rank comes after this one. 0 with an error in the
 * latch: failed. */
static uint64_t size_of_blocks(const struct mpi_team *team, int fd, const char *path, struct latch *latch)
{
    off_t end = lseek(fd, 0, SEEK_END), cut = team->rank > 0 && team->rank + 1 < team->size ? EOF_BLOCK : 0;
    if (end >= cut)
        return (uint64_t)(end - cut);
    latch_fail(latch, "%s: its end cannot be found: %s", path, end < 0 ? strerror(errno) : "it is too short");
    return 0;
}

/* Sends to rank 0 where each rank's blocks begin, and how many bytes each rank sends. Returns this rank's place. */
static uint64_t gather_places(const struct mpi_team *team, uint64_t mine, bool sends, uint64_t *places, uint64_t *sent)
{
    uint64_t place = 0, send = sends ? mine : 0;
    mpi_wait_exscan(&mine, &place, 1, MPI_UINT64_T, MPI_SUM);
    place = team->rank > 0 ? place : 0;          /* MPI leaves the value at rank 0 undefined */
    mpi_wait_gather(&place, 1, MPI_UINT64_T, places);
    mpi_wait_gather(&send, 1, MPI_UINT64_T, sent);
    return place;
}

/* Rank 0 receives the blocks that the other ranks send: sent[] bytes of each. */
static int receive_files(const struct mpi_team *team, const struct output_part *part, const uint64_t *places,
                         const uint64_t *sent, struct latch *latch)
{
    uint8_t *chunk = malloc(CHUNK);
    int result = chunk ? 0 : latch_fail(latch, "out of memory");
    for (int i = 1; i < team->size && result == 0; i++)
        result = receive_file(i, part, places[i], sent[i], chunk, latch);
    free(chunk);
    return result;
}

/* Puts this rank's bytes into the file. sent: room for a number of each rank. */
static int bring_together(const struct mpi_team *team, const struct output_part *part, uint64_t *places,
                          uint64_t *sent, struct latch *latch)
{
    uint64_t mine = size_of_blocks(team, part->fd, part->path, latch);
    if (latch_tripped(latch))
        return -1;
    int shared = share_file(team, part, latch);
    uint64_t place = gather_places(team, mine, team->rank > 0 && shared < 0, places, sent);
    int result = latch_tripped(latch) ? -1 : 0;
    if (team->rank == 0 && result == 0)
        result = receive_files(team, part, places, sent, latch);
    else if (result == 0)
        result = shared < 0 ? send_file(part, mine, latch) : copy_file(part, shared, place, mine, latch);
    if (shared >= 0 && close(shared) < 0 && result == 0)
        result = latch_fail(latch, "writing %s failed: %s", part->path, strerror(errno));
    return result;
}

int output_gather(const struct mpi_team *team, const struct output_part *part, uint64_t *places, struct latch *latch)
{
    uint64_t *sent = calloc((size_t)team->size, sizeof *sent);
    int result = sent ? 0 : latch_fail(latch, "out of memory");
    if (result == 0 && team->rank == 0 && team->size > 1)
        result = cut_end(part->fd, part->path, latch);
    if (result == 0)
        result = bring_together(team, part, places, sent, latch);
    free(sent);
    return result;
}
