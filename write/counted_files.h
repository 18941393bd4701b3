/* SPDX-License-Identifier: MIT */
/* Further files of counters, besides their texts; their number is known only after counting. They get their names
 * together, when all are complete. */
#ifndef COUNTED_FILES_H
#define COUNTED_FILES_H

#include <stddef.h>

struct counted_file;
struct counts;
struct latch;

/* A zero-initialised struct is empty. */
struct counted_files {
    struct counted_file *last;   /* list; each file points to the one before it */
};

/* Writes and finishes the files of counter number i. -1: failed, and the error is recorded in the latch. */
int counted_files_write(struct counted_files *files, struct counts *counts, size_t i, struct latch *latch);

/* Puts all files in place, or none. The caller holds signals back (latch_hide_signals()). -1: failed, and the error is
 * recorded in the latch. */
int counted_files_commit(struct counted_files *files, struct latch *latch);

/* Removes the files after counted_files_commit(), for a caller that could not put its own output in place. */
void counted_files_take_back(const struct counted_files *files);

/* Removes the files that are not in place. May be called twice. */
void counted_files_abandon(struct counted_files *files);

/* Does the same as counted_files_abandon(), and frees all memory. */
void counted_files_close(struct counted_files *files);

#endif
