/* SPDX-License-Identifier: MIT */
#include "bam_arena.h"
#include "codec/bgzf_block.h"
#include "bgzf_omp.h"
#include "sort/merge_ring.h"
#include "engine/engine_memory.h"
#include "engine/engine_opts.h"
#include "engine/chunk_plan.h"
#include "engine/memory_plan.h"
#include "hts/hts_file.h"
#include "read/block_reader.h"
#include "read/read_ahead.h"
#include "sort/spill_policy.h"
#include "sort/record_pack.h"
#include "sort/spill_slice.h"
#include "hts/hts_writer.h"
#include "sormadup/sormadup.h"
#include "sormadup/sormadup_memory.h"
#include "write/output_block.h"
#include "unit.h"

#define KIB ((uint64_t)1 << 10)
#define MIB (KIB << 10)
#define GIB (MIB << 10)

static const uint64_t ALLOWANCE = 64 * MIB, ARENA_LEAST = 2 * MIB;

/* ---- the grid ---- */

static const uint64_t budgets[] = {1 * MIB, 2 * MIB, 5 * MIB, 16 * MIB, 64 * MIB, 100 * MIB, 256 * MIB, 768 * MIB,
                                   1 * GIB, 2 * GIB, 5 * GIB, 20 * GIB, 100 * GIB};
static const int threads[] = {1, 2, 3, 4, 8, 13, 16, 32, 64};
static const int levels[] = {BGZF_LEVEL_DEFAULT, 0, 1, 6, 9};
static const size_t inputs[] = {1, 2, 3, 5, 8};
static const size_t headers[] = {0, 1000, 1 * 1024 * 1024, 50 * 1024 * 1024, 100 * 1024 * 1024};

typedef void check_fn(const struct memory_use *use, const struct memory_plan *plan);

static struct memory_plan plan_of(const struct memory_job *job, const struct memory_use *use)
{
    struct memory_rings rings = memory_plan_rings(job);
    return memory_plan_make(&rings, use);
}

static void for_all(check_fn *check)
{
    for (size_t b = 0; b < N_OF(budgets); b++)
        for (size_t t = 0; t < N_OF(threads); t++)
            for (size_t l = 0; l < N_OF(levels); l++)
                for (size_t i = 0; i < N_OF(inputs); i++)
                    for (size_t h = 0; h < N_OF(headers); h++) {
                        size_t waiting = h % 2 ? inputs[i] - 1 : 0;
                        struct memory_job job = {budgets[b] + ALLOWANCE, threads[t], levels[l], inputs[i], 0,
                                                 SINK_BAM, 0, waiting, false, false, false};
                        struct memory_use use = {.header = headers[h]};
                        struct memory_plan plan = plan_of(&job, &use);
                        check(&use, &plan);
                    }
}

static void told(const struct memory_use *use, const struct memory_plan *plan, const char *what, uint64_t value)
{
    const struct memory_job *job = &plan->rings.job;
    fail_msg("%s: %llu; %llu MiB in all, %d threads, level %d, %zu inputs, header %zu; arena %zu, slice %zu", what,
             (unsigned long long)value, (unsigned long long)(job->all / MIB), job->n_threads, job->level,
             job->n_inputs, use->header, plan->arena_size, plan->slice_size);
}

static uint64_t sink_takes(const struct memory_rings *r)
{
    return r->job.form == SINK_HTSLIB ? hts_writer_batches_memory(r->sink_slots)
         : output_blocks_memory(r->job.form, r->job.n_threads, r->sink_slots, r->job.level, r->out_piece_size);
}

static uint64_t spilling_takes(const struct memory_plan *p)
{
    uint64_t loader = record_packer_memory() + p->slice_size, streams = p->slice_size;
    return (uint64_t)p->rings.job.n_threads * (spill_packer_memory(p->slice_size) + loader + streams) + p->merge_memory;
}

static uint64_t use_of_output(const struct output_use *use, uint64_t all)
{
    return use->htslib + use->overhead + (use->references < all / 3 ? use->references : all / 3);
}

/* Everything besides the arenas, by the same measures as its parts. */
static uint64_t beside_arenas(const struct memory_use *use, const struct memory_plan *p)
{
    const struct memory_rings *r = &p->rings;
    uint64_t input = read_ahead_memory(r->piece_size, r->n_pieces) + bgzf_source_memory(0, r->source_slots);
    return (1 + r->job.n_waiting) * input + bgzf_source_memory(r->job.n_threads, 0)
         + (r->job.in_chunks ? 0 : block_reader_memory(r->source_slots)) + sink_takes(r)
         + spilling_takes(p) + use->header + use->htslib + use->clocks + use_of_output(&use->output, p->rings.job.all)
         + merge_ring_memory(r->merge_ranges, r->merge_spare, r->merge_records,
                             r->job.in_chunks ? r->job.n_inputs : 256,
                             r->job.in_chunks ? 0 : r->job.all / (BAM_MIN_RECORD + sizeof(struct bam_key)));
}

/* Below these the memory is exceeded on purpose: two arenas of the smallest size, and for
 * every part the least that works. */
static bool minimum_is_too_much(const struct memory_use *use, const struct memory_plan *p)
{
    return p->arena_size <= ARENA_LEAST || beside_arenas(use, p) > p->rings.job.all;
}

/* ---- tests ---- */

static void check_sum(const struct memory_use *use, const struct memory_plan *p)
{
    uint64_t all = beside_arenas(use, p) + 2 * (uint64_t)p->arena_size;
    if (!minimum_is_too_much(use, p) && all > p->rings.job.all)
        told(use, p, "too much memory", all);
}

static void test_everything_together_stays_within_budget_and_allowance(void **state)
{
    (void)state;
    for_all(check_sum);
}

/* A plan that never fits would pass by the exception of the minimum sizes; these are plans that may not use it. Parts
 * that grow with the budget are some 40 % of it, and libdeflate's best level needs 9 MiB a thread. */
static void check_fits(const struct memory_use *use, const struct memory_plan *p)
{
    enum { PER_THREAD = 8, PER_THREAD_BEST = 24, PER_INPUT = 2, HEADER_TIMES = 16 };
    uint64_t each = p->rings.job.level == 9 ? PER_THREAD_BEST : PER_THREAD;
    uint64_t ample = 48 * MIB + use->header * HEADER_TIMES
                   + ((uint64_t)p->rings.job.n_threads * each + p->rings.job.n_inputs * PER_INPUT) * MIB;
    if (p->rings.job.all >= ample && minimum_is_too_much(use, p))
        told(use, p, "the least is too much", beside_arenas(use, p));
}

static void test_least_sizes_are_exceptions(void **state)
{
    (void)state;
    for_all(check_fits);
}

static void check_parts(const struct memory_use *use, const struct memory_plan *p)
{
    uint64_t all = p->rings.job.all;
    if (p->slice_size == 0 || p->slice_size % sizeof(struct bam_key))
        told(use, p, "slice size", p->slice_size);
    if (p->slice_size > p->arena_size / 16)
        told(use, p, "slice size too large", p->slice_size);
    if (p->rings.source_slots < (uint32_t)p->rings.job.n_threads || p->rings.source_slots > 10000)
        told(use, p, "source slots", p->rings.source_slots);
    if (p->rings.sink_slots < (uint32_t)p->rings.job.n_threads || p->rings.sink_slots > 10000)
        told(use, p, "sink slots", p->rings.sink_slots);
    if (p->rings.piece_size < BGZF_MAX_BLOCK || p->rings.piece_size > all)
        told(use, p, "piece size", p->rings.piece_size);
    if (p->rings.chunks.piece_size > p->rings.piece_size || p->rings.chunks.source_slots > p->rings.source_slots)
        told(use, p, "reading SAM takes more than reading BAM", p->rings.chunks.piece_size);
    if (p->merge_memory > all || p->merge_memory < 2 * p->slice_size)
        told(use, p, "merge memory", p->merge_memory);
    if (p->arena_size < ARENA_LEAST || p->arena_size > all)
        told(use, p, "arena size", p->arena_size);
}

static void test_every_part_is_neither_useless_nor_an_overflow(void **state)
{
    (void)state;
    for_all(check_parts);
}

/* The expected size in arenas; 0: unknown. */
static const double expected[] = {0, 0.001, 1, 1.7, 1.9, 2, 2.1, 2.5, 3, 3.5, 4, 5, 8, 12, 20, 100, 1000, 1e6, 1e12};

static void check_spilling_of(const struct memory_use *use, const struct memory_plan *p, double bytes, bool late)
{
    enum { PACKED = 2, PAGE = 4096 };
    struct spill_sizes s = spill_policy_sizes(p->arena_size, p->slice_size, bytes, late);
    if (s.store + 2 * s.arena_size > 2 * p->arena_size)
        told(use, p, "arenas and store are more than the arenas", s.store);
    if (s.store && (late || bytes == 0))
        told(use, p, "a store for nothing", s.store);
    if (s.store && (double)(PACKED * s.store + s.arena_size + PAGE) < bytes)
        told(use, p, "a store that does not hold what is expected", s.store);
    if (s.arena_size > p->arena_size || s.arena_size < p->arena_size / 4 || (!s.store && s.arena_size != p->arena_size))
        told(use, p, "arena size beside the store", s.arena_size);
    if (s.slice_size == 0 || s.slice_size > p->slice_size || s.slice_size % sizeof(struct bam_key))
        told(use, p, "slice size", s.slice_size);
    if (s.fan_in < 2 || 2 * s.fan_in * s.slice_size > s.arena_size)      /* two slices of each run */
        told(use, p, "fan-in", s.fan_in);
    if (s.slice_size < p->slice_size && (double)s.fan_in * (double)s.arena_size < bytes)
        told(use, p, "smaller slices, and still merged twice", s.slice_size);
}

static void check_spilling(const struct memory_use *use, const struct memory_plan *p)
{
    for (size_t i = 0; i < N_OF(expected); i++)
        for (int late = 0; late < 2; late++)
            check_spilling_of(use, p, expected[i] * (double)p->arena_size, late);
}

static void test_spilling_stays_within_the_arenas_and_merges_two_runs_at_least(void **state)
{
    (void)state;
    for_all(check_spilling);
}

static void check_share(const struct memory_use *use, const struct memory_plan *p)
{
    if (p->rings.job.all >= GIB + (uint64_t)p->rings.job.n_threads * 48 * MIB && use->header <= MIB
        && 2 * p->arena_size < p->rings.job.all * 2 / 3 - ALLOWANCE)
        told(use, p, "the arenas are too small", p->arena_size);
}

static void test_most_of_an_ample_budget_is_for_the_data(void **state)
{
    (void)state;
    for_all(check_share);
}

static void test_more_budget_never_gives_smaller_arenas(void **state)
{
    (void)state;
    for (size_t t = 0; t < N_OF(threads); t++)
        for (size_t i = 0; i < N_OF(inputs); i++) {
            size_t last = 0, step = 3 * MIB;
            for (uint64_t budget = MIB; budget < 8 * GIB; budget += step, step += step / 16) {
                struct memory_job job = {budget + ALLOWANCE, threads[t], BGZF_LEVEL_DEFAULT, inputs[i], 0,
                                         SINK_BAM, 0, 0, false, false, false};
                struct memory_use use = {.header = 1000};
                struct memory_plan plan = plan_of(&job, &use);
                if (plan.arena_size + plan.arena_size / 8 < last)
                    told(&use, &plan, "smaller than with less", last);
                last = plan.arena_size;
            }
        }
}

static void test_budgets_beyond_all_memory_do_not_overflow(void **state)
{
    (void)state;
    static const uint64_t huge[] = {(uint64_t)1 << 39, BAM_ARENA_MAX - 1, BAM_ARENA_MAX, BAM_ARENA_MAX + 1,
                                    (uint64_t)1 << 62, UINT64_MAX - 1, UINT64_MAX};
    for (size_t b = 0; b < N_OF(huge); b++)
        for (size_t t = 0; t < N_OF(threads); t++) {
            struct memory_job job = {huge[b], threads[t], BGZF_LEVEL_DEFAULT, 1, 0,
                                         SINK_BAM, 0, 0, false, false, false};
            struct memory_use use = {0};
            struct memory_plan plan = plan_of(&job, &use);
            assert_in_range(plan.arena_size, (uint64_t)1 << 37, BAM_ARENA_MAX);  /* places must fit into keys */
            check_spilling(&use, &plan);
            assert_true(plan.slice_size <= 16 * MIB);
        }
}

/* --total-memory states the limit. It may be below 64 MiB, if the smallest parts fit. */
static void test_plan_takes_more_than_all_there_is(void **state)
{
    (void)state;
    static const struct memory_use uses[] = {
        {.header = 100}, {.header = 20 * MIB, .references = 500000},
        {.output = {.overhead = 40 * MIB, .references = 20 * MIB}},  /* --verify and an index */
    };
    for (size_t t = 0; t < N_OF(threads); t++)
        for (size_t u = 0; u < N_OF(uses); u++) {
            struct memory_job job = {0, threads[t], BGZF_LEVEL_DEFAULT, 1, 0,
                                         SINK_BAM, 0, 0, false, false, false};
            uint64_t least = (32 + 8 * (uint64_t)threads[t]) * MIB + 16 * uses[u].header + 512 * uses[u].references
                           + use_of_output(&uses[u].output, GIB);
            for (uint64_t all = MIB; all < 4 * GIB; all += all / MIB / 16 * MIB + MIB) {
                job.all = all;
                struct memory_plan plan = plan_of(&job, &uses[u]);
                uint64_t enough = memory_plan_enough(&job, &uses[u]);
                if (enough % MIB != 0 || enough < all || (memory_plan_takes(&plan) <= all) != (enough < all + MIB)
                    || enough > (all > least ? all + MIB : least))
                    told(&uses[u], &plan, "not what memory_plan_enough() says", enough);
                job.all = enough;
                struct memory_plan more = plan_of(&job, &uses[u]);
                assert_true(memory_plan_takes(&more) <= enough);
                if (beside_arenas(&uses[u], &plan) + 2 * (uint64_t)plan.arena_size > memory_plan_takes(&plan))
                    told(&uses[u], &plan, "takes more than it says", memory_plan_takes(&plan));
            }
        }
}

/* All inputs are read at once, and there are no arenas. */
static void test_merge_takes_more_than_is_said_to_be_enough(void **state)
{
    (void)state;
    static const size_t merged[] = {1, 2, 20, 300};
    for (size_t i = 0; i < N_OF(merged); i++)
        for (size_t t = 0; t < N_OF(threads); t += 2)
            for (size_t b = 0; b < N_OF(budgets); b++) {
                struct memory_job job = {budgets[b], threads[t], BGZF_LEVEL_DEFAULT, merged[i], 0,
                                         SINK_BAM, 0, merged[i] - 1, true, t > 0, false};
                struct memory_use use = {.header = 5000, .n_chunked = merged[i]};
                struct memory_plan plan = plan_of(&job, &use);
                uint64_t takes = memory_plan_takes(&plan), enough = memory_plan_enough(&job, &use);
                uint64_t slices = (uint64_t)merged[i] * plan.rings.n_slices * (t > 0 ? 3 : 2) * plan.rings.chunks.chunk_size;
                assert_true(plan.arena_size == 0 && plan.spilling == 0 && plan.rings.n_slices >= (t > 0 ? 8 : 7));
                if (takes != plan.fixed || takes < beside_arenas(&use, &plan) - spilling_takes(&plan) + slices)
                    told(&use, &plan, "takes more than it says", takes);
                if ((takes <= job.all) != (enough < job.all + MIB))
                    told(&use, &plan, "not what memory_plan_enough() says", enough);
                if (b == 0 && enough > takes / 2 * 3)        /* as little memory as there can be */
                    told(&use, &plan, "chunks of another size than their share", enough);
                for (job.all = enough; job.all <= enough + MIB; job.all += MIB) {
                    plan = plan_of(&job, &use);
                    if (memory_plan_takes(&plan) > job.all)
                        told(&use, &plan, "was said to be enough", job.all);
                }
            }
}

/* Parallel file systems and network disks need writes of 512 KiB and more. */
static void check_writes(const struct memory_use *use, const struct memory_plan *p)
{
    enum { LEAST = 64 << 10, LARGE = 512 << 10 };
    size_t size = p->rings.out_piece_size;
    if (p->rings.job.level == 0 && size == 0)
        return;                                  /* its blocks are large enough */
    if (size < LEAST || size > 2 * LARGE || (size & (size - 1)) != 0)
        told(use, p, "bytes per write are no power of two from 64 KiB up", size);
    if (p->rings.job.all >= 128 * MIB && size < LARGE)
        told(use, p, "small writes", size);
}

static void test_output_is_written_in_small_parts(void **state)
{
    (void)state;
    for_all(check_writes);
}

/* Tests of the program use it to make small inputs leave memory. */
static void test_arena_size_of_the_environment(void **state)
{
    (void)state;
    static const size_t sizes[] = {300000, 1 << 20, 10000000};
    for (size_t i = 0; i < N_OF(sizes); i++)
        for (size_t t = 0; t < N_OF(threads); t++) {
            char text[32];
            snprintf(text, sizeof text, "%zu", sizes[i]);
            setenv("SAMTOOLS_OMP_ARENA", text, 1);
            struct memory_job job = {768 * MIB + ALLOWANCE, threads[t], BGZF_LEVEL_DEFAULT, 1, 0,
                                         SINK_BAM, 0, 0, false, false, false};
            struct memory_use use = {0};
            struct memory_plan plan = plan_of(&job, &use);
            unsetenv("SAMTOOLS_OMP_ARENA");
            assert_int_equal(plan.arena_size, sizes[i] / 4096 * 4096);
            assert_int_equal(plan.slice_size % sizeof(struct bam_key), 0);
            assert_true(plan.slice_size > 0 && plan.slice_size <= plan.arena_size / 16);
            assert_true(plan.merge_memory >= 2 * plan.slice_size);
            check_spilling(&use, &plan);
        }
}

/* A chunk holds a complete block, and leaves enough of the budget for everything else. */
static void test_chunks_of_sam_are_useless_or_too_much(void **state)
{
    (void)state;
    for (size_t b = 0; b < N_OF(budgets); b++)
        for (size_t t = 0; t < N_OF(threads); t++)
            for (size_t i = 0; i < N_OF(inputs); i++) {
                struct chunk_memory use = chunk_plan_text(budgets[b] + ALLOWANCE, inputs[i], threads[t]);
                uint64_t chunks = ((uint64_t)use.n_chunks * (use.chunk_size + use.records_size)
                                   + use.n_lent * use.records_size) * inputs[i];
                assert_in_range(use.n_chunks, 2, 2 * threads[t] + 2);
                assert_true(use.chunk_size >= BGZF_MAX_BLOCK && use.records_size >= use.chunk_size);
                assert_true(use.piece_size >= BGZF_MAX_BLOCK && use.source_slots >= use.n_chunks);
                assert_true(chunks <= (budgets[b] + ALLOWANCE) / 8 * 5 / 4 || use.n_chunks == 2);
            }
}

/* Compares all sizes in them: the padding between fields has any value. */
static void assert_rings_equal(const struct memory_rings *one, const struct memory_rings *other)
{
    const struct memory_rings *both[] = {one, other};
    size_t sizes[2][16];
    for (size_t i = 0; i < N_OF(both); i++) {
        const struct memory_rings *r = both[i];
        const size_t of_rings[16] = {
            r->piece_size, r->n_pieces, r->source_slots, r->sink_slots, r->out_piece_size, r->merge_ranges,
            r->merge_spare, r->merge_records, r->chunks.piece_size, r->chunks.source_slots, r->chunks.n_chunks, r->chunks.n_lent,
            r->chunks.records_size, r->n_slices, r->n_shared, r->borrows,
        };
        memcpy(sizes[i], of_rings, sizeof of_rings);
    }
    assert_memory_equal(sizes[0], sizes[1], sizeof sizes[0]);
}

/* Sources and sinks are open by then: the headers' memory may only be taken from the arenas. */
static void test_huge_header_changes_rings_that_are_open(void **state)
{
    (void)state;
    static const struct memory_use none = {0}, much = {200 * MIB, 500000, true, 300 * MIB, 1, 50 * MIB, {MIB, false, MIB, MIB, NULL, NULL}};
    for (size_t b = 0; b < N_OF(budgets); b++)
        for (size_t t = 0; t < N_OF(threads); t++)
            for (size_t i = 0; i < N_OF(inputs); i++) {
                struct memory_job job = {budgets[b] + ALLOWANCE, threads[t], BGZF_LEVEL_DEFAULT, inputs[i], 0,
                                         SINK_BAM, 0, 0, false, false, false};
                struct memory_rings rings = memory_plan_rings(&job);
                struct memory_plan little = memory_plan_make(&rings, &none), plan = memory_plan_make(&rings, &much);
                assert_rings_equal(&plan.rings, &rings);
                assert_rings_equal(&little.rings, &rings);
                assert_true(plan.arena_size <= little.arena_size);
            }
}

/* Arenas give up the memory that they use, but at most a third of all. */
static void test_libraries_take_memory_that_is_not_there(void **state)
{
    (void)state;
    static const struct memory_use none = {0};
    for (size_t b = 0; b < N_OF(budgets); b++) {
        struct memory_job job = {budgets[b] + ALLOWANCE, 1, BGZF_LEVEL_DEFAULT, 1, 0,
                                         SINK_BAM, 0, 0, false, false, false};
        struct memory_plan plain = plan_of(&job, &none);
        job.program = 3 * MIB;
        struct memory_plan small = plan_of(&job, &none);
        job.program = 9 * MIB;
        struct memory_plan large = plan_of(&job, &none);
        job.program = 1000 * MIB;
        struct memory_plan huge = plan_of(&job, &none);
        assert_int_equal(plain.fixed, small.fixed - 1 * MIB);
        assert_int_equal(large.fixed, small.fixed + 6 * MIB);
        assert_true(2 * large.arena_size + large.merge_memory <= 2 * small.arena_size + small.merge_memory - 6 * MIB + 4096);
        assert_true(huge.fixed <= plain.fixed + (budgets[b] + ALLOWANCE) / 3);
    }
}

/* Memory of htslib for all inputs and the output, with as many threads as it may have. */
static uint64_t htslib_takes(const struct memory_rings *r)
{
    struct htslib_use in = hts_file_use(true, false, &r->reader, r->job.n_threads);
    struct htslib_use out = hts_file_use(true, true, &r->writer, r->job.n_threads);
    assert_in_range(in.n_threads, 1, r->job.n_threads);
    assert_in_range(out.n_threads, 1, r->job.n_threads);
    return r->job.n_inputs * in.bytes + out.bytes;
}

/* The least is one thread each, 10 MiB for each input and 20 for the output. */
static void test_several_cram_files_take_more_than_there_is(void **state)
{
    (void)state;
    static const size_t spaces[] = {0, 9 * MIB};
    for (size_t b = 0; b < N_OF(budgets); b++)
        for (size_t t = 0; t < N_OF(threads); t++)
            for (size_t i = 0; i < N_OF(inputs); i++)
                for (size_t k = 0; k < N_OF(spaces); k++) {
                    struct memory_job job = {budgets[b] + ALLOWANCE, threads[t], BGZF_LEVEL_DEFAULT, inputs[i],
                                             spaces[k], SINK_HTSLIB, 0, inputs[i] - 1, false, false, false};
                    struct memory_rings rings = memory_plan_rings(&job);
                    struct memory_use use = {.htslib = htslib_takes(&rings)};
                    struct memory_plan plan = memory_plan_make(&rings, &use);
                    uint64_t least = (10 * inputs[i] + 20) * MIB, share = (budgets[b] + ALLOWANCE) * 2 / 3;
                    if (use.htslib > (share > least ? share : share / 2 + least))
                        told(&use, &plan, "too much for htslib", use.htslib);
                    check_sum(&use, &plan);
                }
}

/* If addresses have a limit, a thread also costs its stack. */
static void test_threads_of_htslib_take_addresses_that_are_not_there(void **state)
{
    (void)state;
    struct htslib_room room = {190 * MIB, 0}, limited = {190 * MIB, 20 * MIB};
    assert_int_equal(hts_file_use(true, false, &room, 64).n_threads, (190 - 10) / 16);
    assert_int_equal(hts_file_use(true, false, &limited, 64).n_threads, (190 - 10) / (16 + 20));
    assert_int_equal(hts_file_use(true, false, &limited, 64).bytes, (10 + 5 * 36) * MIB);
}

/* The sort that collates records and the next sort hold the same records at one time. So each has half of the memory
 * that the other producers leave. */
static void test_sorts_of_sormadup_have_unequal_shares(void **state)
{
    (void)state;
    static const uint64_t all[] = {1 * GIB, 2 * GIB, 5 * GIB, 20 * GIB};
    for (size_t a = 0; a < N_OF(all); a++)
        for (int n_threads = 1; n_threads <= 16; n_threads *= 4) {
            struct engine_opts opts = {.n_threads = n_threads};
            struct memory_job job = {.all = all[a], .n_threads = n_threads, .n_inputs = 1};
            struct memory_rings rings = memory_plan_rings(&job);
            struct sormadup_use use = {.opts = &opts, .collates = true};
            struct output_use output = {.more = sormadup_overhead, .arg = &use};
            struct memory_plan next = engine_memory_plan_any(&rings, &opts, &use.in, output);
            uint64_t halves[] = {sormadup_overhead(&use, &rings) - sormadup_memory_marking(&rings),
                                 memory_plan_takes(&next) - next.fixed};
            assert_true(memory_plan_takes(&next) <= all[a]);
            if (halves[0] > halves[1] + halves[1] / 20 || halves[1] > halves[0] + halves[0] / 20)
                fail_msg("of %llu MiB with %d threads, one sort has %llu MiB, the other %llu", (unsigned long long)(all[a] / MIB),
                         n_threads, (unsigned long long)(halves[0] / MIB), (unsigned long long)(halves[1] / MIB));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_together_stays_within_budget_and_allowance),
        cmocka_unit_test(test_least_sizes_are_exceptions),
        cmocka_unit_test(test_every_part_is_neither_useless_nor_an_overflow),
        cmocka_unit_test(test_spilling_stays_within_the_arenas_and_merges_two_runs_at_least),
        cmocka_unit_test(test_most_of_an_ample_budget_is_for_the_data),
        cmocka_unit_test(test_more_budget_never_gives_smaller_arenas),
        cmocka_unit_test(test_budgets_beyond_all_memory_do_not_overflow),
        cmocka_unit_test(test_plan_takes_more_than_all_there_is),
        cmocka_unit_test(test_merge_takes_more_than_is_said_to_be_enough),
        cmocka_unit_test(test_output_is_written_in_small_parts),
        cmocka_unit_test(test_arena_size_of_the_environment),
        cmocka_unit_test(test_chunks_of_sam_are_useless_or_too_much),
        cmocka_unit_test(test_huge_header_changes_rings_that_are_open),
        cmocka_unit_test(test_libraries_take_memory_that_is_not_there),
        cmocka_unit_test(test_several_cram_files_take_more_than_there_is),
        cmocka_unit_test(test_threads_of_htslib_take_addresses_that_are_not_there),
        cmocka_unit_test(test_sorts_of_sormadup_have_unequal_shares),
    };
    unsetenv("SAMTOOLS_OMP_ARENA");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
