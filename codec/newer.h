/* SPDX-License-Identifier: MIT */
/* Inside encoder and decoder: hot loops are compiled twice, the second time for processors of 2013 and later. Both
 * versions make the same bytes; the second is faster. */
#ifndef NEWER_H
#define NEWER_H

#include <stdbool.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define INLINE __attribute__((always_inline)) static inline
#define NOINLINE __attribute__((noinline))

/* Unrolls a loop of a few rounds, which the compilers keep as a loop at -O2; that costs 7 %. */
#define PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define UNROLL(n) PRAGMA(unroll n)
#else
#define UNROLL(n) PRAGMA(GCC unroll n)
#endif

/* AVX2 is for the functions that ask for it; with it clang makes the other loops slower. */
#ifdef __x86_64__
#define NEWER __attribute__((target("bmi,bmi2,lzcnt")))
#define NEWER_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define NEWER_CLMUL __attribute__((target("avx2,vpclmulqdq")))
#else
#define NEWER
#define NEWER_AVX2
#endif

/* Returns whether the processor has all instructions that NEWER and NEWER_AVX2 name. */
static inline bool cpu_is_newer(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")
        && __builtin_cpu_supports("popcnt") && __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
#else
    return false;
#endif
}

#endif
