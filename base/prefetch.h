/* SPDX-License-Identifier: MIT */
#ifndef PREFETCH_H
#define PREFETCH_H

/* Begins a function that only prefetches. GCC sees no effect in calls of such functions and drops them; inlined code
 * stays. */
#define PREFETCH_FN __attribute__((always_inline)) static inline

#endif
