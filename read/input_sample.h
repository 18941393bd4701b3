/* SPDX-License-Identifier: MIT */
/* Records from several places of BAM files, for a forecast: the first block behind the header, the last, and some in
 * between. Blocks are found by their headers, the first record of each place by guessing. Serial; a few MB in all. */
#ifndef INPUT_SAMPLE_H
#define INPUT_SAMPLE_H

#include <stdbool.h>
#include "bam_arena.h"

struct latch;
struct inputs;

struct input_sample {
    struct bam_arena arena;      /* what was inflated; its records are found by the keys */
    struct bam_key *keys;        /* of the whole records found, by coordinate, in input order */
    size_t n;
    uint64_t bytes;              /* of these records */
    uint64_t largest;            /* bytes of the largest record that was seen, also of one that is not whole here */
    uint64_t inflated;           /* bytes of the blocks */
    double all_bytes;            /* of all records of all inputs, estimated; 0: no estimate */
    double all_records;
};

/* Takes the sample, if all inputs are BAM in files, and read whole. Else it stays empty, and so it does if no place
 * shows a record. The inputs are open, and are not read on. -1: failed, and the error is recorded in the latch;
 * close it anyway. */
int input_sample_take(struct input_sample *sample, const struct inputs *inputs, struct latch *latch);
void input_sample_close(struct input_sample *sample);

#endif
