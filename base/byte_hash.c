/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "base/byte_hash.h"
#include "base/byte_hash_avx2.h"

uint64_t byte_hash(const uint8_t *bytes, size_t n, uint64_t seed)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return byte_hash_avx2(bytes, n, seed);
#endif
    return XXH3_64bits_withSeed(bytes, n, seed);
}
