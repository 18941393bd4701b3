/* SPDX-License-Identifier: MIT */
/* The bytes of an input as they are stored: in a file, in a pipe, or behind a URL, which htslib reads. */
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
    hFILE *hfile;                /* has read the first bytes, to find out the format; NULL: another owns it */
    int fd;                      /* beneath hfile; -1: none, it is a URL */
    off_t begin, end;            /* where a regular file stood when it was opened, and its size then; -1: it is none */
    bool is_part;                /* the file goes on behind `end` */
    const char *shut;            /* a regular file without a descriptor: the path by which each read opens it; the
                                  * caller's. NULL: it has one ... */
    dev_t device;                /* ... and which file it was */
    ino_t inode;
    const struct file_extents *extents;  /* what is read of it ahead; NULL: all. The input_format's */
    struct latch *latch;
};

/* How the bytes can be read. */
enum input_access {
    INPUT_ANYWHERE,              /* a regular file: input_file_read_at(), by any thread */
    INPUT_FROM_PIPE,             /* input_file_ready() and input_file_read(), by any one thread */
    INPUT_IN_TURN,               /* input_file_read(), by the thread that opened it, because htslib reads it */
};

/* path: "-" is standard input. -1: failed, and the error is recorded in the latch; close it anyway. */
int input_file_open(struct input_file *file, const char *path, struct latch *latch);
void input_file_close(struct input_file *file);

/* Gives its descriptor back. A regular file that has a path, which must stay, can be read on: input_file_read_at(). */
void input_file_shut(struct input_file *file, const char *path);

/* From now on the file is what lies from `begin` to `end` in it. It must be a regular one. */
void input_file_limit(struct input_file *file, uint64_t begin, uint64_t end);

enum input_access input_file_access(const struct input_file *file);

/* Tells the kernel that a local file will be read from its beginning to its end. */
void input_file_advise(const struct input_file *file);

/* As read(): up to n bytes, at least one except at the end. -1: failed, and the error is recorded in the latch. */
ssize_t input_file_read(struct input_file *file, void *buffer, size_t n);

/* Whether input_file_read() would return at once. Waits for that for `timeout` ms. Always true for URLs. */
bool input_file_ready(const struct input_file *file, int timeout);

/* The n bytes at an offset from where the file stood when it was opened. There are fewer only at its end, which is an
 * error if the file was longer then. -1: failed, and the error is recorded in the latch. */
ssize_t input_file_read_at(const struct input_file *file, void *buffer, size_t n, uint64_t offset);

/* Tells the kernel that those bytes will be read soon. */
void input_file_expect(const struct input_file *file, uint64_t offset, size_t n);

/* Records in the latch that reading failed, and errno as the reason. Returns -1. */
int input_file_failed(const struct input_file *file);

#endif
