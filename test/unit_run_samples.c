/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "base/engine.h"
#include "base/task_ring.h"
#include "sort/run_cut.h"
#include "sort/run_samples.h"

enum { MOST = 300, LISTS = 70 };

/* Sorted sublists of different lengths, none or few keys in some, and equal keys in all. */
struct taking {
    struct bam_key keys[LISTS][MOST];
    struct bam_sublist lists[LISTS];
    struct bam_arena arena;
    struct run_samples samples;
    size_t every;
    int n_threads, result;
};

static struct taking *taking_new(size_t n_lists)
{
    struct taking *t = calloc(1, sizeof *t);
    uint64_t seed = n_lists + 1, place = 0;
    MUST(t && n_lists <= LISTS);
    for (size_t i = 0; i < n_lists; i++) {
        uint64_t key = 0;
        t->lists[i] = (struct bam_sublist){t->keys[i], unit_below(&seed, i % 3 == 0 ? 4 : MOST)};
        for (size_t j = 0; j < t->lists[i].n; j++)
            t->keys[i][j] = (struct bam_key){key += unit_below(&seed, 3), bam_key_place(place += 40, 40)};
    }
    t->arena = (struct bam_arena){.sublists = t->lists, .n_sublists = n_lists};
    return t;
}

static void take(void *arg)
{
    struct taking *t = arg;
    t->result = run_samples_open(&t->samples, &t->arena, t->every, &(struct engine){.n_threads = t->n_threads});
    run_samples_take(&t->samples);
}

static void test_team_takes_what_one_thread_takes(void **state)
{
    (void)state;
    static const int team_sizes[] = {1, 2, 3, 8, 40};
    static const size_t n_lists[] = {0, 1, 2, LISTS};
    struct bam_key expected[LISTS * MOST];
    for (size_t i = 0; i < N_OF(n_lists); i++) {
        struct taking *t = taking_new(n_lists[i]);
        for (size_t j = 0; j < N_OF(team_sizes); j++)
            for (t->every = 1; t->every <= 2 * MOST; t->every = t->every * 3 / 2 + 1) {
                t->n_threads = team_sizes[j];
                task_team(t->n_threads, take, t);
                assert_int_equal(t->result, 0);
                size_t n = run_cut_sample(&t->arena, t->every, expected, N_OF(expected));
                assert_int_equal(t->samples.n, n);
                assert_memory_equal(t->samples.keys, expected, n * sizeof *expected);
                run_samples_free(&t->samples);
            }
        free(t);
    }
}

static void test_freeing_nothing_is_allowed(void **state)
{
    (void)state;
    struct run_samples none = {0};
    run_samples_free(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_team_takes_what_one_thread_takes),
        cmocka_unit_test(test_freeing_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
