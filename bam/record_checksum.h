/* SPDX-License-Identifier: MIT */
#ifndef RECORD_CHECKSUM_H
#define RECORD_CHECKSUM_H

#include "base/byte_hash.h"

enum { RECORD_CHECKSUM_SEGMENT = 0xff00 };          /* bytes of a long record that one output block holds */

/* Order-independent checksum of one record, modulo 2^64. The record is divided into segments of RECORD_CHECKSUM_SEGMENT
 * bytes; the checksum is the sum of byte_hash(segment), with the segment's number as seed. An output block holds at
 * most one segment, so blocks can be summed separately. */
static inline uint64_t record_checksum(const uint8_t *record, size_t size)
{
    uint64_t sum = 0;
    for (uint64_t number = 0; size > 0; number++) {
        size_t n = size < RECORD_CHECKSUM_SEGMENT ? size : RECORD_CHECKSUM_SEGMENT;
        sum += byte_hash(record, n, number);
        record += n;
        size -= n;
    }
    return sum;
}

#endif
