/* SPDX-License-Identifier: MIT */
/* Traces an MPI program: preloaded, it comes between the program and MPI (the profiling interface).
 *
 *   MPI_TRACE=PREFIX         each rank writes PREFIX.RANK, one line per call, columns as in COLUMNS
 *   MPI_TRACE_APART=1        each rank sees itself alone on its host, as on a cluster of one rank a node
 *   MPI_TRACE_SLOWER=D       slow motion: before each call the rank sleeps until it has taken D times its CPU seconds
 *   MPI_TRACE_BANDWIDTH=B    bytes/s of each rank's network, and
 *   MPI_TRACE_LATENCY=S      seconds of each message: it is held back for this long, times D
 *
 * A call that only asks whether a message has come (Iprobe, Test) has no line if none has. The time between two such
 * calls of the main thread counts as waiting if it is short, otherwise as work. Only one thread calls MPI, except for
 * calls with a communicator of its own. */
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COLUMNS "call peer tag bytes work main wait inside wall inside_wall read written"

/* Seconds. The program's loop from one poll to the next takes 1 to 10 us, one of its tasks 50 us or more. */
static const double POLLS = 30e-6, TESTED = 3e-6;

/* The state in which the thread was seen last. */
enum seen { CALLED, TESTED_TRUE, POLLED };

struct mark {
    double cpu, main, wall;                      /* seconds of the process, of the thread, of the clock */
};

struct tracer {
    FILE *file;
    int rank, io;                                /* io: /proc/self/io */
    uint64_t read, written, own_reads;           /* bytes so far; bytes of reading /proc/self/io itself */
    struct mark last;                            /* end of the call before */
    enum seen seen;
    double work, main, wait;                     /* seconds since the last line: all threads, main thread, polling */
    double since;                                /* the clock at the last line */
    bool apart;
    double slower, bandwidth, latency;
    double link_free;                            /* when this rank's network has delivered all messages so far */
    bool kept_back;                              /* a message has come, but is held back */
    double arrival;
};

static struct tracer t;

static double clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct mark now(void)
{
    return (struct mark){clock_s(CLOCK_PROCESS_CPUTIME_ID), clock_s(CLOCK_THREAD_CPUTIME_ID),
                         clock_s(CLOCK_MONOTONIC)};
}

static void sleep_until(double wall)
{
    double rest = wall - clock_s(CLOCK_MONOTONIC);
    if (rest <= 0)
        return;
    struct timespec nap = {.tv_sec = (time_t)rest};
    nap.tv_nsec = (long)(1e9 * (rest - (double)nap.tv_sec));
    nanosleep(&nap, NULL);
}

/* ---- between calls ---- */

/* Begins a call of the program. */
static struct mark enter(void)
{
    struct mark m = now();
    double main = m.main - t.last.main, others = m.cpu - t.last.cpu - main;
    bool waits = main < (t.seen == POLLED ? POLLS : t.seen == TESTED_TRUE ? TESTED : 0);
    t.work += (waits ? 0 : main) + (others > 0 ? others : 0);
    *(waits ? &t.wait : &t.main) += main;
    if (t.slower > 1 && !waits)
        sleep_until(t.last.wall + t.slower * main);
    return m;
}

static void leave_poll(struct mark m, enum seen seen)
{
    t.last = now();
    t.wait += t.last.main - m.main;
    t.seen = seen;
}

static void count_files(uint64_t *read_bytes, uint64_t *written)
{
    char text[256];
    unsigned long long r = 0, w = 0;
    ssize_t n = t.io < 0 ? -1 : pread(t.io, text, sizeof text - 1, 0);
    if (n <= 0)
        return;
    text[n] = '\0';
    if (sscanf(text, "rchar: %llu wchar: %llu", &r, &w) == 2) {
        *read_bytes = r - t.own_reads;
        *written = w;
    }
    t.own_reads += (uint64_t)n;
}

/* Ends the call and writes its line. peer, tag: -1 for all ranks. */
static void leave(struct mark m, const char *call, int peer, int tag, uint64_t bytes)
{
    struct mark end = now();
    uint64_t read_bytes = t.read, written = t.written;
    count_files(&read_bytes, &written);
    if (t.file)
        fprintf(t.file, "%s %d %d %llu %.6f %.6f %.6f %.6f %.6f %.6f %llu %llu\n", call, peer, tag,
                (unsigned long long)bytes, t.work, t.main, t.wait, end.cpu - m.cpu, m.wall - t.since,
                end.wall - m.wall, (unsigned long long)(read_bytes - t.read),
                (unsigned long long)(written - t.written));
    t.read = read_bytes;
    t.written = written;
    t.work = t.main = t.wait = 0;
    t.seen = CALLED;
    t.last = now();
    t.since = t.last.wall;
}

static uint64_t size_of(int count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return (uint64_t)count * (uint64_t)size;
}

/* ---- a slower network ---- */

static bool is_slowed(void)
{
    return t.latency > 0 || t.bandwidth > 0;
}

static double cost(uint64_t bytes)
{
    return t.slower * (t.latency + (t.bandwidth > 0 ? (double)bytes / t.bandwidth : 0));
}

/* The time at which a message seen now would have come. After another message, its latency has passed already. */
static double arrival_of(uint64_t bytes)
{
    double clock = clock_s(CLOCK_MONOTONIC), latency = t.slower * t.latency;
    double from = clock - t.link_free < latency ? t.link_free : clock + latency;
    return from + cost(bytes) - latency;
}

/* Whether the message would have come over that network, too. */
static bool is_there(uint64_t bytes, int source)
{
    if (!is_slowed() || source == t.rank)
        return true;
    if (!t.kept_back)
        t.arrival = arrival_of(bytes);
    t.kept_back = true;
    return clock_s(CLOCK_MONOTONIC) >= t.arrival;
}

static void account(uint64_t bytes, int source)
{
    if (!is_slowed() || source == t.rank)
        return;
    t.link_free = t.kept_back ? t.arrival : arrival_of(bytes);
    t.kept_back = false;
    sleep_until(t.link_free);
}

/* A collective call takes one message after another, in a tree. */
static void account_all(uint64_t bytes)
{
    int size, rounds = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    while (1 << rounds < size)
        rounds++;
    if (is_slowed())
        sleep_until(clock_s(CLOCK_MONOTONIC) + rounds * cost(bytes));
}

/* ---- beginning and end ---- */

static double setting(const char *name, double otherwise)
{
    const char *value = getenv(name);
    return value && *value ? atof(value) : otherwise;
}

static void begin(void)
{
    char path[4096];
    const char *prefix = getenv("MPI_TRACE");
    PMPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    t.apart = setting("MPI_TRACE_APART", 0) > 0;
    t.slower = setting("MPI_TRACE_SLOWER", 1);
    t.bandwidth = setting("MPI_TRACE_BANDWIDTH", 0);
    t.latency = setting("MPI_TRACE_LATENCY", 0);
    t.io = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s.%d", prefix ? prefix : "", t.rank);
    t.file = prefix ? fopen(path, "w") : NULL;
    if (t.file)
        fputs(COLUMNS "\n", t.file);
    else if (prefix)
        fprintf(stderr, "mpi_trace: %s cannot be written\n", path);
    count_files(&t.read, &t.written);
    t.last = now();
    t.since = t.last.wall;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);
    begin();
    return result;
}

int MPI_Finalize(void)
{
    struct mark m = enter();
    leave(m, "Finalize", -1, -1, 0);
    if (t.file && fclose(t.file) != 0)
        perror("mpi_trace");
    t.file = NULL;
    return PMPI_Finalize();
}

/* ---- from one rank to another ---- */

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (comm != MPI_COMM_WORLD)                  /* the thread that waits for the notice of a failure */
        return PMPI_Isend(buf, count, type, dest, tag, comm, request);
    struct mark m = enter();
    int result = PMPI_Isend(buf, count, type, dest, tag, comm, request);
    leave(m, "Isend", dest, tag, size_of(count, type));
    return result;
}

/* Its line is the receipt. A slower message came late to the Iprobe before it. */
int MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Irecv(buf, count, type, source, tag, comm, request);
    account(size_of(count, type), source);
    leave(m, "Irecv", source, tag, size_of(count, type));
    return result;
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    if (comm != MPI_COMM_WORLD)
        return PMPI_Iprobe(source, tag, comm, flag, status);
    MPI_Status own;
    struct mark m = enter();
    int n = 0, result = PMPI_Iprobe(source, tag, comm, flag, &own);
    if (*flag) {
        PMPI_Get_count(&own, MPI_BYTE, &n);
        *flag = is_there((uint64_t)n, own.MPI_SOURCE);
        if (status != MPI_STATUS_IGNORE)
            *status = own;
    }
    leave_poll(m, *flag ? CALLED : POLLED);
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct mark m = enter();
    int result = PMPI_Test(request, flag, status);
    leave_poll(m, *flag ? TESTED_TRUE : POLLED);
    return result;
}

/* ---- all ranks ---- */

/* The line of a call that only begins is written then: ranks poll until all have begun. */
int MPI_Ibcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Ibcast(buf, count, type, root, comm, request);
    account_all(size_of(count, type));
    leave(m, "Bcast", root, -1, size_of(count, type));
    return result;
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct mark m = enter();
    int result = PMPI_Allreduce(in, out, count, type, op, comm);
    account_all(2 * size_of(count, type));
    leave(m, "Allreduce", -1, -1, size_of(count, type));
    return result;
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Iallreduce(in, out, count, type, op, comm, request);
    account_all(2 * size_of(count, type));
    leave(m, "Allreduce", -1, -1, size_of(count, type));
    return result;
}

int MPI_Iexscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Iexscan(in, out, count, type, op, comm, request);
    account_all(size_of(count, type));
    leave(m, "Exscan", -1, -1, size_of(count, type));
    return result;
}

/* bytes: for each rank. */
int MPI_Ialltoall(const void *in, int n_in, MPI_Datatype in_type, void *out, int n_out, MPI_Datatype out_type,
                 MPI_Comm comm, MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Ialltoall(in, n_in, in_type, out, n_out, out_type, comm, request);
    account_all(size_of(n_in, in_type));
    leave(m, "Alltoall", -1, -1, size_of(n_in, in_type));
    return result;
}

int MPI_Iallgather(const void *in, int n_in, MPI_Datatype in_type, void *out, int n_out, MPI_Datatype out_type,
                  MPI_Comm comm, MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Iallgather(in, n_in, in_type, out, n_out, out_type, comm, request);
    account_all(size_of(n_in, in_type));
    leave(m, "Allgather", -1, -1, size_of(n_in, in_type));
    return result;
}

int MPI_Igather(const void *in, int n_in, MPI_Datatype in_type, void *out, int n_out, MPI_Datatype out_type, int root,
               MPI_Comm comm, MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Igather(in, n_in, in_type, out, n_out, out_type, root, comm, request);
    account_all(size_of(n_in, in_type));
    leave(m, "Gather", root, -1, size_of(n_in, in_type));
    return result;
}

int MPI_Igatherv(const void *in, int n_in, MPI_Datatype in_type, void *out, const int *n_out, const int *places,
                MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Request *request)
{
    struct mark m = enter();
    int result = PMPI_Igatherv(in, n_in, in_type, out, n_out, places, out_type, root, comm, request);
    account_all(size_of(n_in, in_type));
    leave(m, "Gatherv", root, -1, size_of(n_in, in_type));
    return result;
}

/* Apart: a communicator of only this rank. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    int rank, result;
    struct mark m = enter();
    PMPI_Comm_rank(comm, &rank);
    result = t.apart ? PMPI_Comm_split(comm, rank, key, made) : PMPI_Comm_split_type(comm, type, key, info, made);
    leave(m, "Comm_split_type", -1, -1, 0);
    return result;
}
