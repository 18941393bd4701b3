/* SPDX-License-Identifier: MIT */
#include "base/machine.h"
#include "base/memory_shares.h"
#include "base/message.h"
#include "engine/limits.h"
#include "engine/engine_opts.h"

static const uint64_t THREAD_SPACE = (uint64_t)9 << 20;     /* address space for a thread's stack */
static const uint64_t SPACE_OVERHEAD = (uint64_t)128 << 20;    /* the plan's 64 MiB, and address space that is never
                                                                * touched */

uint64_t limits_memory(const struct engine_opts *opts)
{
    uint64_t space = machine_address_space();
    uint64_t overhead = (uint64_t)opts->n_threads * THREAD_SPACE + SPACE_OVERHEAD;
    uint64_t left = (space > overhead ? space - overhead : 0) + MEMORY_OVERHEAD;
    uint64_t more = opts->memory_overhead, all = opts->memory < UINT64_MAX - more ? opts->memory + more : UINT64_MAX;
    return all < left ? all : left;
}

size_t limits_thread_space(void)
{
    return machine_address_space() < UINT64_MAX ? THREAD_SPACE : 0;
}

int limits_threads(const struct engine_opts *opts, int later)
{
    const char *why;
    int n = machine_team(opts->n_threads, later, &why);
    if (n < opts->n_threads)
        message_warning("only %d of %d threads can be started: %s. Continuing with those", n, opts->n_threads, why);
    return n;
}
