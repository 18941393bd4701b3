/* SPDX-License-Identifier: MIT */
#include "bam/record_checksum.h"
#include "base/byte_hash.h"

uint64_t record_checksum(const uint8_t *record, size_t size)
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
