/* SPDX-License-Identifier: MIT */
/* BAM records of long reads, from a seed, for tests of the encoder. */
#ifndef LONG_READS_H
#define LONG_READS_H

#include "base/endian_io.h"
#include "record_kinds.h"
#include "unit.h"

/* One after another, of at least half of `bases` and at most `bases` bases, each of them `times` times; every second
 * one overlaps the one before. Qualities are 40 in runs, or of 45 levels without runs; then there is a tag of zeros and
 * ones, like the moves of Nanopore reads. Returns n bytes, the last record cut, to be freed. */
static uint8_t *make_long_reads(uint64_t *seed, size_t n, uint32_t bases, uint32_t times, bool runs)
{
    enum { GENOME = RECORD_GENOME };
    uint8_t *made = must_alloc(n + 4 * (size_t)bases + 1000), *genome = record_genome();
    size_t at = 0, size = 0;
    for (uint32_t read = 0, pos = 0; at < n; read++, at += size) {
        uint8_t *r = made + at;
        if (read % times > 0) {
            memcpy(r, r - size, size);
            continue;
        }
        uint32_t len = bases - 2 * unit_below(seed, bases / 4), moves = runs ? 0 : len / 2;
        pos = (pos + (read % 2 ? 2 * unit_below(seed, bases / 4) : unit_below(seed, GENOME / 2))) % (GENOME / 2);
        memset(r, 0, 36);
        store_le32(r + 8, pos);
        r[12] = (uint8_t)(1 + sprintf((char *)r + 36, "m84/%u/ccs", unit_below(seed, 99999999)));
        store_le32(r + 20, len);
        uint8_t *seq = r + 36 + r[12], *qual = seq + (len + 1) / 2, *tag = qual + len;
        for (uint32_t i = 0; i < len; i++)
            qual[i] = (uint8_t)(!runs ? 1 + unit_below(seed, 45)
                                : unit_below(seed, 20) ? 40 : 10 + unit_below(seed, 30));
        for (uint32_t i = 0; i < (len + 1) / 2; i++)
            seq[i] = (uint8_t)(genome[pos + 2 * i] << 4
                               | (unit_below(seed, 400) ? genome[pos + 2 * i + 1] : 1u << unit_below(seed, 4)));
        tag += sprintf((char *)tag, "NMC%cmvBc", 'x');
        store_le32(tag, moves);
        for (uint32_t i = 0; i < moves; i++)
            tag[4 + i] = unit_below(seed, 3) == 0;
        size = (size_t)(tag + 4 + moves - r);
        store_le32(r, (uint32_t)size - 4);
    }
    free(genome);
    return made;
}

#endif
