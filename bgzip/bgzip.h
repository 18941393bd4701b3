/* SPDX-License-Identifier: MIT */
/* `bgzip`: compresses files to BGZF and decompresses them, one after another. */
#ifndef BGZIP_H
#define BGZIP_H

struct bgzip_opts;

/* Runs with these options. Returns the exit status; errors are printed. If a file fails, the next one is still
 * processed, unless all go to the same output. */
int bgzip(const struct bgzip_opts *opts);

#endif
