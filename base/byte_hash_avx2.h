/* SPDX-License-Identifier: MIT */
/* byte_hash() for x86-64 processors with AVX2, built since 2013. */
#ifndef BYTE_HASH_AVX2_H
#define BYTE_HASH_AVX2_H

#include <stddef.h>
#include <stdint.h>

uint64_t byte_hash_avx2(const uint8_t *bytes, size_t n, uint64_t seed);

#endif
