/* SPDX-License-Identifier: MIT */
/* Threads for a file that htslib reads or writes. */
#ifndef HTS_THREADS_H
#define HTS_THREADS_H

#include <htslib/hts.h>

/* Gives the file as many threads as can be had, `wanted` at most; 1: none. Not by hts_set_threads(),
 * which crashes when a thread cannot be made. The caller has widened its mask (affinity.h), which these
 * threads inherit. -1: no memory. The pool, zero before, is to be ended
 * after the file is closed, also after an error. */
int hts_threads_start(htsThreadPool *pool, htsFile *file, int wanted);
void hts_threads_end(htsThreadPool *pool);

#endif
