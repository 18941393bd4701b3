/* SPDX-License-Identifier: MIT */
/* The part of a BAM or SAM file that a rank reads. Of BAM each rank guesses where the first record of its range of bytes begins; the
 * rank before it reads up to there, and so finds out whether the guess was right. */
#ifndef INPUT_SPLIT_H
#define INPUT_SPLIT_H

#include "mpi/mpi_team.h"
#include "read/input_part.h"

struct input_split {
    struct input_part part;
    uint8_t *head, *tail, *sample;   /* what part points to; owned, with its header */
};

/* Every rank calls it. Checks first that all see the same regular file. -1: some rank failed, and that was told.
 * Either way, close it. */
int input_split_open(struct input_split *split, const struct mpi_team *team, const char *path, struct latch *latch);
void input_split_close(struct input_split *split);

#endif
