/* SPDX-License-Identifier: MIT */
/* The compression header of a CRAM container (CRAMv3 section 8.4): a block of three maps. Each map states its number of
 * bytes and of entries. An itf8 is a number of up to 5 bytes (section 2.3).
 *
 *   method, 1 byte | type, 1 byte | id, compressed size, size: itf8 | preservation | data series | tags
 *
 *   map = bytes: itf8 | entries: itf8 | entries     preservation: name, 2 bytes | value, by its name
 *                                                   data series: name, 2 bytes | codec, length: itf8 | its parameters
 *                                                   tags: name, itf8 | codec, length: itf8 | its parameters
 *
 * When memory runs out, htslib 1.16 may leave out a number, and then the container cannot be read. Serial. */
#ifndef CRAM_MAPS_H
#define CRAM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checks the block at the start of a container, of which n bytes are given. False: it is a compression header whose
 * maps do not have their stated lengths. Also true if that cannot be known, because the block is compressed or does not
 * end within n bytes. */
bool cram_maps_whole(const uint8_t *bytes, size_t n);

#endif
