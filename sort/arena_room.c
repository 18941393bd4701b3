/* SPDX-License-Identifier: MIT */
#include "base/engine.h"
#include "base/machine.h"
#include "sort/arena_room.h"
#include "sort/sorted.h"

void arena_room_begin(struct sorted *s)
{
    memory_watch_start(&s->watch, machine_memory(), 2 * s->arenas.filled->size, block_reader_least(&s->reader));
    block_reader_set_arena(&s->reader, s->arenas.filled);
}

uint64_t arena_room_to_come(const struct sorted *s)
{
    uint64_t come = block_reader_to_come(&s->reader), fit = arenas_records_to_fit(&s->arenas);
    return s->spill.spilling && fit < come ? fit : come;
}

/* --------------------------------------------------------- an arena leaves */

static struct spill_outlook outlook(struct sorted *s)
{
    const struct bam_arena *a = s->arenas.filled;
    double records = block_reader_expected(&s->reader);
    return (struct spill_outlook){
        .records = records,
        .with_keys = arenas_with_keys(&s->arenas, records),
        .arena_size = a->size,
        .arena_free = a->top - a->bottom,
        .other_is_empty = bam_arena_empty(arenas_other(&s->arenas)),
    };
}

/* Begins to spill an arena. Tasks write the run when the sublists are sorted. */
static int begin_run(struct sorted *s, const struct bam_arena *arena)
{
    if (spill_begin(s->spill.spill, arena) < 0)
        return -1;
    sort_tasks_end_arena(&s->sorts, arena);
    return 0;
}

/* Begins to spill the older arena early, so that no thread waits for it when the younger one is full. */
static int hurry(struct sorted *s)
{
    const struct bam_arena *older = arenas_other(&s->arenas);
    if (s->spill.spilling || bam_arena_empty(older))
        return 0;
    struct spill_outlook now = outlook(s);
    int leaves = spill_policy_hurry(&s->spill, &now);
    return leaves > 0 ? begin_run(s, older) : leaves;
}

int arena_room_watch(struct sorted *s)
{
    uint64_t taken = arenas_taken(&s->arenas);
    if (memory_watch_due(&s->watch, taken))
        memory_watch_look(&s->watch, taken, arenas_with_keys(&s->arenas, block_reader_expected(&s->reader)));
    return hurry(s);
}

int arena_room_end_run(struct sorted *s)
{
    if (!s->spill.spilling)
        return 0;
    if (spill_policy_await(&s->spill) < 0)
        return -1;
    arenas_empty_other(&s->arenas, s->spill.sizes.arena_size);
    return 0;
}

/* ------------------------------------------------------- the arenas change */

/* Switches to the other arena, because the arena being filled is full. If not all records fit into both arenas, the
 * function first waits until the older arena is written as a run. Then it begins to write the full arena as a run. The
 * record counts move on to the arena that is filled next. */
static int change_arena(struct sorted *s)
{
    const struct bam_arena *older = arenas_other(&s->arenas);
    struct spill_outlook now = outlook(s);
    if (spill_policy_decide(&s->spill, &now) < 0)
        return -1;
    if (s->spill.spilling) {
        bool stays = !bam_arena_empty(older) && !spill_arena(s->spill.spill);   /* all records were expected to fit */
        if ((stays && begin_run(s, older) < 0) || arena_room_end_run(s) < 0 || begin_run(s, s->arenas.filled) < 0)
            return -1;
    }
    if (arenas_change(&s->arenas, s->engine->latch) < 0)
        return -1;
    block_reader_set_arena(&s->reader, s->arenas.filled);
    return 0;
}

/* Returns whether the room left in the arena is worth filling. The keys of a block are not known until it is inflated,
 * so it reserves room for as many as it could have. Each round would therefore deal out fewer blocks than the one
 * before, and would end with all threads waiting for the last block. Instead, an arena that is spilled stays up to 1/16
 * empty. */
static bool is_worth_filling(const struct sorted *s, size_t size)
{
    enum { LEAST_SHARE = 16 };
    size_t room = bam_arena_room(s->arenas.filled), least = s->arenas.filled->size / LEAST_SHARE;
    return room >= size && (room >= least || !s->spill.spilling);
}

/* Before the arena is changed, all records are in sublists. */
int arena_room_make(struct sorted *s, size_t size)
{
    if (is_worth_filling(s, size))
        return 0;
    if (sort_tasks_close_rest(&s->sorts) < 0 || (!bam_arena_empty(s->arenas.filled) && change_arena(s) < 0))
        return -1;
    return arenas_grow(&s->arenas, size, s->engine->latch);
}
