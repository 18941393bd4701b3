/* SPDX-License-Identifier: MIT */
/* Error messages about BAM records that cannot be read. */
#ifndef RECORD_FAULT_H
#define RECORD_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_record.h"

struct latch;

struct record_place {
    const char *file;
    uint64_t number;             /* number of the record, counted from 1 */
    uint64_t byte;               /* where it begins in the uncompressed data */
    uint64_t block;              /* file offset of a block that contains the record or comes after it */
};

/* Records in the latch that the record has this fault, which is not BAM_OK or BAM_CUT. `record`: its bytes, needed if
 * its tags lack what the order needs. Returns -1. */
int record_fault_report(struct latch *latch, const struct record_place *place, enum bam_fault fault,
                        const uint8_t *record);

/* Records in the latch that the input ends inside a record. file_ends is false if several processes guess where records
 * begin, since a guess may be wrong. Returns -1. */
int record_fault_report_cut(struct latch *latch, const struct record_place *place, bool file_ends);

#endif
