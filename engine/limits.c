/* SPDX-License-Identifier: MIT */
#include "base/machine.h"
#include "base/memory_shares.h"
#include "base/message.h"
#include "engine/limits.h"

static const uint64_t THREAD_SPACE = (uint64_t)9 << 20;     /* address space for a thread's stack */
static const uint64_t SPACE_OVERHEAD = (uint64_t)128 << 20;    /* the plan's 64 MiB, and address space that is never
                                                                * touched */

uint64_t limits_memory(uint64_t memory, uint64_t overhead, int n_threads)
{
    uint64_t space = machine_address_space(), taken = (uint64_t)n_threads * THREAD_SPACE + SPACE_OVERHEAD;
    uint64_t left = (space > taken ? space - taken : 0) + MEMORY_OVERHEAD;
    uint64_t all = memory < UINT64_MAX - overhead ? memory + overhead : UINT64_MAX;
    return all < left ? all : left;
}

size_t limits_thread_space(void)
{
    return machine_address_space() < UINT64_MAX ? THREAD_SPACE : 0;
}

int limits_threads(int n_threads, int later)
{
    const char *why;
    int n = machine_team(n_threads, later, &why);
    if (n < n_threads)
        message_warning("only %d of %d threads can be started: %s. Continuing with those", n, n_threads, why);
    return n;
}
