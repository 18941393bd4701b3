/* SPDX-License-Identifier: MIT */
/* The files that a command line names. */
#ifndef PATHS_H
#define PATHS_H

struct engine_opts;

/* Checks that no pipe is read twice, and that each file other than the output (index, checksum, report, trace,
 * statistics, counts) is a separate file, so that nothing that is read or written is overwritten. The output may be an
 * input only if it is replaced (see out_file_replaces()), and never if it is the text of a counter. Warns of places
 * where no temporary file can be made. Returns 0, or -1 after a message on stderr. */
int paths_check(const struct engine_opts *opts);

#endif
