/* SPDX-License-Identifier: MIT */
/* The output file: invisible, or under a temporary name, until it is whole. exit() removes temporary names. */
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
    char target[PATH_MAX];       /* the file to be replaced, symbolic links resolved; "": written directly */
    char temp[PATH_MAX];         /* the name beside the target while the file has one; else "" */
    off_t begin;                 /* standard output that ends a file: its place there when it was opened; else -1 */
    bool holds_old;              /* a file that is written directly, and not yet emptied */
    bool holds_part;             /* one that is emptied: if the sort fails, it shall not look whole */
    char by_fd[32];              /* see out_file_name() */
};

/* Writes the directory of a path to dir. Returns dir. */
const char *out_file_directory(const char *path, char dir[PATH_MAX]);

/* Whether both are of one file, whatever its names. */
bool out_file_is_same(const struct stat *st, const struct stat *other);

/* Writes the file that writing to path would change to target: links are resolved, also when the last one points to
 * nothing yet. Returns 0, or -1 with errno. */
int out_file_target(const char *path, char target[PATH_MAX]);

/* Whether what is there, if anything is, stays until out_file_commit(). False for pipes and devices; for standard
 * output by another name (/dev/stdout); for a file that has no name any more (/dev/fd/3); and for a file whose name
 * cannot be given to another: a mount point, or a file in a directory that we may not write to. */
bool out_file_replaces(const char *path);

/* The same, or whether it is standard output into a file, behind what is there: what is written may be taken back. */
bool out_file_can_take_back(const char *path);

/* Whether a file may be made in the directory of what path leads to; true also if that is not there. */
bool out_file_can_add_beside(const char *path);

/* Checks that path can be written and opens it. What is not replaced is opened itself. For a regular file, an unnamed
 * one is made in the target's directory (O_TMPFILE); where the file system has none, a file with a unique name, and
 * from then on signals are caught (latch_catch_signals()). -1: failed, and the error is recorded in the latch. It also
 * fails if the file there is another user's in a directory like /tmp, who may have put it there to read our bytes. */
int out_file_open(struct out_file *out, const char *path, struct latch *latch);

/* Call it before the first byte is written: empties a file that is written directly, which has kept its old bytes so
 * far. From then on out_file_abandon() empties it. -1: failed, and the error is recorded in the latch. */
int out_file_begin(struct out_file *out, struct latch *latch);

/* Removes what was written to standard output again. The file is open by a path for which out_file_can_take_back()
 * holds, and nothing else may write to it. An invisible file stays as it is. -1: failed, with errno. */
int out_file_take_back(const struct out_file *out);

/* For a file that is never committed: takes its temporary name away, if it has one, so that nothing is left of it
 * whoever is killed. It can still be opened once more. */
void out_file_drop_name(struct out_file *out);

/* Takes away all temporary names there are and will be: the process is about to end. Any thread may call it. */
void out_file_drop_all_names(void);

/* A name under which the open file can be opened once more, valid until the next call. */
const char *out_file_name(struct out_file *out);

/* Writes n bytes to fd. path names the file in messages. -1: failed, and the error is recorded in the latch. */
int out_file_write(int fd, const char *path, const void *bytes, size_t n, struct latch *latch);

/* Writes all bytes of iov[n], which this changes: to the place `at` of a regular file, or where the file stands if that
 * is -1. -1: failed or interrupted by an error, and the error is recorded in the latch. */
int out_file_write_at(int fd, const char *path, struct iovec *iov, int n, off_t at, struct latch *latch);

/* Closes the file, which is whole by now, and gives it the mode and, if allowed, the owner of the file that it will
 * replace: nearly everything that can fail of putting it in place. Signals are caught from then on. This and the next
 * have no effect on a file that is not open. -1: failed, and the error is recorded in the latch. */
int out_file_finish(struct out_file *out, struct latch *latch);

/* After that: renames it over the target. Abandon it all the same. -1: failed, and the error is recorded in the
 * latch. */
int out_file_commit(struct out_file *out, struct latch *latch);

/* Closes the file; if it was not committed, it is gone. May be called twice. */
void out_file_abandon(struct out_file *out);

/* Removes a file that was committed. No other has an effect. */
void out_file_remove(const struct out_file *out);

#endif
