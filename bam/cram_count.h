/* SPDX-License-Identifier: MIT */
/* How many records a CRAM file says it holds: each container's header tells (CRAMv3, sections 6 to 8; [2]: what
 * differs in version 2; itf8 and ltf8 are numbers of up to 5 and 9 bytes, section 2.3).
 *
 *   "CRAM" major minor id[20] | container of the header | container | ... | container of no records, the end
 *
 *   container = length, 4 bytes | reference, start, span, records: itf8 | counter: ltf8 [2: itf8] | bases: ltf8 |
 *               blocks: itf8 | n: itf8, and n landmarks: itf8 | CRC-32 of all this, 4 bytes [2: none] | length bytes
 *
 * What htslib writes of version 2 has too small a length in the container of the header, so its blocks are looked at:
 *
 *   block = method, 1 byte | type, 1 byte | id, compressed size, size: itf8 | data | CRC-32, 4 bytes [2: none]
 *
 * Serial. It is fed with the file's bytes, in pieces of any size, and needs none of those in containers. */
#ifndef CRAM_COUNT_H
#define CRAM_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cram_count {
    uint64_t records;            /* in the containers whose header has passed */
    uint64_t at;                 /* bytes that have passed */
    uint64_t rest;               /* of the container, still to come; UINT64_MAX: nothing is looked at any more */
    bool unknown;                /* for the version is not 2 or 3 (else: for this is no container) */
    uint8_t major;               /* version */
    uint8_t field;               /* of a header, that is under way: which ... */
    uint8_t size, left;          /* ... its bytes, and those still to come; left is 0 before the first ... */
    uint64_t value;              /* ... and what they say so far */
    uint32_t crc;                /* of the header so far */
    uint32_t length, n, blocks, landmarks, compressed;   /* from headers; blocks, landmarks: still to come */
    uint64_t first;              /* where the first container's blocks begin; 0: they are to come */
    uint64_t inside;             /* where the blocks of the container of records under way begin; 0: of none */
};

void cram_count_start(struct cram_count *count);

/* The next n bytes of the file. bytes may be NULL for some of the first cram_count_rest(). */
void cram_count_feed(struct cram_count *count, const uint8_t *bytes, uint64_t n);

/* How many bytes from here on hold nothing to count. */
uint64_t cram_count_rest(const struct cram_count *count);

/* Goes on to the end of the file's first `end` bytes, which begin at `begin` of fd; reads little more than the
 * headers. -1: errno. */
int cram_count_file(struct cram_count *count, int fd, off_t begin, uint64_t end);

/* After the file's last byte: whether it is whole and holds n records. True for versions other than 2 and 3, of
 * which nothing is claimed. */
bool cram_count_agrees(const struct cram_count *count, uint64_t n);

#endif
