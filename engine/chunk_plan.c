/* SPDX-License-Identifier: MIT */
#include "bgzf_omp.h"
#include "engine/chunk_plan.h"
#include "read/passed_records.h"
#include "read/read_ahead.h"
#include "read/sam_reader.h"
#include "read/sliced_input.h"

/* Bytes of a chunk. The minimum holds any inflated block. */
static const size_t TEXT_MIN = (size_t)64 << 10, TEXT_MAX = (size_t)256 << 10;

/* Returns the memory of n chunks. Few records are larger than their lines, and none has more than twice the size.
 * Compressed blocks that are kept with the text are later kept with the records. While chunks are made, the consumer
 * works on n_lent slices, which take as much memory as the text of all chunks. */
static struct chunk_memory chunks_of(size_t chunk_size, uint32_t n, bool keeps)
{
    return (struct chunk_memory){
        .chunk_size = chunk_size,
        .n_chunks = n,
        .records_size = (2 + (size_t)keeps) * chunk_size,
        .keeps = keeps,
        .tight = chunk_size < TEXT_MAX,
        .n_lent = n / 2 + 1,
        .source_slots = n * (uint32_t)(chunk_size / TEXT_MIN),
    };
}

/* Each thread has two chunks: one that it parses, and one with which it continues. A chunk fits into a cache, and takes
 * long enough (1 ms and more) to make the cost of its task negligible. A quarter of the memory is for text, the rest is
 * for records. */
struct chunk_memory chunk_plan_text(uint64_t all_bytes, size_t n_inputs, int n_threads)
{
    enum { SHARE = 8, PIECE_SHARE = 768, CHUNKS_PER_THREAD = 2, CHUNKS_MORE = 2, PARTS = 4 };
    size_t all = (size_t)all_bytes / n_inputs, n = CHUNKS_PER_THREAD * (size_t)n_threads + CHUNKS_MORE;
    size_t share = all / SHARE / PARTS, largest = memory_clamp(PIECE_MAX / n_inputs, PIECE_MIN, PIECE_MAX);
    n = memory_clamp(share / TEXT_MIN, CHUNKS_MORE, n);
    size_t size = whole_pages(memory_clamp(share / n, TEXT_MIN, TEXT_MAX));
    struct chunk_memory use = chunks_of(size, (uint32_t)n, false);
    use.piece_size = memory_clamp(all / PIECE_SHARE, PIECE_MIN, largest);
    return use;
}

/* ------------------------------------------------------- inputs of a merge */

/* Returns the number of slices of an input that borrows no chunks. */
static uint32_t least_slices(const struct memory_job *job)
{
    return SLICED_INPUT_LEAST + (uint32_t)job->copies;
}

/* Returns how many chunks with chunk_size bytes of text an input may have. Only text, kept blocks and records are
 * counted here; MEMORY_OVERHEAD has room for the rest. The input has a slice for each chunk, and some more. An input of
 * SAM has twice as many chunks. */
static size_t chunks_in(const struct memory_job *job, size_t memory, size_t chunk_size)
{
    enum { TIMES = 3 };
    size_t parts = job->copies ? 5 : 3, chunks = memory / (parts * chunk_size);
    size_t more = least_slices(job) - CHUNK_POOL_OWN;
    return chunks > more ? (chunks - more) / TIMES : 0;
}

/* Returns the largest size of chunks that leaves one chunk for each thread. Large chunks cost the main thread least. */
static size_t merge_chunk_size(const struct memory_job *job, size_t memory)
{
    size_t wanted = CHUNK_POOL_OWN + (size_t)job->n_threads / job->n_inputs, size = TEXT_MAX;
    while (size > TEXT_MIN && chunks_in(job, memory, size) < wanted)
        size /= 2;
    return size;
}

/* Returns the bytes that an input takes to be able to borrow one chunk and one slice. */
static size_t borrower_memory(const struct chunk_memory *use)
{
    uint32_t blocks = (uint32_t)(use->chunk_size / TEXT_MIN);
    return passed_records_memory(1, blocks) + bgzf_source_memory(0, blocks) + sliced_input_slots_memory(1);
}

/* If there are several inputs, each has the least number of chunks of its own; the other chunks are shared
 * (read/chunk_pool.h). An input borrows no more chunks than it can use. They must fit into `room` bytes. */
static void share_chunks(struct memory_rings *rings, size_t room, size_t wanted)
{
    const struct chunk_memory *use = &rings->chunks;
    size_t share = use->n_chunks - CHUNK_POOL_OWN, shared = share * rings->job.n_inputs;
    size_t most = room / borrower_memory(use), borrows = memory_clamp(shared, 0, wanted < most ? wanted : most);
    rings->source_slots = use->source_slots;
    if (borrows <= share)
        return;
    rings->n_shared = shared;
    rings->borrows = (uint32_t)borrows;
    rings->source_slots = (uint32_t)((CHUNK_POOL_OWN + borrows) * (use->chunk_size / TEXT_MIN));
}

/* The inputs get about the memory that the rest of the plan leaves, but each gets at least the minimum that works. A
 * sixth of an input's memory is for pieces, the rest for slices and chunks. */
void chunk_plan_merge(struct memory_rings *rings)
{
    enum { CHUNKS_PER_THREAD = 3, AHEAD_PART = 6, OVERHEAD_PART = 32 };
    const struct memory_job *job = &rings->job;
    const size_t overhead = (size_t)MEMORY_OVERHEAD, all = (size_t)job->all, n = job->n_inputs;
    size_t each = (all > 2 * overhead ? all - overhead : all / 2) / n, ahead = each / AHEAD_PART, left = each - ahead;
    size_t wanted = CHUNKS_PER_THREAD * (size_t)job->n_threads;
    rings->piece_size = memory_clamp(ahead / READ_AHEAD_PIECES, PIECE_MIN, PIECE_MAX / 4);
    rings->n_pieces = (uint32_t)memory_clamp(ahead / read_ahead_memory(rings->piece_size, 1), READ_AHEAD_PIECES_LEAST,
                                             READ_AHEAD_PIECES);
    size_t size = merge_chunk_size(job, left);
    uint32_t n_chunks = (uint32_t)memory_clamp(chunks_in(job, left, size), CHUNK_POOL_OWN,
                                               CHUNK_POOL_OWN + (wanted + n - 1) / n);
    rings->chunks = chunks_of(size, n_chunks, job->copies);
    rings->chunks.piece_size = rings->piece_size;
    rings->n_slices = least_slices(job) + n_chunks - CHUNK_POOL_OWN;
    share_chunks(rings, each / OVERHEAD_PART, wanted);
}

/* -------------------------------------------------------- what is taken */

/* Returns the bytes of the chunks of one input of a sort, and of the slices that the sort holds. */
static size_t text_memory(const struct chunk_memory *use)
{
    return use->n_chunks * chunk_reader_chunk_memory(use) + sam_reader_memory(use->n_chunks)
         + use->n_lent * chunk_reader_slice_memory(use);
}

/* Returns the bytes of the inputs of a merge. Records of SAM go through chunks twice: the chunks that take them over
 * have no text, but hold slices of the chunks that made them. */
static size_t merge_memory(const struct memory_rings *r, size_t n_chunked)
{
    const struct memory_job *job = &r->job;
    const struct chunk_memory *use = &r->chunks;
    size_t slice = chunk_reader_slice_memory(use), chunk = chunk_reader_chunk_memory(use);
    size_t n_text = n_chunked > job->n_inputs ? n_chunked - job->n_inputs : 0;
    uint32_t most = r->n_shared > 0 ? CHUNK_POOL_OWN + r->borrows : use->n_chunks;
    struct chunk_pool_options pool = {.n_inputs = job->n_inputs, .own_chunks = CHUNK_POOL_OWN,
                                      .own_slices = least_slices(job), .n_shared = r->n_shared};
    size_t each = use->n_chunks * chunk + r->n_slices * slice + passed_records_memory(most, r->source_slots)
                + sliced_input_slots_memory(least_slices(job) + most - CHUNK_POOL_OWN);
    return job->n_inputs * each + n_text * (text_memory(use) - use->n_chunks * (chunk - slice))
         + (r->n_shared > 0 ? chunk_pool_memory(&pool) : 0);
}

size_t chunk_plan_memory(const struct memory_rings *rings, size_t n_chunked)
{
    return rings->job.in_chunks ? merge_memory(rings, n_chunked) : n_chunked * text_memory(&rings->chunks);
}
