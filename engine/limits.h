/* SPDX-License-Identifier: MIT */
/* The part of the requested threads and memory that the machine allows a command to have. */
#ifndef LIMITS_H
#define LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct engine_opts;

/* Bytes that the program may take in all: the amount requested, or what a limit on the address space leaves of it. Call
 * it once, because less is left later. */
uint64_t limits_memory(const struct engine_opts *opts);

/* Bytes of address space that one more thread takes, if the address space is limited; else 0. */
size_t limits_thread_space(void);

/* Returns the number of threads for the sort's team, at least one, so that `later` more threads can still be started.
 * Warns if the number is less than -@. */
int limits_threads(const struct engine_opts *opts, int later);

#endif
