/* SPDX-License-Identifier: MIT */
/* How a rank that has failed reaches the others while they work: a thread of each rank looks for messages now and then.
 * Two kinds of them:
 *
 *   stop   all shall stop working and come to the next meeting (mpi_team_agree()), where one tells its error
 *   end    this rank cannot be met any more, and will end all: they take temporary names away, and answer
 *
 * The thread needs MPI_THREAD_MULTIPLE. Without, others hear of a failure when they come to the next meeting. */
#ifndef MPI_ALARM_H
#define MPI_ALARM_H

#include <stdbool.h>

struct mpi_alarm;

/* Every rank calls it behind MPI_Init_thread(). NULL: out of memory or no thread; all goes on without. */
struct mpi_alarm *mpi_alarm_open(bool any_thread_may_call);
void mpi_alarm_close(struct mpi_alarm *alarm);

/* Has the others stop. They get there within a tenth of a second. */
void mpi_alarm_stop(struct mpi_alarm *alarm);

/* Waits until the others have no temporary names any more, at most some seconds. Returns whether this rank is the one
 * to tell its error: else another rank ends all, too. */
bool mpi_alarm_end(struct mpi_alarm *alarm);

#endif
