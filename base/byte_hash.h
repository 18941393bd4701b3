/* SPDX-License-Identifier: MIT */
/* XXH3-64, by xxhash.h. Serial; the same value on every machine. */
#ifndef BYTE_HASH_H
#define BYTE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3_64bits_withSeed() of n bytes. With seed 0 that is XXH3_64bits(). */
uint64_t byte_hash(const uint8_t *bytes, size_t n, uint64_t seed);

/* The versions it chooses from; the second for x86-64 processors of 2013 and later only. */
uint64_t byte_hash_portable(const uint8_t *bytes, size_t n, uint64_t seed);
uint64_t byte_hash_avx2(const uint8_t *bytes, size_t n, uint64_t seed);

#endif
