/* SPDX-License-Identifier: MIT */
/* The calls of MPI that wait for other ranks, in MPI_COMM_WORLD. MPI itself would spin, perhaps for minutes, on a core
 * that another rank or program needs. These functions sleep. */
#ifndef MPI_WAIT_H
#define MPI_WAIT_H

#include <time.h>
#include <mpi.h>
#include "base/task_ring.h"

/* Call it between two tests; *pauses begins at 0. Pauses become longer, up to 1 ms after about 20. */
static inline void mpi_wait_pause(unsigned *pauses)
{
    enum { PAUSES_BEFORE_NAP = 700, NAP_NS = 1000000 };
    if (*pauses < PAUSES_BEFORE_NAP)
        task_pause(pauses);
    else
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Like MPI_Wait(). */
static inline void mpi_wait(MPI_Request *request, MPI_Status *status)
{
    unsigned pauses = 0;
    for (int done = 0; !done;) {
        MPI_Test(request, &done, status);
        if (!done)
            mpi_wait_pause(&pauses);
    }
}

/* Begins a nonblocking call (MPI_I...) with these arguments, and waits until it ends. */
#define MPI_WAIT_FOR(start, ...)                                \
    do {                                                        \
        MPI_Request request;                                    \
        start(__VA_ARGS__, MPI_COMM_WORLD, &request);           \
        mpi_wait(&request, MPI_STATUS_IGNORE);                  \
    } while (0)

static inline void mpi_wait_barrier(void)
{
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    mpi_wait(&request, MPI_STATUS_IGNORE);
}

static inline void mpi_wait_bcast(void *data, int n, MPI_Datatype type, int root)
{
    MPI_WAIT_FOR(MPI_Ibcast, data, n, type, root);
}

static inline void mpi_wait_allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op)
{
    MPI_WAIT_FOR(MPI_Iallreduce, from, to, n, type, op);
}

static inline void mpi_wait_exscan(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op)
{
    MPI_WAIT_FOR(MPI_Iexscan, from, to, n, type, op);
}

/* Rank 0 gets n elements from each rank. */
static inline void mpi_wait_gather(const void *from, int n, MPI_Datatype type, void *to)
{
    MPI_WAIT_FOR(MPI_Igather, from, n, type, to, n, type, 0);
}

/* Rank 0 gets bytes: counts[] of them from each rank, put at places[]. */
static inline void mpi_wait_gather_bytes(const void *from, int n, void *to, const int *counts, const int *places)
{
    MPI_WAIT_FOR(MPI_Igatherv, from, n, MPI_BYTE, to, counts, places, MPI_BYTE, 0);
}

/* Each rank gets n elements from each rank. */
static inline void mpi_wait_allgather(const void *from, int n, MPI_Datatype type, void *to)
{
    MPI_WAIT_FOR(MPI_Iallgather, from, n, type, to, n, type);
}

/* Each rank gets n elements from each rank. A rank sends different elements to each. */
static inline void mpi_wait_alltoall(const void *from, int n, MPI_Datatype type, void *to)
{
    MPI_WAIT_FOR(MPI_Ialltoall, from, n, type, to, n, type);
}

static inline void mpi_wait_send(const void *from, int n, MPI_Datatype type, int to, int tag)
{
    MPI_WAIT_FOR(MPI_Isend, from, n, type, to, tag);
}

/* Returns the number of elements that came, at most n. */
static inline int mpi_wait_receive(void *to, int n, MPI_Datatype type, int from, int tag)
{
    MPI_Request request;
    MPI_Status status;
    unsigned pauses = 0;
    int came = 0;
    for (int there = 0; !there;) {
        MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status);
        if (!there)
            mpi_wait_pause(&pauses);
    }
    MPI_Get_count(&status, type, &came);
    MPI_Irecv(to, came < n ? came : n, type, from, tag, MPI_COMM_WORLD, &request);
    mpi_wait(&request, MPI_STATUS_IGNORE);
    return came < n ? came : n;
}

#endif
