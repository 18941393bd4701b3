/* SPDX-License-Identifier: MIT */
/* Records on their way from producer to consumer, slice by slice, in order. The consumer takes a slice when it has
 * room for it. Main thread of the team. */
#ifndef RECORD_STREAM_H
#define RECORD_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/tally.h"

struct record_slice;

enum chunk_state {
    CHUNK_FAILED = -1,           /* the error is recorded in the latch */
    CHUNK_AWAITED,               /* the next slice is not made yet */
    CHUNK_MADE,                  /* it can be taken */
    CHUNK_NONE,                  /* all were taken */
};

struct record_stream {
    enum chunk_state (*advance)(void *producer); /* does the next step, and never waits */
    int (*take)(void *producer, struct record_slice *slice); /* exchanges the next slice for *slice, whose memory it
                                  * uses again. The slice may have no records. -1: the error is recorded in the latch */
    bool (*help)(void *producer); /* does a little of the work that is handed out. False: there is none */
    /* All were taken. Compares what the producer took with what it gave, and says what it gave. -1: they differ, and
     * the error is recorded in the latch. */
    int (*end)(void *producer, struct tally *given);
    void *producer;              /* of all these */
    uint32_t most_lent;          /* slices, as they are large, that the consumer may have at one time; 0: any */
};

#endif
