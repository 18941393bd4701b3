/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <fcntl.h>
#include "base/latch.h"
#include "write/out_pipe.h"

/* Sum of the bytes; computed by the thread, read after the pipe is closed. */
static void see(void *sum, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *(uint64_t *)sum += bytes[i];
}

static struct out_pipe *open_pipe(int fd, uint64_t *sum, struct latch *latch)
{
    struct out_pipe_options how = {fd, "the output", see, sum, latch};
    *sum = 0;
    return out_pipe_open(&how);
}

static void test_bytes_are_lost_or_turned(void **state)
{
    (void)state;
    enum { SIZE = 3000017 };
    struct latch latch = {0};
    uint64_t sum;
    uint64_t seed = 1;
    int fd = unit_temp_file();
    uint8_t *data = must_alloc(SIZE);
    unit_fill(&seed, data, SIZE);
    struct out_pipe *p = open_pipe(fd, &sum, &latch);
    MUST(p);
    int end = out_pipe_end(p);
    for (size_t at = 0, n; at < SIZE; at += n) {
        n = 1 + unit_below(&seed, 200000);
        n = n < SIZE - at ? n : SIZE - at;
        unit_write(end, data + at, n);
    }
    close(end);
    out_pipe_close(p);
    struct unit_bytes got = unit_read_file(fd);
    for (size_t i = 0; i < got.n; i++)
        sum -= got.data[i];
    assert_int_equal(sum, 0);
    assert_int_equal(got.n, SIZE);
    assert_memory_equal(got.data, data, SIZE);
    assert_false(latch_tripped(&latch));
    unit_free(&got);
    free(data);
    close(fd);
}

/* htslib would wait forever after an error. */
static void test_full_disk_is_an_error_to_who_writes(void **state)
{
    (void)state;
    static const uint8_t bytes[100000] = {1};
    struct latch latch = {0};
    uint64_t sum;
    int full = open("/dev/full", O_WRONLY);
    if (full < 0)
        skip();
    struct out_pipe *p = open_pipe(full, &sum, &latch);
    MUST(p);
    int end = out_pipe_end(p);
    for (int i = 0; i < 50; i++)
        unit_write(end, bytes, sizeof bytes);
    close(end);
    out_pipe_close(p);
    assert_true(latch_tripped(&latch));
    assert_int_equal(sum, 0);
    assert_non_null(strstr(latch.message, "the output"));
    assert_non_null(strstr(latch.message, "No space left"));
    close(full);
}

/* htslib forgets to close its file after some errors. */
static void test_end_that_stays_open_is_waited_for(void **state)
{
    (void)state;
    struct latch latch = {0};
    uint64_t sum;
    int fd = unit_temp_file();
    struct out_pipe *p = open_pipe(fd, &sum, &latch);
    MUST(p);
    int end = out_pipe_end(p);
    unit_write(end, "abc", 3);
    out_pipe_close(p);
    struct unit_bytes got = unit_read_file(fd);
    assert_int_equal(got.n, 3);
    assert_int_equal(sum, 'a' + 'b' + 'c');
    unit_free(&got);
    close(end);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_lost_or_turned),
        cmocka_unit_test(test_full_disk_is_an_error_to_who_writes),
        cmocka_unit_test(test_end_that_stays_open_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
