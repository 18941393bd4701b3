/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "base/engine.h"
#include "base/latch.h"
#include "sort/spill_store.h"
#include "unit.h"

enum { KIB = 1 << 10, MIB = 1 << 20, MAX_DIRS = 4, MAX_PUTS = 3000 };

/* ---- a file system that fails on demand ----
 *
 * It replaces the C library's pwrite() and pread(), for files in one directory. */

static struct {
    char dir[100];               /* "": none */
    int write_error;             /* errno; 0: none */
    off_t end;                   /* offset from which on writing fails */
    int wrote, did_read;         /* ours were called */
    uint64_t short_seed;         /* not 0: writes and reads are short, or a signal interrupts them; one thread only */
} faulty;

static bool is_faulty(int fd)
{
    char path[64], link[200];
    if (!faulty.dir[0])
        return false;
    ssize_t n = readlink(unit_fd_path(path, fd), link, sizeof link - 1);
    return n > 0 && strncmp(link, faulty.dir, strlen(faulty.dir)) == 0 && link[strlen(faulty.dir)] == '/';
}

/* Returns how many of n bytes are accepted now; 0: none, and errno has the cause. */
static size_t bite(size_t n)
{
    if (!faulty.short_seed)
        return n;
    if (unit_below(&faulty.short_seed, 3) == 0) {
        errno = EINTR;
        return 0;
    }
    return 1 + unit_below(&faulty.short_seed, (uint32_t)n);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    if (is_faulty(fd)) {
        #pragma omp atomic write
        faulty.wrote = 1;
        if (faulty.write_error && at + (off_t)n > faulty.end) {
            if (at < faulty.end)                 /* the part that still fits, like file systems */
                return syscall(SYS_pwrite64, fd, data, faulty.end - at, at);
            errno = faulty.write_error;
            return -1;
        }
        if ((n = bite(n)) == 0)
            return -1;
    }
    return syscall(SYS_pwrite64, fd, data, n, at);
}

ssize_t pread(int fd, void *data, size_t n, off_t at)
{
    if (is_faulty(fd)) {
        #pragma omp atomic write
        faulty.did_read = 1;
        if ((n = bite(n)) == 0)
            return -1;
    }
    return syscall(SYS_pread64, fd, data, n, at);
}

/* ---- directories, and the data stored ---- */

static char dirs[MAX_DIRS][32];
static struct latch latch;
static const struct engine engine = {.latch = &latch, .n_threads = 1};

static int set_up(void **state)
{
    (void)state;
    memset(&latch, 0, sizeof latch);
    memset(&faulty, 0, sizeof faulty);
    for (int i = 0; i < MAX_DIRS; i++) {
        strcpy(dirs[i], "/tmp/unit-store-XXXXXX");
        if (!mkdtemp(dirs[i]))
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    memset(&faulty, 0, sizeof faulty);
    int failed = 0;
    for (int i = 0; i < MAX_DIRS; i++)
        failed |= rmdir(dirs[i]);                /* fails if any file was left */
    return failed;
}

static struct spill_store *open_only(const char *const *prefixes, size_t n)
{
    struct spill_store_options options = {prefixes, n, &engine};
    struct spill_store *store = spill_store_open(&options);
    MUST(store);
    return store;
}

static struct spill_store *open_dirs(size_t n)
{
    const char *prefixes[MAX_DIRS] = {dirs[0], dirs[1], dirs[2], dirs[3]};
    uint64_t room = 0;
    struct spill_store *store = open_only(prefixes, n);
    assert_int_equal(spill_store_prepare(store, &room), 0);
    assert_true(room > 0);
    return store;
}

/* One of the process's open files that is in this directory and has no name; -1: none. */
static int unnamed_in(const char *dir)
{
    int found = -1;
    for (int fd = 3; fd < 100 && found < 0; fd++) {
        char path[64], link[200];
        ssize_t n = readlink(unit_fd_path(path, fd), link, sizeof link - 1);
        if (n <= 0)
            continue;
        link[n] = 0;
        char *slash = strrchr(link, '/');
        if (strstr(link, " (deleted)") && slash && (size_t)(slash - link) == strlen(dir)
            && strncmp(link, dir, strlen(dir)) == 0)
            found = fd;
    }
    return found;
}

/* The data stored, and their places. */
struct puts {
    uint8_t *data[MAX_PUTS];
    struct spill_place place[MAX_PUTS];
    size_t size[MAX_PUTS];
    size_t n;
};

static struct puts *puts_new(size_t n, uint32_t most, uint64_t seed)
{
    struct puts *p = calloc(1, sizeof *p);
    MUST(p && n <= MAX_PUTS);
    p->n = n;
    for (size_t i = 0; i < n; i++) {
        p->size[i] = 1 + unit_below(&seed, most);
        p->data[i] = must_alloc(p->size[i]);
        unit_fill(&seed, p->data[i], p->size[i]);
    }
    return p;
}

static void puts_free(struct puts *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->data[i]);
    free(p);
}

static int put_one(struct spill_store *store, struct puts *p, size_t i)
{
    return spill_store_put(store, p->data[i], p->size[i], &p->place[i]);
}

static void put_all(struct spill_store *store, struct puts *p)
{
    for (size_t i = 0; i < p->n; i++)
        assert_int_equal(put_one(store, p, i), 0);
}

/* 1: the data are unchanged. */
static int comes_back(struct spill_store *store, const struct puts *p, size_t i)
{
    uint8_t *got = must_alloc(p->place[i].size);         /* exactly */
    int same = p->place[i].size == p->size[i] && spill_store_get(store, p->place[i], got) == 0
            && memcmp(got, p->data[i], p->size[i]) == 0;
    free(got);
    return same;
}

static void check_all(struct spill_store *store, const struct puts *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!comes_back(store, p, i))
            fail_msg("put %zu of %zu came back changed: %s", i, p->n, latch.message);
}

static size_t count_volume(const struct puts *p, uint32_t volume)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->place[i].volume == volume;
    return n;
}

/* Skips the test if the program does not call these (a hardened build has other names for them). */
static void need_faults(void)
{
    struct puts *p = puts_new(1, 100, 99);
    struct spill_store *store = open_dirs(1);
    strcpy(faulty.dir, dirs[0]);
    put_all(store, p);
    check_all(store, p);
    bool work = faulty.wrote && faulty.did_read;
    memset(&faulty, 0, sizeof faulty);
    spill_store_close(store);
    puts_free(p);
    if (!work)
        skip();
}

/* ---- tests: stored data come back ---- */

static void test_slices_come_back_from_a_file(void **state)
{
    (void)state;
    struct puts *p = puts_new(300, 20000, 1);
    struct spill_store *store = open_dirs(1);
    put_all(store, p);
    for (size_t i = 0; i < p->n; i++) {
        assert_int_not_equal(p->place[i].volume, 0);
        spill_store_expect(store, p->place[i]);
    }
    check_all(store, p);
    check_all(store, p);                         /* reading removes nothing */
    assert_string_equal(latch.message, "");
    spill_store_close(store);
    puts_free(p);
}

static void test_memory_is_filled_first_then_the_file(void **state)
{
    (void)state;
    enum { MEMORY = 500000 };
    struct puts *p = puts_new(300, 10000, 2);
    struct spill_store *store = open_dirs(1);
    spill_store_use_memory(store, MEMORY);
    put_all(store, p);
    check_all(store, p);
    uint64_t in_memory = 0;
    for (size_t i = 0; i < p->n; i++) {
        bool first = in_memory + p->size[i] <= MEMORY;
        assert_int_equal(p->place[i].volume == 0, first);    /* a small one may still fit later */
        in_memory += first ? p->size[i] : 0;
    }
    assert_in_range(in_memory, MEMORY - 10000, MEMORY);
    for (size_t i = 0; i < p->n; i++) {
        spill_store_expect(store, p->place[i]);
        if (i % 2)
            spill_store_free(store, p->place[i]);
    }
    for (size_t i = 0; i < p->n; i += 2)
        assert_true(comes_back(store, p, i));
    spill_store_close(store);
    puts_free(p);
}

static void test_memory_that_is_not_to_be_had_changes_nothing(void **state)
{
    (void)state;
    struct puts *p = puts_new(10, 1000, 3);
    struct spill_store *store = open_dirs(1);
    spill_store_use_memory(store, (size_t)1 << 62);
    put_all(store, p);
    check_all(store, p);
    for (size_t i = 0; i < p->n; i++)
        assert_int_not_equal(p->place[i].volume, 0);
    assert_string_equal(latch.message, "");
    spill_store_close(store);
    puts_free(p);
}

static void test_freed_space_goes_back_and_neighbours_stay(void **state)
{
    (void)state;
    enum { EACH = 64 * KIB - 100, N = 64 };
    struct puts *p = calloc(1, sizeof *p);
    struct stat before, after, end;
    uint64_t seed = 4;
    MUST(p);
    for (p->n = 0; p->n < N; p->n++) {
        p->size[p->n] = EACH;
        p->data[p->n] = must_alloc(EACH);
        unit_fill(&seed, p->data[p->n], EACH);
    }
    struct spill_store *store = open_dirs(1);
    put_all(store, p);
    int fd = unnamed_in(dirs[0]);
    assert_true(fd >= 0);
    fsync(fd);                                   /* otherwise blocks may not be counted yet */
    MUST(fstat(fd, &before) == 0);
    for (size_t i = 0; i < N; i += 2)
        spill_store_free(store, p->place[i]);
    MUST(fstat(fd, &after) == 0);
    for (size_t i = 1; i < N; i += 2)
        assert_true(comes_back(store, p, i));
    assert_int_equal(after.st_size, before.st_size);
    bool can_punch = after.st_blocks < before.st_blocks;
    if (can_punch)
        assert_in_range(after.st_blocks, before.st_blocks / 2 - 64, before.st_blocks / 2 + 64);
    for (size_t i = 1; i < N; i += 2)
        spill_store_free(store, p->place[i]);
    MUST(fstat(fd, &end) == 0);
    if (can_punch)                               /* an odd end of each slice would be 8 blocks */
        assert_in_range(end.st_blocks, 0, N);
    spill_store_close(store);
    puts_free(p);
    if (!can_punch)
        skip();
}

static void test_system_that_writes_and_reads_less_than_asked(void **state)
{
    (void)state;
    need_faults();
    struct puts *p = puts_new(100, 5000, 5);
    struct spill_store *store = open_dirs(1);
    strcpy(faulty.dir, dirs[0]);
    faulty.short_seed = 6;
    put_all(store, p);
    check_all(store, p);
    assert_string_equal(latch.message, "");
    spill_store_close(store);
    puts_free(p);
}

static void test_many_threads_put_and_get_at_once(void **state)
{
    (void)state;
    static const int team_sizes[] = {2, 3, 8};
    for (size_t t = 0; t < N_OF(team_sizes); t++) {
        struct puts *p = puts_new(2500, 3000, 7 + t);
        struct spill_store *store = open_dirs(3);
        int wrong = 0;
        spill_store_use_memory(store, MIB);
        #pragma omp parallel for num_threads(team_sizes[t]) schedule(dynamic, 1) reduction(+:wrong)
        for (int i = 0; i < (int)p->n; i++) {
            wrong += put_one(store, p, (size_t)i) < 0 || !comes_back(store, p, (size_t)i);
            if (i % 5 == 0)
                spill_store_free(store, p->place[i]);
        }
        assert_int_equal(wrong, 0);
        #pragma omp parallel for num_threads(team_sizes[t]) schedule(dynamic, 1) reduction(+:wrong)
        for (int i = 0; i < (int)p->n; i++)
            wrong += i % 5 != 0 && !comes_back(store, p, (size_t)i);
        assert_int_equal(wrong, 0);
        assert_string_equal(latch.message, "");
        spill_store_close(store);
        puts_free(p);
    }
}

/* ---- tests: several directories ---- */

static void test_directories_take_turns(void **state)
{
    (void)state;
    struct puts *p = puts_new(400, 3000, 10);
    struct spill_store *store = open_dirs(MAX_DIRS);
    put_all(store, p);
    check_all(store, p);
    for (uint32_t volume = 1; volume <= MAX_DIRS; volume++)
        assert_in_range(count_volume(p, volume), 80, 120);
    spill_store_close(store);
    puts_free(p);
}

static void test_full_directory_is_left_by_many_threads_at_once(void **state)
{
    (void)state;
    need_faults();
    struct puts *p = puts_new(2000, 3000, 12);
    struct spill_store *store = open_dirs(2);
    int wrong = 0;
    strcpy(faulty.dir, dirs[1]);
    faulty.write_error = ENOSPC;
    faulty.end = 300000;
    #pragma omp parallel for num_threads(8) schedule(dynamic, 1) reduction(+:wrong)
    for (int i = 0; i < (int)p->n; i++)
        wrong += put_one(store, p, (size_t)i) < 0;
    assert_int_equal(wrong, 0);
    check_all(store, p);
    assert_string_equal(latch.message, "");
    spill_store_close(store);
    puts_free(p);
}

static void test_message_when_the_only_directory_is_full(void **state)
{
    (void)state;
    need_faults();
    struct puts *p = puts_new(100, 3000, 13);
    struct spill_store *store = open_dirs(1);
    char needed[64];
    size_t i = 0;
    strcpy(faulty.dir, dirs[0]);
    faulty.write_error = ENOSPC;
    faulty.end = 70000;
    while (i < p->n && put_one(store, p, i) == 0)
        i++;
    assert_in_range(i, 10, 90);
    snprintf(needed, sizeof needed, "%zu bytes more", p->size[i]);
    assert_non_null(strstr(latch.message, dirs[0]));
    assert_non_null(strstr(latch.message, needed));
    assert_non_null(strstr(latch.message, "-T"));
    assert_null(strstr(latch.message, "other -T"));
    assert_int_equal(put_one(store, p, i), -1);
    for (size_t j = 0; j < i; j++)
        assert_true(comes_back(store, p, j));    /* data stored before stay valid */
    spill_store_close(store);
    puts_free(p);
}

/* The real system limit for files. */
static void test_limit_for_files_is_a_full_directory(void **state)
{
    (void)state;
    enum { LIMIT = 100000, BLOCK = 4096 };
    struct puts *p = puts_new(100, 3000, 14);
    struct spill_store *store = open_dirs(2);
    struct rlimit old, limit;
    MUST(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = (struct rlimit){LIMIT, old.rlim_max};
    void (*on_excess)(int) = signal(SIGXFSZ, SIG_IGN);
    size_t i = 0;
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    while (i < p->n && put_one(store, p, i) == 0)
        i++;
    MUST(setrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, on_excess);
    uint64_t put = 0;
    for (size_t j = 0; j < i; j++) {
        put += BLOCK;                            /* no two share one */
        assert_true(comes_back(store, p, j));
    }
    if (i < p->n) {                              /* both files were filled */
        assert_in_range(put, 2 * (LIMIT - BLOCK), 2 * (LIMIT + BLOCK));
        assert_non_null(strstr(latch.message, dirs[1]));
        assert_non_null(strstr(latch.message, "other -T"));
    } else {
        assert_true(put <= 2 * (LIMIT + BLOCK));
    }
    spill_store_close(store);
    puts_free(p);
}

/* ---- tests: other failures ---- */

static void test_file_cut_short_by_another_program_is_told(void **state)
{
    (void)state;
    struct puts *p = puts_new(10, 3000, 18);
    struct spill_store *store = open_dirs(1);
    char place[64];
    put_all(store, p);
    int fd = unnamed_in(dirs[0]);
    MUST(fd >= 0 && ftruncate(fd, (off_t)(p->place[9].offset + p->place[9].size - 1)) == 0);
    assert_true(comes_back(store, p, 8));
    assert_false(comes_back(store, p, 9));
    snprintf(place, sizeof place, "offset %llu:", (unsigned long long)p->place[9].offset);
    assert_non_null(strstr(latch.message, dirs[0]));
    assert_non_null(strstr(latch.message, place));
    spill_store_close(store);
    puts_free(p);
}

/* ---- tests: where the files are ---- */

static void test_same_directory_given_twice(void **state)
{
    (void)state;
    const char *prefixes[] = {dirs[0], dirs[0]};
    uint64_t room;
    struct puts *p = puts_new(200, 3000, 23);
    struct spill_store *store = open_only(prefixes, 2);
    assert_int_equal(spill_store_prepare(store, &room), 0);
    put_all(store, p);
    check_all(store, p);
    spill_store_close(store);
    puts_free(p);
}

#define WITH_DIRS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIRS(test_slices_come_back_from_a_file),
        WITH_DIRS(test_memory_is_filled_first_then_the_file),
        WITH_DIRS(test_memory_that_is_not_to_be_had_changes_nothing),
        WITH_DIRS(test_freed_space_goes_back_and_neighbours_stay),
        WITH_DIRS(test_system_that_writes_and_reads_less_than_asked),
        WITH_DIRS(test_many_threads_put_and_get_at_once),
        WITH_DIRS(test_directories_take_turns),
        WITH_DIRS(test_full_directory_is_left_by_many_threads_at_once),
        WITH_DIRS(test_message_when_the_only_directory_is_full),
        WITH_DIRS(test_limit_for_files_is_a_full_directory),
        WITH_DIRS(test_file_cut_short_by_another_program_is_told),
        WITH_DIRS(test_same_directory_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
