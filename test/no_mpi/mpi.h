/* SPDX-License-Identifier: MIT */
/* MPI for unit tests of mpi/, in one process and without its library: the ranks of a test are threads. It has only the
 * calls that the tested files of mpi/ make, as they use them. The Makefile compiles those with this folder before that
 * of a real <mpi.h>. */
#ifndef NO_MPI_H
#define NO_MPI_H

#include <pthread.h>
#include "test/unit.h"

enum { UNIT_RANKS_MOST = 32, MPI_TAGS = 16 };
enum { MPI_BYTE = 1, MPI_INT = 4, MPI_UINT32_T = 4, MPI_COMM_WORLD = 0, MPI_SUCCESS = 0 };   /* types: their bytes */
enum { MPI_UINT64_T = 8, MPI_MIN = 1, MPI_LAND, MPI_SUM, MPI_COMM_TYPE_SHARED = 1, MPI_INFO_NULL = 0 };
typedef int MPI_Comm;            /* 0: all ranks; above: the ranks of one host, by its number */
typedef int MPI_Datatype, MPI_Op;
typedef struct { int bytes; } MPI_Status;
typedef MPI_Status MPI_Request;  /* calls are finished when they return, so a request is the result */
#define MPI_STATUS_IGNORE NULL

/* A message waits until it is taken. */
struct unit_message {
    void *data;
    int bytes;
    bool full;
};

/* Work of a rank for the main thread. */
struct unit_errand {
    void (*work)(void *arg);
    void *arg;
};

struct unit_world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size, waiting;           /* ranks that wait for the others; macOS has no barriers */
    int running;                 /* ranks that are still running */
    const struct unit_errand *errand;   /* for the main thread; NULL: none */
    unsigned turn;
    struct unit_message box[UNIT_RANKS_MOST][UNIT_RANKS_MOST][MPI_TAGS];
    const void *given[UNIT_RANKS_MOST];   /* to a call of all ranks */
    int given_bytes[UNIT_RANKS_MOST];
    int host[UNIT_RANKS_MOST];   /* from 1 on; 0: not set, and all such ranks are on one host */
};

extern struct unit_world unit_world;     /* world.c */
extern _Thread_local int unit_rank;

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

static inline int MPI_Iprobe(int from, int tag, int comm, int *there, MPI_Status *status)
{
    const struct unit_message *m = &unit_world.box[from][unit_rank][tag];
    (void)comm;
    pthread_mutex_lock(&unit_world.lock);
    *there = m->full;
    status->bytes = m->bytes;
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

/* places: bytes; NULL: one after another. */
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

static inline int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    (void)comm;
    *rank = unit_rank;
    return MPI_SUCCESS;
}

static inline int MPI_Comm_split_type(MPI_Comm comm, int type, int key, int info, MPI_Comm *host)
{
    (void)comm, (void)type, (void)key, (void)info;
    *host = 1 + unit_world.host[unit_rank];
    return MPI_SUCCESS;
}

static inline int MPI_Comm_free(MPI_Comm *comm)
{
    (void)comm;
    return MPI_SUCCESS;
}

/* One int. Ranks of all hosts call it at the same time. */
static inline int MPI_Allreduce(const void *data, void *to, int n, int type, int op, MPI_Comm comm)
{
    int result = *(const int *)data;
    MUST(n == 1 && type == MPI_INT && (op == MPI_MIN || op == MPI_LAND));
    unit_give(data, type);
    for (int i = 0; i < unit_world.size; i++) {
        int other = *(const int *)unit_world.given[i];
        if (comm != MPI_COMM_WORLD && comm != 1 + unit_world.host[i])
            continue;
        result = op == MPI_LAND ? result && other : other < result ? other : result;
    }
    unit_meet();
    *(int *)to = result;
    return MPI_SUCCESS;
}

/* The sum of one number of each rank before. */
static inline int MPI_Exscan(const void *data, void *to, int n, int type, int op, MPI_Comm comm)
{
    uint64_t sum = 0;
    MUST(n == 1 && type == MPI_UINT64_T && op == MPI_SUM && comm == MPI_COMM_WORLD);
    unit_give(data, type);
    for (int i = 0; i < unit_rank; i++)
        sum += *(const uint64_t *)unit_world.given[i];
    unit_meet();
    *(uint64_t *)to = sum;
    return MPI_SUCCESS;
}

/* One number for each rank. */
static inline int MPI_Alltoall(const void *data, int n, int type, void *to, int n_to, int type_to, MPI_Comm comm)
{
    MUST(n == 1 && n_to == 1 && type == type_to && comm == MPI_COMM_WORLD);
    unit_give(data, type);
    for (int i = 0; i < unit_world.size; i++)
        memcpy((char *)to + i * type, (const char *)unit_world.given[i] + unit_rank * type, (size_t)type);
    unit_meet();
    return MPI_SUCCESS;
}

/* ---- calls without waiting: done at once ---- */

#define MPI_Ibcast(data, n, type, root, comm, request) ((void)(request), MPI_Bcast(data, n, type, root, comm))
#define MPI_Iallreduce(from, to, n, type, op, comm, request) ((void)(request), MPI_Allreduce(from, to, n, type, op, comm))
#define MPI_Iexscan(from, to, n, type, op, comm, request) ((void)(request), MPI_Exscan(from, to, n, type, op, comm))
#define MPI_Igather(from, n, type, to, n_to, type_to, root, comm, request) \
    ((void)(request), MPI_Gather(from, n, type, to, n_to, type_to, root, comm))
#define MPI_Igatherv(from, n, type, to, counts, places, type_to, root, comm, request) \
    ((void)(request), MPI_Gatherv(from, n, type, to, counts, places, type_to, root, comm))
#define MPI_Ialltoall(from, n, type, to, n_to, type_to, comm, request) \
    ((void)(request), MPI_Alltoall(from, n, type, to, n_to, type_to, comm))
#define MPI_Isend(from, n, type, to, tag, comm, request) ((void)(request), MPI_Send(from, n, type, to, tag, comm))
#define MPI_Irecv(to, n, type, from, tag, comm, request) MPI_Recv(to, n, type, from, tag, comm, request)
/* No unit calls these. */
#define MPI_Iallgather(from, n, type, to, n_to, type_to, comm, request) \
    ((void)(from), (void)(n), (void)(type), (void)(to), (void)(request), abort())
#define MPI_Ibarrier(comm, request) ((void)(request), abort())

static inline int MPI_Test(const MPI_Request *request, int *done, MPI_Status *status)
{
    if (status)
        *status = *request;
    *done = 1;
    return MPI_SUCCESS;
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
    pthread_mutex_lock(&unit_world.lock);
    unit_world.running--;
    pthread_cond_broadcast(&unit_world.changed);
    pthread_mutex_unlock(&unit_world.lock);
    return NULL;
}

/* Lets the main thread call work(arg), and waits until that is done. */
static inline void unit_on_main_thread(void (*work)(void *arg), void *arg)
{
    struct unit_errand mine = {work, arg};
    pthread_mutex_lock(&unit_world.lock);
    while (unit_world.errand)
        pthread_cond_wait(&unit_world.changed, &unit_world.lock);
    unit_world.errand = &mine;
    pthread_cond_broadcast(&unit_world.changed);
    while (unit_world.errand == &mine)
        pthread_cond_wait(&unit_world.changed, &unit_world.lock);
    pthread_mutex_unlock(&unit_world.lock);
}

/* Runs errands on the main thread until all ranks have ended. */
static inline void unit_run_errands(void)
{
    pthread_mutex_lock(&unit_world.lock);
    while (unit_world.running > 0) {
        const struct unit_errand *errand = unit_world.errand;
        if (errand) {
            pthread_mutex_unlock(&unit_world.lock);
            errand->work(errand->arg);
            pthread_mutex_lock(&unit_world.lock);
            unit_world.errand = NULL;
            pthread_cond_broadcast(&unit_world.changed);
        } else {
            pthread_cond_wait(&unit_world.changed, &unit_world.lock);
        }
    }
    pthread_mutex_unlock(&unit_world.lock);
}

/* Calls work() as each rank, all at the same time. */
static inline void unit_ranks(int size, void (*work)(int rank, void *arg), void *arg)
{
    pthread_t threads[UNIT_RANKS_MOST];
    struct unit_rank_start starts[UNIT_RANKS_MOST];
    MUST(size <= UNIT_RANKS_MOST);
    unit_world.size = unit_world.running = size;
    for (int i = 0; i < size; i++) {
        starts[i] = (struct unit_rank_start){i, work, arg};
        MUST(pthread_create(&threads[i], NULL, unit_rank_main, &starts[i]) == 0);
    }
    unit_run_errands();
    for (int i = 0; i < size; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

#endif
