/* SPDX-License-Identifier: MIT */
/* Error messages about records of BAM that cannot be read. */
#ifndef RECORD_FAULT_H
#define RECORD_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_record.h"

struct latch;

struct record_place {
    const char *file;
    uint64_t number;             /* of the record, from 1 up */
    uint64_t byte;               /* where it begins in the uncompressed data */
    uint64_t block;              /* file offset of a block that it is in, or that is behind it */
};

/* Records in the latch that the record has this fault, not BAM_OK or BAM_CUT. If its tags lack what the order needs,
 * `record` is where it lies. Returns -1. */
int record_fault_report(struct latch *latch, const struct record_place *place, enum bam_fault fault,
                        const uint8_t *record);

/* Records in the latch that the input ends inside a record. Several processes guess where records begin, and a guess
 * may be wrong: then file_ends is false. Returns -1. */
int record_fault_report_cut(struct latch *latch, const struct record_place *place, bool file_ends);

#endif
