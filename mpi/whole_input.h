/* SPDX-License-Identifier: MIT */
/* An input that cannot be cut, as CRAM or a pipe: one rank reads all of it as the ordinary program does, and the
 * exchange deals its records out. */
#ifndef WHOLE_INPUT_H
#define WHOLE_INPUT_H

#include "base/byte_window.h"
#include "mpi/mpi_team.h"
#include "read/input.h"

struct input_part;

struct whole_input {
    struct input in;        /* until a sort takes it; only of the rank that reads */
    struct byte_window nothing;  /* what the others read */
    uint8_t *sample;
};

/* Every rank calls it, with the rank that reads. Fills in the part: its header belongs to the caller, all else is the
 * whole input's. -1: some rank failed, and that was told. Either way, close it. */
int whole_input_open(struct whole_input *whole, const struct mpi_team *team, int reader, const char *path,
                     const struct inputs_options *how, struct input_part *part);
void whole_input_close(struct whole_input *whole);

#endif
