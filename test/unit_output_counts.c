/* SPDX-License-Identifier: MIT */
/* Records are counted in the blocks that they are written to. The counter of this test is slow to join, so that blocks
 * are written long before their counts are joined. Sums of threads are joined before they are printed. */
#include <omp.h>
#include <time.h>
#include <unistd.h>
#include <htslib/sam.h>
#include "base/engine.h"
#include "base/latch.h"
#include "codec/bgzf_block.h"
#include "stats/counts.h"
#include "write/output_block.h"
#include "unit.h"

enum { N_SLOTS = 16, N_RECORDS = 4000, SIZE = 9000, BROKEN = 1500 };

/* Numbers of records that follow each other. */
struct part {
    int64_t first, n;
};

static bool is_broken;           /* a join fails */

static void *open_part(const void *settings)
{
    (void)settings;
    struct part *p = must_alloc(sizeof *p);
    *p = (struct part){0, 0};
    return p;
}

static int join_parts(void *left, void *right)
{
    struct part *to = left, *from = right;
    MUST(from->n == 0 || from->first == to->n);
    if (from->n > 0)
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    to->n += from->n;
    from->n = 0;
    return is_broken && to->n > BROKEN ? -1 : 0;
}

static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    (void)sums;
    struct part *p = part;
    int64_t number;
    memcpy(&number, record, sizeof number);
    p->first = p->n ? p->first : number;
    MUST(size == SIZE && number == p->first + p->n);
    p->n++;
    return 0;
}

static size_t memory_of(const void *settings, sam_hdr_t *sam, size_t range)
{
    (void)settings, (void)sam, (void)range;
    return sizeof(struct part);
}

static int64_t n_printed;

static int print(void *sums, void *part, FILE *out, struct latch *latch)
{
    (void)sums, (void)out, (void)latch;
    n_printed = ((const struct part *)part)->n;
    return 0;
}

static const struct counter counter = {.command = "test", .part = {open_part, join_parts, free, memory_of}, .add = add,
                                       .print = print};

static int put_all(struct output_blocks *sink, const struct record_ref *records)
{
    if (output_blocks_put_header(sink, (const uint8_t *)"header", 6) < 0
        || output_blocks_put(sink, &(struct record_list){.records = (struct record_ref *)records, .n = N_RECORDS}) < 0)
        return -1;
    return output_blocks_finish(sink);
}

/* Writes all records with a team of this size. Returns the result of the sink. */
static int write_records(int n_threads, struct latch *latch)
{
    uint8_t *bytes = must_alloc((size_t)N_RECORDS * SIZE);
    struct record_ref *records = must_alloc(N_RECORDS * sizeof *records);
    for (int64_t i = 0; i < N_RECORDS; i++) {
        records[i] = (struct record_ref){memset(bytes + i * SIZE, 'A', SIZE), SIZE, 0, 0};
        memcpy(bytes + i * SIZE, &i, sizeof i);
    }
    const struct engine engine = {.latch = latch, .n_threads = n_threads};
    struct counts_options how = {&counter, 1, "out.bam", &engine, N_SLOTS};
    struct bgzf_sink_options options = {.fd = unit_temp_file(), .path = "out.bam", .level = 0, .n_slots = N_SLOTS,
                                        .engine = &engine};
    struct counts *counts = counts_open(&how, NULL, NULL);
    struct output_blocks *sink = output_blocks_open(&options);
    MUST(counts && sink);
    output_blocks_how(sink)->counts = counts;
    int result = -1;
    n_printed = -1;
    #pragma omp parallel num_threads(n_threads)
    if (omp_get_thread_num() == 0) {
        result = put_all(sink, records);
        if (result == 0)
            MUST(counts_print(counts, 0, stdout) == 0);
    }
    output_blocks_close(sink);
    counts_close(counts);
    close(options.fd);
    free(records);
    free(bytes);
    return result;
}

static void test_block_is_begun_or_printed_before_counts_are_joined(void **state)
{
    (void)state;
    is_broken = false;
    for (int n_threads = 1; n_threads <= 8; n_threads *= 2) {
        struct latch latch = {.tripped = LATCH_OPEN};
        assert_int_equal(write_records(n_threads, &latch), 0);
        assert_int_equal(n_printed, N_RECORDS);
    }
}

static void test_sink_waits_for_joins_after_one_that_failed(void **state)
{
    (void)state;
    is_broken = true;
    for (int n_threads = 1; n_threads <= 8; n_threads *= 2) {
        struct latch latch = {.tripped = LATCH_OPEN};
        assert_int_equal(write_records(n_threads, &latch), -1);
        assert_true(latch_tripped(&latch));
    }
}

/* ---- the sums of threads ---- */

static void *open_sums(const void *settings)
{
    (void)settings;
    int64_t *sums = must_alloc(sizeof *sums);
    *sums = 0;
    return sums;
}

static int join_sums(void *left, void *right)
{
    *(int64_t *)left += *(int64_t *)right;
    return is_broken ? -1 : 0;
}

static int add_size(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    (void)part, (void)record;
    *(int64_t *)sums += size;
    return 0;
}

static int print_sums(void *sums, void *part, FILE *out, struct latch *latch)
{
    (void)part, (void)out, (void)latch;
    n_printed = *(int64_t *)sums;
    return 0;
}

/* Thread k counts 2^k, but one thread counts nothing. Returns what counts_print() returns, of two calls. */
static int print_sums_without(int absent, int n_threads, struct latch *latch)
{
    static const struct counter sizes = {.command = "test", .sums = {open_sums, join_sums, free, memory_of},
                                         .add = add_size, .print = print_sums};
    const struct engine engine = {.latch = latch, .n_threads = n_threads};
    struct counts_options how = {&sizes, 1, "out.bam", &engine, N_SLOTS};
    struct counts *counts = counts_open(&how, NULL, NULL);
    MUST(counts);
    for (int k = 0; k < n_threads; k++)
        if (k != absent)
            counts_add(counts, k, 0, NULL, 1U << k);
    int result = 0;
    #pragma omp parallel num_threads(n_threads)
    if (omp_get_thread_num() == 0)
        result = counts_print(counts, 0, stdout) < 0 || counts_print(counts, 0, stdout) < 0 ? -1 : 0;
    counts_close(counts);
    return result;
}

static void test_sums_of_a_thread_are_lost_or_count_twice(void **state)
{
    (void)state;
    is_broken = false;
    for (int n_threads = 1; n_threads <= 9; n_threads++)
        for (int absent = -1; absent < n_threads; absent++) {
            struct latch latch = {.tripped = LATCH_OPEN};
            assert_int_equal(print_sums_without(absent, n_threads, &latch), 0);
            assert_int_equal(n_printed, (1 << n_threads) - 1 - (absent >= 0 ? 1 << absent : 0));
        }
}

static void test_sums_are_printed_that_could_not_be_joined(void **state)
{
    (void)state;
    is_broken = true;
    struct latch latch = {.tripped = LATCH_OPEN};
    assert_int_equal(print_sums_without(-1, 4, &latch), -1);
    assert_true(latch_tripped(&latch));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_is_begun_or_printed_before_counts_are_joined),
        cmocka_unit_test(test_sink_waits_for_joins_after_one_that_failed),
        cmocka_unit_test(test_sums_of_a_thread_are_lost_or_count_twice),
        cmocka_unit_test(test_sums_are_printed_that_could_not_be_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
