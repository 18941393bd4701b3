/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include "base/task_ring.h"
#include "unit.h"

enum { N_RINGS = 40, N_SLOTS = 3 };

struct counted {
    struct task_ring rings[N_RINGS];
    _Atomic unsigned ran[N_RINGS][N_SLOTS];
};

struct ring_of {
    struct counted *all;
    size_t number;
};

static void count(void *ring, uint32_t slot)
{
    const struct ring_of *r = ring;
    atomic_fetch_add(&r->all->ran[r->number][slot], 1);
}

/* Runs on the main thread, which does not help: tasks do all the work. */
static void deal(struct counted *c)
{
    struct task_batches batches = {.n = 0};
    task_batches_submit(&batches);
    task_batches_submit(NULL);
    for (size_t i = 0; i < N_RINGS; i++) {
        task_ring_use_batches(&c->rings[i], &batches);
        for (size_t slots = i % (N_SLOTS + 1); slots > 0; slots--)
            task_ring_hand_out(&c->rings[i]);
        task_ring_make_task(&c->rings[i]);
        assert_true(batches.n < TASK_BATCHES_MOST);
    }
    task_batches_submit(&batches);
    assert_int_equal(batches.n, 0);
    #pragma omp taskwait
}

static void test_task_of_many_rings_leaves_slots_out(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 9; n_threads += 4) {
        struct counted c = {.ran = {{0}}};
        struct ring_of of[N_RINGS];
        for (size_t i = 0; i < N_RINGS; i++) {
            of[i] = (struct ring_of){&c, i};
            struct task_ring_options how = {.n_slots = N_SLOTS, .run = count, .arg = &of[i]};
            MUST(task_ring_open(&c.rings[i], &how) == 0);
        }
        #pragma omp parallel num_threads(n_threads)
        if (omp_get_thread_num() == 0)
        deal(&c);
        for (size_t i = 0; i < N_RINGS; i++) {
            for (uint32_t slot = 0; slot < N_SLOTS; slot++)
                assert_int_equal(c.ran[i][slot], slot < i % (N_SLOTS + 1));
            for (size_t slots = i % (N_SLOTS + 1); slots > 0; slots--)
                task_ring_take(&c.rings[i]);
            task_ring_close(&c.rings[i], true);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_task_of_many_rings_leaves_slots_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
