/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/input_name.h"
#include "base/latch.h"
#include "read/input_file.h"

enum { PIPE_SIZE = 1 << 20 };

int input_file_open(struct input_file *f, const char *path, struct latch *latch)
{
    struct stat st;
    *f = (struct input_file){.path = input_name_shown(path), .fd = -1, .begin = -1, .end = -1, .latch = latch};
    int is_stdin = strcmp(path, "-") == 0;
    bool is_data = strncmp(path, "data:", strlen("data:")) == 0, is_memory = strncmp(path, "mem:", strlen("mem:")) == 0;
    if (!is_stdin && !is_memory && (is_data || hisremote(path))) {   /* "mem:" is for programs, and needs an address */
        f->hfile = hopen(path, "r");
    } else {
        f->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
        f->hfile = f->fd < 0 ? NULL : hdopen(f->fd, "r");
    }
    if (!f->hfile)
        return latch_fail(latch, "cannot open %s: %s%s", f->path, strerror(errno),
                          errno == EMFILE ? ". Raise the limit on open files (ulimit -n), or name fewer inputs" : "");
    if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode)) {
        f->begin = lseek(f->fd, 0, SEEK_CUR);
        f->end = st.st_size;
    }
    return 0;
}

void input_file_close(struct input_file *f)
{
    if (f->hfile)
        hclose_abruptly(f->hfile);
    f->hfile = NULL;
}

void input_file_shut(struct input_file *f, const char *path)
{
    struct stat st;
    if (input_file_access(f) != INPUT_ANYWHERE || !f->hfile || strcmp(path, "-") == 0 || fstat(f->fd, &st) < 0)
        return;
    input_file_close(f);
    f->fd = -1;
    f->shut = path;
    f->device = st.st_dev;
    f->inode = st.st_ino;
}

/* Returns the descriptor to read from; -1: failed, and the error is recorded in the latch. */
static int begin_read(const struct input_file *f)
{
    struct stat st;
    if (!f->shut)
        return f->fd;
    int fd = open(f->shut, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return input_file_failed(f);
    if (fstat(fd, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode)
        return fd;
    close(fd);
    return latch_fail(f->latch, "%s: another file got this name while it was read. Nothing was written", f->path);
}

static void end_read(const struct input_file *f, int fd)
{
    if (f->shut)
        close(fd);
}

void input_file_limit(struct input_file *f, uint64_t begin, uint64_t end)
{
    f->begin = (off_t)begin;
    f->end = (off_t)end;
    f->is_part = true;
}

enum input_access input_file_access(const struct input_file *f)
{
    return f->fd < 0 && !f->shut ? INPUT_IN_TURN : f->begin >= 0 ? INPUT_ANYWHERE : INPUT_FROM_PIPE;
}

void input_file_advise(const struct input_file *f)
{
#ifdef F_SETPIPE_SZ
    fcntl(f->fd, F_SETPIPE_SZ, PIPE_SIZE);       /* has no effect if the file is not a pipe */
#endif
#ifdef POSIX_FADV_SEQUENTIAL
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

int input_file_failed(const struct input_file *f)
{
    return latch_fail(f->latch, "reading %s failed: %s", f->path, strerror(errno));
}

/* Returns the number of bytes that htslib has read to detect the format. */
static size_t peeked(const struct input_file *f)
{
    return (size_t)(f->hfile->end - f->hfile->begin);
}

/* Takes the peeked bytes first. Then reads local files directly, so that reads are large, and a signal can end them. */
static ssize_t read_once(struct input_file *f, void *buffer, size_t n)
{
    size_t ahead = peeked(f);
    if (f->fd < 0 || ahead > 0)
        return hread(f->hfile, buffer, ahead > 0 && ahead < n ? ahead : n);
    return read(f->fd, buffer, n);
}

ssize_t input_file_read(struct input_file *f, void *buffer, size_t n)
{
    ssize_t got;
    do {
        if (latch_tripped(f->latch))
            return -1;
        got = read_once(f, buffer, n);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? input_file_failed(f) : got;
}

bool input_file_ready(const struct input_file *f, int timeout)
{
    struct pollfd in = {.fd = f->fd, .events = POLLIN};
    return f->fd < 0 || peeked(f) > 0 || poll(&in, 1, timeout) > 0;
}

/* Reads until there are n bytes, or the file ends. */
static ssize_t read_from(const struct input_file *f, int fd, uint8_t *buffer, size_t n, uint64_t offset)
{
    size_t done = 0;
    ssize_t got = 1;
    while (done < n && got != 0) {
        if (latch_tripped(f->latch))
            return -1;
        got = pread(fd, buffer + done, n - done, f->begin + (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            return input_file_failed(f);
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

ssize_t input_file_read_at(const struct input_file *f, void *buffer, size_t n, uint64_t offset)
{
    uint64_t there = (uint64_t)(f->end - f->begin);
    if (f->is_part && n + offset > there)
        n = offset < there ? (size_t)(there - offset) : 0;
    int fd = begin_read(f);
    ssize_t done = fd < 0 ? -1 : read_from(f, fd, buffer, n, offset);
    end_read(f, fd);
    if (done < 0 || (size_t)done == n)
        return done;
    if (f->begin + (off_t)offset + done < f->end)
        return latch_fail(f->latch, "%s: at file offset %llu: it became shorter while it was read. Nothing was written",
                          f->path, (unsigned long long)(offset + (uint64_t)done));
    if (!f->shut)
        lseek(f->fd, 0, SEEK_END);               /* the position at which read() would leave it */
    return done;
}

void input_file_expect(const struct input_file *f, uint64_t offset, size_t n)
{
#ifdef POSIX_FADV_WILLNEED
    if (!f->shut)
        posix_fadvise(f->fd, f->begin + (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED);
#else
    (void)f, (void)offset, (void)n;
#endif
}
