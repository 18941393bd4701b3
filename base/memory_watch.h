/* SPDX-License-Identifier: MIT */
/* Warns if the records will not fit into the machine's memory although -m and -@ allow them: in time, and only if there
 * are so many. Only the main thread calls these functions. */
#ifndef MEMORY_WATCH_H
#define MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct memory_watch {
    uint64_t there;              /* bytes that the machine or its cgroup has */
    uint64_t most;               /* that records may take; what is beyond goes to disk */
    uint64_t next;               /* bytes taken when it is time to look again */
};

/* surely: bytes of records that will come for certain. */
void memory_watch_start(struct memory_watch *watch, uint64_t there, uint64_t most, uint64_t surely);

/* Whether it is time to look. taken: bytes that records take now. Call it about once a block. */
static inline bool memory_watch_due(const struct memory_watch *watch, uint64_t taken)
{
    return taken >= watch->next;
}

/* expected: bytes that all records would take, 0 if nobody knows. Returns whether it has warned, which it does once. */
bool memory_watch_look(struct memory_watch *watch, uint64_t taken, double expected);

#endif
