/* SPDX-License-Identifier: MIT */
#include <sys/syscall.h>
#include "base/engine.h"
#include "base/latch.h"
#include "sormadup/orphans.h"
#include "unit.h"

enum { LONE = 100000, LEAST_MEMORY = 0, MUCH_MEMORY = 16 << 20 };

static struct latch latch;
static const struct engine engine = {.latch = &latch, .n_threads = 1};
static bool flips;               /* one bit of the data read back differs */

ssize_t pread(int fd, void *data, size_t n, off_t at)
{
    ssize_t done = syscall(SYS_pread64, fd, data, n, at);
    if (flips && done > 0)
        *(uint8_t *)data ^= 4;
    return done;
}

static struct orphans *open_orphans(size_t memory)
{
    static const char *const prefixes[] = {"/tmp/unit-orphans"};
    struct orphans_options how = {.store = {prefixes, 1, &engine}, .memory = memory, .path = "in"};
    memset(&latch, 0, sizeof latch);
    struct orphans *m = orphans_open(&how);
    assert_non_null(m);
    return m;
}

/* Puts the mates, some at a time, and ends. */
static int put_all(const uint64_t *mates, size_t n, size_t memory, uint64_t *seed)
{
    struct orphans *m = open_orphans(memory);
    int status = 0;
    for (size_t at = 0, more; at < n && status == 0; at += more) {
        more = unit_below(seed, 3000);
        more = more < n - at ? more : n - at;
        status = orphans_put(m, mates + at, more);
    }
    status = status < 0 ? status : orphans_end(m);
    orphans_close(m);
    return status;
}

/* The halves of one pair are anywhere among many orphans. */
static void test_pair_apart_is_missed(void **state)
{
    (void)state;
    static uint64_t mates[LONE];
    uint64_t seed = 1;
    for (int trial = 0; trial < 24; trial++) {
        size_t memory = trial % 2 ? LEAST_MEMORY : MUCH_MEMORY;
        for (size_t i = 0; i < LONE; i++)
            mates[i] = unit_random(&seed) | 4;
        if (trial < 4)
            assert_int_equal(put_all(mates, LONE, memory, &seed), 0);
        size_t first = unit_below(&seed, LONE), second = unit_below(&seed, LONE - 1);
        second += second >= first;
        mates[second] = mates[first] ^ 1;
        assert_int_equal(put_all(mates, LONE, memory, &seed), -1);
        assert_non_null(strstr(latch.message, "in: the records are not grouped by name"));
    }
}

/* If a read occurs twice, both are the same half of a pair: neither is the mate of the other, at any place. */
static void test_same_half_is_told(void **state)
{
    (void)state;
    static uint64_t mates[2 * LONE / 10];
    uint64_t seed = 2, half = LONE / 10;
    for (size_t i = 0; i < half; i++)
        mates[i] = mates[half + i] = unit_random(&seed) | 4;
    assert_int_equal(put_all(mates, 2 * half, MUCH_MEMORY, &seed), 0);
    assert_int_equal(put_all(mates, 2 * half, LEAST_MEMORY, &seed), 0);
}

/* These are not real hashes: all have the same home, the last places. */
static void test_numbers_that_collide_are_lost(void **state)
{
    (void)state;
    enum { N = 3000 };
    static uint64_t mates[N];
    uint64_t seed = 3;
    for (uint64_t i = 0; i < N; i++)
        mates[i] = UINT64_MAX << 46 | i << 31;
    mates[N - 1] = mates[0] ^ 1;
    for (int i = 0; i < 2; i++)
        assert_int_equal(put_all(mates, N, i ? MUCH_MEMORY : LEAST_MEMORY, &seed), -1);
    assert_non_null(strstr(latch.message, "in: the records are not grouped by name"));
}

static void test_damage_is_taken(void **state)
{
    (void)state;
    static uint64_t mates[LONE / 10];
    uint64_t seed = 4;
    for (size_t i = 0; i < LONE / 10; i++)
        mates[i] = unit_random(&seed) | 4;
    flips = true;
    assert_int_equal(put_all(mates, LONE / 10, LEAST_MEMORY, &seed), -1);
    flips = false;
    assert_non_null(strstr(latch.message, "are damaged"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_apart_is_missed),
        cmocka_unit_test(test_same_half_is_told),
        cmocka_unit_test(test_numbers_that_collide_are_lost),
        cmocka_unit_test(test_damage_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
