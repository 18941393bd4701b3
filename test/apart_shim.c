/* SPDX-License-Identifier: MIT */
/* When it is preloaded, each rank of an MPI program believes that it is alone on its host. Compile it with mpicc. */
#include <mpi.h>

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *alone)
{
    int rank;
    (void)type, (void)info;
    MPI_Comm_rank(comm, &rank);
    return MPI_Comm_split(comm, rank, key, alone);
}
