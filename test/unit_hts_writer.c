/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <dirent.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdatomic.h>
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
static bool header_fails;

/* Replaces htslib's: fails on request. */
int sam_hdr_write(htsFile *file, const sam_hdr_t *header)
{
    int (*next)(htsFile *, const sam_hdr_t *);
    *(void **)&next = dlsym(RTLD_NEXT, "sam_hdr_write");
    MUST(next);
    return header_fails ? -1 : next(file, header);
}

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

struct writing {
    struct output_request request;
    char index[sizeof "/tmp/unit-XXXXXX"];
    int fd, index_fd;
    struct engine engine;
    sam_hdr_t *header;
    struct hts_writer *writer;
};

/* Opens a writer, and returns the result of hts_writer_header(). */
static int begin(struct writing *w, const char *format, int n_threads, uint32_t n_slots, bool indexed)
{
    static const char text[] = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:a\tLN:999\n@CO\tx";
    *w = (struct writing){.request.level = -1, .index = "/tmp/unit-XXXXXX", .fd = unit_temp_file()};
    w->index_fd = mkstemp(w->index);
    MUST(w->index_fd >= 0);
    memset(&latch, 0, sizeof latch);
    written = 0;
    assert_int_equal(hts_parse_format(&w->request.format, format), 0);
    w->request.index = indexed ? w->index : NULL;
    struct memory_rings rings = {.job.n_threads = n_threads, .writer = {(uint64_t)1 << 30, 0}, .sink_slots = n_slots};
    w->engine = (struct engine){.latch = &latch, .n_threads = n_threads};
    w->writer = hts_writer_open(&w->request, &rings, w->fd, "the output", &w->engine);
    w->header = sam_hdr_parse(sizeof text - 1, text);
    MUST(w->writer && w->header);
    return hts_writer_header(w->writer, w->header, w->request.index, false);
}

static void end(struct writing *w)
{
    hts_writer_close(w->writer);
    sam_hdr_destroy(w->header);
    hts_opt_free((hts_opt *)w->request.format.specific);
    unlink(w->index);
    close(w->index_fd);
    close(w->fd);
}

/* Writes N records, losing one unless it is NONE, and returns the result of hts_writer_finish(). */
static int write_all(const char *format, int n_threads, bool indexed, int lose, const char *tag)
{
    struct writing w;
    lost = lose;
    assert_int_equal(begin(&w, format, n_threads, 3, indexed), 0);
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
    int status = hts_writer_put(w.writer, refs, 1) < 0 || hts_writer_put(w.writer, refs + 1, N - 1) < 0 ? -1
               : hts_writer_finish(w.writer);
    unit_free(&b);
    end(&w);
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

static void test_header_that_cannot_be_written_is_not_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(ways); i++) {
        struct writing w;
        header_fails = true;
        assert_int_equal(begin(&w, ways[i].format, ways[i].n_threads, 3, ways[i].indexed), -1);
        header_fails = false;
        assert_non_null(strstr(latch.message, "writing the header of the output failed"));
        end(&w);
    }
}

/* Puts n records with an array of that many bytes, and returns the most that wait at one time; -1: failed. */
static int put_each(struct hts_writer *w, int n, uint32_t array)
{
    enum { ARRAY_HEAD = 8 };
    struct unit_bytes b = {NULL, 0, 0};
    uint8_t *aux = calloc(1, ARRAY_HEAD + array);
    MUST(aux);
    memcpy(aux, "XXBC", ARRAY_HEAD / 2);
    store_le32(aux + ARRAY_HEAD / 2, array);
    struct unit_record r = {.ref_id = -1, .pos = -1, .flag = 4, .name = "r", .aux = aux, .n_aux = ARRAY_HEAD + array};
    size_t size = unit_append_record(&b, &r);
    int most = 0, status = 0;
    for (int i = 0; i < n && status == 0; i++) {
        status = hts_writer_put(w, &(struct record_ref){b.data, (uint32_t)size, 0, 0}, 1);
        most = i + 1 - written > most ? i + 1 - written : most;
    }
    status = status < 0 ? -1 : hts_writer_finish(w);
    free(aux);
    unit_free(&b);
    return status < 0 ? -1 : most;
}

enum { SLOTS = 8, LONG = 1 << 20, SHORT = 600 };     /* slots of the ring; bytes of the array of a record: of LONG, one
                                                     * fills a batch; of SHORT, about a hundred do */

/* Writes n such records with a ring of which no other thread takes a task, so that as many records wait as may wait.
 * Returns the most that did. */
static int most_waiting(int n, uint32_t array)
{
    struct writing w;
    atomic_bool ended = false;
    int most = 0;
    lost = NONE;
    assert_int_equal(begin(&w, "cram,no_ref=1", 2, SLOTS, false), 0);
    #pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        most = put_each(w.writer, n, array);
        atomic_store(&ended, true);
    } else {
        while (!atomic_load(&ended))
            usleep(1000);
    }
    end(&w);
    assert_string_equal(latch.message, "");
    return most;
}

/* A long record takes more memory than is counted for a batch. */
static void test_long_records_wait_in_more_memory_than_is_counted(void **state)
{
    (void)state;
    assert_in_range((size_t)most_waiting(3 * SLOTS, LONG) << 20, 1 << 20, hts_writer_batches_memory(SLOTS));
}

static void test_batch_is_waited_for_while_slots_are_free(void **state)
{
    (void)state;
    enum { BATCH = (64 << 10) / (SHORT + 100) };     /* records of a batch, at least */
    assert_true(most_waiting(3 * SLOTS * BATCH, SHORT) >= (SLOTS - 1) * BATCH);
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
        cmocka_unit_test(test_header_that_cannot_be_written_is_not_told),
        cmocka_unit_test(test_option_starts_threads_for_sam),
        cmocka_unit_test(test_long_records_wait_in_more_memory_than_is_counted),   /* these come last: they leave a */
        cmocka_unit_test(test_batch_is_waited_for_while_slots_are_free),           /* thread */
    };
    hts_set_log_level(HTS_LOG_ERROR);            /* htslib warns of CRAM 3.1 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
