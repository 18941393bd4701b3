/* SPDX-License-Identifier: MIT */
/* The share of the requested threads and memory that the machine lets a sort have. */
#ifndef LIMITS_H
#define LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct engine_opts;

/* Bytes that the program may take in all: what was asked for, or what a limit on the address space leaves of it. Call
 * it once: later less is left. */
uint64_t limits_memory(const struct engine_opts *opts);

/* Bytes of addresses that one more thread takes, where they have a limit; else 0. */
size_t limits_thread_space(void);

/* Threads for the sort's team, at least one, so that `later` more can still be started. Warns if they are fewer than
 * -@. */
int limits_threads(const struct engine_opts *opts, int later);

#endif
