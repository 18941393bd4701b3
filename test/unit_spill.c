/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <stdatomic.h>
#include "base/task_ring.h"
#include "sort/run_merge.h"
#include "order/sort_key.h"
#include "order/sublist_sort.h"
#include "sort/spill.h"
#include "unit_spill.h"

enum { KIB = 1 << 10, SLICE = 4 * KIB, MAX_CHUNKS = 100 };
static const int team_sizes[] = {1, 2, 3, 8};

/* ---- arenas made by hand ---- */

/* Appends the list's records [from, end) as one sublist, not yet sorted. */
static void add_sublist(struct bam_arena *a, const struct unit_list *list, size_t from, size_t end)
{
    struct bam_sublist sublist;
    size_t n = end - from;
    a->top -= n * sizeof(struct bam_key);
    struct bam_key *keys = (struct bam_key *)(a->base + a->top);
    for (size_t i = 0; i < n; i++) {
        const struct unit_item *item = &unit_items(list)[from + i];
        MUST(a->bottom + item->size <= a->top);
        keys[i] = (struct bam_key){item->key, bam_key_place(a->bottom, item->size)};
        memcpy(bam_arena_take(a, item->size), unit_item_record(list, from + i), item->size);
    }
    a->walked = a->bottom;
    a->n_records += n;
    MUST(n == 0 || bam_arena_close_sublist(a, 1, 1, &sublist) == 1);
}

/* Bytes of an arena for any part of the list. */
static size_t arena_size_for(const struct unit_list *list)
{
    return list->bytes.n + list->n * sizeof(struct bam_key) + (1 << 20);
}

/* ---- sorts like the driver ---- */

struct sorting {
    /* The settings of the test. */
    const struct unit_list *list;        /* in input order */
    size_t ends[MAX_CHUNKS], n_chunks;   /* ends of the records of each arena */
    size_t sublist;                      /* records in each sublist */
    const struct sort_rule *rule;
    size_t slice_size, merge_memory, fan_in;
    size_t settle_memory;
    int n_threads;
    bool last_stays;                     /* the last arena stays in memory */
    size_t trip_at;                      /* trips the latch before this chunk is spilled; 0: never */

    struct latch latch;
    struct engine engine;                /* its latch is this one */
    struct spill_store *store;
    struct spill *spill;
    struct bam_arena arenas[2];
    atomic_int unsorted[2];
    int result;
    size_t runs_before;                  /* number of runs before they are settled */
    size_t may_stay;                     /* runs that may remain after that */
    size_t slice_out;                    /* the slice size that settling returns */
};

static struct sorting *sorting_new(const struct unit_list *list, int n_threads)
{
    struct sorting *s = calloc(1, sizeof *s);
    MUST(s);
    *s = (struct sorting){.list = list, .sublist = 100, .slice_size = SLICE, .merge_memory = 4 * SLICE,
                          .fan_in = 1000, .settle_memory = 40 * SLICE, .n_threads = n_threads};
    return s;
}

static void cut_chunks(struct sorting *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s->ends[i] = s->list->n * (i + 1) / n;
    s->n_chunks = n;
}

static void count_sorted(struct sorting *s, size_t which)
{
    if (atomic_fetch_sub(&s->unsorted[which], 1) == 1 && !latch_tripped(&s->latch))
        spill_arena_is_sorted(s->spill);
}

static void sort_one(struct sorting *s, size_t which, struct bam_sublist sublist)
{
    struct bam_key_order order = {s->rule, s->arenas[which].base};
    sublist_sort(sublist.keys, sublist.n, &order);
    count_sorted(s, which);
}

static void fill_arena(struct sorting *s, size_t chunk)
{
    size_t which = chunk % 2, at = chunk ? s->ends[chunk - 1] : 0;
    struct bam_arena *a = &s->arenas[which];
    atomic_store(&s->unsorted[which], 1);
    while (at < s->ends[chunk]) {
        size_t end = at + s->sublist < s->ends[chunk] ? at + s->sublist : s->ends[chunk];
        add_sublist(a, s->list, at, end);
        at = end;
        struct bam_sublist sublist = a->sublists[a->n_sublists - 1];
        atomic_fetch_add(&s->unsorted[which], 1);
        #pragma omp task default(none) firstprivate(s, which, sublist) if(s->n_threads > 1)
        sort_one(s, which, sublist);
    }
}

static int await_spill(struct spill *spill)
{
    unsigned spins = 0;
    while (!spill_is_done(spill))
        if (!spill_help(spill))
            task_pause(&spins);
    return spill_end(spill);
}

static int await_arena(struct sorting *s)
{
    const struct bam_arena *leaving = spill_arena(s->spill);
    if (!leaving)
        return 0;
    if (await_spill(s->spill) < 0)
        return -1;
    bam_arena_reset(&s->arenas[leaving - s->arenas], SIZE_MAX);
    return 0;
}

static int leave_memory(struct sorting *s)
{
    for (size_t i = 0; i < s->n_chunks; i++) {
        fill_arena(s, i);
        if (s->trip_at == i + 1)
            latch_fail(&s->latch, "tripped elsewhere");
        if (await_arena(s) < 0)
            return -1;
        if (i + 1 == s->n_chunks && s->last_stays)
            break;
        if (spill_begin(s->spill, &s->arenas[i % 2]) < 0)
            return -1;
        count_sorted(s, i % 2);
    }
    #pragma omp taskwait
    if (await_arena(s) < 0)
        return -1;
    const struct spill_run *runs = spill_runs(s->spill, &s->runs_before);
    size_t largest = s->slice_size;
    for (size_t i = 0; i < s->runs_before; i++)
        largest = runs[i].largest > largest ? runs[i].largest : largest;
    size_t buffer = largest > s->settle_memory / 4 && !s->rule ? s->slice_size : largest;
    s->may_stay = s->settle_memory / buffer / 2 > 2 ? s->settle_memory / buffer / 2 : 2;
    uint8_t *memory = unit_slice_memory(s->settle_memory);   /* exactly */
    int result = spill_settle(s->spill, memory, s->settle_memory, &s->slice_out);
    free(memory);
    return result;
}

static void sorting_run(struct sorting *s)
{
    size_t size = arena_size_for(s->list);
    s->engine = (struct engine){.latch = &s->latch, .n_threads = s->n_threads};
    s->store = unit_store_open("/tmp/unit_spill", &s->engine);
    struct spill_options options = {s->store, s->merge_memory, &s->engine};
    s->spill = spill_open(&options);
    MUST(s->spill);
    spill_set_sizes(s->spill, s->slice_size, s->fan_in);
    for (int i = 0; i < 2; i++) {
        MUST(bam_arena_init(&s->arenas[i], size) == 0);
        s->arenas[i].rule = s->rule;
    }
    #pragma omp parallel num_threads(s->n_threads)
    if (omp_get_thread_num() == 0)
    s->result = leave_memory(s);
}

static void sorting_free(struct sorting *s)
{
    spill_close(s->spill);
    spill_store_close(s->store);
    for (int i = 0; i < 2; i++)
        bam_arena_free(&s->arenas[i]);
    free(s);
}

/* ---- the records read back ---- */

struct readback {
    struct sorting *s;
    const struct spill_run *runs;
    size_t n, next[1000];
    struct spill_loader loader;
    struct spill_buffer buffers[1000];
};

static int load_next(void *arg, size_t number, struct merge_way *source)
{
    struct readback *r = arg;
    if (number >= r->n || r->next[number] == r->runs[number].n)
        return 0;
    struct spill_buffer *b = &r->buffers[number];
    spill_extra_free(&b->extra);
    if (spill_load(r->s->store, r->runs[number].slices[r->next[number]++], &r->loader, b, false, &r->s->latch) < 0)
        return -1;
    const struct bam_key *keys = spill_slice_keys(&b->slice);
    *source = (struct merge_way){keys, keys + b->slice.n, b->slice.base};
    return 1;
}

/* Merges the runs and the records in memory; compares with the list in its stable order. */
static void check_merged(struct sorting *s, const struct unit_list *sorted)
{
    struct readback *r = calloc(1, sizeof *r);
    struct run_merge merge;
    struct merge_item item;
    MUST(r);
    assert_string_equal(s->latch.message, "");
    assert_int_equal(s->result, 0);
    r->s = s;
    r->runs = spill_runs(s->spill, &r->n);
    assert_in_range(r->n, 0, 1000);
    size_t n_sublists = s->arenas[0].n_sublists + s->arenas[1].n_sublists;
    assert_int_equal(run_merge_init(&merge, s->rule, r->n + n_sublists, r->n), 0);
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < s->arenas[i].n_sublists; j++) {
            const struct bam_sublist *sublist = &s->arenas[i].sublists[j];
            run_merge_add(&merge, (struct merge_way){sublist->keys, sublist->keys + sublist->n, s->arenas[i].base});
        }
    assert_int_equal(run_merge_start(&merge, load_next, r), 0);
    for (size_t i = 0; i < sorted->n; i++) {
        assert_int_equal(run_merge_next(&merge, &item), 1);
        const struct unit_item *want = &unit_items(sorted)[i];
        assert_int_equal(item.key.sort, want->key);
        assert_int_equal(bam_key_record_size(item.base, item.key), want->size);
        assert_memory_equal(bam_key_record(item.base, item.key), sorted->bytes.data + want->at, want->size);
    }
    assert_int_equal(run_merge_next(&merge, &item), 0);
    run_merge_free(&merge);
    for (size_t i = 0; i < r->n; i++)
        spill_extra_free(&r->buffers[i].extra);
    spill_loader_free(&r->loader);
    free(r);
}

/* The list in its stable order; shares the bytes. */
static struct unit_list sorted_of(const struct unit_list *list)
{
    struct unit_list sorted = {.bytes = list->bytes, .n = list->n};
    unit_append(&sorted.items, list->items.data, list->items.n);
    unit_list_sort(&sorted);
    return sorted;
}

static struct unit_list random_list(size_t n, uint64_t distinct, uint64_t seed)
{
    struct unit_list list = {0};
    for (size_t i = 0; i < n; i++)
        unit_list_add(&list, &seed, distinct ? unit_random(&seed) % distinct : unit_any_key(&seed),
                      unit_any_size(&seed));
    return list;
}

/* Sorts with one thread, and with another team in each turn; n_runs: the number of runs at first, SIZE_MAX: any. */
static void check_sorting(const struct sorting *how, size_t n_runs)
{
    static size_t turn;
    struct unit_list sorted = sorted_of(how->list);
    turn++;
    for (size_t i = 0; i < 2; i++) {
        int n_threads = team_sizes[i == 0 ? 0 : 1 + turn % (N_OF(team_sizes) - 1)];
        struct sorting *s = sorting_new(how->list, n_threads);
        size_t n;
        *s = *how;
        s->n_threads = n_threads;
        sorting_run(s);
        check_merged(s, &sorted);
        spill_runs(s->spill, &n);
        assert_true(n <= s->may_stay);
        if (n_runs != SIZE_MAX)
            assert_int_equal(s->runs_before, n_runs);
        sorting_free(s);
    }
    unit_free(&sorted.items);
}

/* ---- tests: arenas leave ---- */

static void test_one_arena_leaves_and_comes_back_sorted(void **state)
{
    (void)state;
    static const size_t numbers[] = {1, 2, 3, 100, 101, 5000}, sublists[] = {1, 7, 1000, 100000};
    for (size_t i = 0; i < N_OF(numbers); i++)
        for (size_t j = 0; j < N_OF(sublists); j++) {
            if (numbers[i] / sublists[j] > 1000)
                continue;
            struct unit_list list = random_list(numbers[i], 0, 1 + i);
            struct sorting *s = sorting_new(&list, 1);
            s->sublist = sublists[j];
            cut_chunks(s, 1);
            check_sorting(s, 1);
            free(s);
            unit_list_free(&list);
        }
}

static void test_many_arenas_come_back_in_stable_order(void **state)
{
    (void)state;
    static const uint64_t distinct[] = {0, 1, 2, 50};
    static const size_t sublists[] = {50, 333, 5000};
    for (size_t i = 0; i < N_OF(distinct); i++)
        for (size_t j = 0; j < N_OF(sublists); j++) {
            struct unit_list list = random_list(6000, distinct[i], 10 + i);
            struct sorting *s = sorting_new(&list, 1);
            s->sublist = sublists[j];
            cut_chunks(s, 7);
            check_sorting(s, SIZE_MAX);
            s->last_stays = true;
            check_sorting(s, SIZE_MAX);
            free(s);
            unit_list_free(&list);
        }
}

/* Ranges are cut by samples: no two may overlap, and each must have all its keys of all sublists. */
static void test_keys_that_are_all_equal_are_cut_into_ranges_too(void **state)
{
    (void)state;
    struct unit_list list = random_list(20000, 1, 20);
    struct sorting *s = sorting_new(&list, 1);
    s->sublist = 900;
    s->slice_size = 1024;
    cut_chunks(s, 2);
    check_sorting(s, 1);                         /* equal keys only continue the run */
    free(s);
    unit_list_free(&list);
}

static void test_sublists_of_very_different_length(void **state)
{
    (void)state;
    struct unit_list list = random_list(5003, 100, 21);
    struct sorting *s = sorting_new(&list, 1);
    s->sublist = 5000;                           /* and one of 3 */
    s->slice_size = 1024;
    cut_chunks(s, 1);
    check_sorting(s, 1);
    free(s);
    unit_list_free(&list);
}

static void test_records_longer_than_a_slice_leave_and_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {SLICE - 16, SLICE - 15, SLICE, 100000, 1000000};
    struct unit_list list = {0};
    uint64_t seed = 22;
    for (int i = 0; i < 600; i++) {
        size_t kind = unit_below(&seed, 60);
        unit_list_add(&list, &seed, unit_below(&seed, 40), kind < N_OF(sizes) ? sizes[kind] : unit_any_size(&seed));
    }
    struct sorting *s = sorting_new(&list, 1);
    cut_chunks(s, 5);
    check_sorting(s, SIZE_MAX);
    s->fan_in = 2;
    check_sorting(s, SIZE_MAX);
    free(s);
    unit_list_free(&list);
}

/* Key and size of such a record do not fit into a key's place. */
static void test_record_longer_than_a_key_can_say(void **state)
{
    (void)state;
    struct unit_list list = {0};
    uint64_t seed = 23;
    for (int i = 0; i < 30; i++)
        unit_list_add(&list, &seed, unit_below(&seed, 5), i == 11 ? BAM_KEY_SIZE_MAX + 100 : 100);
    struct sorting *s = sorting_new(&list, 1);
    cut_chunks(s, 2);
    s->fan_in = 1;
    check_sorting(s, SIZE_MAX);
    free(s);
    unit_list_free(&list);
}

/* ---- tests: how many runs ---- */

/* Chunks of one record size whose keys go from first[i] to last[i]. */
static struct unit_list chunks_of_keys(const uint64_t (*ends)[2], size_t n, size_t each)
{
    struct unit_list list = {0};
    uint64_t seed = 30;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < each; j++) {
            uint64_t from = ends[i][0], to = ends[i][1], width = to - from;
            uint64_t key = j == each / 2 ? from : j == each / 3 ? to : from + (width ? unit_random(&seed) % width : 0);
            unit_list_add(&list, &seed, key, unit_any_size(&seed));
        }
    return list;
}

static void check_runs(const uint64_t (*ends)[2], size_t n, size_t n_runs)
{
    struct unit_list list = chunks_of_keys(ends, n, 300);
    struct sorting *s = sorting_new(&list, 1);
    cut_chunks(s, n);
    check_sorting(s, n_runs);
    free(s);
    unit_list_free(&list);
}

static void test_sorted_input_gives_one_run(void **state)
{
    (void)state;
    static const uint64_t rising[][2] = {{0, 10}, {11, 20}, {25, 30}, {31, UINT64_MAX}};
    check_runs(rising, N_OF(rising), 1);
}

static void test_arena_that_begins_with_the_last_key_goes_on(void **state)
{
    (void)state;
    static const uint64_t touching[][2] = {{0, 10}, {10, 20}, {20, 20}, {20, 30}, {30, 31}};
    check_runs(touching, N_OF(touching), 1);
}

static void test_arena_that_begins_lower_begins_a_run(void **state)
{
    (void)state;
    static const uint64_t falling[][2] = {{10, 20}, {19, 30}, {0, 5}, {5, 9}, {8, 40}, {UINT64_MAX - 1, UINT64_MAX}};
    check_runs(falling, N_OF(falling), 4);
}

static struct sort_rule *name_rule(void)
{
    struct sort_order by_name = {.by = SORT_NAME_NATURAL};
    sam_hdr_t *sam = sam_hdr_init();
    MUST(sam);
    struct sort_rule *rule = sort_rule_new(&by_name, sam);
    MUST(rule);
    sam_hdr_destroy(sam);
    return rule;
}

static const struct sort_rule *compared_by;
static const struct unit_list *compared_list;

static int compare_by_rule(const void *a, const void *b)
{
    const struct unit_item *x = a, *y = b;
    const uint8_t *bytes = compared_list->bytes.data;
    int by_record = x->key != y->key ? (x->key < y->key ? -1 : 1)
                  : sort_key_compare(compared_by, (const struct bam_record *)(bytes + x->at),
                                     (const struct bam_record *)(bytes + y->at));
    return by_record ? by_record : x->at < y->at ? -1 : x->at > y->at;
}

/* All keys are equal, names from `low` on: records are compared in every step. */
static void add_named(struct unit_list *list, uint64_t *seed, uint32_t low, uint32_t n_names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[24];
        snprintf(name, sizeof name, "r%u", low + unit_below(seed, n_names));
        struct unit_record r = {.ref_id = -1, .pos = (int32_t)list->n, .flag = 4, .name = name};
        struct unit_item item = {7, list->bytes.n, unit_append_record(&list->bytes, &r)};
        unit_append(&list->items, &item, sizeof item);
        list->n++;
    }
}

static void check_named(const struct unit_list *list, size_t n_chunks, size_t fan_in, size_t n_runs)
{
    struct sort_rule *rule = name_rule();
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        struct unit_list sorted = sorted_of(list);
        struct sorting *s = sorting_new(list, team_sizes[i]);
        compared_by = rule;
        compared_list = list;
        qsort(sorted.items.data, sorted.n, sizeof(struct unit_item), compare_by_rule);
        s->rule = rule;
        s->fan_in = fan_in;
        cut_chunks(s, n_chunks);
        sorting_run(s);
        check_merged(s, &sorted);
        if (n_runs != SIZE_MAX)
            assert_int_equal(s->runs_before, n_runs);
        sorting_free(s);
        unit_free(&sorted.items);
    }
    sort_rule_free(rule);
}

static void test_records_decide_in_every_stage_where_keys_do_not(void **state)
{
    (void)state;
    struct unit_list list = {0};
    uint64_t seed = 31;
    add_named(&list, &seed, 0, 300, 8000);
    check_named(&list, 6, 1000, 6);
    check_named(&list, 20, 3, SIZE_MAX);
    unit_list_free(&list);
}

/* The keys are equal; the run continues only if the records allow it. */
static void test_records_decide_whether_a_run_goes_on(void **state)
{
    (void)state;
    struct unit_list list = {0};
    uint64_t seed = 32;
    add_named(&list, &seed, 100, 10, 500);
    add_named(&list, &seed, 110, 10, 500);       /* continues */
    add_named(&list, &seed, 112, 4, 500);        /* lower than its last one, not than that before */
    add_named(&list, &seed, 5, 10, 500);         /* lower as numbers, though not as letters */
    add_named(&list, &seed, 1000, 10, 500);      /* continues */
    check_named(&list, 5, 1000, 3);
    unit_list_free(&list);
}

static void test_more_runs_than_the_last_merge_takes_are_merged(void **state)
{
    (void)state;
    static const size_t fan_ins[] = {1, 2, 3, 10, 49, 50}, settle[] = {4, 7, 16, 64};
    struct unit_list list = random_list(4000, 1000, 40);
    for (size_t i = 0; i < N_OF(fan_ins); i++)
        for (size_t j = 0; j < N_OF(settle); j++) {
            struct sorting *s = sorting_new(&list, 1);
            s->fan_in = fan_ins[i];
            s->settle_memory = settle[j] * SLICE;
            s->merge_memory = (2 + j) * SLICE;
            cut_chunks(s, 50);
            check_sorting(s, SIZE_MAX);
            free(s);
        }
    unit_list_free(&list);
}

static void test_ties_of_merged_runs_stay_in_input_order(void **state)
{
    (void)state;
    struct unit_list list = {0};
    uint64_t seed = 41;
    for (int i = 0; i < 8000; i++)               /* every arena begins a new run: many runs of equal keys */
        unit_list_add(&list, &seed, i % 100 == 0 ? 0 : i % 100 == 1 ? 2 : 1, unit_any_size(&seed));
    struct sorting *s = sorting_new(&list, 1);
    s->fan_in = 3;
    s->settle_memory = 24 * SLICE;
    s->merge_memory = 3 * SLICE;
    cut_chunks(s, 80);
    for (int round = 0; round < 5; round++)
        check_sorting(s, SIZE_MAX);
    free(s);
    unit_list_free(&list);
}

/* Such slices are merged in additional memory. */
static void test_slices_larger_than_the_memory_are_merged_all_the_same(void **state)
{
    (void)state;
    struct unit_list list = {0};
    uint64_t seed = 42;
    for (int i = 0; i < 400; i++)
        unit_list_add(&list, &seed, unit_below(&seed, 40), i % 40 == 9 ? 500000 : unit_any_size(&seed));
    struct sorting *s = sorting_new(&list, 1);
    s->fan_in = 2;
    s->settle_memory = 4 * SLICE;
    s->merge_memory = SLICE;                     /* nothing in the background */
    cut_chunks(s, 10);
    check_sorting(s, SIZE_MAX);
    free(s);
    unit_list_free(&list);
}

/* The reader needs memory for the largest slice: not the size given to the spill, but the real one. */
static void test_largest_slice_is_told(void **state)
{
    (void)state;
    enum { LARGE = 3 * SLICE };
    static const struct { size_t memory, want; } cases[] = {
        {4 * SLICE, SLICE}, {4 * LARGE - 16, SLICE}, {4 * (LARGE + 16), LARGE + 16}, {40 * LARGE, LARGE + 16}};
    struct unit_list list = {0};
    uint64_t seed = 43;
    for (int i = 0; i < 400; i++)
        unit_list_add(&list, &seed, unit_below(&seed, 40), i == 77 ? LARGE : 100);
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct sorting *s = sorting_new(&list, 2);
        s->settle_memory = cases[i].memory;
        cut_chunks(s, 10);
        sorting_run(s);
        assert_int_equal(s->result, 0);
        assert_int_equal(s->slice_out, cases[i].want);
        sorting_free(s);
    }
    unit_list_free(&list);
}

/* ---- tests: tasks ---- */

/* If the main thread writes a range itself, the task of the range remains. It may run while the next arena is cut, and
 * must not write half a range, or one and a half. There are as many ranges as for many threads, each of a record or
 * two: more tasks make that more likely. */
static void test_tasks_left_over_from_one_arena_do_not_disturb_the_next(void **state)
{
    (void)state;
    enum { ROUNDS = 100, EACH = 500, TINY = 16, RANGES_OF = 64, MEMORY = 256 << 20 };
    static const int teams[] = {2, 3};
    struct unit_list list = {0};
    uint64_t seed = 50;
    for (int i = 0; i < 2 * EACH; i++)
        unit_list_add(&list, &seed, unit_random(&seed) % 1000, BAM_MIN_RECORD);
    for (size_t t = 0; t < N_OF(teams); t++) {
        struct latch latch = {0};
        const struct engine engine = {.latch = &latch, .n_threads = RANGES_OF};
        struct bam_arena arenas[2];
        struct spill_store *store = unit_store_open("/tmp", &engine);
        spill_store_use_memory(store, MEMORY);
        struct spill_options options = {store, 2 * TINY, &engine};
        struct spill *spill = spill_open(&options);
        MUST(spill);
        spill_set_sizes(spill, TINY, 2 * ROUNDS);
        for (size_t i = 0; i < 2; i++) {
            MUST(bam_arena_init(&arenas[i], 1 << 20) == 0);
            for (size_t j = 0; j < 5; j++)
                add_sublist(&arenas[i], &list, i * EACH + j * EACH / 5, i * EACH + (j + 1) * EACH / 5);
            for (size_t j = 0; j < arenas[i].n_sublists; j++) {
                struct bam_key_order order = {NULL, arenas[i].base};
                sublist_sort(arenas[i].sublists[j].keys, arenas[i].sublists[j].n, &order);
            }
        }
        int result = 0;
        #pragma omp parallel num_threads(teams[t])
        if (omp_get_thread_num() == 0)
        for (int i = 0; i < ROUNDS && result == 0; i++) {
            result = spill_begin(spill, &arenas[i % 2]);
            if (result == 0) {
                spill_arena_is_sorted(spill);
                result = await_spill(spill);
            }
        }
        assert_string_equal(latch.message, "");
        assert_int_equal(result, 0);
        size_t n_runs, n_records = 0;
        const struct spill_run *runs = spill_runs(spill, &n_runs);
        struct spill_loader loader = {.unpacker = NULL};
        struct spill_buffer b = {.home = unit_slice_memory(TINY), .home_size = TINY};
        for (size_t i = 0; i < n_runs; i++) {
            uint64_t last = 0;
            for (size_t j = 0; j < runs[i].n; j++) {
                assert_int_equal(spill_load(store, runs[i].slices[j], &loader, &b, true, &latch), 0);
                const struct bam_key *keys = spill_slice_keys(&b.slice);
                for (size_t k = 0; k < b.slice.n; k++) {
                    if (keys[k].sort < last)
                        fail_msg("team of %d, run %zu: not sorted", teams[t], i);
                    last = keys[k].sort;
                }
                n_records += b.slice.n;
                spill_extra_free(&b.extra);                   /* records are larger than the slices */
            }
        }
        assert_int_equal(n_records, (size_t)ROUNDS * EACH);
        free(b.home);
        spill_loader_free(&loader);
        spill_close(spill);
        spill_store_close(store);
        for (int i = 0; i < 2; i++)
            bam_arena_free(&arenas[i]);
    }
    unit_list_free(&list);
}

static void test_many_more_threads_than_cores(void **state)
{
    (void)state;
    struct unit_list list = random_list(6000, 500, 51), sorted = sorted_of(&list);
    for (int round = 0; round < 8; round++) {
        struct sorting *s = sorting_new(&list, 16);
        s->fan_in = 5;
        s->slice_size = 1024;
        cut_chunks(s, 30);
        s->last_stays = round % 2;
        sorting_run(s);
        check_merged(s, &sorted);
        sorting_free(s);
    }
    unit_free(&sorted.items);
    unit_list_free(&list);
}

static void test_latch_tripped_elsewhere_ends_the_spilling(void **state)
{
    (void)state;
    struct unit_list list = random_list(6000, 500, 52);
    for (size_t i = 0; i < N_OF(team_sizes); i++)
        for (size_t trip_at = 1; trip_at <= 20; trip_at += 6) {
            struct sorting *s = sorting_new(&list, team_sizes[i]);
            s->fan_in = 3;
            s->trip_at = trip_at;
            cut_chunks(s, 20);
            sorting_run(s);
            assert_int_equal(s->result, -1);
            assert_string_equal(s->latch.message, "tripped elsewhere");
            sorting_free(s);
        }
    unit_list_free(&list);
}

static void test_spill_that_never_had_an_arena(void **state)
{
    (void)state;
    struct latch latch = {0};
    const struct engine engine = {.latch = &latch, .n_threads = 3};
    struct spill_store *store = unit_store_open("/tmp", &engine);
    struct spill_options options = {store, 4 * SLICE, &engine};
    struct spill *spill = spill_open(&options);
    size_t n = 99, slice_size;
    MUST(spill);
    spill_set_sizes(spill, SLICE, 10);
    assert_null(spill_arena(spill));
    spill_runs(spill, &n);
    assert_int_equal(n, 0);
    assert_int_equal(spill_settle(spill, NULL, 0, &slice_size), 0);
    assert_string_equal(latch.message, "");
    spill_close(spill);
    spill_close(NULL);
    spill_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_arena_leaves_and_comes_back_sorted),
        cmocka_unit_test(test_many_arenas_come_back_in_stable_order),
        cmocka_unit_test(test_keys_that_are_all_equal_are_cut_into_ranges_too),
        cmocka_unit_test(test_sublists_of_very_different_length),
        cmocka_unit_test(test_records_longer_than_a_slice_leave_and_come_back),
        cmocka_unit_test(test_record_longer_than_a_key_can_say),
        cmocka_unit_test(test_sorted_input_gives_one_run),
        cmocka_unit_test(test_arena_that_begins_with_the_last_key_goes_on),
        cmocka_unit_test(test_arena_that_begins_lower_begins_a_run),
        cmocka_unit_test(test_records_decide_in_every_stage_where_keys_do_not),
        cmocka_unit_test(test_records_decide_whether_a_run_goes_on),
        cmocka_unit_test(test_more_runs_than_the_last_merge_takes_are_merged),
        cmocka_unit_test(test_ties_of_merged_runs_stay_in_input_order),
        cmocka_unit_test(test_slices_larger_than_the_memory_are_merged_all_the_same),
        cmocka_unit_test(test_largest_slice_is_told),
        cmocka_unit_test(test_tasks_left_over_from_one_arena_do_not_disturb_the_next),
        cmocka_unit_test(test_many_more_threads_than_cores),
        cmocka_unit_test(test_latch_tripped_elsewhere_ends_the_spilling),
        cmocka_unit_test(test_spill_that_never_had_an_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
