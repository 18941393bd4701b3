/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "mpi/shared_file.h"

struct shared_file shared_file_describe(int fd, const char *name)
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

/* Returns whether this is the shared file. Another host numbers devices in its own way. */
static bool is_shared_file(const struct stat *st, const struct shared_file *shared, bool same_host)
{
    return S_ISREG(st->st_mode) && (uint64_t)st->st_ino == shared->inode
        && (!same_host || (uint64_t)st->st_dev == shared->device);
}

/* Returns -1 if this name does not lead to the file. stat() comes first: opening another file, such as a pipe, may
 * wait or act. */
static int open_by_name(const char *name, const struct shared_file *shared, bool same_host)
{
    struct stat st;
    if (stat(name, &st) < 0 || !is_shared_file(&st, shared, same_host))
        return -1;
    int fd = open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !is_shared_file(&st, shared, same_host))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int shared_file_open(const struct shared_file *shared, bool same_host)
{
    char by_fd[64];
    if (!same_host)
        return shared->name[0] ? open_by_name(shared->name, shared, false) : -1;
    snprintf(by_fd, sizeof by_fd, "/proc/%lld/fd/%lld", (long long)shared->process, (long long)shared->fd);
    return open_by_name(by_fd, shared, true);
}
