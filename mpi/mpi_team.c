/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/message.h"
#include "base/task_ring.h"
#include "mpi/mpi_team.h"

int mpi_team_open(struct mpi_team *team, int *argc, char ***argv)
{
    int provided;
    if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &team->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &team->size);
    if (provided >= MPI_THREAD_FUNNELED)
        return 0;
    if (team->rank == 0)
        message_error("this MPI does not allow threads (MPI_THREAD_FUNNELED).");
    MPI_Finalize();
    return -1;
}

int mpi_team_close(int status)
{
    MPI_Finalize();
    return status;
}

int mpi_team_check_launcher(const struct mpi_team *team)
{
    /* Of a step, not of an allocation: a batch script is one task and sees the allocation's number. */
    static const struct {
        const char *n_tasks, *task;
    } names[] = {
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
        {"PMI_SIZE", "PMI_RANK"},
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    };
    if (team->size > 1)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *n = getenv(names[i].n_tasks), *task = getenv(names[i].task);
        if (!n || atoi(n) <= 1)
            continue;
        /* All see the same, and the first one tells. Others wait for that: when a task has failed, a launcher may end
         * all of them. */
        if (task && atoi(task) > 0)
            sleep(1);
        else
            message_error("the launcher started %s tasks (%s), but MPI sees one: it was built for another launcher "
                          "(srun --mpi=list, or mpirun of the same MPI). Nothing was read.", n, names[i].n_tasks);
        return -1;
    }
    return 0;
}

/* MPI would spin, perhaps for minutes, on a core that another rank or program wants. */
static void wait_for(MPI_Request *request)
{
    unsigned spins = 0;
    for (int done = 0; !done;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done)
            task_pause(&spins);
    }
}

int mpi_team_agree(const struct mpi_team *team, const struct latch *latch)
{
    int mine = latch_tripped(latch) ? team->rank : team->size, first;
    MPI_Request request;
    MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
    wait_for(&request);
    if (first == team->size)
        return 0;
    if (first == team->rank)
        message_error("rank %d: %s.", team->rank, latch->message);
    return -1;
}

_Noreturn void mpi_team_abort(const struct mpi_team *team, const struct latch *latch)
{
    message_error("rank %d: %s.", team->rank, latch->message);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    _Exit(EXIT_FAILURE);
}
