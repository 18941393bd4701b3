/* SPDX-License-Identifier: MIT */
/* Warns, before memory runs out, if the records will not fit into the machine's memory although -m and -@ allow them
 * to. Only the main thread calls these functions. */
#ifndef MEMORY_WATCH_H
#define MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct memory_watch {
    uint64_t there;              /* bytes of memory of the machine or its cgroup */
    uint64_t most;               /* bytes that records may use; the rest goes to disk */
    uint64_t next;               /* bytes in use when it is time for the next look */
};

/* surely: bytes of records that are certain to come. */
void memory_watch_start(struct memory_watch *watch, uint64_t there, uint64_t most, uint64_t surely);

/* Whether it is time for a look. taken: bytes that records use now. Call it about once a block. */
static inline bool memory_watch_due(const struct memory_watch *watch, uint64_t taken)
{
    return taken >= watch->next;
}

/* expected: bytes that all records would use; 0: unknown. Returns whether it has warned, which it does only once. */
bool memory_watch_look(struct memory_watch *watch, uint64_t taken, double expected);

#endif
