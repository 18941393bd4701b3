/* SPDX-License-Identifier: MIT */
/* The parts of BAM and SAM files that a rank reads: all inputs, one behind the other, are cut into ranges of bytes.
 * Of BAM each rank guesses where the first record of its range begins; the rank before it reads up to there, and so
 * finds out whether the guess was right. */
#ifndef INPUT_SPLIT_H
#define INPUT_SPLIT_H

#include "mpi/mpi_team.h"
#include "read/input_part.h"

struct sort_opts;
struct split_file;

struct input_split {
    struct input_part *parts;    /* of each input; owned, as all that they point to */
    sam_hdr_t *sam;              /* the header of all inputs together; owned, as the next */
    struct split_file *files;
    size_t n;                    /* how many were opened */
};

/* Every rank calls it. Checks first that all see the same regular files. -1: some rank failed, and that was told.
 * Either way, close it. */
int input_split_open(struct input_split *split, const struct mpi_team *team, const struct sort_opts *opts,
                     struct latch *latch);
void input_split_close(struct input_split *split);

#endif
