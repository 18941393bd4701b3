/* SPDX-License-Identifier: MIT */
#include "bam/record_fault.h"
#include "base/latch.h"

typedef unsigned long long number;

int record_fault_report(struct latch *latch, const struct record_place *at, enum bam_fault fault, const uint8_t *record)
{
    if (fault >= BAM_NO_MC)                      /* the file itself is not broken */
        return latch_fail(latch, "%s: record %llu (%s): %s. Nothing was written", at->file, (number)at->number,
                          bam_record_name(bam_record_at(record)), bam_fault_text(fault));
    if (fault == BAM_HEADER)
        return latch_fail(latch, "%s: after %llu records (at byte %llu of the uncompressed data, in or before the "
                          "block at file offset %llu) %s. Nothing was written; join them by samtools cat, or by "
                          "samtools merge if they are sorted", at->file, (number)at->number - 1, (number)at->byte,
                          (number)at->block, bam_fault_text(fault));
    return latch_fail(latch, "%s: record %llu (byte %llu of the uncompressed data, in or before the block at file "
                      "offset %llu) is broken: %s. Nothing was written; make the file again, or keep only the "
                      "records before this one%s", at->file, (number)at->number, (number)at->byte, (number)at->block,
                      bam_fault_text(fault), latch_index_hint(latch));
}

int record_fault_report_cut(struct latch *latch, const struct record_place *at, bool file_ends)
{
    const char *what = latch->by_index ? "the part that its index names ends" : file_ends ? "the file ends"
                     : "this process's part ends";
    const char *why = latch->by_index ? "the index does not fit the file" : file_ends ? "it is truncated"
                    : "the file is damaged there, or the record contains bytes that look like records; sort it with "
                      "one process";
    return latch_fail(latch, "%s: %s inside record %llu, which begins at byte %llu of the uncompressed data, in or "
                      "before the block at file offset %llu: %s. Nothing was written%s", at->file, what,
                      (number)at->number, (number)at->byte, (number)at->block, why, latch_index_hint(latch));
}
