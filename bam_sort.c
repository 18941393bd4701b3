/* SPDX-License-Identifier: MIT */
/* The driver of `sort` and `collate`, which is a sort by a hash of the name (order/collate_key.h). With --copy-blocks
 * it first tries to merge files that are sorted already (merge/bam_merge.h).
 *
 *     reading and sorting                               full arenas    merging and writing
 *
 *   in.bam --> pieces --> blocks --> arena --> sublists --> (runs) ---> ranges --> blocks --> out.bam
 *              read       inflate    records   sort         what does   merge      deflate    named
 *              ahead      tasks      and keys  tasks        not fit     tasks      tasks      when complete
 *
 * The main thread runs these loops. They hand work to tasks and take it back in order. read_blocks() is the first half:
 * a block is up to 64 KiB of records, compressed on its own. It gets its place in the arena, and a task inflates it
 * there, checks its records, makes their keys and adds up their checksum. Records that do not come as blocks of BAM
 * (read/input.h) come as slices of a stream, and a task copies each span of a slice. written_all() is the second half:
 * it takes the merged ranges (sort/sorted.h) and puts them into the sink (write/record_sink.h), whose tasks copy the
 * records of a block together, count them (--stats) and deflate them. */
#include "base/engine.h"
#include "base/clocks.h"
#include "base/record_stream.h"
#include "merge/bam_merge.h"
#include "bam_sort.h"
#include "engine/driver.h"
#include "engine/engine_memory.h"
#include "engine/engine_opts.h"
#include "sort/arena_room.h"
#include "sort/sorted.h"
#include "write/written.h"

/* Takes the oldest block back, and accepts what its task has found. Closes a sublist if one is due (2^20 keys of one
 * arena, fewer near the end); a task sorts it. wait: it waits until the block is inflated. 1: done; 0: there is no
 * block; -1: stop. */
static int take_block(struct sorted *s, bool wait)
{
    int taken = block_reader_take(&s->reader, wait);
    uint32_t behind = block_reader_behind(&s->reader);
    return taken > 0 && sort_tasks_close_sublist(&s->sorts, behind, arena_room_to_come(s)) < 0 ? -1 : taken;
}

/* Takes back all blocks that are inflated, in file order. wait: it waits until no task has a block. -1: stop. */
static int take_blocks(struct sorted *s, bool wait)
{
    int taken;
    while ((taken = take_block(s, wait)) > 0)
        ;
    return taken;
}

/* Makes room for size bytes of records. A full arena becomes a run, which tasks write while the other one is filled. */
static int make_room(struct sorted *s, size_t size)
{
    if (bam_arena_room(s->arenas.filled) >= size)
        return 0;
    return take_blocks(s, true) < 0 ? -1 : arena_room_make(s, size);
}

static int read_blocks(struct sorted *s)
{
    size_t size;
    int found;
    while ((found = block_reader_peek(&s->reader, &size)) > 0) {
        if ((block_reader_full(&s->reader) && take_block(s, true) < 0) || make_room(s, size) < 0)
            return -1;
        block_reader_hand_out(&s->reader, size);
        progress_tick(s->progress);
        if (arena_room_watch(s) < 0 || take_blocks(s, false) < 0)
            return -1;
    }
    return found < 0 ? -1 : take_blocks(s, true);
}

static int read_input(struct sorted *s, struct input *in)
{
    struct sort_rule *learns = s->turn == SORT_ONLY ? s->rule : NULL;
    if (input_begin(in) < 0 || block_reader_begin(&s->reader, in) < 0 || make_room(s, in->header.rest_size) < 0
        || block_reader_start(&s->reader, learns) < 0)
        return -1;
    int more = 1;
    enum stage before = clocks_enter(s->engine->clocks, STAGE_DEAL);
    while (more > 0)
        more = read_blocks(s) < 0 ? -1 : block_reader_end(&s->reader);
    clocks_leave(s->engine->clocks, before, 0);
    return more;
}

int bam_sort_read_some(struct sorted *s, size_t from, size_t to)
{
    if (from == 0) {
        clocks_phase(s->engine->clocks, PHASE_READ);
        arena_room_begin(s);
    }
    for (size_t i = from; i < to; i++) {
        if (read_input(s, &s->in.each[i]) < 0)
            return -1;
        if (i + 1 < s->in.n)                     /* the last one is closed by a task of sorted_finish() */
            input_end(&s->in.each[i]);
    }
    if (sort_tasks_close_rest(&s->sorts) < 0)
        return -1;
    return to < s->in.n ? 0 : arena_room_end_run(s) < 0 || sort_tasks_finish(&s->sorts) < 0 ? -1 : 0;
}

int bam_sort_read(struct sorted *s)
{
    return bam_sort_read_some(s, 0, s->in.n);
}

static void work(void *sorted)
{
    struct sorted *s = sorted;
    struct list_stream stream = sorted_stream(s);
    if (bam_sort_read(s) < 0)
        return;
    clocks_phase(s->engine->clocks, PHASE_WRITE);
    if (sorted_put_header(s, s->to) == 0 && sorted_merge(s) == 0)
        written_all(s->to, &stream);
}

static int open_sort(struct sorted *s, const struct engine_opts *opts, struct driver *d)
{
    struct memory_rings rings = engine_memory_rings(opts, &opts->in, MEMORY_IN_TURN, true);
    struct sorted_options how = {.opts = opts, .in = &opts->in, .size_hint = opts->size_hint, .rings = &rings,
                                 .to = &d->out, .engine = &d->engine, .progress = &d->progress};
    return driver_open(d, opts, &rings) < 0 ? -1 : sorted_open(s, &how);
}

int bam_sort(const struct engine_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct sorted s = {.engine = &d.engine};
    char why_sorted[LATCH_MESSAGE];
    int n_threads = 1, status;
    if (driver_begin(&d, opts) == 0 && opts->out.copies && (status = bam_merge_for_sort(opts, &d, why_sorted)) >= 0)
        return status;
    if (!latch_tripped(&latch) && open_sort(&s, opts, &d) == 0)
        n_threads = driver_run(&d, opts, &s.in, work, &s);
    uint64_t records = sorted_tally(&s).n;
    sorted_finish(&s, n_threads, &d);            /* names the output; a second team frees the memory */
    return driver_end(&d, records);              /* the finish is in the report */
}
