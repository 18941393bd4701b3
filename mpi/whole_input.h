/* SPDX-License-Identifier: MIT */
/* An input that cannot be cut, such as CRAM or a pipe. One rank reads all of it as the ordinary program does, and the
 * exchange distributes its records. */
#ifndef WHOLE_INPUT_H
#define WHOLE_INPUT_H

#include "base/byte_window.h"
#include "mpi/mpi_team.h"
#include "read/input.h"

struct input_part;

struct whole_input {
    struct input in;        /* only at the rank that reads, until a sort takes it */
    struct byte_window nothing;  /* the other ranks read this */
    uint8_t *sample;
};

/* Every rank calls it. reader: the rank that reads. Fills in the part: the caller owns the part's header, and the
 * whole_input owns everything else. -1: some rank failed, and the error was reported. Close it in both cases. */
int whole_input_open(struct whole_input *whole, const struct mpi_team *team, int reader, const char *path,
                     const struct inputs_options *how, struct input_part *part);
void whole_input_close(struct whole_input *whole);

#endif
