/* SPDX-License-Identifier: MIT */
/* Threads for a file that htslib reads or writes. */
#ifndef HTS_THREADS_H
#define HTS_THREADS_H

#include <htslib/hts.h>
#include <htslib/thread_pool.h>
#include "base/machine.h"

/* Gives the file as many threads as can be had, `wanted` at most; 1: none. Not by hts_set_threads(), which crashes when
 * a thread cannot be made. The caller has widened its mask (affinity.h), which these threads inherit. *pool is zero
 * before. End it after the file is closed, also after an error. -1: no memory. */
static inline int hts_threads_start(htsThreadPool *pool, htsFile *file, int wanted)
{
    enum { BESIDE = 2 };         /* for SAM, one hands out lines and, if it is compressed, another writes blocks */
    int n = wanted > 1 ? machine_threads(wanted + BESIDE) - BESIDE : 1;
    if (n <= 1)
        return 0;
    pool->pool = hts_tpool_init(n);
    return pool->pool && hts_set_thread_pool(file, pool) == 0 ? 0 : -1;
}

static inline void hts_threads_end(htsThreadPool *pool)
{
    if (pool->pool)
        hts_tpool_destroy(pool->pool);
}

#endif
