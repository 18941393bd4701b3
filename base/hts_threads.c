/* SPDX-License-Identifier: MIT */
#include <htslib/thread_pool.h>
#include "base/hts_threads.h"
#include "base/machine.h"

int hts_threads_start(htsThreadPool *pool, htsFile *file, int wanted)
{
    enum { BESIDE = 2 };         /* for SAM, one hands out lines and, if it is compressed, another writes blocks */
    int n = wanted > 1 ? machine_threads(wanted + BESIDE) - BESIDE : 1;
    if (n <= 1)
        return 0;
    pool->pool = hts_tpool_init(n);
    return pool->pool && hts_set_thread_pool(file, pool) == 0 ? 0 : -1;
}

void hts_threads_end(htsThreadPool *pool)
{
    if (pool->pool)
        hts_tpool_destroy(pool->pool);
}
