/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "mpi/output_gather.h"

enum { CHUNK = 512 << 10, EOF_BLOCK = 28 };      /* bytes; the first stays in a cache; the second: SAMv1 section 4.1.2 */

/* Takes the EOF block off. */
static int cut_end(int fd, const char *path, struct latch *latch)
{
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < EOF_BLOCK || ftruncate(fd, end - EOF_BLOCK) < 0)
        return latch_fail(latch, "%s: its end cannot be cut: %s", path, strerror(errno));
    return 0;
}

/* What rank 0 tells of its file, so that other ranks can open it too. */
struct shared_file {
    int64_t process, fd;
    uint64_t device, inode;
    char name[PATH_MAX];
};

static struct shared_file describe(int fd, const char *name)
{
    struct stat st;
    struct shared_file file = {.process = getpid(), .fd = fd};
    if (fstat(fd, &st) < 0)
        return (struct shared_file){.fd = -1};
    file.device = (uint64_t)st.st_dev;
    file.inode = (uint64_t)st.st_ino;
    snprintf(file.name, sizeof file.name, "%s", name);
    return file;
}

/* Whether this rank and rank 0 have their memory on one host. Every rank calls it. */
static bool is_beside_first(void)
{
    MPI_Comm host;
    int rank, first;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, host);
    MPI_Comm_free(&host);
    return first == 0;
}

/* Whether it is the file that was told. Another host numbers devices in its own way. */
static bool is_told(const struct stat *st, const struct shared_file *shared, bool same_host)
{
    return S_ISREG(st->st_mode) && (uint64_t)st->st_ino == shared->inode
        && (!same_host || (uint64_t)st->st_dev == shared->device);
}

/* -1: it cannot be had under this name. stat() comes first: to open what is not ours, such as a pipe, may wait or
 * act. */
static int open_told(const char *name, const struct shared_file *shared, bool same_host)
{
    struct stat st;
    if (stat(name, &st) < 0 || !is_told(&st, shared, same_host))
        return -1;
    int fd = open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !is_told(&st, shared, same_host))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Opens rank 0's file. -1: it cannot be had here. Process numbers of a container are its own, and may be of some other
 * process here. */
static int open_shared(const struct shared_file *shared, bool same_host)
{
    char by_fd[64];
    if (!same_host)
        return shared->name[0] ? open_told(shared->name, shared, false) : -1;
    snprintf(by_fd, sizeof by_fd, "/proc/%lld/fd/%lld", (long long)shared->process, (long long)shared->fd);
    return open_told(by_fd, shared, true);
}

/* Every rank calls it. Before others write to rank 0's file from their hosts, its own bytes must have left its host:
 * where two ranks' blocks meet, both write to one page. Returns what open_shared() does, at rank 0 -1. */
static int share(const struct mpi_team *team, int fd, const char *path, const char *name, struct latch *latch)
{
    struct shared_file file = {.fd = -1};
    int beside = is_beside_first(), all_beside;
    MPI_Allreduce(&beside, &all_beside, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (team->rank == 0) {
        file = describe(fd, name);
        if (!all_beside && file.name[0] && fsync(fd) < 0)
            latch_fail(latch, "writing %s failed: %s", path, strerror(errno));
    }
    MPI_Bcast(&file, sizeof file, MPI_BYTE, 0, MPI_COMM_WORLD);
    return team->rank > 0 ? open_shared(&file, beside) : -1;
}

static int put(int fd, const char *path, uint8_t *chunk, size_t n, uint64_t at, struct latch *latch)
{
    struct iovec iov = {chunk, n};
    return out_file_write_at(fd, path, &iov, 1, (off_t)at, latch);
}

/* Writes the first bytes of this rank's file to `place` of the shared one, or sends them to rank 0 if that is -1. */
static int copy_file(int fd, const char *path, int shared, uint64_t place, uint64_t size, uint8_t *chunk,
                     struct latch *latch)
{
    for (uint64_t at = 0; at < size;) {
        size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        ssize_t got = pread(fd, chunk, n, (off_t)at);
        if (got <= 0)
            return latch_fail(latch, "reading %s failed: %s", path, got < 0 ? strerror(errno) : "it is too short");
        if (shared < 0)
            MPI_Send(chunk, (int)got, MPI_BYTE, 0, MPI_TEAM_BLOCKS, MPI_COMM_WORLD);
        else if (put(shared, path, chunk, (size_t)got, place + at, latch) < 0)
            return -1;
        at += (uint64_t)got;
    }
    return 0;
}

static int receive_file(int from, int fd, const char *path, uint64_t place, uint64_t size, uint8_t *chunk,
                        struct latch *latch)
{
    while (size > 0) {
        MPI_Status status;
        int n;
        MPI_Recv(chunk, CHUNK, MPI_BYTE, from, MPI_TEAM_BLOCKS, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        if (put(fd, path, chunk, (size_t)n, place, latch) < 0)
            return -1;
        place += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Bytes of this rank's blocks: the EOF block counts if no rank comes behind. 0 with an error in the latch: failed. */
static uint64_t size_of(const struct mpi_team *team, int fd, const char *path, struct latch *latch)
{
    off_t end = lseek(fd, 0, SEEK_END), cut = team->rank > 0 && team->rank + 1 < team->size ? EOF_BLOCK : 0;
    if (end >= cut)
        return (uint64_t)(end - cut);
    latch_fail(latch, "%s: its end cannot be found: %s", path, end < 0 ? strerror(errno) : "it is too short");
    return 0;
}

/* Tells rank 0 where each rank's blocks begin, and how many bytes each sends. Returns this rank's place. */
static uint64_t tell_places(const struct mpi_team *team, uint64_t mine, bool sends, uint64_t *places, uint64_t *sent)
{
    uint64_t place = 0, send = sends ? mine : 0;
    MPI_Exscan(&mine, &place, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    place = team->rank > 0 ? place : 0;          /* MPI leaves rank 0's undefined */
    MPI_Gather(&place, 1, MPI_UINT64_T, places, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Gather(&send, 1, MPI_UINT64_T, sent, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return place;
}

/* Brings this rank's bytes into the file; rank 0 takes what the others send. sent: room for a number of each rank. */
static int bring_together(const struct mpi_team *team, int fd, const char *path, const char *name, uint64_t *places,
                          uint64_t *sent, uint8_t *chunk, struct latch *latch)
{
    uint64_t mine = size_of(team, fd, path, latch);
    if (latch_tripped(latch))
        return -1;
    int shared = share(team, fd, path, name, latch);
    uint64_t place = tell_places(team, mine, team->rank > 0 && shared < 0, places, sent);
    int result = latch_tripped(latch) ? -1 : 0;
    if (team->rank > 0 && result == 0)
        result = copy_file(fd, path, shared, place, mine, chunk, latch);
    for (int i = 1; team->rank == 0 && i < team->size && result == 0; i++)
        result = receive_file(i, fd, path, places[i], sent[i], chunk, latch);
    if (shared >= 0 && close(shared) < 0 && result == 0)
        result = latch_fail(latch, "writing %s failed: %s", path, strerror(errno));
    return result;
}

int output_gather(const struct mpi_team *team, int fd, const char *path, const char *name, uint64_t *places,
                  struct latch *latch)
{
    uint64_t *sent = calloc((size_t)team->size, sizeof *sent);
    uint8_t *chunk = malloc(CHUNK);
    int result = chunk && sent ? 0 : latch_fail(latch, "out of memory");
    if (result == 0 && team->rank == 0 && team->size > 1)
        result = cut_end(fd, path, latch);
    if (result == 0)
        result = bring_together(team, fd, path, name, places, sent, chunk, latch);
    free(chunk);
    free(sent);
    return result;
}
