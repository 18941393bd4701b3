/* SPDX-License-Identifier: MIT */
/* The output of a command's last producer: lists of records in output order. One loop, in written_all(), puts them
 * into the sink for all commands.
 *
 * A list is not a slice (read/record_stream.h). Its records stay in the producer's memory until they have passed the
 * sink, while the memory of a slice goes to the consumer, which keeps, copies or empties it. One interface
 * for both would copy each record once more, as sormadup/sorted_slices.h does, or have two kinds of slices, of which
 * each consumer takes only one. And next() may wait, because a greedy merge needs the next slice of a run in the middle
 * of its heap; the advance() of a stream never waits. */
#ifndef LIST_STREAM_H
#define LIST_STREAM_H

#include "base/tally.h"
#include "write/record_list.h"

struct list_stream {
    /* Returns the next records. The records stay unchanged until they have passed the sink; the list stays until the
     * next call. Runs tasks until there are some. 1: there are; 0: all were given; -1: failed. Main thread of the
     * team. */
    int (*next)(void *producer, struct record_list *list);
    /* Called after all records were given and put to the sink. Compares the producer's own steps, if it has any, and
     * returns the tally of the records that the sink must have. -1: they differ, and the error is recorded in the
     * latch. */
    int (*end)(void *producer, struct tally *given);
    void *producer;              /* argument of both functions */
};

#endif
