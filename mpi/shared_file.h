/* SPDX-License-Identifier: MIT */
/* Rank 0's output file, as other ranks find and open it. */
#ifndef SHARED_FILE_H
#define SHARED_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Rank 0 fills it in and sends it to the other ranks. */
struct shared_file {
    int64_t process, fd;
    uint64_t device, inode;
    char name[PATH_MAX];         /* "": it has none */
};

/* The open file fd, which has this name. If it cannot be examined, nobody can open what is returned. */
struct shared_file shared_file_describe(int fd, const char *name);

/* Opens rank 0's file for writing: by its process and descriptor if this rank is on rank 0's host, else by its name.
 * Returns a descriptor, or -1 if the file cannot be opened here, or another file is found there: numbers of processes
 * and names may belong to other files in another container or on another host. */
int shared_file_open(const struct shared_file *shared, bool same_host);

#endif
