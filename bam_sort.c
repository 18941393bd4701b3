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
 * The steps of the main thread: deal_blocks(), take_block(), make_room(), next_range(), output_blocks_flush().
 *
 * Compressed BAM comes as blocks from a bgzf_source. Other records come as slices of a stream. The producer of that
 * stream is raw_records, for uncompressed BAM; sam_reader, which parses SAM; cram_reader, which decodes CRAM 3;
 * hts_reader, for the other formats of htslib; passed_records, which filters or changes records; or a producer that
 * runs before the sort. Records go to record_sink for every format of the output: output_block makes blocks of BAM and
 * SAM for a bgzf_sink, and hts_writer has htslib write CRAM and the rest.
 *
 * The main thread runs the loops. They hand work to tasks and take it back in order. task_team() holds the only `omp
 * parallel`. Everything else runs in tasks, in a thread that reads or writes a pipe, and in htslib's own threads. */
#include "base/engine.h"
#include "base/machine.h"
#include "base/clocks.h"
#include "merge/bam_merge.h"
#include "bam_sort.h"
#include "engine/driver.h"
#include "engine/engine_memory.h"
#include "engine/engine_opts.h"
#include "sort/arena_room.h"
#include "sort/merge_ring.h"
#include "sort/sorted.h"
#include "write/list_stream.h"
#include "write/written.h"

/* ---------------------------------------------------- reading and sorting */

static int take_block(struct sorted *s, bool wait);
static int take_blocks(struct sorted *s, bool wait);

/* Makes room for size bytes of records. Before the arena is changed, all blocks are taken back. */
static int make_room(struct sorted *s, size_t size)
{
    if (arena_room_hurry(s) < 0)
        return -1;
    if (bam_arena_room(s->arenas.filled) >= size)
        return 0;
    return take_blocks(s, true) < 0 ? -1 : arena_room_make(s, size);
}

/* Hands the block out. Making room takes earlier blocks back. If one of them has a record that only a stream can
 * change, the rest of the input becomes a stream. The block is then part of that stream, and is not handed out. */
static int deal_block(struct sorted *s, const struct input *in, size_t size)
{
    const void *producer = in->stream.producer;
    if ((block_reader_full(&s->reader) && take_block(s, true) < 0) || make_room(s, size) < 0)
        return -1;
    if (in->stream.producer == producer)
        block_reader_hand_out(&s->reader, size);
    arena_room_watch(s);
    progress_tick(s->progress);
    return 0;
}

/* A block is up to 64 KiB of records, compressed on its own. While there is one, the loop makes room for it, takes its
 * place in the arena, and hands it to an inflate task. The task also walks the records: it checks them, makes their
 * keys and adds up their checksum. It guesses where the first one begins; if that is wrong, take_block() walks them
 * again. A stream gives spans of its slices in place of blocks, and a task copies each. */
static int deal_blocks(struct sorted *s, const struct input *in)
{
    for (;;) {
        const void *producer = in->stream.producer;
        size_t size;
        int found = block_reader_peek(&s->reader, &size);
        if (found < 0 || (found > 0 && deal_block(s, in, size) < 0) || take_blocks(s, found == 0) < 0)
            return -1;
        if (found == 0 && in->stream.producer == producer)
            return 0;
    }
}

/* While there is an inflated block, takes it back, in file order. wait: it waits until no task has a block. */
static int take_blocks(struct sorted *s, bool wait)
{
    int taken;
    while ((taken = take_block(s, wait)) > 0)
        ;
    return taken;
}

/* Takes the oldest block back, and accepts what its task has found: keys, number of records, checksum. If a sublist is
 * due (2^20 keys of one arena, fewer near the end), closes it and gives it to a task that sorts it. wait: it waits
 * until the block is inflated. 1: done; 0: there is no block; -1: stop. */
static int take_block(struct sorted *s, bool wait)
{
    int taken = block_reader_take(&s->reader, wait);
    uint32_t behind = block_reader_behind(&s->reader);
    return taken > 0 && sort_tasks_close_sublist(&s->sorts, behind, arena_room_to_come(s)) < 0 ? -1 : taken;
}

static int read_input(struct sorted *s, size_t number)
{
    struct input *in = &s->in.each[number];
    if (input_begin(in) < 0 || block_reader_begin(&s->reader, in) < 0)
        return -1;
    struct sort_rule *learns = s->turn == SORT_ONLY ? s->rule : NULL;
    if (make_room(s, in->header.rest_size) < 0 || block_reader_start(&s->reader, learns) < 0)
        return -1;
    enum stage before = clocks_enter(s->engine->clocks, STAGE_DEAL);
    int more;
    do
        more = deal_blocks(s, in) < 0 ? -1 : block_reader_end(&s->reader);
    while (more > 0);
    clocks_leave(s->engine->clocks, before, 0);
    if (more < 0)
        return -1;
    if (number + 1 < s->in.n)                    /* the last one is closed by a task of sorted_finish() */
        input_end(in);
    return 0;
}

int bam_sort_read_some(struct sorted *s, size_t from, size_t to)
{
    if (from == 0) {
        clocks_phase(s->engine->clocks, PHASE_READ);
        arena_room_begin(s);
    }
    for (size_t i = from; i < to; i++)
        if (read_input(s, i) < 0)
            return -1;
    if (sort_tasks_close_rest(&s->sorts) < 0)
        return -1;
    return to < s->in.n ? 0 : arena_room_end_run(s) < 0 || sort_tasks_finish(&s->sorts) < 0 ? -1 : 0;
}

int bam_sort_read(struct sorted *s)
{
    return bam_sort_read_some(s, 0, s->in.n);
}

/* ---------------------------------------------------- merging and writing */

/* A range is the keys from one value to another, which a task merged from all sublists and runs. written_put() passes
 * its list to the sink. The list only points at records; the deflate task of each block copies them together. A task
 * that has finished a block also writes it, and those after it that are finished, unless enough threads are writing
 * (base/bgzf_ticket.h). */
static int next_range(void *sorted, struct record_list *list)
{
    return merge_ring_next(((struct sorted *)sorted)->merge, list);
}

/* Gives the tally of what was read: written_finish() compares it with that of what the sink wrote. */
static int tally_of_read(void *sorted, struct tally *given)
{
    const struct sorted *s = sorted;
    *given = sorted_tally(s);
    return 0;
}

static void read_merge_and_write(void *sorted)
{
    struct sorted *s = sorted;
    struct list_stream stream = {next_range, tally_of_read, s};
    if (bam_sort_read(s) < 0)
        return;
    clocks_phase(s->engine->clocks, PHASE_WRITE);
    if (sorted_put_header(s, s->to) == 0 && sorted_merge(s) == 0)
        written_all(s->to, &stream);
}

/* ------------------------------------------------- from beginning to end */

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
    int status, n_threads = 1;
    machine_share_heaps();
    bool opened = command_report_open(&d.report, &opts->report, &latch) == 0;
    if (opened && opts->out.copies && (status = bam_merge_for_sort(opts, &d)) >= 0)
        return status;
    if (opened && open_sort(&s, opts, &d) == 0)
        n_threads = driver_run(&d, opts, &s.in, read_merge_and_write, &s);
    uint64_t records = sorted_tally(&s).n;
    sorted_finish(&s, n_threads, &d);            /* names the output; a second team frees the memory */
    return driver_end(&d, records);              /* the finish is in the report */
}
