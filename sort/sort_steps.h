/* SPDX-License-Identifier: MIT */
/* The driver of a sort, and its steps. bam_sort.c has both. */
#ifndef SORT_STEPS_H
#define SORT_STEPS_H

#include <stddef.h>
#include <stdint.h>

struct engine_opts;
struct sorted;

/* Sorts opts->in into opts->out. Returns the exit status. After a failure, one message is on stderr. Does not return if
 * a signal ended the work. */
int bam_sort(const struct engine_opts *opts);

/* ---- its steps, for callers that sort a part of an input (mpi/). Call them on the main thread of a team. ---- */

/* Reads all inputs. Afterwards all records are in sorted sublists: of both arenas, or of one arena if there are runs.
 * -1: stop. */
int bam_sort_read(struct sorted *sorted);

/* These functions do in steps what bam_sort_read() does at once: begin, read each input, end. Until the end, sublists
 * may be unsorted. */
void bam_sort_begin_reading(struct sorted *sorted);
int bam_sort_read_input(struct sorted *sorted, size_t number);
int bam_sort_end_reading(struct sorted *sorted);

#endif
