/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam_arena.h"
#include "bgzf_sink.h"
#include "bgzf_source.h"
#include "plan/memory_plan.h"
#include "merge/merge_ring.h"
#include "spill/record_pack.h"
#include "spill/spill_slice.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static const size_t ALLOWANCE = 64 * MIB;        /* what we may use beside the budget */
static const size_t PROGRAM = 14 * MIB;          /* code, libraries, the allocator's own */
static const size_t PER_THREAD = 160 * KIB;      /* its stack, the allocator's heap for it */
/* htslib keeps the text, a parsed form, and the dictionary of names of a header. Measured with 250,000 and 500,000
 * lines of 25 to 50 bytes, htslib 1.16. */
enum { HEADER_COPIES = 8, PER_REFERENCE = 160 };

static const size_t PIECE_MIN = 64 * KIB, PIECE_MAX = 3 * MIB / 2;    /* large reads are what disks want */
static const size_t SLICE_MIN = 64 * KIB, SLICE_MAX = 2 * MIB;     /* packed: half of it, read at once */
static const size_t SLICE_FOR_ALL_MIN = 768 * KIB;
static const size_t MERGE_MAX = 64 * MIB;
static const size_t ARENA_MIN = 2 * MIB;
/* A thread that sorts a sublist leaves its blocks to the others for some 50 ms;
 * the rest must have enough handed out to go on. */
enum { SOURCE_SLOTS_PER_THREAD = 16, SOURCE_SLOTS_MIN = 64, SOURCE_SLOTS_MAX = 8192, SINK_SLOTS_PER_THREAD = 8, SINK_SLOTS_MIN = 16 };
/* For each thread: a slice packed by it and one it loads, and records as large in
 * their streams on the way. */
enum { THREAD_SLICES = 3 };
enum { SLICES_MIN = 16 };        /* in an arena: so many runs / 2 can be merged whatever happens */
/* One range being put to the sink, one for each thread, and some in between: a task
 * waits until those before it, of deflating, are done. Lists of so many records
 * that it does not matter what it takes to begin one. */
enum { RANGES_MORE = 6, RANGE_RECORDS_MIN = 512, RANGE_RECORDS_MAX = 8192, MERGE_SOURCES = 256 };
/* A chunk of SAM text takes a whole block, inflated. */
static const size_t TEXT_MIN = 64 * KIB, TEXT_MAX = 256 * KIB;
enum { PAGE = 4096 };             /* sizes are whole pages */

static size_t whole_pages(size_t size)
{
    return size / PAGE * PAGE;
}

static size_t clamp(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* As many slots as a share of the memory pays for, one for each thread at least. */
static uint32_t slots(size_t wanted, size_t share, size_t each, int n_threads)
{
    return (uint32_t)clamp(wanted, (size_t)n_threads + 4, clamp(share / each, (size_t)n_threads + 4, wanted));
}

struct htslib_use memory_plan_htslib(bool is_cram, bool writing, const struct htslib_room *room, int n_threads)
{
    size_t base = !is_cram ? 3 * MIB : writing ? 20 * MIB : 10 * MIB;
    size_t each = room->thread_space + (!is_cram ? 3 * MIB / 2 : writing ? 32 * MIB : 16 * MIB);
    uint64_t most = room->bytes > base ? (room->bytes - base) / each : 0;
    struct htslib_use use = {(uint64_t)n_threads < most ? n_threads : most > 1 ? (int)most : 1, base};
    use.bytes += use.n_threads > 1 ? (size_t)use.n_threads * each : 0;
    return use;
}

/* What there is: more than keys can tell apart is of no use. */
static size_t all_of(const struct memory_job *job)
{
    return (size_t)(job->budget < BAM_ARENA_MAX ? job->budget : BAM_ARENA_MAX) + ALLOWANCE;
}

static struct htslib_room htslib_room(const struct memory_job *job, size_t n_files)
{
    enum { SHARE = 3 };
    return (struct htslib_room){all_of(job) / SHARE / n_files, job->thread_space};
}

/* Two chunks for each thread: one that it parses, one to go on with. They are small enough for
 * caches and so large that a task for each costs nothing (1 ms and more). In one there are few
 * records that are larger than their lines, and none of more than twice the size. */
struct sam_use memory_plan_sam(uint64_t budget, size_t n_inputs, int n_threads)
{
    enum { SHARE = 8, CHUNKS_PER_THREAD = 2, CHUNKS_MORE = 2, RECORDS_PER_TEXT = 2 };
    size_t all = ((size_t)(budget < BAM_ARENA_MAX ? budget : BAM_ARENA_MAX) + ALLOWANCE) / n_inputs;
    size_t n = CHUNKS_PER_THREAD * (size_t)n_threads + CHUNKS_MORE, share = all / SHARE / (1 + RECORDS_PER_TEXT);
    struct sam_use use = {.piece_size = clamp(all / 768, PIECE_MIN, PIECE_MAX)};
    use.n_chunks = (uint32_t)clamp(share / TEXT_MIN, CHUNKS_MORE, n);
    use.text_size = whole_pages(clamp(share / use.n_chunks, TEXT_MIN, TEXT_MAX));
    use.records_size = RECORDS_PER_TEXT * use.text_size;
    use.source_slots = use.n_chunks * (uint32_t)(use.text_size / TEXT_MIN);
    use.bytes = bgzf_source_memory(n_threads, use.source_slots, use.piece_size)
              + use.n_chunks * (use.text_size + use.records_size);
    return use;
}

static size_t rings_memory(const struct memory_rings *r)
{
    const struct memory_job *job = &r->job;
    return job->n_inputs * bgzf_source_memory(job->n_threads, r->source_slots, r->piece_size)
         + r->source_slots * job->found
         + bgzf_sink_memory(job->n_threads, r->sink_slots, job->level)
         + merge_ring_memory(r->merge_ranges, r->merge_records, MERGE_SOURCES);
}

static size_t fixed_memory(const struct memory_plan *p, const struct memory_use *use)
{
    size_t n = (size_t)p->rings.job.n_threads;
    return PROGRAM + n * PER_THREAD + use->htslib + use->stats + rings_memory(&p->rings)
         + HEADER_COPIES * use->header + PER_REFERENCE * use->references
         + n * (2 * record_packer_memory() + THREAD_SLICES * p->slice_size);
}

/* Slices that are to arenas what they are in earnest. */
static void divide_for_test(struct memory_plan *p, size_t arena_size)
{
    enum { SLICES = 16, MERGED = 4 };
    p->arena_size = whole_pages(arena_size);
    p->slice_size = p->arena_size / SLICES / sizeof(struct bam_key) * sizeof(struct bam_key);
    p->merge_memory = MERGED * p->slice_size;
}

struct memory_rings memory_plan_rings(const struct memory_job *job)
{
    size_t n = (size_t)job->n_threads, all = all_of(job), piece_most = PIECE_MAX / job->n_inputs;
    return (struct memory_rings){
        .job = *job,
        .piece_size = clamp(all / 384 / job->n_inputs, PIECE_MIN, piece_most > PIECE_MIN ? piece_most : PIECE_MIN),
        .source_slots = slots(clamp(SOURCE_SLOTS_MIN + SOURCE_SLOTS_PER_THREAD * n, 0, SOURCE_SLOTS_MAX), all / 32,
                              job->found, job->n_threads),
        .sink_slots = slots(SINK_SLOTS_MIN + SINK_SLOTS_PER_THREAD * n, all / 20,
                            bgzf_sink_memory(0, 1, job->level), job->n_threads),
        .merge_ranges = (uint32_t)n + RANGES_MORE,
        .merge_records = (uint32_t)clamp(all / 128 / (n + RANGES_MORE) / sizeof(struct bgzf_piece), RANGE_RECORDS_MIN,
                                         RANGE_RECORDS_MAX),
        .sam = memory_plan_sam(job->budget, job->n_inputs, job->n_threads),
        .reader = htslib_room(job, job->n_inputs),
        .writer = htslib_room(job, 1),
    };
}

struct memory_plan memory_plan_make(const struct memory_rings *rings, const struct memory_use *use)
{
    size_t all = all_of(&rings->job);
    struct memory_plan p = {
        .rings = *rings,
        .slice_size = whole_pages(clamp(all / (20 * (size_t)rings->job.n_threads + 216), SLICE_MIN, SLICE_MAX)),
    };
    size_t fixed = fixed_memory(&p, use);
    size_t left = all > fixed + 2 * ARENA_MIN ? all - fixed : 2 * ARENA_MIN;
    p.merge_memory = clamp(left / 4, 0, clamp(all / 12, 0, MERGE_MAX));
    p.arena_size = whole_pages(clamp((left - p.merge_memory) / 2, ARENA_MIN, left));
    if (p.slice_size > p.arena_size / SLICES_MIN)
        p.slice_size = whole_pages(p.arena_size / SLICES_MIN);
    const char *test = getenv("SAMTOOLS_OMP_ARENA");
    if (test)
        divide_for_test(&p, strtoull(test, NULL, 0));
    return p;
}

/* What keeps all of the data in memory, but the last arena's packed; 0 if nothing does. */
static size_t store_size(size_t arenas, double expected)
{
    static const double PACKED = 0.5, MOST = 0.7, MARGIN = 1.1;
    double all = (double)arenas, needed = (expected * MARGIN - all / 2) / (1 / PACKED - 0.5);
    return needed > 0 && needed <= MOST * all ? (size_t)needed : 0;
}

/* To read smaller slices is better than to merge twice, unless they become tiny. */
static size_t slice_size_for(const struct memory_plan *p, size_t arena_size, double expected)
{
    double runs = expected / (double)arena_size * 1.2 + 1;
    size_t fitting = whole_pages((size_t)((double)arena_size / 2 / runs));
    return fitting >= SLICE_FOR_ALL_MIN && fitting < p->slice_size ? fitting : p->slice_size;
}

struct memory_spilling memory_plan_spilling(const struct memory_plan *p, double expected, bool late)
{
    size_t arenas = 2 * p->arena_size;
    struct memory_spilling s = {.store = late ? 0 : store_size(arenas, expected)};
    s.arena_size = whole_pages((arenas - s.store) / 2);
    s.slice_size = slice_size_for(p, s.arena_size, expected);
    s.fan_in = s.arena_size / (2 * s.slice_size);
    return s;
}
