/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam/bam_header.h"
#include "bam_arena.h"
#include "base/machine.h"
#include "bgzf_omp.h"
#include "engine/chunk_plan.h"
#include "engine/memory_plan.h"
#include "hts/cram_reader.h"
#include "hts/hts_file.h"
#include "read/block_reader.h"
#include "read/input.h"
#include "read/read_ahead.h"
#include "sort/merge_ring.h"
#include "sort/spill.h"
#include "write/record_sink.h"

/* The shares: each purpose gets this part of all memory. The arenas get the remaining memory. Each share has bounds.
 *
 *   of all       for                                least, most                     why
 *   1/384        reads of BAM                       PIECE_MIN, PIECE_MAX            disks want large reads
 *   1/32         slots of blocks being read         n + 4, SOURCE_SLOTS of them     see there
 *   1/20         blocks to be deflated              n + 4, SINK_SLOTS of them       a merge fills them in bursts
 *   1/40         pieces of output being written     see bgzf_sink_piece_size()      disks want large writes
 *   1/32         lists of ranges being merged       RANGE_RECORDS_MIN, _MAX each    see there
 *   1/8          chunks of SAM text and records     2, 2 n + 2 of them; and slices  see chunk_plan_text()
 *   1/3          htslib, for all inputs             as many threads as fit          see hts_file_use()
 *   1/3          htslib, for the output             the same
 *   1/3          the program                        what it has at the start        see machine_program_grown()
 *   1/(20n+216)  a slice of a run                   SLICE_MIN, SLICE_MAX            see spill_memory()
 *   1/12         merging runs in the background     0, MERGE_MAX                    and at most 1/4 of what is left
 *
 * The shares for reads and SAM are for all inputs that have buffers at the same time (inputs_at_once()). A merge does
 * not have the last two shares. Its inputs share the memory beyond MEMORY_OVERHEAD, or half of all memory if that is
 * more: see chunk_plan_merge(). */
enum {
    PIECE_SHARE = 384, SOURCE_SHARE = 32, SINK_SHARE = 20, WRITE_SHARE = 40, RANGES_SHARE = 32, HTSLIB_SHARE = 3,
    PROGRAM_SHARE = 3, SLICE_SHARE = 216, SLICE_SHARE_PER_THREAD = 20, MERGE_SHARE = 12, MERGE_SHARE_OF_LEFT = 4,
};

static const size_t SLICE_MIN = (size_t)64 << 10, SLICE_MAX = (size_t)2 << 20;
static const size_t MERGE_MAX = (size_t)64 << 20;
static const size_t ARENA_MIN = (size_t)2 << 20;
/* A thread that sorts a sublist leaves its blocks to the other threads for some 50 ms. Enough blocks must be handed out
 * for the other threads to continue. */
enum { SOURCE_SLOTS_PER_THREAD = 16, SOURCE_SLOTS_MIN = 64, SOURCE_SLOTS_MAX = 8192 };
enum { SINK_SLOTS_PER_THREAD = 8, SINK_SLOTS_MIN = 16 };
enum { SLICES_MIN = 16 };        /* slices in an arena: half as many runs can always be merged */
/* One range for each thread, one range that is being put to the sink, and some in between, because a task waits until
 * the ranges before its own are deflated. A range has enough records to make its start-up cost negligible. There are as
 * many spare lists as threads: with records of 150 bytes, these are the lists of the blocks under way. */
enum { RANGES_MORE = 6, RANGE_RECORDS_MIN = 512, RANGE_RECORDS_MAX = 8192, MERGE_WAYS = 256 };

/* ------------------------------------------- the first part: buffers in use */

/* Returns as many slots as fit into a share of the memory: at most `wanted`, but at least one for each thread and four
 * more. */
static uint32_t slots(size_t wanted, size_t share, size_t each, int n_threads)
{
    size_t least = (size_t)n_threads + 4;
    return (uint32_t)memory_clamp(wanted, least, memory_clamp(share / each, least, wanted));
}

static struct htslib_room htslib_room(const struct memory_job *job, size_t n_files)
{
    return (struct htslib_room){.bytes = job->all / HTSLIB_SHARE / n_files, .thread_space = job->thread_space};
}

/* Inputs with buffers: the one that is read, and those that wait for their turn. */
static size_t inputs_at_once(const struct memory_job *job)
{
    return 1 + job->n_waiting;
}

/* Keys cannot address more than BAM_ARENA_MAX bytes, so more memory is of no use. */
static struct memory_job cap_memory(const struct memory_job *asked)
{
    static const uint64_t MOST = BAM_ARENA_MAX + MEMORY_OVERHEAD;
    struct memory_job job = *asked;
    job.all = job.all < MOST ? job.all : MOST;
    return job;
}

struct memory_rings memory_plan_rings(const struct memory_job *asked)
{
    const struct memory_job job = cap_memory(asked);
    size_t n = (size_t)job.n_threads, all = (size_t)job.all, inputs = inputs_at_once(&job);
    struct memory_rings rings = {
        .job = job,
        .piece_size = memory_clamp(all / PIECE_SHARE / inputs, PIECE_MIN,
                                   memory_clamp(PIECE_MAX / inputs, PIECE_MIN, PIECE_MAX)),
        .n_pieces = READ_AHEAD_PIECES,
        .source_slots = slots(memory_clamp(SOURCE_SLOTS_MIN + SOURCE_SLOTS_PER_THREAD * n, 0, SOURCE_SLOTS_MAX),
                              all / SOURCE_SHARE, block_reader_memory(1), job.n_threads),
        .sink_slots = slots(SINK_SLOTS_MIN + SINK_SLOTS_PER_THREAD * n, all / SINK_SHARE,
                            record_sink_memory(job.form, 0, 1, job.level, 0), job.n_threads),
        .out_piece_size = bgzf_sink_piece_size(job.n_threads, job.level, all / WRITE_SHARE),
        .merge_ranges = (uint32_t)n + RANGES_MORE,
        .merge_spare = job.form == SINK_HTSLIB ? 0 : (uint32_t)n,   /* hts_writer copies lists */
        .merge_records = (uint32_t)memory_clamp(all / RANGES_SHARE / (2 * n + RANGES_MORE) / record_list_memory(1),
                                                RANGE_RECORDS_MIN, RANGE_RECORDS_MAX),
        .chunks = chunk_plan_text(all, inputs, job.n_threads),
        .reader = htslib_room(&job, job.n_inputs),
        .writer = htslib_room(&job, 1),
    };
    if (job.in_chunks)
        chunk_plan_merge(&rings);
    return rings;
}

/* --------------------------------------------------- what the buffers take */

/* A sort within another one has no input of its own; it takes over the blocks that the other one reads. */
static size_t input_memory_of(const struct memory_rings *r)
{
    const struct memory_job *job = &r->job;
    size_t each = (job->within ? 0 : read_ahead_memory(r->piece_size, r->n_pieces))
                + bgzf_source_memory(0, r->source_slots);
    return inputs_at_once(job) * each + bgzf_source_memory(job->n_threads, 0)
         + (job->n_inputs - 1) * input_memory(r->source_slots)
         + (job->in_chunks ? 0 : block_reader_memory(r->source_slots));
}

static size_t merging_memory(const struct memory_rings *r)
{
    const struct memory_job *job = &r->job;
    size_t in_arenas = job->in_chunks ? 0 : (size_t)job->all / (BAM_MIN_RECORD + sizeof(struct bam_key));
    return merge_ring_memory(r->merge_ranges, r->merge_spare, r->merge_records,
                             job->in_chunks ? job->n_inputs : MERGE_WAYS, in_arenas);
}

static size_t output_memory(const struct output_use *use, const struct memory_rings *r)
{
    const struct memory_job *job = &r->job;
    size_t sink = job->within ? 0
                : record_sink_memory(job->form, job->n_threads, r->sink_slots, job->level, r->out_piece_size);
    return sink + use->htslib + use->overhead
         + memory_clamp((size_t)use->references, 0, (size_t)job->all / HTSLIB_SHARE)
         + (use->more ? use->more(use->arg, r) : 0);
}

/* Returns the memory that the process needs once, for any number of sorts. */
static size_t process_memory(const struct memory_job *job, const struct memory_use *use)
{
    return job->within ? 0
         : machine_program_grown(job->program, (size_t)job->all / PROGRAM_SHARE)
           + (size_t)job->n_threads * machine_thread_memory() + use->htslib + use->clocks;
}

/* Returns the memory of everything except the arenas and the merges in the background. spilling: the part of it that is
 * touched only if arenas are spilled. */
static size_t fixed_memory(const struct memory_rings *r, const struct memory_use *use, size_t spilling)
{
    return process_memory(&r->job, use) + input_memory_of(r) + chunk_plan_memory(r, use->n_chunked)
         + bam_header_memory(use->header, use->references, use->parsed) + merging_memory(r)
         + spilling + output_memory(&use->output, r);
}

/* --------------------------------- the second part: arenas get what is left */

/* Gives slices the same share of the arenas as without SAMTOOLS_OMP_ARENA. */
static void divide_for_test(struct memory_plan *p, size_t arena_size)
{
    enum { SLICES = 16, MERGED = 4 };
    p->arena_size = whole_pages(arena_size);
    p->slice_size = p->arena_size / SLICES / sizeof(struct bam_key) * sizeof(struct bam_key);
    p->merge_memory = MERGED * p->slice_size;
}

struct memory_plan memory_plan_make(const struct memory_rings *rings, const struct memory_use *use)
{
    size_t n = (size_t)rings->job.n_threads, all = (size_t)rings->job.all;
    size_t slice = whole_pages(memory_clamp(all / (SLICE_SHARE_PER_THREAD * n + SLICE_SHARE), SLICE_MIN, SLICE_MAX));
    size_t spilling = rings->job.in_chunks ? 0 : spill_memory(rings->job.n_threads, slice);
    struct memory_plan p = {
        .rings = *rings,
        .slice_size = slice,
        .spilling = spilling,
        .fixed = fixed_memory(rings, use, spilling),
    };
    if (rings->job.in_chunks)
        return p;
    size_t left = all > p.fixed + 2 * ARENA_MIN ? all - p.fixed : 2 * ARENA_MIN;
    p.merge_memory = memory_clamp(left / MERGE_SHARE_OF_LEFT, 0, memory_clamp(all / MERGE_SHARE, 0, MERGE_MAX));
    p.arena_size = whole_pages(memory_clamp((left - p.merge_memory) / 2, ARENA_MIN, left));
    if (p.slice_size > p.arena_size / SLICES_MIN)
        p.slice_size = whole_pages(p.arena_size / SLICES_MIN);
    const char *test = getenv("SAMTOOLS_OMP_ARENA");
    if (test)
        divide_for_test(&p, strtoull(test, NULL, 0));
    return p;
}

uint64_t memory_plan_takes(const struct memory_plan *p)
{
    return p->fixed + 2 * (uint64_t)p->arena_size + p->merge_memory;
}

/* ------------------------------------------------------- how much is enough */

/* Returns `use` with the memory that htslib takes if it gets more room. Not all of several inputs need be CRAM, so they
 * take at most a third of the additional memory. */
static struct memory_use use_of_more(const struct memory_rings *rings, const struct memory_use *use, uint64_t more)
{
    const struct memory_job *job = &rings->job;
    size_t n = job->n_inputs, third = (size_t)(more / HTSLIB_SHARE);
    struct memory_use grown = *use;
    if (use->htslib > 0)
        grown.htslib = memory_clamp(n * cram_reader_memory_most(&rings->reader, use->header / n, job->n_threads),
                                    use->htslib, n > 1 ? use->htslib + third : SIZE_MAX);
    if (use->output.htslib > 0)
        grown.output.htslib = hts_file_use(use->output.is_cram, true, &rings->writer, job->n_threads).bytes;
    return grown;
}

/* Parts grow by steps, so the search goes from MiB to MiB, and a larger part may come with the next MiB. */
uint64_t memory_plan_enough(const struct memory_job *job, const struct memory_use *use)
{
    static const uint64_t MIB = (uint64_t)1 << 20;
    struct memory_job more = *job;
    bool was_enough = false;
    for (more.all = (job->all + MIB - 1) / MIB * MIB; more.all < BAM_ARENA_MAX; more.all += MIB) {
        struct memory_rings rings = memory_plan_rings(&more);
        struct memory_use grown = use_of_more(&rings, use, more.all - job->all);
        struct memory_plan plan = memory_plan_make(&rings, &grown);
        bool is_enough = memory_plan_takes(&plan) <= more.all;
        if (is_enough && was_enough)
            return more.all - MIB;
        was_enough = is_enough;
    }
    return more.all;
}
