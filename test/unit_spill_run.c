/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "sort/run_merge.h"
#include "order/sort_key.h"
#include "unit_spill.h"

enum { KIB = 1 << 10, SLICE = 8 * KIB, MAX_RUNS = 40 };

static struct latch latch;
static const struct engine engine = {.latch = &latch, .n_threads = 1};
static struct spill_store *store;
static struct spill_packer *packer;
static struct spill_loader loader;
static atomic_bool cancelled;

static int set_up(void **state)
{
    (void)state;
    memset(&latch, 0, sizeof latch);
    atomic_store(&cancelled, false);
    store = unit_store_open("/tmp/unit_spill_run", &engine);
    packer = spill_packer_new(SLICE);
    MUST(packer);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    spill_packer_free(packer);
    spill_store_close(store);
    spill_loader_free(&loader);
    return 0;
}

static struct spill_writer writer_to(struct spill_run *run)
{
    return (struct spill_writer){packer, store, run, &latch, 0};
}

/* The temporary file, opened again by the process. Its only file of that kind in /tmp. */
static int open_temporary_file(void)
{
    DIR *fds = opendir("/proc/self/fd");
    int found = -1;
    if (!fds)
        return -1;
    for (struct dirent *e; found < 0 && (e = readdir(fds));) {
        char link[300], path[300];
        struct stat st;
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n <= 0)
            continue;
        link[n] = 0;
        if (strncmp(link, "/tmp/", 5) == 0 && strstr(link, "(deleted)") && stat(path, &st) == 0 && S_ISREG(st.st_mode)
            && st.st_size > 0)
            found = open(path, O_RDWR);
    }
    closedir(fds);
    return found;
}

static struct unit_list random_list(size_t n, uint32_t distinct, uint64_t *seed)
{
    struct unit_list list = {0};
    for (size_t i = 0; i < n; i++)
        unit_list_add(&list, seed, unit_below(seed, distinct), unit_any_size(seed));
    unit_list_sort(&list);
    return list;
}

/* ---- writing and loading ---- */

static void test_run_comes_back_record_by_record(void **state)
{
    (void)state;
    static const size_t numbers[] = {0, 1, 2, 100, 10000};
    uint64_t seed = 1;
    for (size_t i = 0; i < N_OF(numbers); i++) {
        struct unit_list list = random_list(numbers[i], 1000, &seed);
        struct spill_run run = {0};
        unit_write_run(&run, &list, packer, store, &latch);
        unit_check_run(&run, &list, SLICE, store, &latch);
        assert_int_equal(run.n > 0, numbers[i] > 0);         /* no empty slices */
        spill_run_remove(&run, store);
        assert_int_equal(run.n, 0);
        assert_null(run.slices);
        unit_list_free(&list);
    }
}

static void test_long_records_in_a_run_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {SLICE - 16, SLICE - 15, SLICE, SLICE + 1, 100000, 5000000};
    struct unit_list list = {0};
    uint64_t seed = 2;
    for (int i = 0; i < 100; i++)
        unit_list_add(&list, &seed, (uint64_t)i, i % 9 == 4 ? sizes[i / 9 % N_OF(sizes)] : 60);
    struct spill_run run = {0};
    unit_write_run(&run, &list, packer, store, &latch);
    unit_check_run(&run, &list, SLICE, store, &latch);
    spill_run_free(&run);
    unit_list_free(&list);
}

enum { N_BARE = 12 };

/* Records of up to 90 kB, most larger than a slice, some without qualities, some with tags. Kind 2: all qualities
 * except the last are 0xff; kind 3: all except the first. */
static struct unit_list bare_list(void)
{
    struct unit_list list = {0};
    uint8_t aux[20001];
    for (size_t i = 0; i < sizeof aux; i++)
        aux[i] = (uint8_t)(i * 7);
    for (uint32_t i = 0; i < N_BARE; i++) {
        uint32_t bases = 5000 * i + i % 3, kind = i % 4;
        struct unit_record r = {.ref_id = -1, .pos = (int32_t)i, .flag = 4, .name = i % 2 ? "bare" : "",
                                .seq_len = bases, .aux = aux, .n_aux = i % 3 ? sizeof aux : 0};
        struct unit_item item = {i, list.bytes.n, unit_append_record(&list.bytes, &r)};
        uint8_t *qual = list.bytes.data + item.at + item.size - r.n_aux - bases;
        memset(qual, kind ? 0xff : 9, bases);
        if (kind > 1 && bases > 0)
            qual[kind == 2 ? bases - 1 : 0] = 30;
        unit_append(&list.items, &item, sizeof item);
        list.n++;
    }
    return list;
}

static void test_large_records_without_qualities_come_back(void **state)
{
    (void)state;
    struct unit_list list = bare_list();
    struct spill_run run = {0};
    unit_write_run(&run, &list, packer, store, &latch);
    unit_check_run(&run, &list, SLICE, store, &latch);
    size_t left_out = 0;
    for (size_t i = 0; i < run.n; i++)
        left_out += run.slices[i].hash && run.slices[i].size < unit_items(&list)[list.n - run.n + i].size;
    assert_int_equal(left_out, 3);               /* records 1, 5 and 9 */
    spill_run_free(&run);
    unit_list_free(&list);
}

static void test_end_of_a_writer_without_records_writes_nothing(void **state)
{
    (void)state;
    struct spill_run run = {0};
    struct spill_writer writer = writer_to(&run);
    assert_int_equal(spill_writer_end(&writer), 0);
    assert_int_equal(run.n, 0);
}

static void test_parts_of_a_run_are_put_together_in_order(void **state)
{
    (void)state;
    struct unit_list whole = {0};
    struct spill_run run = {0};
    uint64_t seed = 3;
    for (int part = 0; part < 12; part++) {
        struct unit_list list = {0};
        for (int i = 0; i < (part == 5 ? 0 : 1 << part); i++) {      /* an empty one, too */
            uint64_t size = unit_any_size(&seed), copy = seed;
            unit_list_add(&list, &seed, (uint64_t)part, size);
            unit_list_add(&whole, &copy, (uint64_t)part, size);
            store_le32(whole.bytes.data + unit_items(&whole)[whole.n - 1].at + 8, (uint32_t)list.n - 1);   /* pos */
        }
        struct spill_run other = {0};
        unit_write_run(&other, &list, packer, store, &latch);
        assert_int_equal(spill_run_append(&run, &other), 0);
        assert_int_equal(other.n, 0);
        assert_null(other.slices);
        unit_list_free(&list);
    }
    unit_check_run(&run, &whole, SLICE, store, &latch);
    spill_run_free(&run);
    unit_list_free(&whole);
}

static void test_slice_is_loaded_elsewhere_while_its_home_is_in_use(void **state)
{
    (void)state;
    uint64_t seed = 4;
    struct unit_list list = random_list(50, 1000, &seed);
    struct spill_run run = {0};
    unit_write_run(&run, &list, packer, store, &latch);
    struct spill_buffer b = {.home = unit_slice_memory(SLICE), .home_size = SLICE};
    size_t next = 0;
    memset(b.home, 0x5a, SLICE);
    assert_int_equal(spill_load(store, run.slices[0], &loader, &b, false, &latch), 0);
    assert_non_null(b.extra.memory);
    unit_check_slice(&b.slice, &list, &next);
    for (size_t i = 0; i < SLICE; i++)
        assert_int_equal(b.home[i], 0x5a);
    spill_extra_free(&b.extra);
    assert_int_equal(spill_load(store, run.slices[0], &loader, &b, true, &latch), 0);
    assert_null(b.extra.memory);
    assert_ptr_equal(b.slice.base, b.home);
    free(b.home);
    spill_run_free(&run);
    unit_list_free(&list);
}

/* ---- merging ---- */

struct runs {
    struct unit_list all;                    /* records of all runs, in input order */
    struct spill_run run[MAX_RUNS];
    size_t n;
};

/* Run i has lengths[i] records; keys below distinct. */
static struct runs *runs_new(const size_t *lengths, size_t n, uint32_t distinct, uint64_t seed)
{
    struct runs *r = calloc(1, sizeof *r);
    MUST(r && n <= MAX_RUNS);
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        struct unit_list part = {0};
        size_t from = r->all.n;
        for (size_t j = 0; j < lengths[i]; j++)
            unit_list_add(&r->all, &seed, unit_below(&seed, distinct), unit_any_size(&seed));
        unit_append(&part.bytes, r->all.bytes.data, r->all.bytes.n);     /* the same places */
        unit_append(&part.items, unit_items(&r->all) + from, lengths[i] * sizeof(struct unit_item));
        part.n = lengths[i];
        unit_list_sort(&part);
        unit_write_run(&r->run[i], &part, packer, store, &latch);
        unit_list_free(&part);
    }
    return r;
}

static void runs_free(struct runs *r)
{
    for (size_t i = 0; i < r->n; i++)
        spill_run_free(&r->run[i]);
    unit_list_free(&r->all);
    free(r);
}

static int merge_part(struct runs *r, const struct sort_rule *rule, uint64_t from, uint64_t to, struct spill_run *into)
{
    uint8_t *memory = unit_slice_memory(r->n * SLICE);       /* exactly */
    struct spill_merge how = {r->run, r->n, rule, memory, SLICE, from, to, &loader,
                              writer_to(into), &cancelled};
    int result = spill_merge(&how);
    free(memory);
    return result;
}

static int merge_runs(struct runs *r, const struct sort_rule *rule, struct spill_run *into)
{
    return merge_part(r, rule, 0, UINT64_MAX, into);
}

static void check_merge(const size_t *lengths, size_t n, uint32_t distinct, uint64_t seed)
{
    struct runs *r = runs_new(lengths, n, distinct, seed);
    struct spill_run into = {0};
    assert_int_equal(merge_runs(r, NULL, &into), 1);
    unit_list_sort(&r->all);                     /* stable: ties are in input order */
    unit_check_run(&into, &r->all, SLICE, store, &latch);
    spill_run_free(&into);
    runs_free(r);
}

static void test_merged_runs_are_the_stable_order_of_all(void **state)
{
    (void)state;
    static const uint32_t distinct[] = {1, 2, 30, 1u << 31};
    uint64_t seed = 10;
    for (size_t n = 1; n <= MAX_RUNS; n += 1 + n / 3)
        for (size_t i = 0; i < N_OF(distinct); i++) {
            size_t lengths[MAX_RUNS];
            for (size_t j = 0; j < n; j++)
                lengths[j] = unit_below(&seed, 5) ? unit_below(&seed, 600) : 0;
            check_merge(lengths, n, distinct[i], seed);
        }
}

/* Keys are below 1000, the first and last cuts beyond them. Some parts have no keys, some runs no slice of a part. */
static void test_merged_parts_of_the_order_make_the_whole(void **state)
{
    (void)state;
    static const size_t lengths[] = {3000, 0, 1, 500, 3000, 20};
    static const uint64_t cuts[] = {0, 1, 2, 3, 250, 251, 600, 998, 999, 1000, 5000, UINT64_MAX};
    struct runs *r = runs_new(lengths, N_OF(lengths), 1000, 17);
    struct spill_run all = {0};
    for (size_t i = 0; i + 1 < N_OF(cuts); i++) {
        struct spill_run into = {0};
        assert_int_equal(merge_part(r, NULL, cuts[i], cuts[i + 1] - 1, &into), 1);
        assert_int_equal(spill_run_append(&all, &into), 0);
    }
    unit_list_sort(&r->all);
    unit_check_run(&all, &r->all, SLICE, store, &latch);
    spill_run_free(&all);
    runs_free(r);
}

static void test_runs_without_records_merge_to_one_without(void **state)
{
    (void)state;
    static const size_t none[3] = {0, 0, 0};
    check_merge(none, 3, 1, 11);
    check_merge(none, 1, 1, 12);
}

static void test_runs_of_long_records_merge(void **state)
{
    (void)state;
    struct runs *r = calloc(1, sizeof *r);
    uint64_t seed = 13;
    MUST(r);
    r->n = 3;
    for (size_t i = 0; i < 3; i++) {
        struct unit_list part = {0};
        for (size_t j = 0; j < 40; j++) {
            uint64_t before = seed, size = j % 7 == i ? 100000 : j == 20 ? 3000000 : 60, key = j / 3;
            unit_list_add(&part, &seed, key, size);
            unit_list_add(&r->all, &before, key, size);
            store_le32(r->all.bytes.data + unit_items(&r->all)[r->all.n - 1].at + 8, (uint32_t)j);   /* pos */
        }
        unit_write_run(&r->run[i], &part, packer, store, &latch);
        unit_list_free(&part);
    }
    struct spill_run into = {0};
    assert_int_equal(merge_runs(r, NULL, &into), 1);
    unit_list_sort(&r->all);
    unit_check_run(&into, &r->all, SLICE, store, &latch);
    spill_run_free(&into);
    runs_free(r);
}

/* All keys are equal; the names decide, and of equal names the earlier run comes first. */
static void test_records_decide_where_keys_do_not_and_then_the_run(void **state)
{
    (void)state;
    enum { N_RUNS = 7, EACH = 200, NAMES = 50 };
    struct sort_order by_name = {.by = SORT_NAME_NATURAL};
    sam_hdr_t *sam = sam_hdr_init();
    struct sort_rule *rule = sort_rule_new(&by_name, sam);
    struct runs *r = calloc(1, sizeof *r);
    struct unit_list want = {0};
    MUST(sam && rule && r);
    r->n = N_RUNS;
    for (int run = 0; run < N_RUNS; run++) {
        struct unit_list part = {0};
        for (int i = 0; i < EACH; i++) {
            char name[16];
            snprintf(name, sizeof name, "r%d", i / (EACH / NAMES));
            struct unit_record record = {.ref_id = -1, .pos = run * EACH + i, .flag = 4, .name = name};
            struct unit_item item = {9, part.bytes.n, unit_append_record(&part.bytes, &record)};
            unit_append(&part.items, &item, sizeof item);
            part.n++;
        }
        unit_write_run(&r->run[run], &part, packer, store, &latch);
        unit_list_free(&part);
    }
    for (int name = 0; name < NAMES; name++)
        for (int run = 0; run < N_RUNS; run++)
            for (int i = 0; i < EACH / NAMES; i++) {
                char text[16];
                snprintf(text, sizeof text, "r%d", name);
                struct unit_record record = {.ref_id = -1, .pos = run * EACH + name * (EACH / NAMES) + i, .flag = 4,
                                             .name = text};
                struct unit_item item = {9, want.bytes.n, unit_append_record(&want.bytes, &record)};
                unit_append(&want.items, &item, sizeof item);
                want.n++;
            }
    struct spill_run into = {0};
    assert_int_equal(merge_runs(r, rule, &into), 1);
    unit_check_run(&into, &want, SLICE, store, &latch);
    spill_run_free(&into);
    runs_free(r);
    unit_list_free(&want);
    sort_rule_free(rule);
    sam_hdr_destroy(sam);
}

static void test_cancelled_merge_is_no_error(void **state)
{
    (void)state;
    static const size_t lengths[] = {3000, 3000};
    struct runs *r = runs_new(lengths, 2, 1000, 14);
    struct spill_run into = {0};
    atomic_store(&cancelled, true);
    assert_int_equal(merge_runs(r, NULL, &into), 0);
    assert_string_equal(latch.message, "");
    spill_run_remove(&into, store);
    atomic_store(&cancelled, false);
    unit_list_sort(&r->all);
    if (spill_packer_empty(packer)) {            /* the runs are unchanged */
        assert_int_equal(merge_runs(r, NULL, &into), 1);
        unit_check_run(&into, &r->all, SLICE, store, &latch);
    }
    spill_run_free(&into);
    runs_free(r);
}

static void test_latch_tripped_elsewhere_ends_the_merge(void **state)
{
    (void)state;
    static const size_t lengths[] = {3000, 3000};
    struct runs *r = runs_new(lengths, 2, 1000, 15);
    struct spill_run into = {0};
    latch_fail(&latch, "tripped elsewhere");
    assert_int_equal(merge_runs(r, NULL, &into), -1);
    assert_string_equal(latch.message, "tripped elsewhere");
    spill_run_free(&into);
    runs_free(r);
}

/* ---- damage ---- */

/* A run, and its temporary file to be damaged. */
struct victim {
    struct unit_list list;
    struct spill_run run;
    int fd;
};

static struct victim victim_new(size_t n, uint64_t *seed)
{
    struct victim v = {.list = random_list(n, 1000, seed)};
    unit_write_run(&v.run, &v.list, packer, store, &latch);
    v.fd = open_temporary_file();
    if (v.fd < 0)
        skip();
    return v;
}

static void victim_free(struct victim *v)
{
    close(v->fd);
    spill_run_free(&v->run);
    unit_list_free(&v->list);
}

static void flip(int fd, uint64_t at, uint8_t bits)
{
    uint8_t byte;
    MUST(pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= bits;
    MUST(pwrite(fd, &byte, 1, (off_t)at) == 1);
}

/* The slice is refused, and the message names it. */
static void check_damaged(struct spill_place place)
{
    struct spill_buffer b = {.home = unit_slice_memory(SLICE), .home_size = SLICE};
    char offset[64];
    snprintf(offset, sizeof offset, "offset %llu:", (unsigned long long)place.offset);
    memset(&latch, 0, sizeof latch);
    assert_int_equal(spill_load(store, place, &loader, &b, true, &latch), -1);
    assert_non_null(strstr(latch.message, "/tmp"));
    assert_non_null(strstr(latch.message, "damaged"));
    if (!strstr(latch.message, offset))
        fail_msg("\"%s\" does not say \"%s\"", latch.message, offset);
    spill_extra_free(&b.extra);
    free(b.home);
}

/* The damage is not in the high bytes of the header's sizes, because memory is allocated for these first. */
static void test_damaged_slice_is_told_with_its_place(void **state)
{
    (void)state;
    static const uint8_t in_header[] = {0, 3, 7, 8, 9, 16, 24, 31};
    uint64_t seed = 20;
    struct victim v = victim_new(3000, &seed);
    for (size_t i = 0; i < v.run.n; i++) {
        struct spill_place place = v.run.slices[i];
        uint64_t at = place.offset + (i < N_OF(in_header) ? in_header[i] : SPILL_SLICE_HEADER
                                      + unit_below(&seed, place.size - SPILL_SLICE_HEADER));
        flip(v.fd, at, 0x10);
        check_damaged(place);
        flip(v.fd, at, 0x10);
    }
    victim_free(&v);
}

/* Damages single bytes, even those of the size and the lengths, which are used before the hash is compared. */
static void test_damaged_large_record_is_told_with_its_place(void **state)
{
    (void)state;
    uint64_t seed = 24;
    struct victim v = {.list = bare_list()};
    unit_write_run(&v.run, &v.list, packer, store, &latch);
    if ((v.fd = open_temporary_file()) < 0)
        skip();
    for (size_t i = 0; i < v.run.n; i++)
        for (uint32_t k = 0; v.run.slices[i].hash && k < BAM_FIXED + 20; k++) {
            uint64_t at = v.run.slices[i].offset + (k < BAM_FIXED ? k : unit_below(&seed, v.run.slices[i].size));
            uint8_t bit = (uint8_t)(1 << unit_below(&seed, 8));
            flip(v.fd, at, bit);
            check_damaged(v.run.slices[i]);
            flip(v.fd, at, bit);
        }
    victim_free(&v);
}

/* A file system may return a page of zeros after a crash. */
static void test_slice_of_zeros_is_told(void **state)
{
    (void)state;
    static const uint8_t zeros[SLICE];
    uint64_t seed = 21;
    struct victim v = victim_new(10, &seed);
    struct spill_place place = v.run.slices[0];
    MUST(v.run.n == 1 && place.size <= SLICE);
    MUST(pwrite(v.fd, zeros, place.size, (off_t)place.offset) == (ssize_t)place.size);
    check_damaged(place);
    victim_free(&v);
}

/* Its checksum is compared once there is memory for it: memory for an impossible size must not be requested. */
static void test_slice_that_claims_a_petabyte_is_out_of_memory(void **state)
{
    (void)state;
    uint8_t claim[8];
    uint64_t seed = 31;
    struct victim v = victim_new(10, &seed);
    MUST(v.run.n == 1 && v.run.slices[0].size <= SLICE);
    store_le64(claim, (uint64_t)1 << 50);
    MUST(pwrite(v.fd, claim, sizeof claim, (off_t)v.run.slices[0].offset + 8) == sizeof claim);
    check_damaged(v.run.slices[0]);
    victim_free(&v);
}

static void test_file_cut_short_is_told(void **state)
{
    (void)state;
    uint64_t seed = 22;
    struct victim v = victim_new(3000, &seed);
    struct spill_place last = v.run.slices[v.run.n - 1];
    MUST(ftruncate(v.fd, (off_t)(last.offset + last.size - 1)) == 0);
    check_damaged(last);
    victim_free(&v);
}

static void test_merge_of_damaged_runs_fails_and_frees_all(void **state)
{
    (void)state;
    static const size_t lengths[] = {2000, 2000, 2000};
    struct runs *r = runs_new(lengths, 3, 1000, 23);
    struct spill_run into = {0};
    int fd = open_temporary_file();
    if (fd < 0)
        skip();
    struct spill_place middle = r->run[1].slices[r->run[1].n / 2];
    flip(fd, middle.offset + middle.size - 1, 1);
    assert_int_equal(merge_runs(r, NULL, &into), -1);
    assert_non_null(strstr(latch.message, "damaged"));
    close(fd);
    spill_run_free(&into);
    runs_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_run_comes_back_record_by_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_records_in_a_run_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_records_without_qualities_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_of_a_writer_without_records_writes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_parts_of_a_run_are_put_together_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slice_is_loaded_elsewhere_while_its_home_is_in_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_merged_runs_are_the_stable_order_of_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_merged_parts_of_the_order_make_the_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_runs_without_records_merge_to_one_without, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_runs_of_long_records_merge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_records_decide_where_keys_do_not_and_then_the_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancelled_merge_is_no_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_latch_tripped_elsewhere_ends_the_merge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_slice_is_told_with_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_large_record_is_told_with_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slice_of_zeros_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slice_that_claims_a_petabyte_is_out_of_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_cut_short_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_merge_of_damaged_runs_fails_and_frees_all, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
