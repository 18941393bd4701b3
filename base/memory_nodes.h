/* SPDX-License-Identifier: MIT */
/* On which NUMA nodes memory lies, from a sample of its pages (Linux). Serial. */
#ifndef MEMORY_NODES_H
#define MEMORY_NODES_H

#include <stddef.h>
#include <stdint.h>

enum { MEMORY_NODES_MAX = 64 };  /* pages on nodes with higher numbers are not counted; the largest machines have 32 */

struct memory_area {
    uint8_t *base;
    size_t size;
};

/* Bytes on each node, estimated. All 0: not known. */
struct memory_nodes {
    uint64_t bytes[MEMORY_NODES_MAX];
};

/* Stores in nodes[i] the node of the page that holds address pages[i]; below 0: it is not in memory. -1: not known. */
typedef int memory_nodes_ask_fn(size_t n, void **pages, int *nodes);

/* Asks the kernel. It does not tell on systems other than Linux, and in some containers. */
memory_nodes_ask_fn memory_nodes_ask;

/* Looks at 4,099 pages at most, evenly spread over the areas, which takes some 1 ms. ask: memory_nodes_ask, except in
 * tests. */
struct memory_nodes memory_nodes_of(const struct memory_area *areas, int n_areas, memory_nodes_ask_fn *ask);

uint64_t memory_nodes_total(const struct memory_nodes *nodes);

/* The number of the node with most bytes. */
int memory_nodes_fullest(const struct memory_nodes *nodes);

/* Share of all bytes that this node has; 0..1. 0 where nothing is known. */
double memory_nodes_share(const struct memory_nodes *nodes, int node);

#endif
