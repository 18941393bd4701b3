/* SPDX-License-Identifier: MIT */
/* Counts the records that a CRAM file claims to hold, from the headers of its containers (CRAMv3, sections 6 to 8).
 * "[2: ...]" gives the difference in version 2. itf8 and ltf8 are numbers of up to 5 and 9 bytes (section 2.3).
 *
 *   "CRAM" major minor id[20] | container of the header | container | ... | container of no records, the end
 *
 *   container = length, 4 bytes | reference, start, span, records: itf8 | counter: ltf8 [2: itf8] | bases: ltf8 |
 *               blocks: itf8 | n: itf8, and n landmarks: itf8 | CRC-32 of all this, 4 bytes [2: none] | length bytes
 *
 *   block = method, 1 byte | type, 1 byte | id, compressed size, size: itf8 | data | CRC-32, 4 bytes [2: none]
 *
 * A container is skipped by its stated length, unless it is one of two kinds that are read block by block. The first
 * kind is the header's container, because htslib writes too small a length for it in version 2. The second kind is a
 * container of records, in version 3 and if `checks` is set, because htslib does not compare the CRC-32 of uncompressed
 * compression headers and slice headers. They are compared here: the first block of the container, and one block for
 * each landmark. A slice header begins with the slice's reference, start, span and records: itf8.
 *
 * Serial. The caller feeds the bytes of the file in pieces of any size. The data of other blocks are not needed. */
#ifndef CRAM_COUNT_H
#define CRAM_COUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cram_count {
    uint64_t records;            /* records in the containers whose header has passed */
    uint64_t at;                 /* bytes of the file that have passed */
    /* bytes of the container still to come; UINT64_MAX: counting has stopped */
    uint64_t rest;
    /* counting has stopped because the version is not 2 or 3 (otherwise: because this is not a container) */
    bool unknown;
    bool checks;                 /* compare the CRC-32 of header blocks */
    uint64_t damaged;            /* offset of the first block whose CRC-32 is wrong; 0: none */
    uint8_t major;               /* version */
    uint8_t field;               /* the header field being read, */
    uint8_t size, left;          /* its size, and its bytes still to come (left is 0 before the first), */
    uint64_t value;              /* and the value of the bytes that have passed */
    uint32_t crc;                /* CRC-32 of the container's header or of the block so far */
    /* from headers; blocks, landmarks and compressed: the number (of bytes) still to come */
    uint32_t length, n, blocks, landmarks, compressed;
    uint32_t headers;            /* blocks of the container that are still to be checked */
    bool is_raw;                 /* the block is not compressed */
    bool uncounted;              /* a slice of the container does not state its number of records */
    /* latest container: whether its slices may have several references each, and the first bytes of its maps */
    bool is_mixed;
    uint32_t n_maps;
    uint8_t maps[1024];
    bool mixes;                  /* such a container needs its references to be decoded; only known if checks is set */
    uint8_t type;                /* type of the block, */
    uint64_t block, end;         /* the block's offset, and the end of the container */
    uint64_t first;              /* offset of the first container's blocks; 0: not reached yet */
    uint64_t header;             /* offset of the latest container header */
    /* latest container of records: its offset, the offset of its blocks (0: none yet), the records in its slices */
    uint64_t container, inside, in_slices;
};

/* Starts at the first byte of a file. checks: compare the CRC-32 of header blocks. */
void cram_count_start(struct cram_count *count, bool checks);

/* Takes the next n bytes of the file. bytes may be NULL if n is at most cram_count_rest(). */
void cram_count_feed(struct cram_count *count, const uint8_t *bytes, uint64_t n);

/* Number of the next bytes that need not be fed. */
uint64_t cram_count_rest(const struct cram_count *count);

/* Continues reading in the file, which begins at `begin`, until `end` bytes of it have passed. -1: errno has the
 * cause. */
int cram_count_file(struct cram_count *count, int fd, off_t begin, uint64_t end);

/* Continues reading to the end of the next container of records: from `container` to `end`, with in_slices records. If
 * the slices do not state their numbers, or the file ends before, in_slices is the container's number. checks must be
 * true. 1: done; 0: no further container; -1: errno has the cause. */
int cram_count_next(struct cram_count *count, int fd, off_t begin, uint64_t end);

/* Returns whether the file is complete and holds n records. Call it after the last byte of the file. Returns true for
 * versions other than 2 and 3, which are not counted. */
bool cram_count_agrees(const struct cram_count *count, uint64_t n);

#endif
