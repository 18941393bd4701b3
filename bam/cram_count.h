/* SPDX-License-Identifier: MIT */
/* Counts the records that a CRAM file claims to hold, from the headers of its containers (CRAMv3, sections
 * 6 to 8). "[2: ...]" says what differs in version 2. itf8 and ltf8 are numbers of up to 5 and 9 bytes
 * (section 2.3).
 *
 *   "CRAM" major minor id[20] | container of the header | container | ... | container of no records, the end
 *
 *   container = length, 4 bytes | reference, start, span, records: itf8 | counter: ltf8 [2: itf8] | bases: ltf8 |
 *               blocks: itf8 | n: itf8, and n landmarks: itf8 | CRC-32 of all this, 4 bytes [2: none] | length bytes
 *
 *   block = method, 1 byte | type, 1 byte | id, compressed size, size: itf8 | data | CRC-32, 4 bytes [2: none]
 *
 * The blocks of two kinds of containers are followed. Of the header's, because htslib writes too small a length for it
 * in version 2. Of records, in version 3 and if that is wanted, because htslib does not compare the CRC-32 of
 * compression headers and slice headers that are not compressed. They are compared here: the first block and one for
 * each landmark. A slice header begins with the slice's reference, start, span and records: itf8.
 *
 * Serial. Feed it the bytes of the file, in pieces of any size. It does not need the data of other blocks. */
#ifndef CRAM_COUNT_H
#define CRAM_COUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cram_count {
    uint64_t records;            /* in the containers whose header has passed */
    uint64_t at;                 /* bytes of the file that have passed */
    /* bytes of the container still to come; UINT64_MAX: gave up for good */
    uint64_t rest;
    /* gave up because the version is not 2 or 3 (else: this is no container) */
    bool unknown;
    bool checks;                 /* compares the CRC-32 of header blocks */
    uint64_t damaged;            /* offset of the first block whose CRC-32 is wrong; 0: none */
    uint8_t major;               /* version */
    uint8_t field;               /* the header field under way: which one, */
    uint8_t size, left;          /* its bytes and those of them still to come (left is 0 before the first), */
    uint64_t value;              /* and the value of those that have passed */
    uint32_t crc;                /* of the container's header or the block so far */
    /* from headers; blocks, landmarks and compressed: how many (bytes) are still to come */
    uint32_t length, n, blocks, landmarks, compressed;
    uint32_t headers;            /* blocks of the container that are still to be checked */
    bool is_raw;                 /* the block is not compressed */
    bool uncounted;              /* a slice of the container does not give its number of records */
    /* the latest container: whether its slices may have several references each, and the first bytes of its maps */
    bool is_mixed;
    uint32_t n_maps;
    uint8_t maps[1024];
    bool mixes;                  /* such a container needs its references to be decoded; known if checks */
    uint8_t type;                /* of the block, */
    uint64_t block, end;         /* its offset, and where the container ends */
    uint64_t first;              /* offset of the first container's blocks; 0: it is still to come */
    uint64_t header;             /* offset of the container whose header came last */
    /* the latest container of records: its offset, that of its blocks (0: none yet), and the records in its slices */
    uint64_t container, inside, in_slices;
};

/* Starts at the first byte of a file. checks: compare the CRC-32 of header blocks. */
void cram_count_start(struct cram_count *count, bool checks);

/* Takes the next n bytes of the file. bytes may be NULL if n is at most cram_count_rest(). */
void cram_count_feed(struct cram_count *count, const uint8_t *bytes, uint64_t n);

/* How many of the next bytes need not be looked at. */
uint64_t cram_count_rest(const struct cram_count *count);

/* Reads on in the file, of which `begin` is the first byte, until `end` bytes of it have passed. -1: errno says why. */
int cram_count_file(struct cram_count *count, int fd, off_t begin, uint64_t end);

/* Reads on likewise to the end of the next container of records: from `container` to `end`, with in_slices records. If
 * the slices do not tell, or the file ends before, in_slices is what the container says. checks must be true. 1: done;
 * 0: there is no further container; -1: errno says why. */
int cram_count_next(struct cram_count *count, int fd, off_t begin, uint64_t end);

/* Call after the last byte of the file. Whether the file is whole and holds n records. True for versions
 * other than 2 and 3, which are not counted. */
bool cram_count_agrees(const struct cram_count *count, uint64_t n);

#endif
