/* SPDX-License-Identifier: MIT */
/* The bytes of an input as they are stored: in a file, in a pipe, or at a URL, which htslib reads. */
#ifndef INPUT_FILE_H
#define INPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <htslib/hfile.h>

struct file_extents;
struct latch;

struct input_file {
    const char *path;            /* for messages; the caller's */
    hFILE *hfile;                /* has read the first bytes, to detect the format; NULL: another module owns it */
    int fd;                      /* the descriptor of hfile; -1: there is none, because it is a URL */
    off_t begin, end;            /* the position of a regular file when it was opened, and its size then; -1: it is not
                                  * a regular file */
    bool is_part;                /* the file continues after `end` */
    const char *shut;            /* for a regular file without a descriptor: the path by which each read opens it; the
                                  * caller's. NULL: it has a descriptor ... */
    dev_t device;                /* ... and the identity of the file */
    ino_t inode;
    const struct file_extents *extents;  /* the extents of it that are read ahead; NULL: the complete file. Owned by the
                                  * input_format */
    struct latch *latch;
};

/* The way in which the bytes can be read. */
enum input_access {
    INPUT_ANYWHERE,              /* a regular file: input_file_read_at(), by any thread */
    INPUT_FROM_PIPE,             /* input_file_ready() and input_file_read(), by one thread, which may be any */
    INPUT_IN_TURN,               /* input_file_read(), by the thread that opened it, because htslib reads it */
};

/* path: "-" is standard input. -1: failed, and the error is recorded in the latch; close it anyway. */
int input_file_open(struct input_file *file, const char *path, struct latch *latch);
void input_file_close(struct input_file *file);

/* Closes the descriptor of a regular file that has a path. Its path must stay valid, and input_file_read_at() can still
 * read the file. */
void input_file_shut(struct input_file *file, const char *path);

/* Limits the file to the bytes from `begin` to `end`. It must be a regular file. */
void input_file_limit(struct input_file *file, uint64_t begin, uint64_t end);

enum input_access input_file_access(const struct input_file *file);

/* Informs the kernel that a local file will be read from its beginning to its end. */
void input_file_advise(const struct input_file *file);

/* As read(): reads up to n bytes, and at least one except at the end. -1: failed, and the error is recorded in the
 * latch. */
ssize_t input_file_read(struct input_file *file, void *buffer, size_t n);

/* Returns whether input_file_read() would return at once. Waits up to `timeout` ms for that. Always true for URLs. */
bool input_file_ready(const struct input_file *file, int timeout);

/* Reads n bytes at an offset from the position that the file had when it was opened. It reads fewer bytes only at the
 * end of the file, which is an error if the file was longer when it was opened. -1: failed, and the error is recorded
 * in the latch. */
ssize_t input_file_read_at(const struct input_file *file, void *buffer, size_t n, uint64_t offset);

/* Informs the kernel that those bytes will be read soon. */
void input_file_expect(const struct input_file *file, uint64_t offset, size_t n);

/* Records in the latch that reading failed, with errno as the reason. Returns -1. */
int input_file_failed(const struct input_file *file);

#endif
