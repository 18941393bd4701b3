/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "mpi/output_gather.h"

enum { CHUNK = 4 << 20, EOF_BLOCK = 28 };        /* bytes; the second: SAMv1 section 4.1.2 */

/* Sends the file, but for the EOF block if another rank comes behind. */
static int send_file(const struct mpi_team *team, int fd, const char *path, uint8_t *chunk, struct latch *latch)
{
    off_t end = lseek(fd, 0, SEEK_END), cut = team->rank + 1 < team->size ? EOF_BLOCK : 0;
    uint64_t size = end < cut ? 0 : (uint64_t)(end - cut);
    if (end < EOF_BLOCK)
        return latch_fail(latch, "%s: its end cannot be found: %s", path, strerror(errno));
    MPI_Send(&size, 1, MPI_UINT64_T, 0, MPI_TEAM_BLOCKS, MPI_COMM_WORLD);
    for (uint64_t at = 0; at < size;) {
        size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        ssize_t got = pread(fd, chunk, n, (off_t)at);
        if (got <= 0)
            return latch_fail(latch, "reading %s failed: %s", path, got < 0 ? strerror(errno) : "it is too short");
        MPI_Send(chunk, (int)got, MPI_BYTE, 0, MPI_TEAM_BLOCKS, MPI_COMM_WORLD);
        at += (uint64_t)got;
    }
    return 0;
}

static int append_file(int from, int fd, const char *path, uint8_t *chunk, struct latch *latch)
{
    uint64_t size;
    MPI_Recv(&size, 1, MPI_UINT64_T, from, MPI_TEAM_BLOCKS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (size > 0) {
        MPI_Status status;
        int n;
        MPI_Recv(chunk, CHUNK, MPI_BYTE, from, MPI_TEAM_BLOCKS, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        if (out_file_write(fd, path, chunk, (size_t)n, latch) < 0)
            return -1;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Takes the EOF block off. */
static int cut_end(int fd, const char *path, struct latch *latch)
{
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < EOF_BLOCK || ftruncate(fd, end - EOF_BLOCK) < 0 || lseek(fd, end - EOF_BLOCK, SEEK_SET) < 0)
        return latch_fail(latch, "%s: its end cannot be cut: %s", path, strerror(errno));
    return 0;
}

int output_gather(const struct mpi_team *team, int fd, const char *path, uint64_t *places, struct latch *latch)
{
    uint8_t *chunk = malloc(CHUNK);
    int result = 0;
    if (!chunk)
        return latch_fail(latch, "out of memory");
    if (team->rank > 0)
        result = send_file(team, fd, path, chunk, latch);
    else if (team->size > 1)
        result = cut_end(fd, path, latch);
    for (int i = 1; team->rank == 0 && i < team->size && result == 0; i++) {
        places[i] = (uint64_t)lseek(fd, 0, SEEK_CUR);
        result = append_file(i, fd, path, chunk, latch);
    }
    free(chunk);
    return result;
}
