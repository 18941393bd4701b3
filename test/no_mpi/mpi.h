/* SPDX-License-Identifier: MIT */
/* MPI for unit tests of mpi/, in one process and without its library: the ranks of a test are threads. It has the few
 * calls that mpi/splitters.c and mpi/block_seam.c make, for MPI_COMM_WORLD only. The Makefile puts this folder before
 * that of a true <mpi.h>. */
#ifndef NO_MPI_H
#define NO_MPI_H

#include <pthread.h>
#include "test/unit.h"

enum { UNIT_RANKS_MOST = 32, MPI_TAGS = 16 };
enum { MPI_BYTE = 1, MPI_INT = 4, MPI_UINT32_T = 4, MPI_COMM_WORLD = 0, MPI_SUCCESS = 0 };   /* types: their bytes */
typedef struct { int bytes; } MPI_Status;
#define MPI_STATUS_IGNORE NULL

/* A message waits until it is taken. */
struct unit_message {
    void *data;
    int bytes;
    bool full;
};

static struct unit_world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size, waiting;           /* ranks that wait for the others; macOS has no barriers */
    unsigned turn;
    struct unit_message box[UNIT_RANKS_MOST][UNIT_RANKS_MOST][MPI_TAGS];
    const void *given[UNIT_RANKS_MOST];   /* to a call of all ranks */
    int given_bytes[UNIT_RANKS_MOST];
} unit_world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local int unit_rank;

static inline int MPI_Send(const void *data, int n, int type, int to, int tag, int comm)
{
    struct unit_message *m = &unit_world.box[unit_rank][to][tag];
    (void)comm;
    pthread_mutex_lock(&unit_world.lock);
    while (m->full)
        pthread_cond_wait(&unit_world.changed, &unit_world.lock);
    *m = (struct unit_message){must_alloc((size_t)(n * type)), n * type, true};
    memcpy(m->data, data, (size_t)m->bytes);
    pthread_cond_broadcast(&unit_world.changed);
    pthread_mutex_unlock(&unit_world.lock);
    return MPI_SUCCESS;
}

static inline int MPI_Recv(void *data, int n, int type, int from, int tag, int comm, MPI_Status *status)
{
    struct unit_message *m = &unit_world.box[from][unit_rank][tag];
    (void)comm;
    pthread_mutex_lock(&unit_world.lock);
    while (!m->full)
        pthread_cond_wait(&unit_world.changed, &unit_world.lock);
    MUST(m->bytes <= n * type);
    memcpy(data, m->data, (size_t)m->bytes);
    if (status)
        status->bytes = m->bytes;
    free(m->data);
    *m = (struct unit_message){.full = false};
    pthread_cond_broadcast(&unit_world.changed);
    pthread_mutex_unlock(&unit_world.lock);
    return MPI_SUCCESS;
}

static inline int MPI_Get_count(const MPI_Status *status, int type, int *n)
{
    *n = status->bytes / type;
    return MPI_SUCCESS;
}

static inline void unit_meet(void)
{
    pthread_mutex_lock(&unit_world.lock);
    unsigned turn = unit_world.turn;
    if (++unit_world.waiting == unit_world.size) {
        unit_world.waiting = 0;
        unit_world.turn++;
        pthread_cond_broadcast(&unit_world.changed);
    }
    while (turn == unit_world.turn)
        pthread_cond_wait(&unit_world.changed, &unit_world.lock);
    pthread_mutex_unlock(&unit_world.lock);
}

static inline void unit_give(const void *data, int bytes)
{
    unit_world.given[unit_rank] = data;
    unit_world.given_bytes[unit_rank] = bytes;
    unit_meet();
}

static inline int MPI_Bcast(void *data, int n, int type, int root, int comm)
{
    (void)comm;
    unit_give(data, n * type);
    MUST(unit_world.given_bytes[root] == n * type);
    if (unit_rank != root && n > 0)
        memcpy(data, unit_world.given[root], (size_t)(n * type));
    unit_meet();
    return MPI_SUCCESS;
}

/* places: bytes; NULL: one after the other. */
static inline int MPI_Gatherv(const void *data, int n, int type, void *to, const int *counts, const int *places,
                              int type_to, int root, int comm)
{
    (void)comm, (void)type_to;
    unit_give(data, n * type);
    for (int i = 0; unit_rank == root && i < unit_world.size; i++) {
        int bytes = unit_world.given_bytes[i];
        MUST(!counts || counts[i] == bytes);
        if (bytes > 0)
            memcpy((char *)to + (places ? places[i] : i * bytes), unit_world.given[i], (size_t)bytes);
    }
    unit_meet();
    return MPI_SUCCESS;
}

static inline int MPI_Gather(const void *data, int n, int type, void *to, int n_to, int type_to, int root, int comm)
{
    (void)n_to;
    return MPI_Gatherv(data, n, type, to, NULL, NULL, type_to, root, comm);
}

/* ---- ranks ---- */

struct unit_rank_start {
    int rank;
    void (*work)(int rank, void *arg);
    void *arg;
};

static inline void *unit_rank_main(void *arg)
{
    struct unit_rank_start *start = arg;
    unit_rank = start->rank;
    start->work(start->rank, start->arg);
    return NULL;
}

/* Calls work() as each rank, all at a time. */
static inline void unit_ranks(int size, void (*work)(int rank, void *arg), void *arg)
{
    pthread_t threads[UNIT_RANKS_MOST];
    struct unit_rank_start starts[UNIT_RANKS_MOST];
    MUST(size <= UNIT_RANKS_MOST);
    unit_world.size = size;
    for (int i = 0; i < size; i++) {
        starts[i] = (struct unit_rank_start){i, work, arg};
        MUST(pthread_create(&threads[i], NULL, unit_rank_main, &starts[i]) == 0);
    }
    for (int i = 0; i < size; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

#endif
