/* SPDX-License-Identifier: MIT */
/* Rank 0's output file, and how other ranks find and open it. */
#ifndef SHARED_FILE_H
#define SHARED_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Rank 0 fills it in and sends it to the other ranks. */
struct shared_file {
    int64_t process, fd;
    uint64_t device, inode;
    char name[PATH_MAX];         /* "": the file has no name */
};

/* Describes the open file fd, which has this name. If the file cannot be examined, no rank can open the result. */
struct shared_file shared_file_describe(int fd, const char *name);

/* Opens rank 0's file for writing: by its process and descriptor if this rank is on rank 0's host, else by its name.
 * Returns a descriptor, or -1 if the file cannot be opened here or if another file is found there. In another container
 * or on another host, process numbers and names may belong to other files. */
int shared_file_open(const struct shared_file *shared, bool same_host);

#endif
