/* SPDX-License-Identifier: MIT */
/* The part of the requested threads and memory that the machine allows a command to have. */
#ifndef LIMITS_H
#define LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that the program may take in all: the amount requested, `memory` and `overhead`, or what a limit on the address
 * space leaves of it. Call it once, because less is left later. */
uint64_t limits_memory(uint64_t memory, uint64_t overhead, int n_threads);

/* Bytes of address space that one more thread takes, if the address space is limited; else 0. */
size_t limits_thread_space(void);

/* Returns the number of threads for the team, at least one and at most n_threads (-@), so that `later` more threads can
 * still be started. Warns if it is less than n_threads. */
int limits_threads(int n_threads, int later);

#endif
