/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam_arena.h"
#include "bgzf_omp.h"
#include "markdup/marked_flow.h"
#include "engine/memory_plan.h"
#include "sort/merge_ring.h"
#include "read/input.h"
#include "read/read_ahead.h"
#include "read/sliced_input.h"
#include "sort/record_pack.h"
#include "sort/spill_slice.h"
#include "hts/hts_writer.h"
#include "write/output_block.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Amounts that do not depend on how much memory there is. */
static const size_t PROGRAM_MIN = 14 * MIB;      /* code, libraries, what the allocator keeps; at most a third of all */
static const size_t PROGRAM_GROWS = 12 * MIB;    /* growth after the start, with Debian's htslib, which takes 3 MiB
                                                  * then */
static const size_t PER_THREAD = 160 * KIB;      /* a thread's stack, and the allocator's heap for it */
/* A plain header is kept as text and as a list of names, for the input and for the output; SAM has a table of names. An
 * allocation takes at least 32 bytes. A header that htslib parses is also kept in a parsed form and as a dictionary.
 * Measured with half a million and 2 million lines of 25 to 50 bytes, htslib 1.16. */
enum { PLAIN_COPIES = 4, PLAIN_REFERENCE = 56, PARSED_COPIES = 8, PARSED_REFERENCE = 224 };

/* The shares: each purpose gets this part of all memory. The arenas get the remaining memory. Each share has bounds.
 *
 *   of all       for                                least, most                     why
 *   1/384        reads of BAM                       PIECE_MIN, PIECE_MAX            disks want large reads
 *   1/768        reads of SAM text                  PIECE_MIN, PIECE_MAX            its blocks are parsed as they come
 *   1/32         lists of records found             n + 4, SOURCE_SLOTS of them     see there
 *   1/20         blocks to be deflated              n + 4, SINK_SLOTS of them       a merge fills them in bursts
 *   1/40         pieces of output being written     see bgzf_sink_piece_size()      disks want large writes
 *   1/32         lists of ranges being merged       RANGE_RECORDS_MIN, _MAX each    see there
 *   1/8          chunks of SAM text and records     2, 2 n + 2 of them; and slices  see memory_plan_chunks()
 *   1/3          htslib, for all inputs             as many threads as fit          see memory_shares_htslib()
 *   1/3          htslib, for the output             the same
 *   1/(20n+216)  a slice of a run                   SLICE_MIN, SLICE_MAX            THREAD_SLICES n of them, and runs
 *   1/12         merging runs in the background     0, MERGE_MAX                    and at most 1/4 of what is left
 *
 * The shares for reads and SAM are for all inputs that have buffers at the same time (inputs_at_once()). A merge does
 * not have the last two shares. Its inputs share the memory beyond MEMORY_OVERHEAD, or half of all memory if that is
 * more. Each input divides its part:
 *
 *   1/4          reads                              PIECE_MIN, PIECE_MAX / 4        4 to 16 of them are under way
 *   3/4          chunks and slices                  TEXT_MIN, TEXT_MAX              see divide_for_merge() */
enum {
    PIECE_SHARE = 384, TEXT_PIECE_SHARE = 768, SOURCE_SHARE = 32, SINK_SHARE = 20, WRITE_SHARE = 40, RANGES_SHARE = 32,
    SAM_SHARE = 8, HTSLIB_SHARE = 3, SLICE_SHARE = 216, SLICE_SHARE_PER_THREAD = 20, MERGE_SHARE = 12,
    MERGE_SHARE_OF_LEFT = 4,
};

static const size_t PIECE_MIN = 64 * KIB, PIECE_MAX = 3 * MIB / 2;
static const size_t SLICE_MIN = 64 * KIB, SLICE_MAX = 2 * MIB;
static const size_t MERGE_MAX = 64 * MIB;
static const size_t ARENA_MIN = 2 * MIB;
enum { RECORDS_PER_TEXT = 2 };   /* bytes of records per byte of text that a chunk has room for without growing */
static const size_t TEXT_MIN = 64 * KIB, TEXT_MAX = 256 * KIB;    /* of a chunk; the minimum holds any inflated block */
/* A thread that sorts a sublist leaves its blocks to the other threads for some 50 ms. Enough blocks must be handed out
 * for the other threads to continue. */
enum { SOURCE_SLOTS_PER_THREAD = 16, SOURCE_SLOTS_MIN = 64, SOURCE_SLOTS_MAX = 8192 };
enum { SINK_SLOTS_PER_THREAD = 8, SINK_SLOTS_MIN = 16 };
/* One slice that the thread packs, one slice that it loads, and the same amount of memory for records in the packer's
 * streams. */
enum { THREAD_SLICES = 3 };
enum { SLICES_MIN = 16 };        /* slices in an arena: half as many runs can always be merged */
/* One range for each thread, one range that is being put to the sink, and some in between, because a task waits until
 * the ranges before its own are deflated. A range has enough records to make its start-up cost negligible. There are as
 * many spare lists as threads: with records of 150 bytes, these are the lists of the blocks under way. */
enum { RANGES_MORE = 6, RANGE_RECORDS_MIN = 512, RANGE_RECORDS_MAX = 8192, MERGE_WAYS = 256 };

static size_t clamp(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Returns as many slots as fit into a share of the memory: at most `wanted`, but at least one for each thread and four
 * more. */
static uint32_t slots(size_t wanted, size_t share, size_t each, int n_threads)
{
    return (uint32_t)clamp(wanted, (size_t)n_threads + 4, clamp(share / each, (size_t)n_threads + 4, wanted));
}

/* All memory that can be used: keys cannot address more than BAM_ARENA_MAX bytes. */
static size_t all_of(uint64_t all)
{
    static const uint64_t MOST = BAM_ARENA_MAX + MEMORY_OVERHEAD;
    return (size_t)(all < MOST ? all : MOST);
}

static struct htslib_room htslib_room(const struct memory_job *job, size_t n_files)
{
    return (struct htslib_room){
        .bytes = all_of(job->all) / HTSLIB_SHARE / n_files,
        .thread_space = job->thread_space,
    };
}

/* Inputs with buffers: the one that is read, and those that wait for their turn. */
static size_t inputs_at_once(const struct memory_job *job)
{
    return 1 + job->n_waiting;
}

/* Bytes of the largest piece of each of n_inputs inputs. */
static size_t largest_piece(size_t n_inputs)
{
    return PIECE_MAX / n_inputs > PIECE_MIN ? PIECE_MAX / n_inputs : PIECE_MIN;
}

/* Slices that the consumer works on while the same number of chunks is made. Together they take as much memory as the
 * text of all chunks. */
static uint32_t lent_slices(uint32_t n_chunks)
{
    return n_chunks / 2 + 1;
}

/* Each thread has two chunks: one that it parses, and one with which it continues. A chunk fits into a cache, and takes
 * long enough (1 ms and more) to make the cost of its task negligible. Few records are larger than their lines, and no
 * record has more than twice the size of its line. Reading the text takes no more memory than reading BAM, which
 * rings_memory() counts. */
struct chunk_memory memory_plan_chunks(uint64_t all_bytes, size_t n_inputs, int n_threads)
{
    enum { CHUNKS_PER_THREAD = 2, CHUNKS_MORE = 2 };
    size_t all = all_of(all_bytes) / n_inputs;
    size_t n = CHUNKS_PER_THREAD * (size_t)n_threads + CHUNKS_MORE, share = all / SAM_SHARE / (2 + RECORDS_PER_TEXT);
    struct chunk_memory use = {.piece_size = clamp(all / TEXT_PIECE_SHARE, PIECE_MIN, largest_piece(n_inputs))};
    use.n_chunks = (uint32_t)clamp(share / TEXT_MIN, CHUNKS_MORE, n);
    use.chunk_size = whole_pages(clamp(share / use.n_chunks, TEXT_MIN, TEXT_MAX));
    use.tight = use.chunk_size < TEXT_MAX;
    use.records_size = RECORDS_PER_TEXT * use.chunk_size;
    use.n_lent = lent_slices(use.n_chunks);
    use.source_slots = use.n_chunks * (uint32_t)(use.chunk_size / TEXT_MIN);
    use.bytes = use.n_chunks * (use.chunk_size + use.records_size) + use.n_lent * use.records_size;
    return use;
}

/* Bytes for the records of a chunk with chunk_size bytes of text, and for the compressed blocks that are kept with
 * them. */
static size_t merge_records(const struct memory_job *job, size_t chunk_size)
{
    return (RECORDS_PER_TEXT + (size_t)job->copies) * chunk_size;
}

/* Bytes of a slice whose chunk has chunk_size bytes of text: its records, and a key of 16 bytes for some 256 bytes of
 * text. */
static size_t merge_slice(const struct memory_job *job, size_t chunk_size)
{
    return merge_records(job, chunk_size) + chunk_size / 16;
}

/* Bytes of a chunk: its text, its compressed blocks if they are kept, and its records. */
static size_t merge_chunk(const struct memory_job *job, size_t chunk_size)
{
    return (1 + (size_t)job->copies) * chunk_size + merge_records(job, chunk_size);
}

/* Returns how many chunks with chunk_size bytes of text an input of a merge may have. The input has a slice for each
 * chunk, and some more. An input of SAM has twice as many chunks. Large chunks cost the main thread least, but each
 * thread should get one. */
static size_t merge_chunks(const struct memory_job *job, size_t memory, size_t chunk_size)
{
    size_t chunks = memory / merge_chunk(job, chunk_size);
    size_t more = SLICED_INPUT_LEAST + job->copies - MEMORY_CHUNKS_LEAST;
    return chunks > more ? (chunks - more) / 3 : 0;
}

/* If there are several inputs, each has the least number of chunks of its own; the other chunks are shared
 * (read/chunk_pool.h). An input does not borrow more chunks than it can use, or than its overhead has room for. */
static void share_chunks(struct memory_rings *rings, size_t overhead, size_t wanted)
{
    enum { OVERHEAD_OF_CHUNK = 512, OVERHEAD_OF_BLOCK = 256 };
    const struct chunk_memory *use = &rings->chunks;
    size_t blocks = use->chunk_size / TEXT_MIN, most = overhead / (OVERHEAD_OF_CHUNK + blocks * OVERHEAD_OF_BLOCK);
    size_t share = use->n_chunks - MEMORY_CHUNKS_LEAST, shared = share * rings->job.n_inputs;
    size_t borrows = clamp(shared, 0, wanted < most ? wanted : most);
    rings->source_slots = use->source_slots;
    if (borrows <= share)
        return;
    rings->n_shared = shared;
    rings->borrows = (uint32_t)borrows;
    rings->source_slots = (uint32_t)((MEMORY_CHUNKS_LEAST + borrows) * blocks);
}

/* The inputs of a merge get about the memory that the rest of the plan leaves, but each input gets at least the minimum
 * that works. A sixth of an input's memory is for pieces, the rest for slices and chunks. */
static void divide_for_merge(struct memory_rings *rings)
{
    enum { CHUNKS_PER_THREAD = 3, AHEAD_PART = 6, OVERHEAD_PART = 32 };
    const struct memory_job *job = &rings->job;
    const size_t overhead = (size_t)MEMORY_OVERHEAD, all = all_of(job->all);
    size_t each = (all > 2 * overhead ? all - overhead : all / 2) / job->n_inputs, ahead = each / AHEAD_PART;
    rings->piece_size = clamp(ahead / READ_AHEAD_PIECES, PIECE_MIN, PIECE_MAX / 4);
    rings->n_pieces = (uint32_t)clamp(ahead / read_ahead_memory(rings->piece_size, 1), READ_AHEAD_PIECES_LEAST,
                                      READ_AHEAD_PIECES);
    size_t threads = (size_t)job->n_threads, left = each - ahead;
    struct chunk_memory *use = &rings->chunks;
    use->piece_size = rings->piece_size;
    use->chunk_size = TEXT_MAX;
    while (use->chunk_size > TEXT_MIN
           && merge_chunks(job, left, use->chunk_size) < MEMORY_CHUNKS_LEAST + threads / job->n_inputs)
        use->chunk_size /= 2;
    use->n_chunks = (uint32_t)clamp(merge_chunks(job, left, use->chunk_size), MEMORY_CHUNKS_LEAST, MEMORY_CHUNKS_LEAST
                                    + (CHUNKS_PER_THREAD * threads + job->n_inputs - 1) / job->n_inputs);
    rings->n_slices = SLICED_INPUT_LEAST + job->copies + use->n_chunks - MEMORY_CHUNKS_LEAST;
    use->tight = use->chunk_size < TEXT_MAX;
    use->records_size = merge_records(job, use->chunk_size);
    use->keeps = job->copies;
    use->source_slots = use->n_chunks * (uint32_t)(use->chunk_size / TEXT_MIN);
    use->n_lent = lent_slices(use->n_chunks);    /* in place of the chunks' text, if a stream provides the chunks */
    use->bytes = use->n_chunks * merge_chunk(job, use->chunk_size);
    share_chunks(rings, each / OVERHEAD_PART, CHUNKS_PER_THREAD * threads);
}

static size_t sink_memory(const struct memory_job *job, int n_threads, uint32_t n_slots, size_t piece_size)
{
    return job->form == SINK_HTSLIB ? hts_writer_batches_memory(n_slots)
         : output_blocks_memory(job->form, n_threads, n_slots, job->level, piece_size);
}

static size_t rings_memory(const struct memory_rings *r)
{
    const struct memory_job *job = &r->job;
    size_t in_arenas = job->in_chunks ? 0 : all_of(job->all) / (BAM_MIN_RECORD + sizeof(struct bam_key));
    size_t input = (job->within ? 0 : read_ahead_memory(r->piece_size, r->n_pieces))
                 + bgzf_source_memory(0, r->source_slots);
    return inputs_at_once(job) * input + bgzf_source_memory(job->n_threads, 0)
         + (job->n_inputs - 1) * input_memory(r->source_slots)
         + (job->in_chunks ? r->chunks.source_slots : r->source_slots) * job->found
         + (job->within ? 0 : sink_memory(job, job->n_threads, r->sink_slots, r->out_piece_size))
         + merge_ring_memory(r->merge_ranges, r->merge_spare, r->merge_records,
                             job->in_chunks ? job->n_inputs : MERGE_WAYS, in_arenas);
}

/* Memory for the program. libhts alone may load 30 libraries, for URLs. */
static size_t program_memory(const struct memory_job *job)
{
    enum { PROGRAM_SHARE = 3 };
    size_t most = all_of(job->all) / PROGRAM_SHARE;
    return clamp(job->program + PROGRAM_GROWS, PROGRAM_MIN, most > PROGRAM_MIN ? most : PROGRAM_MIN);
}

/* Memory that threads use to pack and load slices when arenas are spilled. */
static size_t spill_memory(const struct memory_plan *p)
{
    return (size_t)p->rings.job.n_threads * (2 * record_packer_memory() + THREAD_SLICES * p->slice_size);
}

static size_t header_memory(const struct memory_use *use)
{
    return use->parsed ? PARSED_COPIES * use->header + PARSED_REFERENCE * use->references
         : PLAIN_COPIES * use->header + PLAIN_REFERENCE * use->references;
}

static size_t output_memory(const struct output_use *use, const struct memory_rings *rings)
{
    return use->htslib + use->overhead + clamp((size_t)use->references, 0, all_of(rings->job.all) / HTSLIB_SHARE)
         + (use->more ? use->more(use->arg, rings) : 0);
}

/* Returns the memory that the process needs once, for any number of sorts. */
static size_t process_memory(const struct memory_job *job, const struct memory_use *use)
{
    return job->within ? 0 : program_memory(job) + (size_t)job->n_threads * PER_THREAD + use->htslib + use->clocks;
}

static size_t fixed_memory(const struct memory_plan *p, const struct memory_use *use)
{
    const struct memory_rings *r = &p->rings;
    return process_memory(&r->job, use) + rings_memory(r) + output_memory(&use->output, r) + header_memory(use)
         + use->n_chunked * r->chunks.bytes
         + (r->job.holds ? marked_flow_memory(r->job.n_threads, r->chunks.records_size) : 0)
         + (r->job.in_chunks ? r->job.n_inputs * r->n_slices * merge_slice(&r->job, r->chunks.chunk_size)
                             : spill_memory(p));
}

/* Gives slices the same share of the arenas as without SAMTOOLS_OMP_ARENA. */
static void divide_for_test(struct memory_plan *p, size_t arena_size)
{
    enum { SLICES = 16, MERGED = 4 };
    p->arena_size = whole_pages(arena_size);
    p->slice_size = p->arena_size / SLICES / sizeof(struct bam_key) * sizeof(struct bam_key);
    p->merge_memory = MERGED * p->slice_size;
}

struct memory_rings memory_plan_rings(const struct memory_job *job)
{
    size_t n = (size_t)job->n_threads, all = all_of(job->all), inputs = inputs_at_once(job);
    struct memory_rings rings = {
        .job = *job,
        .piece_size = clamp(all / PIECE_SHARE / inputs, PIECE_MIN, largest_piece(inputs)),
        .n_pieces = READ_AHEAD_PIECES,
        .source_slots = slots(clamp(SOURCE_SLOTS_MIN + SOURCE_SLOTS_PER_THREAD * n, 0, SOURCE_SLOTS_MAX),
                              all / SOURCE_SHARE, job->found, job->n_threads),
        .sink_slots = slots(SINK_SLOTS_MIN + SINK_SLOTS_PER_THREAD * n, all / SINK_SHARE,
                            sink_memory(job, 0, 1, 0), job->n_threads),
        .out_piece_size = bgzf_sink_piece_size(job->n_threads, job->level, all / WRITE_SHARE),
        .merge_ranges = (uint32_t)n + RANGES_MORE,
        .merge_spare = job->form == SINK_HTSLIB ? 0 : (uint32_t)n,   /* hts_writer copies lists */
        .merge_records = (uint32_t)clamp(all / RANGES_SHARE / (2 * n + RANGES_MORE) / record_list_memory(1),
                                         RANGE_RECORDS_MIN, RANGE_RECORDS_MAX),
        .chunks = memory_plan_chunks(job->all, inputs, job->n_threads),
        .reader = htslib_room(job, job->n_inputs),
        .writer = htslib_room(job, 1),
    };
    if (job->in_chunks)
        divide_for_merge(&rings);
    return rings;
}

struct memory_plan memory_plan_make(const struct memory_rings *rings, const struct memory_use *use)
{
    size_t n = (size_t)rings->job.n_threads, all = all_of(rings->job.all);
    struct memory_plan p = {
        .rings = *rings,
        .slice_size = whole_pages(clamp(all / (SLICE_SHARE_PER_THREAD * n + SLICE_SHARE), SLICE_MIN, SLICE_MAX)),
    };
    size_t fixed = p.fixed = fixed_memory(&p, use);
    if (rings->job.in_chunks)
        return p;
    p.spilling = spill_memory(&p);
    size_t left = all > fixed + 2 * ARENA_MIN ? all - fixed : 2 * ARENA_MIN;
    p.merge_memory = clamp(left / MERGE_SHARE_OF_LEFT, 0, clamp(all / MERGE_SHARE, 0, MERGE_MAX));
    p.arena_size = whole_pages(clamp((left - p.merge_memory) / 2, ARENA_MIN, left));
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

/* Returns `use` with the memory that htslib takes if it gets more room. Not all of several inputs need be CRAM, so they
 * take at most a third of the additional memory. */
static struct memory_use use_of_more(const struct memory_rings *rings, const struct memory_use *use, uint64_t more)
{
    const struct memory_job *job = &rings->job;
    size_t n = job->n_inputs, third = (size_t)(more / HTSLIB_SHARE);
    size_t alone = memory_shares_htslib(true, false, &rings->reader, job->n_threads).bytes;
    size_t in_tasks = memory_shares_htslib(true, false, &rings->reader, 1).bytes
                    + memory_shares_cram(&rings->reader, use->header / n, job->n_threads).bytes;
    struct memory_use grown = *use;
    if (use->htslib > 0)
        grown.htslib = clamp(n * (alone > in_tasks ? alone : in_tasks), use->htslib,
                             n > 1 ? use->htslib + third : SIZE_MAX);
    if (use->output.htslib > 0)
        grown.output.htslib = memory_shares_htslib(use->output.is_cram, true, &rings->writer, job->n_threads).bytes;
    return grown;
}

/* Parts grow by steps, so the search goes from MiB to MiB, and a larger part may come with the next MiB. */
uint64_t memory_plan_enough(const struct memory_job *job, const struct memory_use *use)
{
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
