/* SPDX-License-Identifier: MIT */
/* The ranks of an MPI run, and how they fail. Only the main thread of a rank calls these functions. */
#ifndef MPI_TEAM_H
#define MPI_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <mpi.h>
#include "mpi/mpi_wait.h"

struct latch;
struct mpi_alarm;

struct mpi_team {
    int rank, size;
    struct mpi_alarm *alarm;     /* NULL: none. Owned by the code that opened the team */
};

/* Messages between ranks, by what they hold. */
enum mpi_team_tag {
    MPI_TEAM_RECORDS = 1,        /* exchange.h */
    MPI_TEAM_FILL,               /* block_boundary.h */
    MPI_TEAM_LEAD,
    MPI_TEAM_BLOCKS,             /* output_gather.h */
    MPI_TEAM_INDEX,              /* index_gather.h */
};

/* Starts MPI. -1: it cannot be used; the reason is on stderr. */
int mpi_team_open(struct mpi_team *team, int *argc, char ***argv);

/* Ends MPI. Every rank calls it. Returns the status to exit with. */
int mpi_team_close(struct mpi_team *team, int status);

/* Refuses a launcher that started more tasks than MPI knows of: each task would sort the same file by itself. -1:
 * refused, and the first of the tasks reported it. */
int mpi_team_check_launcher(const struct mpi_team *team);

/* Every rank calls it at the same place. 0: no rank has an error. -1: some ranks have one, and the first of them
 * reported its own. A rank that comes with an error makes the others stop their work and come, too. If one of them does
 * not come, the rank with the error ends the run. */
int mpi_team_agree(const struct mpi_team *team, const struct latch *latch);

/* Every rank calls it at the same place. Returns whether `mine` is true at all of them. */
static inline bool mpi_team_all(bool mine)
{
    int is_so = mine, all;
    mpi_wait_allreduce(&is_so, &all, 1, MPI_INT, MPI_LAND);
    return all;
}

/* Ends all ranks with this rank's error, if a meeting with the others is not possible. Temporary names are removed
 * before. */
_Noreturn void mpi_team_abort(const struct mpi_team *team, const struct latch *latch);

#endif
