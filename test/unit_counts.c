/* SPDX-License-Identifier: MIT */
/* The sums of many threads, some of which have counted nothing. The counter of this test only counts records. */
#include <htslib/sam.h>
#include "base/engine.h"
#include "base/latch.h"
#include "stats/counts.h"
#include "unit.h"

enum { THREADS = 21 };           /* two groups of threads, and some more */

static int64_t fault;            /* sums of this many records fail */

static void *open_sums(const void *settings)
{
    (void)settings;
    return calloc(1, sizeof(int64_t));
}

static int join_sums(void *left, void *right)
{
    int64_t *to = left, *from = right;
    *to += *from;
    *from = 0;
    return *to == fault ? -1 : 0;
}

static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    (void)part, (void)record, (void)size;
    ++*(int64_t *)sums;
    return 0;
}

static int64_t printed;

static int print(void *sums, void *part, FILE *out, struct latch *latch)
{
    (void)part, (void)out, (void)latch;
    printed = *(const int64_t *)sums;
    return 0;
}

static const struct counter counter = {.command = "test", .sums = {.open = open_sums, .join = join_sums, .close = free},
                                       .add = add, .print = print};

/* Thread k counts k records, if it counts at all. Returns the status of counts_print(). */
static int count(int n_threads, bool (*does_count)(int thread))
{
    struct latch latch = {.tripped = LATCH_OPEN};
    const struct engine engine = {.latch = &latch, .n_threads = n_threads};
    struct counts_options how = {&counter, 1, "in.bam", &engine, 1};
    struct counts *counts = counts_open(&how, NULL);
    MUST(counts);
    for (int thread = 0; thread < n_threads; thread++)
        for (int i = 0; i < thread && does_count(thread); i++)
            counts_add(counts, thread, 0, NULL, 0);
    int status = counts_print(counts, 0, stdout);
    assert_int_equal(latch_tripped(&latch), status < 0);
    counts_close(counts);
    return status;
}

static bool each(int thread) { return thread >= 0; }
static bool odd(int thread) { return thread % 2 != 0; }
static bool last(int thread) { return thread == THREADS - 1; }

static void test_sums_of_some_threads_are_lost(void **state)
{
    (void)state;
    fault = -1;
    for (int n = 1; n <= THREADS; n++) {
        assert_int_equal(count(n, each), 0);
        assert_int_equal(printed, n * (n - 1) / 2);
    }
    assert_int_equal(count(THREADS, odd), 0);
    assert_int_equal(printed, THREADS / 2 * (THREADS / 2));
    assert_int_equal(count(THREADS, last), 0);
    assert_int_equal(printed, THREADS - 1);
}

static void test_sums_that_cannot_be_joined_are_printed(void **state)
{
    (void)state;
    fault = 0 + 1 + 2;           /* inside the first group */
    assert_int_equal(count(THREADS, each), -1);
    fault = THREADS * (THREADS - 1) / 2;     /* of all groups */
    assert_int_equal(count(THREADS, each), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_some_threads_are_lost),
        cmocka_unit_test(test_sums_that_cannot_be_joined_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
