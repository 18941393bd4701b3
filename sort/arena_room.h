/* SPDX-License-Identifier: MIT */
/* The room for the records that a sort reads. Full arenas become runs: while tasks write the records of one arena as a
 * run, in a temporary file or in spare memory, the other arena is filled (sort/arenas.h has a picture). Only the main
 * thread calls these functions. */
#ifndef ARENA_ROOM_H
#define ARENA_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct sorted;

/* ---- in the order in which a sort calls them ---- */

/* Call it once, before the first block. */
void arena_room_begin(struct sorted *sorted);

/* Makes room for size bytes of records: in the filled arena, if the rest of it is worth filling, or in the other one.
 * Call it when no block is handed out. -1: stop. */
int arena_room_make(struct sorted *sorted, size_t size);

/* Call it for each block that is handed out. Warns, once, if the records will take more memory than the machine has.
 * Begins to spill the older arena before the younger one is full, if otherwise threads would wait. -1: stop. */
int arena_room_watch(struct sorted *sorted);

/* Returns how many records will still come before all threads have to wait for the last sublists: at the end of the
 * input or, if arenas are spilled, when this arena is full. */
uint64_t arena_room_to_come(const struct sorted *sorted);

/* Helps with tasks until the run that is being written is complete, if there is one. Then its arena is empty. -1:
 * stop. */
int arena_room_end_run(struct sorted *sorted);

#endif
