/* SPDX-License-Identifier: MIT */
/* Sizes of memory as a user writes them: 768M, 1.5G, 80%. */
#ifndef MEMORY_SIZE_H
#define MEMORY_SIZE_H

#include <stdint.h>

/* A size in bytes, as samtools reads it: a number, one suffix (K, M, G, T: powers of 1024), the rest is ignored; and
 * decimals. -1: it is none; nothing is printed. */
int memory_size_parse(const char *text, uint64_t *size);

/* Reads the value of -m, which is at least 1M. -1 after a message on stderr. */
int memory_size_per_thread(const char *text, uint64_t *size);

/* What the program may take in all: a size, or with % a share of what the machine or its cgroup has. name: the option
 * or variable that messages name. -1 after a message on stderr. */
int memory_size_total(const char *name, const char *text, uint64_t *size);

#endif
