/* SPDX-License-Identifier: MIT */
/* The parts of the inputs that a rank reads: all inputs, one behind the other, are cut into ranges of bytes. What
 * cannot be cut is read by the rank in whose range it begins.
 * Of BAM each rank guesses where the first record of its range begins; the rank before it reads up to there, and so
 * finds out whether the guess was right. */
#ifndef INPUT_SPLIT_H
#define INPUT_SPLIT_H

#include "mpi/mpi_team.h"
#include "read/input_part.h"

struct inputs_options;
struct split_file;

struct input_split {
    struct input_part *parts;    /* of each input; owned, as all that they point to */
    sam_hdr_t *sam;              /* the header of all inputs together; owned, as the next */
    struct split_file *files;
    size_t n;                    /* how many were opened */
    bool has_whole;              /* some of them are read by one rank each */
};

/* Every rank calls it; how is as for inputs_open(). Checks first that all see the same files. -1: some rank
 * failed, and that was told. Either way, close it. */
int input_split_open(struct input_split *split, const struct mpi_team *team, const struct inputs_options *how);
void input_split_close(struct input_split *split);

#endif
