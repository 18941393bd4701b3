/* SPDX-License-Identifier: MIT */
/* Little-endian loads and stores at any alignment. BAM (SAMv1 section 4.2) and BGZF (section 4.1) are
 * little-endian; every field of several bytes goes through these functions. On little-endian machines
 * each compiles to one move. */
#ifndef ENDIAN_IO_H
#define ENDIAN_IO_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LE16(x) __builtin_bswap16(x)
#define LE32(x) __builtin_bswap32(x)
#define LE64(x) __builtin_bswap64(x)
#else
#define LE16(x) (x)
#define LE32(x) (x)
#define LE64(x) (x)
#endif

static inline uint16_t load_le16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return LE16(v);
}

static inline uint32_t load_le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return LE32(v);
}

static inline uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return LE64(v);
}

static inline void store_le16(uint8_t *p, uint16_t v)
{
    v = LE16(v);
    memcpy(p, &v, sizeof v);
}

static inline void store_le32(uint8_t *p, uint32_t v)
{
    v = LE32(v);
    memcpy(p, &v, sizeof v);
}

static inline void store_le64(uint8_t *p, uint64_t v)
{
    v = LE64(v);
    memcpy(p, &v, sizeof v);
}

#endif
