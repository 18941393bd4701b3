/* SPDX-License-Identifier: MIT */
/* The places at which the complete order is cut, so that all ranks get the same number of bytes. */
#ifndef SPLITTERS_H
#define SPLITTERS_H

#include "mpi/key_samples.h"
#include "mpi/splitter.h"

/* The splitters of all ranks except the last. Each rank ends at its splitter. */
struct splitters {
    struct splitter *each;
    size_t n;
    uint8_t *records;
};

/* Every rank calls it. Afterwards all ranks have the same splitters. -1: some rank is out of memory, and the error is
 * in its latch. Free the splitters in both cases. */
int splitters_make(struct splitters *splitters, const struct records_read *read);
void splitters_free(struct splitters *splitters);

#endif
