/* SPDX-License-Identifier: MIT */
/* XXH3-64, as xxhash.h computes it. Serial. The value is the same on every machine. */
#ifndef BYTE_HASH_H
#define BYTE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3_64bits_withSeed() of n bytes; with seed 0, XXH3_64bits(). */
uint64_t byte_hash(const uint8_t *bytes, size_t n, uint64_t seed);

#endif
