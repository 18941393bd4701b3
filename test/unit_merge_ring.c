/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <omp.h>
#include "codec/bgzf_block.h"
#include "base/engine.h"
#include "base/latch.h"
#include "engine/memory_plan.h"
#include "sort/merge_ring.h"
#include "write/record_sink.h"
#include "sort/run_reader.h"
#include "write/output_request.h"
#include "unit_spill.h"

enum { MAX_RUNS = 30 };
static const int team_sizes[] = {1, 2, 3, 8};

/* The teams of one setting among many: one thread, and another team in each turn. */
static int team_of_turn(size_t i, size_t turn)
{
    return i == 0 ? 1 : team_sizes[1 + turn % (N_OF(team_sizes) - 1)];
}

/* ---- runs on their way to a BAM file ---- */

struct reading {
    size_t n_runs, slice_size;
    size_t buffers;              /* slices of memory for each run; at least 2 */
    int n_threads;
    uint32_t sink_slots;
    size_t in_memory;            /* number of the last lists that stay in memory as sublists */
    size_t trip_at;              /* trips the latch after this many records; 0: never */
    size_t lacking;              /* bytes of memory short of two slices for each run */

    struct unit_list all;        /* records of all runs, in input order */
    struct unit_list part[MAX_RUNS];
    struct spill_run run[MAX_RUNS];
    struct latch latch;
    struct engine engine;        /* its latch is this one */
    struct spill_store *store;
    uint8_t *memory;
    sam_hdr_t *sam;
    int fd;
    struct record_sink *sink;
    struct run_reader *reader;
    struct bam_arena arenas[2];
    uint32_t n_ranges, n_spare, n_records;   /* sizes of the ring */
    struct merge_ring *ring;
    int result;
};

static struct reading *reading_new(size_t n_runs, size_t slice_size, size_t buffers, int n_threads)
{
    struct reading *r = calloc(1, sizeof *r);
    MUST(r && n_runs <= MAX_RUNS);
    *r = (struct reading){.n_runs = n_runs, .slice_size = slice_size, .buffers = buffers, .n_threads = n_threads,
                          .sink_slots = 16, .n_ranges = (uint32_t)n_threads + 2, .n_spare = 3, .n_records = 100};
    r->engine = (struct engine){.latch = &r->latch, .n_threads = n_threads};
    r->store = unit_store_open("/tmp/unit_run_reader", &r->engine);
    r->sam = sam_hdr_init();
    MUST(r->sam && sam_hdr_add_line(r->sam, "SQ", "SN", "a", "LN", "1000", NULL) == 0);
    return r;
}

static void reading_free(struct reading *r)
{
    merge_ring_close(r->ring);
    run_reader_close(r->reader);
    record_sink_close(r->sink);
    for (int i = 0; i < 2; i++) {
        free(r->arenas[i].base);
        for (size_t j = 0; j < r->arenas[i].n_sublists; j++)
            free(r->arenas[i].sublists[j].keys);
        free(r->arenas[i].sublists);
    }
    for (size_t i = 0; i < r->n_runs; i++) {
        spill_run_free(&r->run[i]);
        unit_list_free(&r->part[i]);
    }
    spill_store_close(r->store);
    unit_list_free(&r->all);
    sam_hdr_destroy(r->sam);
    close(r->fd);
    free(r->memory);
    free(r);
}

/* Records of run i, which are in both its own list and that of all. */
static void add_record(struct reading *r, size_t i, uint64_t *seed, uint64_t key, size_t size)
{
    uint64_t same = *seed;
    unit_list_add(&r->part[i], &same, key, size);
    unit_list_add(&r->all, seed, key, size);
    store_le32(r->all.bytes.data + unit_items(&r->all)[r->all.n - 1].at + 8, (uint32_t)r->part[i].n - 1);  /* pos */
}

static void add_random(struct reading *r, size_t each, uint32_t distinct, uint64_t seed)
{
    for (size_t i = 0; i < r->n_runs; i++)
        for (size_t j = 0; j < each; j++)
            add_record(r, i, &seed, unit_below(&seed, distinct), unit_any_size(&seed));
}

static void write_runs(struct reading *r)
{
    struct spill_packer *packer = spill_packer_new(r->slice_size);
    MUST(packer);
    for (size_t i = 0; i < r->n_runs; i++) {
        unit_list_sort(&r->part[i]);
        if (i < r->n_runs - r->in_memory)
            unit_write_run(&r->run[i], &r->part[i], packer, r->store, &r->latch);
    }
    spill_packer_free(packer);
}

static struct {
    struct latch *latch;
    _Atomic size_t n, trip_at;
} tripping;

/* Does not change the record that is written, but may trip the latch. */
static void trip(uint8_t *record)
{
    (void)record;
    if (atomic_fetch_add(&tripping.n, 1) + 1 == tripping.trip_at)
        latch_fail(tripping.latch, "tripped elsewhere");
}

/* Makes a sublist from the records of run i. */
static void add_sublist(struct reading *r, struct bam_arena *a, struct unit_bytes *bytes, size_t i)
{
    struct bam_sublist *list = &a->sublists[a->n_sublists++];
    size_t start = bytes->n;
    memcpy(unit_more(bytes, r->part[i].bytes.n), r->part[i].bytes.data, r->part[i].bytes.n);
    *list = (struct bam_sublist){must_alloc(r->part[i].n * sizeof *list->keys), r->part[i].n};
    for (size_t j = 0; j < list->n; j++) {
        const struct unit_item *item = &unit_items(&r->part[i])[j];
        list->keys[j] = (struct bam_key){item->key, bam_key_place(start + item->at, item->size)};
    }
}

/* The last in_memory lists, as sublists of two arenas. */
static void fill_arenas(struct reading *r)
{
    size_t run = r->n_runs - r->in_memory, n[2] = {r->in_memory / 2, r->in_memory - r->in_memory / 2};
    for (int i = 0; i < 2; i++) {
        struct unit_bytes bytes = {NULL, 0, 0};
        unit_more(&bytes, 1);                    /* places differ from those in the list */
        r->arenas[i].sublists = must_alloc((n[i] + 1) * sizeof *r->arenas[i].sublists);
        for (size_t j = 0; j < n[i]; j++)
            add_sublist(r, &r->arenas[i], &bytes, run++);
        r->arenas[i].base = bytes.data;
    }
}

/* Runs on the main thread. */
static int read_and_write(struct reading *r)
{
    size_t n_runs = r->n_runs - r->in_memory;
    struct run_reader_options options = {r->run, n_runs, r->store, r->sink, r->slice_size, r->memory,
                                         n_runs * r->buffers * r->slice_size - r->lacking, &r->engine, false, false};
    if (n_runs > 0 && !(r->reader = run_reader_open(&options)))
        return -1;
    struct merge_ring_options how = {
        .arenas = {&r->arenas[0], &r->arenas[1]},
        .n_arenas = 2,
        .runs = r->reader ? run_reader_runs(r->reader) : (struct merge_runs){0},
        .sink = r->sink,
        .n_ranges = r->n_ranges,
        .n_spare = r->n_spare,
        .n_records = r->n_records,
        .engine = &r->engine,
    };
    if (record_sink_header(r->sink, r->sam, NULL, false) < 0 || !(r->ring = merge_ring_open(&how)))
        return -1;
    struct record_list list;
    int merged;
    while ((merged = merge_ring_next(r->ring, &list)) > 0)
        if (record_sink_put(r->sink, &list) < 0)
            return -1;
    return merged < 0 ? -1 : record_sink_finish(r->sink);
}

static void reading_run(struct reading *r)
{
    struct output_request request = {.format.format = bam, .level = 1};
    r->fd = unit_temp_file();
    r->memory = unit_slice_memory((r->n_runs - r->in_memory) * r->buffers * r->slice_size);  /* exactly */
    struct memory_rings rings = {.sink_slots = r->sink_slots, .piece_size = 1 << 16};
    r->sink = record_sink_open(&request, &rings, r->fd, "the output", &r->engine);
    MUST(r->sink);
    if (r->trip_at) {
        tripping.latch = &r->latch;
        tripping.n = 0;
        tripping.trip_at = r->trip_at;
        record_sink_how(r->sink)->finish = trip;
    }
    fill_arenas(r);
    #pragma omp parallel num_threads(r->n_threads)
    if (omp_get_thread_num() == 0)
    r->result = read_and_write(r);
}

/* The records of the BAM file that was written. */
static struct unit_bytes records_written(const struct reading *r)
{
    struct unit_bytes file = unit_read_file(r->fd), data = {NULL, 0, 0};
    struct bgzf_codec *codec = bgzf_codec_new(0);
    bool header = true;
    MUST(codec);
    for (size_t at = 0; at < file.n;) {
        struct bgzf_frame frame;
        MUST(bgzf_block_frame(file.data + at, file.n - at, &frame) == BGZF_OK);
        uint8_t *to = unit_more(&data, frame.inflated_size);
        MUST(bgzf_block_inflate(codec, file.data + at, &frame, to) == BGZF_OK);
        at += frame.size;
        if (header)                              /* it has a separate block */
            data.n = 0;
        header = false;
    }
    bgzf_codec_free(codec);
    unit_free(&file);
    return data;
}

static void check_written(struct reading *r)
{
    assert_string_equal(r->latch.message, "");
    assert_int_equal(r->result, 0);
    struct unit_bytes got = records_written(r);
    size_t at = 0;
    uint64_t checksum = 0;
    unit_list_sort(&r->all);
    assert_int_equal(got.n, r->all.bytes.n);
    for (size_t i = 0; i < r->all.n; i++) {
        size_t size = unit_items(&r->all)[i].size;
        if (memcmp(got.data + at, unit_item_record(&r->all, i), size) != 0)
            fail_msg("record %zu of %zu is another one", i, r->all.n);
        checksum += record_checksum(got.data + at, size);
        at += size;
    }
    assert_int_equal(record_sink_count(r->sink), r->all.n);
    assert_int_equal(record_sink_checksum(r->sink), checksum);
    unit_free(&got);
}

static void check_random(size_t n_runs, size_t each, uint32_t distinct, size_t slice_size, size_t buffers,
                         uint64_t seed)
{
    static size_t turn;
    turn++;
    for (size_t i = 0; i < 2; i++) {
        struct reading *r = reading_new(n_runs, slice_size, buffers, team_of_turn(i, turn));
        add_random(r, each, distinct, seed);
        write_runs(r);
        reading_run(r);
        check_written(r);
        reading_free(r);
    }
}

/* ---- tests ---- */

static void test_runs_come_back_merged_whatever_the_sizes(void **state)
{
    (void)state;
    static const size_t slice_sizes[] = {1024, 8192, 65536, 262144};
    for (size_t i = 0; i < N_OF(slice_sizes); i++)
        for (size_t buffers = 2; buffers <= 50; buffers += 24) {
            check_random(1, 2500, 1000, slice_sizes[i], buffers, 1 + i);
            check_random(7, 700, 100, slice_sizes[i], buffers, 10 + i);
        }
    check_random(MAX_RUNS, 300, 2, 4096, 2, 20);
}

/* All buffers of a run are in the one block that is being filled: waiting would never end. */
static void test_slices_so_small_that_a_block_holds_them_all(void **state)
{
    (void)state;
    static const size_t slice_sizes[] = {64, 128, 1024};
    for (size_t i = 0; i < N_OF(slice_sizes); i++) {
        check_random(1, 1000, 1000, slice_sizes[i], 2, 30);
        check_random(3, 400, 5, slice_sizes[i], 2, 31);
        check_random(3, 400, 5, slice_sizes[i], 7, 32);
    }
}

/* The input is sorted: one run is read, the others wait. */
static void test_runs_one_after_the_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        struct reading *r = reading_new(5, 4096, 3, team_sizes[i]);
        uint64_t seed = 40;
        for (size_t run = 0; run < 5; run++)
            for (uint64_t j = 0; j < 2000; j++)
                add_record(r, run, &seed, run * 10000 + j, unit_any_size(&seed));
        write_runs(r);
        reading_run(r);
        check_written(r);
        reading_free(r);
    }
}

static void test_records_longer_than_slices_and_blocks(void **state)
{
    (void)state;
    static const size_t sizes[] = {4096 - 16, 4096 - 15, 5000, BGZF_FILL, BGZF_FILL + 1, 300000, 2000000};
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        struct reading *r = reading_new(4, 4096, 2, team_sizes[i]);
        uint64_t seed = 50;
        for (size_t run = 0; run < 4; run++)
            for (size_t j = 0; j < 100; j++) {
                size_t kind = unit_below(&seed, 60);
                size_t size = kind < N_OF(sizes) ? sizes[kind] : unit_any_size(&seed);
                add_record(r, run, &seed, unit_below(&seed, 50), size);
            }
        write_runs(r);
        reading_run(r);
        check_written(r);
        reading_free(r);
    }
}

static void test_what_stayed_in_memory_is_merged_with_the_runs(void **state)
{
    (void)state;
    for (size_t in_memory = 1; in_memory <= 6; in_memory++)
        for (size_t i = 0; i < N_OF(team_sizes); i++) {
            struct reading *r = reading_new(6, 2048, 2, team_sizes[i]);
            r->in_memory = in_memory;            /* at last, all */
            add_random(r, 700, 30, 60 + in_memory);
            write_runs(r);
            reading_run(r);
            check_written(r);
            reading_free(r);
        }
}

static void test_runs_without_records(void **state)
{
    (void)state;
    check_random(3, 0, 1, 4096, 2, 70);
    check_random(3, 1, 1, 4096, 2, 71);
}

/* A range needs many passes if lists are short. If they are long, there is one range or few. */
static void test_ranges_of_all_sizes(void **state)
{
    (void)state;
    static const uint32_t n_records[] = {1, 2, 7, 300, 100000}, n_ranges[] = {2, 3, 20};
    for (size_t i = 0; i < N_OF(n_records); i++)
        for (size_t j = 0; j < N_OF(n_ranges); j++)
            for (size_t in_memory = 0; in_memory <= 8; in_memory += 4) {
                struct reading *r = reading_new(8, 4096, 2, team_sizes[(i + j) % N_OF(team_sizes)]);
                r->in_memory = in_memory;
                r->n_records = n_records[i];
                r->n_ranges = n_ranges[j];
                add_random(r, 700, i % 2 ? 1 : 1000, 130 + i + j);
                write_runs(r);
                reading_run(r);
                check_written(r);
                reading_free(r);
            }
}

/* The sink has blocks of records in lists while tasks make other lists, or must copy because no list is free. */
static void test_lists_of_any_number_to_spare(void **state)
{
    (void)state;
    for (uint32_t n_spare = 0; n_spare <= 9; n_spare += n_spare < 3 ? 1 : 3)
        for (size_t i = 0; i < 2; i++)
            for (size_t in_memory = 0; in_memory <= 8; in_memory += 4) {
                struct reading *r = reading_new(8, 65536, 2, team_of_turn(i, n_spare + in_memory / 4));
                r->in_memory = in_memory;
                r->n_records = 900;
                r->n_spare = n_spare;
                add_random(r, 1000, 1000, 140 + n_spare);
                write_runs(r);
                reading_run(r);
                check_written(r);
                reading_free(r);
            }
}

static void test_sink_with_few_slots(void **state)
{
    (void)state;
    for (uint32_t slots = 1; slots <= 5; slots += 2)
        for (size_t i = 0; i < N_OF(team_sizes); i++) {
            struct reading *r = reading_new(4, 8192, 2, team_sizes[i]);
            r->sink_slots = slots;
            add_random(r, 1500, 1000, 80);
            write_runs(r);
            reading_run(r);
            check_written(r);
            reading_free(r);
        }
}

static void test_many_more_threads_than_cores(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct reading *r = reading_new(6, 1024 << round % 4, 2 + (size_t)round, 16);
        add_random(r, 800, 1000, 90 + (uint64_t)round);
        write_runs(r);
        reading_run(r);
        check_written(r);
        reading_free(r);
    }
}

static void test_latch_tripped_elsewhere_ends_the_reading(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        struct reading *r = reading_new(4, 2048, 3, team_sizes[i]);
        add_random(r, 1500, 1000, 100);
        write_runs(r);
        r->trip_at = 1000;
        reading_run(r);
        assert_int_equal(r->result, -1);
        assert_string_equal(r->latch.message, "tripped elsewhere");
        reading_free(r);
    }
}

static void test_damaged_slice_ends_the_reading(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(team_sizes); i++)
        for (size_t at = 0; at < 3; at++) {
            struct reading *r = reading_new(3, 2048, 2, team_sizes[i]);
            add_random(r, 1500, 1000, 110);
            write_runs(r);
            struct spill_run *run = &r->run[1];
            size_t which = at * (run->n - 1) / 2;
            run->slices[which].size--;           /* the last byte is missing */
            reading_run(r);
            assert_int_equal(r->result, -1);
            assert_non_null(strstr(r->latch.message, "damaged"));
            reading_free(r);
        }
}

static void test_memory_for_less_than_two_slices_of_each_run_is_told(void **state)
{
    (void)state;
    for (size_t n_runs = 1; n_runs <= 7; n_runs += 3) {
        struct reading *r = reading_new(n_runs, 2048, 2, 2);
        add_random(r, 100, 1000, 120);
        write_runs(r);
        r->lacking = 1;
        reading_run(r);
        assert_int_equal(r->result, -1);
        assert_null(r->reader);
        assert_non_null(strstr(r->latch.message, "too little memory"));
        reading_free(r);
    }
}

/* ---- the example of planning in merge_ring.c, its keys times 100 ---- */

struct example {
    size_t n_slices[2];
    struct bam_key keys[2][3][100];
};

static bool example_first_key(const void *example, size_t run, size_t slice, uint64_t *key)
{
    const struct example *e = example;
    *key = slice < e->n_slices[run] ? e->keys[run][slice]->sort : 0;
    return slice < e->n_slices[run];
}

static bool example_ready(void *example, size_t run, size_t slice, bool idle)
{
    (void)example, (void)run, (void)slice, (void)idle;
    return true;
}

static struct merge_way example_slice(const void *example, size_t run, size_t slice)
{
    static const uint8_t base[BAM_MIN_RECORD];
    const struct bam_key *keys = ((const struct example *)example)->keys[run][slice];
    return (struct merge_way){keys, keys + 100, base};
}

static int example_leave(void *example, size_t run, size_t slice)
{
    (void)example, (void)run, (void)slice;
    return 0;
}

static void example_refill(void *example)
{
    (void)example;
}

static bool example_help(void *example)
{
    (void)example;
    return false;
}

/* A begins with 1000 and B with 3000. A's other keys are odd, so that B's first ones are not ties. */
static void example_fill(struct example *e)
{
    e->n_slices[0] = 3;
    e->n_slices[1] = 2;
    for (size_t run = 0; run < 2; run++)
        for (size_t i = 0; i < 100 * e->n_slices[run]; i++)
            e->keys[run][i / 100][i % 100] = (struct bam_key){(run ? 3000 : 1000) + 40 * i + (!run && i % 100),
                                                              bam_key_place(0, BAM_MIN_RECORD)};
}

static struct merge_ring_options example_options(struct example *e, const struct engine *engine)
{
    static const struct bam_arena empty;
    example_fill(e);
    return (struct merge_ring_options){
        .arenas = {&empty},
        .runs = {2, 4, 0, false, NULL, e, example_first_key, example_ready, example_slice, NULL, NULL, example_leave,
                 example_refill, example_help},
        .n_ranges = 4,
        .n_records = 200,
        .engine = engine,
    };
}

static void check_example(const struct merge_ring_options *how, const uint32_t expected[4])
{
    struct record_list list;
    struct merge_ring *ring = merge_ring_open(how);
    MUST(ring);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(merge_ring_next(ring, &list), 1);
        assert_int_equal(list.n, expected[i]);
    }
    assert_int_equal(merge_ring_next(ring, &list), 0);
    merge_ring_close(ring);
}

static void test_ranges_end_where_the_example_says(void **state)
{
    (void)state;
    static const uint32_t expected[] = {150, 100, 200, 50};    /* the last range needs two lists */
    struct example e;
    struct latch latch = {0};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    struct output_request request = {.format.format = bam};
    struct memory_rings rings = {.sink_slots = 4, .piece_size = 1 << 16};
    int fd = unit_temp_file();
    struct merge_ring_options how = example_options(&e, &engine);
    how.sink = record_sink_open(&request, &rings, fd, "the output", &engine);
    MUST(how.sink);
    check_example(&how, expected);
    record_sink_close(how.sink);
    close(fd);
}

static void count_copied(void *copied, uint32_t index, const struct record_list *list)
{
    (void)index;
    *(uint32_t *)copied += list->n;
}

/* A list has room for more records than are wanted for a copy: then a range has about n_wanted records. */
static void test_range_has_more_records_than_are_wanted_for_a_copy(void **state)
{
    (void)state;
    static const uint32_t expected[] = {150, 100, 100, 150};   /* the second and third end where 100 are enough */
    uint32_t copied = 0;
    struct example e;
    struct latch latch = {0};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    struct merge_ring_options how = example_options(&e, &engine);
    how.copy = count_copied;
    how.arg = &copied;
    how.n_bytes = SIZE_MAX;
    how.n_wanted = 100;
    check_example(&how, expected);
    assert_int_equal(copied, 500);
}

static void test_closing_nothing_is_allowed(void **state)
{
    (void)state;
    run_reader_close(NULL);
    merge_ring_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_come_back_merged_whatever_the_sizes),
        cmocka_unit_test(test_slices_so_small_that_a_block_holds_them_all),
        cmocka_unit_test(test_runs_one_after_the_other),
        cmocka_unit_test(test_records_longer_than_slices_and_blocks),
        cmocka_unit_test(test_what_stayed_in_memory_is_merged_with_the_runs),
        cmocka_unit_test(test_runs_without_records),
        cmocka_unit_test(test_ranges_of_all_sizes),
        cmocka_unit_test(test_lists_of_any_number_to_spare),
        cmocka_unit_test(test_sink_with_few_slots),
        cmocka_unit_test(test_many_more_threads_than_cores),
        cmocka_unit_test(test_latch_tripped_elsewhere_ends_the_reading),
        cmocka_unit_test(test_damaged_slice_ends_the_reading),
        cmocka_unit_test(test_memory_for_less_than_two_slices_of_each_run_is_told),
        cmocka_unit_test(test_ranges_end_where_the_example_says),
        cmocka_unit_test(test_range_has_more_records_than_are_wanted_for_a_copy),
        cmocka_unit_test(test_closing_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
