/* SPDX-License-Identifier: MIT */
/* The memory of the markdup producer, which works at the same time as the sorts of `sormadup`. */
#ifndef SORMADUP_MEMORY_H
#define SORMADUP_MEMORY_H

#include "base/memory_shares.h"

/* The least bytes for the markdup producer, which copies and marks the records of the sort ... */
size_t sormadup_memory_least(int n_threads);

/* ... and its bytes in this plan. Before the producer begins, orphans are searched for in this memory. */
size_t sormadup_memory_marking(const struct memory_rings *rings);

#endif
