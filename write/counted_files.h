/* SPDX-License-Identifier: MIT */
/* The files that counters have beside their texts: as many as they found out while they counted. They appear together,
 * when all are whole. */
#ifndef COUNTED_FILES_H
#define COUNTED_FILES_H

#include <stddef.h>

struct counted_file;
struct counts;
struct latch;

/* A zero-initialised struct is empty. */
struct counted_files {
    struct counted_file *last;   /* each has the one before it */
};

/* Writes and finishes those of counter number i. -1: failed, and the error is recorded in the latch. */
int counted_files_write(struct counted_files *files, struct counts *counts, size_t i, struct latch *latch);

/* Puts all in place. -1: failed, and the error is recorded in the latch. */
int counted_files_commit(struct counted_files *files, struct latch *latch);

/* Removes those that are in place already: what they belong to cannot be put there. */
void counted_files_take_back(const struct counted_files *files);

/* Removes what is not in place. May be called twice. */
void counted_files_abandon(struct counted_files *files);

/* Does the same, and gives all memory back. */
void counted_files_close(struct counted_files *files);

#endif
