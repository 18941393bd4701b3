/* SPDX-License-Identifier: MIT */
/* --checksum: one line, which is the same for the same records in any order. */
#ifndef CHECKSUM_FILE_H
#define CHECKSUM_FILE_H

#include <stdint.h>

struct latch;
struct out_file;

/*   records=NUMBER xxh3sum=HEX
 *
 * NUMBER is decimal. HEX is the sum of record_checksum() over all records, modulo
 * 2^64, as 16 hexadecimal digits.
 *
 * Writes the line to an open file and finishes the file; the caller commits or abandons it.
 * -1: failed, and the error is recorded in the latch. */
int checksum_file_write(struct out_file *out, uint64_t n_records, uint64_t checksum, struct latch *latch);

#endif
