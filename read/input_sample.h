/* SPDX-License-Identifier: MIT */
/* Takes records from several places of BAM files, for a forecast: from the first block after the header, the last
 * block, and some blocks between them. Blocks are found by their headers, and the first record of each place by
 * guessing. Serial; reads a few MB in all. */
#ifndef INPUT_SAMPLE_H
#define INPUT_SAMPLE_H

#include <stdbool.h>
#include "bam_arena.h"

struct latch;
struct inputs;

struct input_sample {
    struct bam_arena arena;      /* the inflated bytes; the keys locate its records */
    struct bam_key *keys;        /* keys by coordinate of the complete records that were found, in input order */
    size_t n;
    uint64_t bytes;              /* bytes of these records */
    uint64_t largest;            /* bytes of the largest record that was seen; the record may be incomplete here */
    uint64_t inflated;           /* bytes of the blocks */
    double all_bytes;            /* estimated bytes of all records of all inputs; 0: no estimate */
    double all_records;
};

/* Takes the sample if all inputs are BAM in files and are read completely. Otherwise it stays empty. It also stays
 * empty if no record is found at any place. The inputs are open, and their positions do not change. -1: failed, and the
 * error is recorded in the latch; close it anyway. */
int input_sample_take(struct input_sample *sample, const struct inputs *inputs, struct latch *latch);
void input_sample_close(struct input_sample *sample);

#endif
