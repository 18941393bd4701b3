/* SPDX-License-Identifier: MIT */
/* The output file: invisible, or under a temporary name, until it is whole. */
#ifndef OUT_FILE_H
#define OUT_FILE_H

#include <stdbool.h>
#include <sys/types.h>

struct latch;
struct stat;

struct out_file {
    const char *path;            /* as the user gave it; "-" is standard output */
    int fd;                      /* -1: not open */
    char *target;                /* the file to be replaced, symbolic links resolved; NULL: written directly */
    char *temp;                  /* name beside the target while one exists, else NULL */
    bool holds_old;              /* a file that is written directly, and not yet emptied */
    bool holds_part;             /* one that is emptied: if the sort fails, it shall not look whole */
    char by_fd[32];              /* see out_file_name() */
};

/* The directory of a path, to be freed; NULL: no memory. */
char *out_file_directory(const char *path);

/* Whether both are of one file, by whatever names. */
bool out_file_is_same(const struct stat *st, const struct stat *other);

/* The file that writing to path would change, to be freed: links resolved, also when the last
 * one points to nothing yet. NULL: errno says why. */
char *out_file_target(const char *path);

/* Whether what is there, if anything is, stays until out_file_commit(). Not of pipes and devices; nor of standard output
 * by another name (/dev/stdout), and what has no name any more (/dev/fd/3 of such a file); nor of a file whose name cannot
 * be given to another: a mount point, or one in a directory that we may not write to. */
bool out_file_replaces(const char *path);

/* Whether a file may be made in the directory of what path leads to; true also if that is not there. */
bool out_file_can_add_beside(const char *path);

/* Whether the file is in the list of mount points: for systems where it cannot be asked itself. */
bool out_file_is_listed_mount(const char *path);

/* Checks that path can be written and opens it: what is not replaced directly; a regular file as an
 * unnamed one in the target's directory (O_TMPFILE), or under a unique name where the file system has no
 * such thing; from then on signals are caught, as latch_catch_signals() has it.
 * -1: told to the latch, also if what is there is another user's in a directory like /tmp: it could not be
 * replaced, and he may have put it there to read what we write. */
int out_file_open(struct out_file *out, const char *path, struct latch *latch);

/* To be called before the first byte is written: empties a file that is written directly, which keeps its old bytes so
 * far. From then on out_file_abandon() empties it. -1: told to the latch. */
int out_file_begin(struct out_file *out, struct latch *latch);

/* A name under which the open file can be opened once more, valid until the next call. */
const char *out_file_name(struct out_file *out);

/* Writes n bytes where fd is, of the file named path in messages. -1: told to the latch. */
int out_file_write(int fd, const char *path, const void *bytes, size_t n, struct latch *latch);

/* Closes the file that is whole by now, with the mode and, if allowed, the owner of the file that it
 * will replace: nearly all that can fail of putting it in place. Signals are caught from then on. Of no
 * effect on one that is not open, as is the next. -1: told to the latch. */
int out_file_finish(struct out_file *out, struct latch *latch);

/* After that: renames it over the target. To be abandoned all the same. -1: told to the latch. */
int out_file_commit(struct out_file *out, struct latch *latch);

/* Releases everything; whatever was not committed is gone. Once more does no harm. */
void out_file_abandon(struct out_file *out);

#endif
