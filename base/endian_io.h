/* SPDX-License-Identifier: MIT */
/* Little-endian loads and stores at any alignment. BAM (SAMv1 section 4.2) and BGZF (section 4.1) are little-endian;
 * every field of several bytes goes through these functions. On little-endian machines each compiles to one move. */
#ifndef ENDIAN_IO_H
#define ENDIAN_IO_H

#include <stdint.h>
#include <string.h>

#define IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* load_le16() and store_le16(), and the same for 32 and 64 bits. */
#define LITTLE_ENDIAN_IO(bits)                                           \
    static inline uint##bits##_t load_le##bits(const uint8_t *p)         \
    {                                                                    \
        uint##bits##_t v;                                                \
        memcpy(&v, p, sizeof v);                                         \
        return IS_BIG_ENDIAN ? __builtin_bswap##bits(v) : v;             \
    }                                                                    \
    static inline void store_le##bits(uint8_t *p, uint##bits##_t v)      \
    {                                                                    \
        v = IS_BIG_ENDIAN ? __builtin_bswap##bits(v) : v;                \
        memcpy(p, &v, sizeof v);                                         \
    }
LITTLE_ENDIAN_IO(16)
LITTLE_ENDIAN_IO(32)
LITTLE_ENDIAN_IO(64)

#endif
