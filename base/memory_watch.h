/* SPDX-License-Identifier: MIT */
/* Warns, before memory runs out, if the records will not fit into the machine's memory although -m and -@ allow them
 * to. Only the main thread calls these functions. */
#ifndef MEMORY_WATCH_H
#define MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct memory_watch {
    uint64_t there;              /* bytes of memory that the machine or its cgroup has */
    uint64_t most;               /* bytes that records may use; the rest goes to disk */
    uint64_t next;               /* memory_watch_look() is called again when this many bytes are in use */
};

/* surely: bytes of records that are certain to come. */
void memory_watch_start(struct memory_watch *watch, uint64_t there, uint64_t most, uint64_t surely);

/* Returns whether memory_watch_look() should be called now. taken: bytes that records use now. Call this function about
 * once per block. */
static inline bool memory_watch_due(const struct memory_watch *watch, uint64_t taken)
{
    return taken >= watch->next;
}

/* expected: bytes that all records would use; 0: unknown. Returns whether it has warned, which it does only once. */
bool memory_watch_look(struct memory_watch *watch, uint64_t taken, double expected);

#endif
