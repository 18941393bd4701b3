/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <dirent.h>
#include <dlfcn.h>
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "hts/hts_writer.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/memory_shares.h"
#include "write/output_request.h"

enum { N = 3000, NONE = -1 };

/* Threads of this process; 0: unknown. */
static int count_threads(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *each; tasks && (each = readdir(tasks));)
        n += each->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return n;
}

static int lost = NONE, written, n_threads_at_end;

/* Replaces htslib's: loses the record of number `lost` and reports success. */
int sam_write1(htsFile *file, const sam_hdr_t *header, const bam1_t *b)
{
    int (*next)(htsFile *, const sam_hdr_t *, const bam1_t *);
    *(void **)&next = dlsym(RTLD_NEXT, "sam_write1");
    MUST(next);
    if (written == N - 1)
        n_threads_at_end = count_threads();
    return written++ == lost ? 1 : next(file, header, b);
}

static struct latch latch;

/* Writes N records, losing one unless it is NONE, and returns the result of hts_writer_finish(). */
static int write_all(const char *format, int n_threads, bool indexed, int lose, const char *tag)
{
    struct output_request request = {.level = -1};
    char index[] = "/tmp/unit-XXXXXX";
    int fd = unit_temp_file(), index_fd = mkstemp(index);
    MUST(index_fd >= 0);
    memset(&latch, 0, sizeof latch);
    lost = lose;
    written = 0;
    assert_int_equal(hts_parse_format(&request.format, format), 0);
    request.index = indexed ? index : NULL;
    struct memory_rings rings = {.job.n_threads = n_threads, .writer = {(uint64_t)1 << 30, 0}, .sink_slots = 3};
    const struct engine engine = {.latch = &latch, .n_threads = n_threads};
    struct hts_writer *w = hts_writer_open(&request, &rings, fd, "the output", &engine);
    static const char text[] = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:a\tLN:999\n@CO\tx";
    sam_hdr_t *header = sam_hdr_parse(sizeof text - 1, text);
    MUST(w && header);
    assert_int_equal(hts_writer_header(w, header, indexed ? index : NULL, false), 0);
    struct unit_bytes b = {NULL, 0, 0};
    static struct record_ref refs[N];
    static size_t at[N + 1];
    for (int i = 0; i < N; i++) {
        struct unit_record r = {.ref_id = i < N / 2 ? 0 : -1, .pos = i < N / 2 ? i / 2 : -1, .flag = 4, .name = "r",
                                .aux = tag, .n_aux = tag ? strlen(tag) + 1 : 0};
        at[i + 1] = at[i] + unit_append_record(&b, &r);
    }
    for (int i = 0; i < N; i++)
        refs[i] = (struct record_ref){b.data + at[i], (uint32_t)(at[i + 1] - at[i]), 0, 0};
    int status = hts_writer_put(w, refs, 1) < 0 || hts_writer_put(w, refs + 1, N - 1) < 0 ? -1 : hts_writer_finish(w);
    unit_free(&b);
    hts_writer_close(w);
    sam_hdr_destroy(header);
    hts_opt_free((hts_opt *)request.format.specific);
    unlink(index);
    close(index_fd);
    close(fd);
    return status;
}

static const struct { const char *format; int n_threads; bool indexed; } ways[] = {
    {"cram,no_ref=1", 1, false}, {"cram,no_ref=1", 3, false}, {"cram,no_ref=1,version=2.1", 1, false},
    {"cram,no_ref=1,version=3.1", 3, true},
};

static void test_lost_record_is_not_told(void **state)
{
    (void)state;
    static const int which[] = {0, 1, N / 2, N - 1};
    for (size_t i = 0; i < N_OF(ways); i++)
        for (size_t k = 0; k < N_OF(which); k++) {
            assert_int_equal(write_all(ways[i].format, ways[i].n_threads, ways[i].indexed, which[k], NULL), -1);
            assert_true(latch_tripped(&latch));
            assert_non_null(strstr(latch.message, "the output"));
        }
}

static void test_sound_output_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(ways); i++) {
        assert_int_equal(write_all(ways[i].format, ways[i].n_threads, ways[i].indexed, NONE, NULL), 0);
        assert_false(latch_tripped(&latch));
    }
    assert_int_equal(write_all("sam.gz", 3, true, NONE, NULL), 0);
    assert_int_equal(write_all("sam", 3, false, NONE, NULL), 0);
}

static void test_end_of_line_in_a_tag_is_written(void **state)
{
    (void)state;
    static const struct { const char *format; int n_threads; bool indexed; } texts[] = {
        {"sam", 1, false}, {"sam", 3, false}, {"sam.gz", 3, false}, {"sam.gz", 3, true},
    };
    for (size_t i = 0; i < N_OF(texts); i++) {
        assert_int_equal(write_all(texts[i].format, texts[i].n_threads, texts[i].indexed, NONE, "XXZa\nb"), -1);
        assert_non_null(strstr(latch.message, "record r has a tag"));
    }
}

/* Threads that make an index of lines may write outside their memory. */
static void test_option_starts_threads_for_sam(void **state)
{
    (void)state;
    assert_int_equal(write_all("sam.gz,nthreads=3", 4, true, NONE, NULL), 0);
    assert_true(n_threads_at_end <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_record_is_not_told),
        cmocka_unit_test(test_sound_output_is_refused),
        cmocka_unit_test(test_end_of_line_in_a_tag_is_written),
        cmocka_unit_test(test_option_starts_threads_for_sam),
    };
    hts_set_log_level(HTS_LOG_ERROR);            /* htslib warns of CRAM 3.1 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
