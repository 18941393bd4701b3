/* SPDX-License-Identifier: MIT */
#ifndef PREFETCH_H
#define PREFETCH_H

/* Begins a function that only prefetches. GCC sees no effect in a call of one and drops it; what is inlined stays. */
#define PREFETCH_FN __attribute__((always_inline)) static inline

#endif
