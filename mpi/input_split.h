/* SPDX-License-Identifier: MIT */
/* The parts of the inputs that a rank reads. All inputs, one after the other, are cut into ranges of bytes. An input
 * that cannot be cut is read by the rank in whose range it begins. In BAM, each rank guesses where the first record of
 * its range begins. The rank before it reads up to there, and so finds out whether the guess was right. */
#ifndef INPUT_SPLIT_H
#define INPUT_SPLIT_H

#include "mpi/mpi_team.h"
#include "read/input.h"

struct split_file;

struct input_split {
    struct inputs in;            /* what this rank reads of each input. A sort takes them over; the rest is owned, and
                                  * stays until that sort is closed */
    sam_hdr_t *sam;              /* the header of all inputs together */
    const uint8_t *sample;       /* the first records: all ranks learn the shape of names and tags from them */
    size_t sample_size;
    struct split_file *files;
    size_t n;                    /* the number of files that were opened */
    bool has_whole;              /* some inputs are read by one rank each */
};

/* Every rank calls it. how: as for inputs_open(). It checks first that all ranks see the same files. -1: some rank
 * failed, and the error was reported. Close it in both cases. */
int input_split_open(struct input_split *split, const struct mpi_team *team, const struct inputs_options *how);
void input_split_close(struct input_split *split);

#endif
