/* SPDX-License-Identifier: MIT */
/* Finds the end of a field in a line of SAM. */
#ifndef SAM_SCAN_H
#define SAM_SCAN_H

#include <string.h>
#include "base/endian_io.h"

/* The high bits of bytes of v. The lowest bit set marks the first byte that is a tab or NUL; higher ones may be wrong.
 * 0: there is none. */
static inline uint64_t sam_scan_stops(uint64_t v)
{
    const uint64_t ones = 0x0101010101010101u, tab = v ^ '\t' * ones;
    return (((v - ones) & ~v) | ((tab - ones) & ~tab)) & 0x80 * ones;
}

/* The first tab or NUL of [p, end], where *end is a NUL. Most fields are short, so a call would cost more than the
 * search. */
static inline const char *sam_scan_field(const char *p, const char *end)
{
    enum { SHORT_FIELD = 32 };
    for (const char *stop = p + SHORT_FIELD; p < stop && end - p >= 8; p += 8) {
        uint64_t stops = sam_scan_stops(load_le64((const uint8_t *)p));
        if (stops)
            return p + __builtin_ctzll(stops) / 8;
    }
    const char *tab = strchr(p, '\t');
    return tab ? tab : p + strlen(p);
}

#endif
