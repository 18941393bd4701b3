/* SPDX-License-Identifier: MIT */
/* --checksum: one line that is the same for the same records in any order. */
#ifndef CHECKSUM_FILE_H
#define CHECKSUM_FILE_H

#include <stdint.h>

struct latch;
struct out_file;

/*   records=NUMBER xxh3sum=HEX
 *
 * NUMBER in decimals; HEX are the 16 hexadecimal digits of the sum of bam_checksum() over all
 * records. Writes the line to an open file and finishes it; to be committed or abandoned by the
 * caller. -1: told to the latch. */
int checksum_file_write(struct out_file *out, uint64_t n_records, uint64_t checksum, struct latch *latch);

#endif
