/* SPDX-License-Identifier: MIT */
/* The files that a command line names. */
#ifndef SORT_PATHS_H
#define SORT_PATHS_H

struct sort_opts;

/* Whether no pipe is read twice, and each file beside the output (index, checksum, report, trace) is a file of
 * its own: it would be written over what is read or written besides. So would what is read by an output that
 * is not replaced (see out_file_replaces()); else sorting a file in place is fine. -1: the message is on stderr. */
int sort_paths_check(const struct sort_opts *opts);

#endif
