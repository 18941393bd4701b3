/* SPDX-License-Identifier: MIT */
/* The compression header of a CRAM container (CRAMv3 section 8.4): a block of three maps. Each map
 * says how many bytes and how many entries it has. An itf8 is a number of up to 5 bytes (section 2.3).
 *
 *   method, 1 byte | type, 1 byte | id, compressed size, size: itf8 | preservation | data series | tags
 *
 *   map = bytes: itf8 | entries: itf8 | entries     preservation: name, 2 bytes | value, by its name
 *                                                   data series: name, 2 bytes | codec, length: itf8 | its parameters
 *                                                   tags: name, itf8 | codec, length: itf8 | its parameters
 *
 * When memory runs out htslib 1.16 may leave out a number, and then the
 * container cannot be read. Serial. */
#ifndef CRAM_MAPS_H
#define CRAM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks at the block at the beginning of a container, of which n bytes are there. False: it is a
 * compression header whose maps are not as long as they say. True also if that cannot be known,
 * because the block is compressed or does not end within n bytes. */
bool cram_maps_whole(const uint8_t *bytes, size_t n);

#endif
