/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/message.h"
#include "mpi/mpi_alarm.h"
#include "mpi/mpi_team.h"

int mpi_team_open(struct mpi_team *team, int *argc, char ***argv)
{
    int provided;
    *team = (struct mpi_team){0};
    if (MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &team->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &team->size);
    if (provided >= MPI_THREAD_FUNNELED) {
        team->alarm = mpi_alarm_open(provided >= MPI_THREAD_MULTIPLE);
        return 0;
    }
    if (team->rank == 0)
        message_error("this MPI does not allow threads (MPI_THREAD_FUNNELED).");
    MPI_Finalize();
    return -1;
}

/* Waits for the other ranks before MPI_Finalize(), which would spin while it waits for them. */
int mpi_team_close(struct mpi_team *team, int status)
{
    mpi_wait_barrier();
    mpi_alarm_close(team->alarm);
    MPI_Finalize();
    return status;
}

int mpi_team_check_launcher(const struct mpi_team *team)
{
    /* Variables of a step, not of an allocation: a batch script is one task, but sees the number of its allocation. */
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
        /* All tasks find this, and the first one reports it. The others wait for its report, because a launcher may end
         * all tasks when one has failed. */
        if (task && atoi(task) > 0)
            sleep(1);
        else
            message_error("the launcher started %s tasks (%s), but MPI sees one: it was built for another launcher "
                          "(srun --mpi=list, or mpirun of the same MPI). Nothing was read.", n, names[i].n_tasks);
        return -1;
    }
    return 0;
}

/* Returns whether this rank has an error of its own. A signal comes first, because it may cause other errors. A rank
 * that was stopped may have errors that the stop caused. */
static bool has_error(const struct latch *latch)
{
    return latch_signal() || (latch_failed(latch) && !latch_stopped());
}

static void print_error(const struct mpi_team *team, const struct latch *latch)
{
    int caught = latch_signal();
    if (caught)
        message_error("rank %d: ended by signal %d (%s).", team->rank, caught, strsignal(caught));
    else
        message_error("rank %d: %s.", team->rank, latch->message);
}

/* Returns whether all ranks come to the meeting in time. Others may be in a call that they cannot leave, such as
 * reading from a pipe that has no writer. */
static bool all_come(MPI_Request *request)
{
    enum { SECONDS = 5 };
    double until = MPI_Wtime() + SECONDS;
    unsigned pauses = 0;
    for (int done = 0; MPI_Wtime() < until; mpi_wait_pause(&pauses)) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return true;
    }
    return false;
}

int mpi_team_agree(const struct mpi_team *team, const struct latch *latch)
{
    bool fails = has_error(latch);
    int mine = fails ? team->rank : team->size, first;
    MPI_Request request;
    if (fails)
        mpi_alarm_stop(team->alarm);
    MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
    if (!fails)
        mpi_wait(&request, MPI_STATUS_IGNORE);
    else if (!all_come(&request))
        mpi_team_abort(team, latch);
    if (first == team->size)
        return 0;
    if (first == team->rank)
        print_error(team, latch);
    return -1;
}

_Noreturn void mpi_team_abort(const struct mpi_team *team, const struct latch *latch)
{
    enum { PATIENCE = 10 };      /* seconds within which the rank with the error ends the run */
    if (has_error(latch) && mpi_alarm_end(team->alarm))
        print_error(team, latch);
    else
        sleep(PATIENCE);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    _Exit(EXIT_FAILURE);
}
