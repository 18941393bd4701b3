/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <mpi.h>
#include "base/affinity.h"
#include "base/latch.h"
#include "base/out_file.h"
#include "mpi/mpi_alarm.h"

enum { LOOK_MS = 50, ANSWER_MS = 3000, KILL_MS = 20000 };
enum kind { NOTHING, STOP, END, ANSWER, N_KINDS };

struct mpi_alarm {
    MPI_Comm comm;               /* a communicator of our own, so that no other code takes the messages */
    int rank, size;
    bool speaks;                 /* MPI may be called in the thread */
    pthread_t thread;
    atomic_int wanted;           /* the kind to be sent; set by the main thread */
    atomic_bool closes;          /* the thread shall end; set by the main thread */
    int sent;                    /* the greatest kind that was sent; only the thread uses it */
    atomic_int answers;          /* answers that came; set by the thread, as is the next field */
    atomic_int ended_by;         /* the first of the ranks that want to end the run; size: none */
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Sends a message. It is so small that MPI keeps it. */
static void send(const struct mpi_alarm *a, int to, enum kind kind)
{
    static const int kinds[N_KINDS] = {NOTHING, STOP, END, ANSWER};
    MPI_Request request;
    MPI_Isend(&kinds[kind], 1, MPI_INT, to, 0, a->comm, &request);
    MPI_Request_free(&request);
}

static void send_wanted(struct mpi_alarm *a)
{
    int wanted = atomic_load(&a->wanted);
    if (wanted <= a->sent)
        return;
    for (int i = 0; i < a->size; i++)
        if (i != a->rank)
            send(a, i, (enum kind)wanted);
    a->sent = wanted;
}

static void take(struct mpi_alarm *a, enum kind kind, int from)
{
    if (kind == ANSWER) {
        atomic_fetch_add(&a->answers, 1);
        return;
    }
    latch_stop();
    if (kind != END)
        return;
    if (from < atomic_load(&a->ended_by))
        atomic_store(&a->ended_by, from);
    out_file_drop_all_names();
    send(a, from, ANSWER);
}

static void receive_all(struct mpi_alarm *a)
{
    MPI_Status status;
    for (int there = 1, kind; there;) {
        MPI_Iprobe(MPI_ANY_SOURCE, 0, a->comm, &there, &status);
        if (!there)
            return;
        MPI_Recv(&kind, 1, MPI_INT, status.MPI_SOURCE, 0, a->comm, MPI_STATUS_IGNORE);
        take(a, (enum kind)kind, status.MPI_SOURCE);
    }
}

/* The main function of the thread. After a signal it removes temporary names at once: a launcher may not leave this
 * rank the time to come to a meeting. */
static void *look(void *alarm)
{
    struct mpi_alarm *a = alarm;
    for (long ended = 0; !atomic_load(&a->closes); sleep_ms(LOOK_MS)) {
        if (latch_signal())
            out_file_drop_all_names();
        if (!a->speaks)
            continue;
        send_wanted(a);
        receive_all(a);
        ended += atomic_load(&a->ended_by) < a->size ? LOOK_MS : 0;
        if (ended > KILL_MS)
            _exit(EXIT_FAILURE);                 /* the rank that wanted to end the run has not done so */
    }
    return NULL;
}

struct mpi_alarm *mpi_alarm_open(bool any_thread_may_call)
{
    struct mpi_alarm *a = calloc(1, sizeof *a);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (!a)
        return NULL;
    a->comm = comm;
    MPI_Comm_rank(comm, &a->rank);
    MPI_Comm_size(comm, &a->size);
    a->speaks = any_thread_may_call && a->size > 1;
    atomic_init(&a->ended_by, a->size);
    struct affinity bound;
    affinity_widen(&bound);                      /* otherwise it would share the main thread's place */
    latch_hide_signals(true);                    /* the main thread gets them */
    int failed = pthread_create(&a->thread, NULL, look, a);
    latch_hide_signals(false);
    affinity_narrow(&bound);
    if (!failed)
        return a;
    free(a);
    return NULL;
}

void mpi_alarm_close(struct mpi_alarm *a)
{
    if (!a)
        return;
    atomic_store(&a->closes, true);
    pthread_join(a->thread, NULL);
    MPI_Comm_free(&a->comm);
    free(a);
}

void mpi_alarm_stop(struct mpi_alarm *a)
{
    int nothing = NOTHING;
    if (a)
        atomic_compare_exchange_strong(&a->wanted, &nothing, STOP);
}

/* If two ranks want to end the run, each learns of the other before it has all answers, because the messages of a rank
 * keep their order. */
bool mpi_alarm_end(struct mpi_alarm *a)
{
    out_file_drop_all_names();
    if (!a || !a->speaks)
        return true;
    if (atomic_load(&a->ended_by) == a->size)
        atomic_store(&a->wanted, END);
    for (long ms = 0; ms < ANSWER_MS && atomic_load(&a->answers) < a->size - 1; ms += LOOK_MS)
        sleep_ms(LOOK_MS);
    return atomic_load(&a->wanted) == END && atomic_load(&a->ended_by) > a->rank;
}
