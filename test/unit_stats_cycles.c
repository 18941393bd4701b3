/* SPDX-License-Identifier: MIT */
/* Compares the bases and qualities of each cycle that stats_bases and stats_quals count with a count of one base at a
 * time: reads of all lengths, both strands, any bases, few and many qualities, more reads than small counters hold,
 * counts of several threads. */
#include "stats/stats_bases.h"
#include "stats/stats_quals.h"
#include "unit.h"

enum { MOST = 700, BEFORE = BASES_BLOCK };

/* The counts of one base at a time. */
struct plain {
    uint64_t seq[MOST][STATS_BASES], read[MOST][STATS_BASES], quals[MOST][QUALS];
};

struct counted {
    struct stats_bases bases;
    struct stats_quals quals;
};

/* The kind of data. */
struct reads {
    uint32_t n, longest;
    uint32_t n_quals;            /* different qualities */
    uint32_t others;             /* one base in so many is none of A, C, G, T; 0: none is */
    bool grow;                   /* each read is longer than the one before it */
};

static enum stats_base base_of(unsigned code)
{
    static const char bases[] = "5015255535555554";
    return (enum stats_base)(bases[code] - '0');
}

static void count_plain(struct plain *plain, bool is_reverse, const uint8_t *seq, const uint8_t *qual, uint32_t n,
                        uint32_t *gc)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t cycle = is_reverse ? n - 1 - i : i;
        enum stats_base base = base_of(i % 2 ? seq[i / 2] & 15 : seq[i / 2] >> 4);
        plain->seq[cycle][base]++;
        plain->read[cycle][base <= STATS_T && is_reverse ? STATS_T - base : base]++;
        plain->quals[cycle][qual[i]]++;
        *gc += base == STATS_C || base == STATS_G;
    }
}

static uint8_t random_code(const struct reads *reads, uint64_t *seed)
{
    bool is_other = reads->others > 0 && unit_below(seed, reads->others) == 0;
    return (uint8_t)(is_other ? unit_below(seed, 16) : 1u << unit_below(seed, 4));
}

/* Counts a random read, of this number among all, in both ways. It lies at the end of the memory, so that a sanitizer
 * sees an access after it. Bits after the last base are set. */
static void count_read(const struct reads *reads, uint32_t number, struct plain *plain, struct counted *counted,
                       uint64_t *seed)
{
    uint32_t n = (uint32_t)unit_below(seed, reads->longest + 1);
    if (reads->grow)
        n = reads->longest / reads->n * (number + 1);
    uint32_t n_bytes = n / 2 + n % 2, gc = 0, found;
    uint8_t *record = must_alloc(BEFORE + n_bytes + n), *seq = record + BEFORE, *qual = seq + n_bytes;
    bool is_reverse = unit_below(seed, 2);
    memset(record, 0x5a, BEFORE);
    for (uint32_t i = 0; i < n_bytes; i++)
        seq[i] = (uint8_t)(random_code(reads, seed) << 4);
    for (uint32_t i = 0; i < n_bytes; i++)
        seq[i] |= random_code(reads, seed);
    for (uint32_t i = 0; i < n; i++)
        qual[i] = (uint8_t)(unit_below(seed, reads->n_quals) * 37);
    count_plain(plain, is_reverse, seq, qual, n, &gc);
    MUST(stats_bases_add(&counted->bases, is_reverse, seq, n, &found) == 0);
    MUST(stats_quals_add(&counted->quals, is_reverse, qual, n) == 0);
    assert_int_equal(found, gc);
    free(record);
}

static void compare(const struct plain *plain, struct counted *counted)
{
    stats_bases_close(&counted->bases);
    MUST(stats_quals_close(&counted->quals) == 0);
    for (size_t cycle = 0; cycle < MOST; cycle++) {
        uint64_t seq[STATS_BASES] = {0}, read[STATS_BASES] = {0};
        stats_bases_cycle(&counted->bases, cycle, seq, read);
        assert_memory_equal(seq, plain->seq[cycle], sizeof seq);
        assert_memory_equal(read, plain->read[cycle], (STATS_T + 1) * sizeof *read);
        for (int quality = 0; quality < QUALS; quality++)
            if (stats_quals_count(&counted->quals, cycle, quality) != plain->quals[cycle][quality])
                fail_msg("cycle %zu, quality %d", cycle, quality);
    }
}

/* Counts the reads in `threads` structs, joins them, and compares. */
static void check(struct reads reads, uint32_t threads)
{
    uint64_t seed = reads.n + reads.longest;
    struct plain *plain = must_alloc(sizeof *plain);
    struct counted *counted = must_alloc(threads * sizeof *counted);
    memset(plain, 0, sizeof *plain);
    memset(counted, 0, threads * sizeof *counted);
    for (uint32_t i = 0; i < reads.n; i++)
        count_read(&reads, i, plain, &counted[i % threads], &seed);
    for (uint32_t k = 1; k < threads; k++) {
        MUST(stats_bases_join(&counted[0].bases, &counted[k].bases) == 0);
        MUST(stats_quals_join(&counted[0].quals, &counted[k].quals) == 0);
        assert_null(counted[k].bases.planes);
        assert_null(counted[k].quals.hot);
    }
    compare(plain, counted);
    stats_bases_free(&counted->bases);
    stats_quals_free(&counted->quals);
    free(counted);
    free(plain);
}

static void test_bases_are_miscounted(void **state)
{
    (void)state;
    check((struct reads){.n = 3000, .longest = 100, .n_quals = 4}, 1);
    check((struct reads){.n = 3000, .longest = 70, .n_quals = 4, .others = 5}, 1);
    check((struct reads){.n = 500, .longest = MOST, .n_quals = 4, .others = 100}, 1);
}

static void test_qualities_are_miscounted(void **state)
{
    (void)state;
    for (uint32_t n_quals = 1; n_quals <= QUALS_FEW + 2; n_quals++)
        check((struct reads){.n = 600, .longest = 60, .n_quals = n_quals}, 1);
    check((struct reads){.n = 600, .longest = 300, .n_quals = QUALS}, 1);
}

static void test_small_counters_overflow(void **state)
{
    (void)state;
    check((struct reads){.n = 3 * UINT16_MAX, .longest = 3, .n_quals = 2}, 1);
    check((struct reads){.n = 3 * UINT16_MAX, .longest = 3, .n_quals = 2 * QUALS_FEW}, 1);
}

static void test_counts_of_threads_are_lost(void **state)
{
    (void)state;
    check((struct reads){.n = 1000, .longest = 150, .n_quals = 5, .others = 50}, 3);
    check((struct reads){.n = 4, .longest = MOST, .n_quals = 5, .others = 50}, 4);
    check((struct reads){.n = 2, .longest = 150, .n_quals = 5}, 3);
    check((struct reads){.n = 3, .longest = MOST, .n_quals = 5, .grow = true}, 3);
    check((struct reads){.n = 0, .longest = 1, .n_quals = 1}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bases_are_miscounted),
        cmocka_unit_test(test_qualities_are_miscounted),
        cmocka_unit_test(test_small_counters_overflow),
        cmocka_unit_test(test_counts_of_threads_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
