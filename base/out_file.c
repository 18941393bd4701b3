/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __linux__
#include <mntent.h>
#endif
#include "base/input_name.h"
#include "base/latch.h"
#include "base/out_file.h"

const char *out_file_directory(const char *path, char dir[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) : 0;
    snprintf(dir, PATH_MAX, "%.*s", n > 0 ? n : 1, slash ? path : ".");
    return dir;
}

/* Formats a path; -1 with errno ENAMETOOLONG if it is too long. */
__attribute__((format(printf, 2, 3))) static int make_path(char to[PATH_MAX], const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int n = vsnprintf(to, PATH_MAX, format, values);
    va_end(values);
    if (n >= 0 && n < PATH_MAX)
        return 0;
    *to = 0;
    errno = ENAMETOOLONG;
    return -1;
}

int out_file_target(const char *path, char target[PATH_MAX])
{
    enum { MAX_LINKS = 40 };                     /* the kernel's limit */
    char link[PATH_MAX], dir[PATH_MAX];
    if (make_path(target, "%s", path) < 0)
        return -1;
    for (int i = 0; i < MAX_LINKS; i++) {
        ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : -1;     /* not a link; or another error */
        link[n] = 0;
        if ((link[0] == '/' ? make_path(target, "%s", link)
                            : make_path(target, "%s/%s", out_file_directory(target, dir), link)) < 0)
            return -1;
    }
    errno = ELOOP;
    return -1;
}

/* Files that have a temporary name. When the OpenMP runtime lacks memory or threads it calls exit(), in any thread.
 * Then their names must be removed, too. */
enum { MAX_NAMED = 16 };
static struct out_file *_Atomic named_files[MAX_NAMED];
static atomic_bool names_are_dropped;

static void remove_named(void)
{
    for (int i = 0; i < MAX_NAMED; i++) {
        const struct out_file *out = atomic_load(&named_files[i]);
        if (out)
            unlink(out->temp);
    }
}

/* Replaces `from` in the list by `to`; NULL is a free entry. */
static void change_named(struct out_file *from, struct out_file *to)
{
    struct out_file *is = from;
    for (int i = 0; i < MAX_NAMED && !atomic_compare_exchange_strong(&named_files[i], &is, to); i++)
        is = from;
}

/* Notes that the file has a temporary name. */
static void add_named(struct out_file *out)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        atexit(remove_named);
    change_named(NULL, out);
    if (atomic_load(&names_are_dropped))
        unlink(out->temp);
}

/* Notes that the file no longer has a temporary name. */
static void forget_named(struct out_file *out)
{
    change_named(out, NULL);
    out->temp[0] = 0;
}

void out_file_drop_all_names(void)
{
    atomic_store(&names_are_dropped, true);
    remove_named();
}

/* Keeps the name if there is no /proc, because the name is then needed to open the file again. */
void out_file_drop_name(struct out_file *out)
{
    if (!out->temp[0] || access("/proc/self/fd", X_OK) < 0)
        return;
    unlink(out->temp);
    forget_named(out);
}

/* Gives the file a hidden name in the target's directory. */
static int name_beside(struct out_file *out, const char *ending)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(out->target, '/');
    return make_path(out->temp, "%s/.%.200s.tmp-%s", out_file_directory(out->target, dir),
                     slash ? slash + 1 : out->target, ending);
}

/* Opens an unnamed file in the directory; -1 if that is not possible. */
static int open_unnamed(const char *dir)
{
#ifdef O_TMPFILE
    return open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
#else
    (void)dir;
    return -1;
#endif
}

static int open_temp(struct out_file *out)
{
    char dir[PATH_MAX];
    out->fd = open_unnamed(out_file_directory(out->target, dir));
    /* An unnamed file can get its name later by a link from /proc. */
    if (out->fd >= 0 && access("/proc/self/fd", X_OK) == 0)
        return 0;
    if (out->fd >= 0)
        close(out->fd);
    latch_catch_signals();
    out->fd = name_beside(out, "XXXXXX") < 0 ? -1 : mkstemp(out->temp);
    if (out->fd < 0)
        out->temp[0] = 0;
    else
        add_named(out);
    return out->fd < 0 ? -1 : 0;
}

/* A larger pipe lets us continue while its reader is busy. It is as good as a thread that only writes (numbers in
 * doc/dev/tried.md). */
static void widen_pipe(int fd)
{
#ifdef F_SETPIPE_SZ
    enum { PIPE_SIZE = 1 << 20 };                /* the largest that a user may request */
    fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);          /* no effect if it is not a pipe */
#else
    (void)fd;
#endif
}

/* Opens a copy of standard output. -1: failed, or standard output is open for reading only. */
static int open_stdout(void)
{
    if ((fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY)
        return dup(STDOUT_FILENO);
    errno = EBADF;
    return -1;
}

bool out_file_is_same(const struct stat *st, const struct stat *other)
{
    return st->st_dev == other->st_dev && st->st_ino == other->st_ino;
}

bool out_file_is_same_place(const char *path, const char *other)
{
    struct stat x, y;
    char dir[PATH_MAX];
    return strcmp(input_name_base(path), input_name_base(other)) == 0 && stat(out_file_directory(path, dir), &x) == 0
        && stat(out_file_directory(other, dir), &y) == 0 && out_file_is_same(&x, &y);
}

/* Returns whether we may not replace the file: in a directory like /tmp only the owners of the file and of the
 * directory may. */
static bool is_protected(const char *target, const struct stat *st)
{
    struct stat in;
    char dir[PATH_MAX];
    uid_t we = geteuid();
    return stat(out_file_directory(target, dir), &in) == 0 && in.st_mode & S_ISVTX && we != 0 && we != st->st_uid
        && we != in.st_uid;
}

/* Returns whether the file is a mount point, like files of the host in containers. Before Linux 5.8 statx() does not
 * report it. */
static bool is_mounted(const char *target)
{
    bool found = false;
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx st;
    if (statx(AT_FDCWD, target, 0, 0, &st) == 0 && st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
        return st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
#endif
#ifdef __linux__
    char *path = realpath(target, NULL);
    FILE *list = path ? setmntent("/proc/self/mounts", "re") : NULL;
    for (const struct mntent *mount; list && !found && (mount = getmntent(list));)
        found = strcmp(mount->mnt_dir, path) == 0;
    if (list)
        endmntent(list);
    free(path);
#else
    (void)target;
#endif
    return found;
}

/* The function does not look for other faults, such as a directory that does not exist. Opening the file finds them. */
bool out_file_can_add_beside(const char *path)
{
    char target[PATH_MAX], dir[PATH_MAX];
    if (out_file_target(path, target) < 0)
        return true;
    int fd = open_unnamed(out_file_directory(target, dir));
    if (fd >= 0)
        close(fd);
    return fd >= 0 || faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0
        || (errno != EACCES && errno != EPERM && errno != EROFS);
}

/* Here and below: st is NULL if nothing exists at the path. */
static bool is_stdout(const char *path, const struct stat *st)
{
    struct stat out;
    return strcmp(path, "-") == 0
        || (st && S_ISREG(st->st_mode) && fstat(STDOUT_FILENO, &out) == 0 && out_file_is_same(st, &out));
}

/* Returns whether the file cannot be replaced by a new one: it no longer has a name (the path leads through /proc), or
 * the rename() that ends the replacement would fail (a mount point, or a directory that takes no new file). */
static bool is_pinned(const char *path, const struct stat *st)
{
    struct stat named;
    char target[PATH_MAX];
    return out_file_target(path, target) == 0
        && ((stat(target, &named) < 0 ? errno == ENOENT : !out_file_is_same(st, &named)) || is_mounted(target)
            || !out_file_can_add_beside(target));
}

static bool replaces(const char *path, const struct stat *st)
{
    return !is_stdout(path, st) && (!st || (S_ISREG(st->st_mode) && !is_pinned(path, st)));
}

bool out_file_replaces(const char *path)
{
    struct stat st;
    return replaces(path, stat(path, &st) == 0 ? &st : NULL);
}

/* The position of standard output if that is the end of a file. With O_APPEND others may write to the file, too. */
static off_t end_of_stdout(void)
{
    struct stat st;
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    off_t at = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    bool is_end = flags >= 0 && !(flags & O_APPEND) && fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode)
               && at == st.st_size;
    return is_end ? at : -1;
}

bool out_file_can_take_back(const char *path)
{
    struct stat st, *there = stat(path, &st) == 0 ? &st : NULL;
    return is_stdout(path, there) ? end_of_stdout() >= 0 : replaces(path, there);
}

int out_file_take_back(const struct out_file *out)
{
    if (out->begin < 0)
        return 0;
    return ftruncate(out->fd, out->begin) < 0 || lseek(out->fd, out->begin, SEEK_SET) < 0 ? -1 : 0;
}

static void open_target(struct out_file *out, const struct stat *st)
{
    if ((st && access(out->path, W_OK) < 0) || out_file_target(out->path, out->target) < 0)
        return;
    if (st && is_protected(out->target, st))
        errno = EPERM;                           /* the error that rename() would give at the end */
    else if (open_temp(out) == 0)
        fchmod(out->fd, 0600);                   /* for every umask: see out_file_name() */
}

int out_file_open(struct out_file *out, const char *path, struct latch *latch)
{
    struct stat st, *there = stat(path, &st) == 0 ? &st : NULL;
    bool possible = there || (errno == ENOENT && *path);
    *out = (struct out_file){.path = strcmp(path, "-") == 0 ? "standard output" : path, .fd = -1, .begin = -1};
    bool direct = there && !is_stdout(path, there) && !replaces(path, there);
    if (is_stdout(path, there)) {
        out->begin = end_of_stdout();
        out->fd = open_stdout();
    } else if (direct) {
        out->fd = open(out->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);   /* it keeps its content until out_file_begin() */
    } else if (possible) {
        open_target(out, there);
    }
    if (out->fd >= 0) {
        out->holds_old = direct && S_ISREG(st.st_mode);
        widen_pipe(out->fd);
        return 0;
    }
    latch_fail(latch, "cannot write %s: %s. Nothing was read", out->path, strerror(errno));
    out_file_abandon(out);
    return -1;
}

int out_file_begin(struct out_file *out, struct latch *latch)
{
    if (!out->holds_old)
        return 0;
    if (ftruncate(out->fd, 0) < 0)
        return latch_fail(latch, "cannot write %s: %s. It is unchanged", out->path, strerror(errno));
    out->holds_old = false;
    out->holds_part = true;
    return 0;
}

static const char *name_by_fd(struct out_file *out)
{
    snprintf(out->by_fd, sizeof out->by_fd, "/proc/self/fd/%d", out->fd);
    return out->by_fd;
}

/* Gives the unnamed file a temporary name: link() cannot replace a file, rename() can. It neither follows nor changes
 * an existing file of that name, so the name need not be hard to guess. */
static int name_temp(struct out_file *out)
{
    enum { TRIES = 100 };
    latch_catch_signals();  /* they may arrive in any thread, so blocking them in one is not enough */
    for (int i = 0; i < TRIES; i++) {
        char ending[40];
        snprintf(ending, sizeof ending, "%ld-%d", (long)getpid(), i);
        if (name_beside(out, ending) < 0)
            return -1;
        if (linkat(AT_FDCWD, name_by_fd(out), AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) == 0) {
            add_named(out);
            return 0;
        }
        out->temp[0] = 0;                        /* not ours */
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

const char *out_file_name(struct out_file *out)
{
    return out->temp[0] ? out->temp : name_by_fd(out);
}

int out_file_write(int fd, const char *path, const void *bytes, size_t n, struct latch *latch)
{
    for (size_t done = 0; done < n;) {
        ssize_t wrote = write(fd, (const char *)bytes + done, n - done);
        if (wrote < 0 && errno == EINTR && !latch_tripped(latch))
            continue;
        if (wrote < 0)
            return latch_fail(latch, "writing %s failed: %s", path, strerror(errno));
        done += (size_t)wrote;
    }
    return 0;
}

int out_file_write_at(int fd, const char *path, struct iovec *iov, int n, off_t at, struct latch *latch)
{
    while (n > 0 && !latch_tripped(latch)) {
        ssize_t done = at < 0 ? writev(fd, iov, n) : pwritev(fd, iov, n, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return latch_fail(latch, "writing %s failed: %s", path, strerror(errno));
        at += at < 0 ? 0 : done;
        for (; n > 0 && (size_t)done >= iov->iov_len; iov++, n--)
            done -= (ssize_t)iov->iov_len;
        if (n > 0) {
            iov->iov_base = (char *)iov->iov_base + done;
            iov->iov_len -= (size_t)done;
        }
    }
    return n > 0 ? -1 : 0;
}

/* Sets owner, group and mode to those of `like`, as far as we may. If we may not set the group, our group gets the
 * rights of others. */
static void set_mode_like(int fd, const struct stat *like)
{
    mode_t mode = like->st_mode & 07777;
    if (fchown(fd, like->st_uid, like->st_gid) < 0) {
        mode &= 0777;
        if (fchown(fd, (uid_t)-1, like->st_gid) < 0)
            mode = (mode & 0707) | (mode & 07) << 3;
    }
    fchmod(fd, mode);
}

static int set_mode(int fd, const char *target)
{
    struct stat st;
    if (stat(target, &st) == 0) {
        set_mode_like(fd, &st);
        return 0;
    }
    if (errno != ENOENT)
        return -1;
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    return 0;
}

static int failed(const struct out_file *out, struct latch *latch)
{
    return latch_fail(latch, "finishing %s failed: %s. The old file, if there was one, is unchanged",
                      out->path, strerror(errno));
}

int out_file_finish(struct out_file *out, struct latch *latch)
{
    if (out->fd < 0)
        return 0;
    if (out->target[0] && (set_mode(out->fd, out->target) < 0 || (!out->temp[0] && name_temp(out) < 0)))
        return failed(out, latch);
    int fd = out->fd;
    out->fd = -1;
    /* Quotas and network file systems report failed writes only here. */
    return close(fd) < 0 ? failed(out, latch) : 0;
}

int out_file_commit(struct out_file *out, struct latch *latch)
{
    if (out->temp[0] && rename(out->temp, out->target) < 0)
        return failed(out, latch);
    forget_named(out);
    return 0;
}

void out_file_abandon(struct out_file *out)
{
    if (out->fd >= 0 && out->holds_part && ftruncate(out->fd, 0) < 0)
        out->holds_part = false;                 /* nothing else can be done */
    if (out->fd >= 0)
        close(out->fd);
    if (out->temp[0])
        unlink(out->temp);
    change_named(out, NULL);
    *out = (struct out_file){.path = out->path, .fd = -1, .begin = -1};
}

void out_file_remove(const struct out_file *out)
{
    if (out->target[0] && !out->temp[0] && out->fd < 0)
        unlink(out->target);
}
