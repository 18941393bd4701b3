/* SPDX-License-Identifier: MIT */
/* Lets a rank that has failed reach the others while they work: a thread of each rank looks for messages now and then.
 * There are two kinds of messages:
 *
 *   stop   all ranks must stop working and come to the next meeting (mpi_team_agree()), where one reports its error
 *   end    the sender can no longer come to a meeting and will end the run; others remove temporary names and answer
 *
 * The thread needs MPI_THREAD_MULTIPLE. Without it, others learn of a failure when they come to the next meeting. */
#ifndef MPI_ALARM_H
#define MPI_ALARM_H

#include <stdbool.h>

struct mpi_alarm;

/* Every rank calls it after MPI_Init_thread(). NULL: out of memory or no thread; the program then continues without an
 * alarm. */
struct mpi_alarm *mpi_alarm_open(bool any_thread_may_call);
void mpi_alarm_close(struct mpi_alarm *alarm);

/* Makes the other ranks stop. They do so within a tenth of a second. */
void mpi_alarm_stop(struct mpi_alarm *alarm);

/* Waits until the other ranks have no temporary names any more, at most some seconds. Returns whether this rank is the
 * one to report its error. If not, another rank ends the run, too. */
bool mpi_alarm_end(struct mpi_alarm *alarm);

#endif
