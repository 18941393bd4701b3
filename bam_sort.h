/* SPDX-License-Identifier: MIT */
/* The driver of a sort, and its first half. */
#ifndef BAM_SORT_H
#define BAM_SORT_H

#include <stddef.h>
#include <stdint.h>

struct engine_opts;
struct sorted;

/* Sorts opts->in into opts->out. Returns the exit status. After a failure, one message is on stderr. Does not return if
 * a signal ended the work. */
int bam_sort(const struct engine_opts *opts);

/* ---- its first half, for producers that begin with a sort. Call it on the main thread of a team. ---- */

/* Reads all inputs. Afterwards all records are in sorted sublists: of both arenas, or of one arena if there are runs.
 * -1: stop. */
int bam_sort_read(struct sorted *sorted);

/* Does the same in steps: reads the inputs from..to - 1, which follow those of the last call. Afterwards no sublist has
 * records of both these inputs and later ones, and when the last input is read, all sublists are sorted. This is the
 * second seam between mpi/ and the engine, a stop after the runs: the caller finds the sublists in sorted->arenas, and
 * may take them from there, or merge them together with the runs (sorted.h). -1: stop. */
int bam_sort_read_some(struct sorted *sorted, size_t from, size_t to);

#endif
