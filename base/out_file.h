/* SPDX-License-Identifier: MIT */
/* The output file. It is invisible, or has a temporary name, until it is complete. exit() removes temporary names. */
#ifndef OUT_FILE_H
#define OUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct iovec;
struct latch;
struct stat;

struct out_file {
    const char *path;            /* as the user gave it; "-" is standard output */
    int fd;                      /* -1: not open */
    char target[PATH_MAX];  /* the file to be replaced, symbolic links resolved; "": the output is written directly */
    char temp[PATH_MAX];         /* the temporary name beside the target while the file has one; otherwise "" */
    off_t begin;  /* if standard output is at the end of a file: its position when it was opened; otherwise -1 */
    bool holds_old;              /* a file that is written directly and not emptied yet */
    bool holds_part;             /* a file that was emptied: if the command fails, it must not look complete */
    char by_fd[32];              /* see out_file_name() */
};

/* Writes the directory of a path to dir. Returns dir. */
const char *out_file_directory(const char *path, char dir[PATH_MAX]);

/* Returns whether both are the same file, perhaps with different names. */
bool out_file_is_same(const struct stat *st, const struct stat *other);

/* Returns whether both paths are the same name in the same directory, which must exist. The files need not exist. */
bool out_file_is_same_place(const char *path, const char *other);

/* Writes the path of the file that a write to `path` would change to target: links are resolved, even if the last one
 * points to a file that does not exist. Returns 0, or -1 with errno. */
int out_file_target(const char *path, char target[PATH_MAX]);

/* Returns whether the old file, if there is one, stays until out_file_commit(). False for pipes and devices; for
 * standard output by another name (/dev/stdout); for a file that no longer has a name (/dev/fd/3); and for a file whose
 * name cannot be given to another: a mount point, or a file in a directory that we may not write to. */
bool out_file_replaces(const char *path);

/* Returns whether the written bytes can be removed again: out_file_replaces() is true, or the path is standard output
 * at the end of a file. */
bool out_file_can_take_back(const char *path);

/* Returns whether a file may be made in the target directory of the path; also true if that directory does not
 * exist. */
bool out_file_can_add_beside(const char *path);

/* Checks that path can be written, and opens it. A file that is not replaced is opened itself. For a regular file, an
 * unnamed one is made in the target's directory (O_TMPFILE); if the file system has none, a file with a unique name,
 * and from then on signals are caught (latch_catch_signals()). -1: failed, and the error is recorded in the latch. It
 * also fails if the existing file belongs to another user in a directory like /tmp, who may have put it there to read
 * our bytes. */
int out_file_open(struct out_file *out, const char *path, struct latch *latch);

/* Empties a file that is written directly, which has kept its old content so far. Call it before the first byte is
 * written. From then on out_file_abandon() empties it. -1: failed, and the error is recorded in the latch. */
int out_file_begin(struct out_file *out, struct latch *latch);

/* Removes the bytes written to standard output. The file must be open by a path for which out_file_can_take_back() is
 * true, and nothing else may write to it. An invisible file is not changed. -1: failed, with errno. */
int out_file_take_back(const struct out_file *out);

/* Removes the temporary name of a file that is never committed, if it has one. Then nothing is left of the file even if
 * the process is killed. The file can still be opened again. */
void out_file_drop_name(struct out_file *out);

/* Removes all temporary names and prevents new ones: the process is about to end. Any thread may call it. */
void out_file_drop_all_names(void);

/* A name under which the open file can be opened again, valid until the next call. */
const char *out_file_name(struct out_file *out);

/* Writes n bytes to fd. path names the file in messages. -1: failed, and the error is recorded in the latch. */
int out_file_write(int fd, const char *path, const void *bytes, size_t n, struct latch *latch);

/* Writes all bytes of iov[n], and changes iov: to offset `at` of a regular file, or to the current position if that is
 * -1. -1: failed or interrupted, and the error is recorded in the latch. */
int out_file_write_at(int fd, const char *path, struct iovec *iov, int n, off_t at, struct latch *latch);

/* Closes the complete file and gives it the mode and, if allowed, the owner of the file that it will replace: nearly
 * every step of the replacement that can fail. Signals are caught from then on. This function and the next have no
 * effect on a file that is not open. -1: failed, and the error is recorded in the latch. */
int out_file_finish(struct out_file *out, struct latch *latch);

/* Renames it over the target, after out_file_finish(). out_file_abandon() must still be called. -1: failed, and the
 * error is recorded in the latch. */
int out_file_commit(struct out_file *out, struct latch *latch);

/* Closes the file, and removes it if it was not committed. May be called twice. */
void out_file_abandon(struct out_file *out);

/* Removes a file that was committed. Has no effect on any other. */
void out_file_remove(const struct out_file *out);

#endif
