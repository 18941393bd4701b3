/* SPDX-License-Identifier: MIT */
#ifndef RECORD_CHECKSUM_H
#define RECORD_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

enum { RECORD_CHECKSUM_SEGMENT = 0xff00 };          /* bytes; what an output block holds of a long record */

/* Order-independent checksum of one record, modulo 2^64. The record is divided into segments of
 * RECORD_CHECKSUM_SEGMENT bytes; the checksum is the sum of byte_hash(segment), with the segment's number as seed.
 * An output block holds at most one segment, so each block can be summed on its own. */
uint64_t record_checksum(const uint8_t *record, size_t size);

#endif
