/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
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

enum { CHUNK = 4 << 20, EOF_BLOCK = 28 };        /* bytes; the second: SAMv1 section 4.1.2 */

/* Takes the EOF block off. */
static int cut_end(int fd, const char *path, struct latch *latch)
{
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < EOF_BLOCK || ftruncate(fd, end - EOF_BLOCK) < 0)
        return latch_fail(latch, "%s: its end cannot be cut: %s", path, strerror(errno));
    return 0;
}

/* What rank 0 tells of its file, so that a rank on the same host can open it too. */
struct shared_file {
    int64_t process, fd;
    uint64_t device, inode;
};

static struct shared_file describe(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return (struct shared_file){.fd = -1};
    return (struct shared_file){getpid(), fd, (uint64_t)st.st_dev, (uint64_t)st.st_ino};
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

/* Opens rank 0's file. -1: it cannot be had here. Process numbers of a container are its own, and may be of some other
 * process here: the file must be the one that was told. */
static int open_shared(const struct shared_file *shared)
{
    char name[64];
    struct stat st;
    snprintf(name, sizeof name, "/proc/%lld/fd/%lld", (long long)shared->process, (long long)shared->fd);
    if (stat(name, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_dev != shared->device
        || (uint64_t)st.st_ino != shared->inode)
        return -1;
    int fd = open(name, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) < 0 || (uint64_t)st.st_ino != shared->inode
                    || (uint64_t)st.st_dev != shared->device)) {
        close(fd);
        fd = -1;
    }
    return fd;
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

/* What rank 0 takes of those that cannot write themselves. sent[i]: the bytes that rank i sends. */
static int take_rest(const struct mpi_team *team, int fd, const char *path, const uint64_t *places,
                     const uint64_t *sent, uint8_t *chunk, struct latch *latch)
{
    int result = 0;
    for (int i = 1; i < team->size && result == 0; i++)
        result = receive_file(i, fd, path, places[i], sent[i], chunk, latch);
    return result;
}

int output_gather(const struct mpi_team *team, int fd, const char *path, uint64_t *places, struct latch *latch)
{
    uint64_t place = 0, mine, send;
    uint64_t *sent = calloc((size_t)team->size, sizeof *sent);
    uint8_t *chunk = malloc(CHUNK);
    int shared = -1, result = chunk && sent ? 0 : latch_fail(latch, "out of memory");
    if (result == 0 && team->rank == 0 && team->size > 1)
        result = cut_end(fd, path, latch);
    mine = result == 0 ? size_of(team, fd, path, latch) : 0;
    if (latch_tripped(latch)) {
        free(chunk);
        free(sent);
        return -1;
    }
    struct shared_file file = team->rank == 0 ? describe(fd) : (struct shared_file){.fd = -1};
    MPI_Bcast(&file, sizeof file, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Exscan(&mine, &place, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    place = team->rank > 0 ? place : 0;          /* MPI leaves rank 0's undefined */
    if (is_beside_first() && team->rank > 0)
        shared = open_shared(&file);
    send = team->rank > 0 && shared < 0 ? mine : 0;
    MPI_Gather(&place, 1, MPI_UINT64_T, places, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Gather(&send, 1, MPI_UINT64_T, sent, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (team->rank > 0)
        result = copy_file(fd, path, shared, place, mine, chunk, latch);
    else
        result = take_rest(team, fd, path, places, sent, chunk, latch);
    if (shared >= 0 && close(shared) < 0 && result == 0)
        result = latch_fail(latch, "writing %s failed: %s", path, strerror(errno));
    free(chunk);
    free(sent);
    return result;
}
