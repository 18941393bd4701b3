/* SPDX-License-Identifier: MIT */
/* Threads count parts and join them. The counter of this test only notes numbers: the number of a part, and how many
 * parts after it were prepared with it. Each part must be joined once, in order, and no thread may touch a part that
 * another one prepares or joins. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <htslib/sam.h>
#include "base/engine.h"
#include "base/latch.h"
#include "stats/counts.h"
#include "stats/join_tree.h"
#include "unit.h"

enum { THREADS_MOST = 8, FAULT_NONE = -1 };

struct part {
    atomic_int users;            /* threads that work on it */
    int64_t number;              /* -1: empty */
    uint64_t n_more;             /* parts after it that were prepared with it */
    bool is_prepared;            /* it was prepared with an earlier part */
    int64_t joined, ahead;       /* in the part that gets all: parts joined, and prepared ones that must come next */
};

static int64_t fault = FAULT_NONE;
static atomic_uint n_pairs;

static void *open_part(const void *settings)
{
    (void)settings;
    struct part *p = must_alloc(sizeof *p);
    *p = (struct part){.number = -1};
    return p;
}

static void use(struct part *p, int change)
{
    MUST(atomic_fetch_add(&p->users, change) == (change > 0 ? 0 : 1));
}

static int join_parts(void *left, void *right)
{
    struct part *to = left, *from = right;
    use(to, 1);
    use(from, 1);
    MUST(from->number == to->joined && from->is_prepared == (to->ahead > 0));
    to->ahead += from->is_prepared ? -1 : (int64_t)from->n_more;
    to->joined++;
    int status = from->number == fault ? -1 : 0;
    from->number = -1;
    use(from, -1);
    use(to, -1);
    return status;
}

static bool pair_parts(void *left, const void *last, void *right)
{
    struct part *a = left, *b = right;
    const struct part *end = last;
    use(a, 1);
    use(b, 1);
    MUST(!a->is_prepared && !b->is_prepared && a->number >= 0);
    MUST(end->number == a->number + (int64_t)a->n_more && b->number == end->number + 1);
    bool takes = b->number % 7 != 0;
    if (takes) {
        a->n_more += 1 + b->n_more;
        b->n_more = 0;
        b->is_prepared = true;
        atomic_fetch_add(&n_pairs, 1);
    }
    use(b, -1);
    use(a, -1);
    return takes;
}

static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    (void)sums;
    struct part *p = part;
    MUST(size == sizeof p->number && p->number == -1);
    memcpy(&p->number, record, size);
    p->n_more = 0;
    p->is_prepared = false;
    return 0;
}

static size_t memory_of(const void *settings, sam_hdr_t *sam, size_t range)
{
    (void)settings, (void)sam, (void)range;
    return sizeof(struct part);
}

/* Only the parts of the first counter may be prepared. */
static bool pair_parts_of_second(void *left, const void *last, void *right)
{
    (void)left, (void)last, (void)right;
    MUST(false);
    return false;
}

enum { N_COUNTERS = 2 };
static const struct counter counters[N_COUNTERS] = {
    {.command = "test", .part = {open_part, join_parts, free, memory_of}, .pair = pair_parts, .add = add},
    {.command = "second", .part = {open_part, join_parts, free, memory_of}, .pair = pair_parts_of_second, .add = add},
};

struct work {
    struct counts *counts;
    struct join_tree *tree;
    int64_t total;
    uint32_t n_slots;
    _Atomic int64_t next;
    struct latch *latch;
};

static void *count(void *arg)
{
    struct work *w = arg;
    for (int64_t n; (n = atomic_fetch_add(&w->next, 1)) < w->total;) {
        uint64_t seed = (uint64_t)n;
        uint32_t slot = (uint32_t)(n % w->n_slots);
        int64_t before = n + 1 - (int64_t)w->n_slots;
        while (before > 0 && !join_tree_has(w->tree, (uint64_t)before)) {
            if (latch_tripped(w->latch))
                return NULL;
            sched_yield();
        }
        counts_add(w->counts, 0, slot, (const uint8_t *)&n, sizeof n);
        for (uint32_t naps = unit_below(&seed, 4); naps > 0; naps--)
            sched_yield();
        join_tree_add(w->tree, slot);
    }
    return NULL;
}

/* Counts `total` parts with this many threads and slots. Returns the number that was joined. */
static uint64_t join_all(int n_threads, uint32_t n_slots, int64_t total, struct latch *latch)
{
    const struct engine engine = {.latch = latch, .n_threads = 1};
    struct counts_options how = {counters, N_COUNTERS, "in.bam", &engine, n_slots};
    struct join_tree tree = {.counts = NULL};
    struct work w = {counts_open(&how, NULL, NULL), &tree, total, n_slots, 0, latch};
    pthread_t threads[THREADS_MOST];
    MUST(w.counts && join_tree_open(&tree, w.counts, n_slots, NULL) == 0);
    for (int i = 0; i < n_threads; i++)
        MUST(pthread_create(&threads[i], NULL, count, &w) == 0);
    for (int i = 0; i < n_threads; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    uint64_t n = tree.joined;
    join_tree_close(&tree);
    counts_close(w.counts);
    return n;
}

static void test_a_part_is_joined_twice_or_never(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, THREADS_MOST};
    static const uint32_t slots[] = {1, 2, 3, 5, 18};
    for (size_t i = 0; i < N_OF(threads); i++)
        for (size_t k = 0; k < N_OF(slots); k++) {
            struct latch latch = {.tripped = LATCH_OPEN};
            assert_int_equal(join_all(threads[i], slots[k], 700, &latch), 700);
            assert_false(latch_tripped(&latch));
        }
}

/* Parts are added from the last to the first, so that all of them are prepared before the first one is joined. */
static void test_parts_that_wait_are_not_prepared(void **state)
{
    (void)state;
    enum { N = 9, APART = 7 };   /* pair_parts() does not take number 7 */
    struct latch latch = {.tripped = LATCH_OPEN};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    struct counts_options how = {counters, N_COUNTERS, "in.bam", &engine, N};
    struct join_tree tree = {.counts = NULL};
    struct counts *counts = counts_open(&how, NULL, NULL);
    MUST(counts && join_tree_open(&tree, counts, N, NULL) == 0);
    n_pairs = 0;
    for (int64_t n = N - 1; n >= 0; n--) {
        counts_add(counts, 0, (uint32_t)n, (const uint8_t *)&n, sizeof n);
        join_tree_add(&tree, (uint32_t)n);
        assert_int_equal(tree.joined, n == 0 ? N : 0);
        assert_int_equal(n_pairs, n == 0 ? N - 3 : N - 1 - n - (n < APART));
    }
    join_tree_close(&tree);
    counts_close(counts);
}

static void test_parts_after_an_error_are_joined(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        struct latch latch = {.tripped = LATCH_OPEN};
        fault = 300;
        assert_int_equal(join_all(n_threads, 5, 1000, &latch), 300);     /* numbers from 0 on */
        fault = FAULT_NONE;
        assert_true(latch_tripped(&latch));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_part_is_joined_twice_or_never),
        cmocka_unit_test(test_parts_that_wait_are_not_prepared),
        cmocka_unit_test(test_parts_after_an_error_are_joined),
    };
    alarm(20);                   /* in case a thread joins the same parts for ever */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
