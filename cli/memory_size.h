/* SPDX-License-Identifier: MIT */
/* Sizes of memory as a user writes them: 768M, 1.5G, 80%. */
#ifndef MEMORY_SIZE_H
#define MEMORY_SIZE_H

#include <stdint.h>

/* Reads a size in bytes like samtools: a number, then one suffix (K, M, G, T: powers of 1024); the rest is ignored.
 * Decimals are allowed, too. -1: not a size; nothing is printed. */
int memory_size_parse(const char *text, uint64_t *size);

/* Reads the value of -m, which is at least 1M. -1 after a message on stderr. */
int memory_size_per_thread(const char *text, uint64_t *size);

/* Reads the memory that the program may use in total: a size, or with % a share of the memory of the machine or its
 * cgroup. name: the option or variable, for messages. -1 after a message on stderr. */
int memory_size_total(const char *name, const char *text, uint64_t *size);

#endif
