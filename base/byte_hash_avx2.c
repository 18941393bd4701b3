/* SPDX-License-Identifier: MIT */
/* xxhash.h chooses its code by the target of the compiler. All headers that it includes are included before the target
 * is set, so that only its own functions are compiled for AVX2. */
#ifdef __x86_64__
#include <assert.h>
#include <immintrin.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_hash_avx2.h"

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

uint64_t byte_hash_avx2(const uint8_t *bytes, size_t n, uint64_t seed)
{
    uint64_t hash = XXH3_64bits_withSeed(bytes, n, seed);
    _mm256_zeroupper();          /* GCC adds none if a pragma sets the target. The next SSE instruction would wait */
    return hash;
}

#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
