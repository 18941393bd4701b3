/* SPDX-License-Identifier: MIT */
/* The complete program, in this process: from a file in memory to another one. */
#ifndef FUZZ_PROGRAM_H
#define FUZZ_PROGRAM_H

#include <stdint.h>
#include <stddef.h>

/* The results of a run. */
struct made {
    int status;                  /* exit status */
    uint8_t *data;               /* output; the caller frees it */
    size_t size;
};

/* Runs `samtools sort` with these words, of which the last is NULL, on this input. */
struct made program_run(const char *const words[], const uint8_t *in, size_t size);

#endif
