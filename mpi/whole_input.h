/* SPDX-License-Identifier: MIT */
/* An input that cannot be cut, such as CRAM or a pipe. One rank reads all of it as the ordinary program does, and the
 * exchange distributes its records. */
#ifndef WHOLE_INPUT_H
#define WHOLE_INPUT_H

#include "base/byte_window.h"
#include "mpi/mpi_team.h"
#include "read/input.h"

struct whole_input {
    struct byte_window nothing;  /* the ranks that do not read the input read this */
    uint8_t *sample;             /* its first records */
    size_t sample_size;
};

/* Every rank calls it, and opens `in`. reader: the rank that reads; at other ranks `in` has the header but no records.
 * -1: some rank failed, and the error was reported. Close both in any case. */
int whole_input_open(struct whole_input *whole, const struct mpi_team *team, int reader, const char *path,
                     const struct inputs_options *how, struct input *in);
void whole_input_close(struct whole_input *whole);

#endif
