/* SPDX-License-Identifier: MIT */
/* The output of a command's last producer: lists of records in the order of the output. One loop, written_put(), puts
 * them to the sink, whatever the command. */
#ifndef LIST_STREAM_H
#define LIST_STREAM_H

#include "base/tally.h"
#include "write/record_list.h"

struct list_stream {
    /* Gives the next records. The records stay unchanged until they have passed the sink; the list stays until the next
     * call. Helps with tasks until there are some. 1: there are; 0: all were given; -1: failed. Main thread of the
     * team. */
    int (*next)(void *producer, struct record_list *list);
    /* All were given, and put to the sink. Compares what the producer took with what it gave, and says what it gave.
     * -1: they differ, and the error is recorded in the latch. */
    int (*end)(void *producer, struct tally *given);
    void *producer;              /* of both */
};

#endif
