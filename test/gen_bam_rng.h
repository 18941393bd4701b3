/* SPDX-License-Identifier: MIT */
/* Random numbers for gen_bam: xoshiro256++, seeded by splitmix64; integers only. */
#ifndef GEN_BAM_RNG_H
#define GEN_BAM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng { uint64_t s[4]; };

static inline uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s, out = rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

static inline uint64_t splitmix64(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* One stream per (seed, stream): template i does not depend on those before it. */
static inline void rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed;
    x = splitmix64(&x) ^ stream;
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&x);
}

static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t) ((rng_next(r) >> 32) * n >> 32);
}

static inline int64_t rng_below64(struct rng *r, int64_t n)
{
    return n > 0 ? (int64_t) (rng_next(r) % (uint64_t) n) : 0;
}

static inline bool rng_chance(struct rng *r, uint32_t ppm)
{
    return rng_below(r, 1000000) < ppm;
}

/* Roughly exponential: -log2(u), read off the leading zeros and the 16 bits
 * after the leading one (a chord per octave; its mean is 1.5, hence 2/3). */
static inline int64_t rng_exp(struct rng *r, uint64_t mean)
{
    uint64_t u = rng_next(r) | 1;
    int lz = __builtin_clzll(u);
    uint64_t mant = lz < 47 ? u << lz << 1 >> 48 : 0;
    uint64_t v = (uint64_t) (lz + 1) * 65536 - mant;
    return (int64_t) (mean * v / 98304);
}

/* Bell-shaped and bounded: the sum of four uniform 16-bit numbers. */
static inline int rng_bell(struct rng *r, int mean, int sd)
{
    uint64_t u = rng_next(r);
    int64_t sum = (int64_t) ((u & 0xffff) + (u >> 16 & 0xffff)
                             + (u >> 32 & 0xffff) + (u >> 48));
    return mean + (int) ((sum - 131070) * sd / 37837);
}

#endif
