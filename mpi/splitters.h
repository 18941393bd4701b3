/* SPDX-License-Identifier: MIT */
/* Where the whole order is cut, so that all ranks get equally many bytes. */
#ifndef SPLITTERS_H
#define SPLITTERS_H

#include "mpi/key_samples.h"
#include "mpi/splitter.h"

/* The splitters of all ranks but the last; each rank ends at its splitter. */
struct splitters {
    struct splitter *each;
    size_t n;
    uint8_t *records;
};

/* Every rank calls it. Then all ranks have the same splitters. -1: some rank lacks memory, and the error is in its
 * latch. Either way, free them. */
int splitters_make(struct splitters *splitters, const struct records_read *read);
void splitters_free(struct splitters *splitters);

#endif
