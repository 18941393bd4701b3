/* SPDX-License-Identifier: MIT */
/* The part of a file that one process reads, if several processes share the file. This is the first of the three seams
 * between mpi/ and the engine, a source of blocks:
 *
 *   inputs_new()                        makes room for the inputs of a rank
 *   input_open() with a part            opens a range of a file, and complete records at both ends of it
 *   input_of_window()                   opens records that another rank sends, or none
 *   inputs_complete()                   adds up what all of them need
 *
 * The caller reads and merges the headers. A sort takes the inputs over (sorted_options.opened), and cannot tell them
 * from others. */
#ifndef INPUT_PART_H
#define INPUT_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

/* The records of the part are those in head, then those in the blocks or lines of the range, then those in tail. All
 * pointers stay the caller's. */
struct input_part {
    sam_hdr_t *sam;              /* the header of the complete input; it is copied */
    uint64_t begin, end;         /* range in the file: where the part's first block or line begins, and where its last
                                  * one ends */
    const uint8_t *head, *tail;
    size_t head_size, tail_size;
    bool is_last;                /* the file ends with this part: only then is a missing EOF block noticed */
};

#endif
