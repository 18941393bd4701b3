/* SPDX-License-Identifier: MIT */
/* `bgzip`: files compressed to BGZF and back, one after the other. */
#ifndef BGZIP_H
#define BGZIP_H

struct bgzip_opts;

/* Does what the options say. Returns the exit status; what failed is printed. A file that fails does not keep the next
 * one from its turn, unless all go to the same output. */
int bgzip(const struct bgzip_opts *opts);

#endif
