/* SPDX-License-Identifier: MIT */
#ifndef BLOCK_CRC_H
#define BLOCK_CRC_H

#include <stdint.h>

/* Returns the CRC-32 of RFC 1952 over a block's data. */
uint32_t block_crc(const uint8_t *data, uint32_t n);

/* Returns the same checksum, computed as on processors without VPCLMULQDQ: by libdeflate alone. */
uint32_t block_crc_portable(const uint8_t *data, uint32_t n);

#endif
