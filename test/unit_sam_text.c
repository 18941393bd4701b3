/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <fcntl.h>
#include <omp.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>
#include "hts/bam1_bytes.h"
#include "bam/record_checksum.h"
#include "base/engine.h"
#include "base/latch.h"
#include "codec/bgzf_block.h"
#include "write/output_block.h"
#include "write/record_out.h"
#include "write/sam_text.h"

enum { N = 4000, N_SLOTS = 7, LONGEST = 3 << 20 };

static const char header_text[] = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:999\n@SQ\tSN:b\tLN:999\n@SQ\tSN:c\tLN:999\n";
static const int team_sizes[] = {1, 2, 3, 8};
static const enum sink_form forms[] = {SINK_SAM, SINK_SAM_GZ};
static sam_hdr_t *header;
static struct latch latch;

/* ---- the input, and the text that it should become ---- */

struct job {
    struct unit_bytes records, text;
    struct record_ref refs[N];
    uint64_t checksum;
};

static void reverse_strand(uint8_t *record)
{
    ((struct bam_record *)record)->flag[0] ^= 16;
}

/* Adds the line of a record to the expected text. finish: changes the record first; NULL: the record stays as it is. */
static void expect(struct job *job, const uint8_t *record, size_t size, record_finish_fn *finish)
{
    uint8_t *copy = exact_copy(record, size);
    bam1_t *b = bam_init1();
    kstring_t line = {0};
    if (finish)
        finish(copy);
    job->checksum += record_checksum(copy, size);
    MUST(b && bam1_from_record(b, (const struct bam_record *)copy) == 0 && sam_format1(header, b, &line) > 0);
    unit_append(&job->text, line.s, line.l);
    unit_append(&job->text, "\n", 1);
    bam_destroy1(b);
    free(line.s);
    free(copy);
}

/* Most records are small, some do not fit into a block, and few have lines of megabytes. */
static struct job *job_new(uint64_t seed, record_finish_fn *finish)
{
    struct job *job = calloc(1, sizeof *job);
    MUST(job);
    for (int i = 0; i < N; i++) {
        uint32_t kind = unit_below(&seed, 1000);
        job->refs[i].size = (uint32_t)unit_append_plain(&job->records, &seed, kind == 0 ? LONGEST : kind < 5 ? 100000 : 300);
    }
    unit_append(&job->text, header_text, sizeof header_text - 1);
    const uint8_t *at = job->records.data;
    for (int i = 0; i < N; at += job->refs[i++].size) {
        job->refs[i].data = at;
        expect(job, at, job->refs[i].size, finish);
    }
    return job;
}

static void job_free(struct job *job)
{
    unit_free(&job->records);
    unit_free(&job->text);
    free(job);
}

/* ---- at work ---- */

static int put_all(struct output_blocks *blocks, const struct job *job)
{
    output_blocks_how(blocks)->header = header;
    if (output_blocks_put_header(blocks, (const uint8_t *)header_text, sizeof header_text - 1) < 0)
        return -1;
    for (int i = 0; i < N; i += 10) {
        struct record_list list = {.records = (struct record_ref *)job->refs + i, .n = 10};
        if (output_blocks_put(blocks, &list) < 0)
            return -1;
    }
    return output_blocks_finish(blocks);
}

static int write_job(const struct job *job, int fd, enum sink_form form, int n_threads, record_finish_fn *finish)
{
    int result = -1;
    memset(&latch, 0, sizeof latch);
    const struct engine engine = {.latch = &latch, .n_threads = n_threads};
    struct bgzf_sink_options how = {.fd = fd, .path = "the output", .form = form, .level = 1, .engine = &engine,
                                    .n_slots = N_SLOTS, .piece_size = 1 << 16};
    struct output_blocks *blocks = output_blocks_open(&how);
    MUST(blocks);
    output_blocks_how(blocks)->finish = finish;
    #pragma omp parallel num_threads(n_threads)
    if (omp_get_thread_num() == 0)
    result = put_all(blocks, job);
    if (result == 0)
        assert_int_equal(output_blocks_checksum(blocks), job->checksum);
    output_blocks_close(blocks);
    return result;
}

/* Inflates blocks, of which the last must be the EOF block. */
static struct unit_bytes inflated(const struct unit_bytes *file)
{
    struct unit_bytes text = {NULL, 0, 0};
    struct bgzf_codec *codec = bgzf_codec_new(0);
    struct bgzf_frame frame = {0};
    for (size_t at = 0; at < file->n; at += frame.size) {
        assert_int_equal(bgzf_block_frame(file->data + at, file->n - at, &frame), BGZF_OK);
        uint8_t *to = unit_more(&text, frame.inflated_size);
        assert_int_equal(bgzf_block_inflate(codec, file->data + at, &frame, to), BGZF_OK);
    }
    assert_memory_equal(file->data + file->n - BGZF_EOF_SIZE, bgzf_block_eof, BGZF_EOF_SIZE);
    bgzf_codec_free(codec);
    return text;
}

static void same_text(const struct job *job, const struct unit_bytes *file, enum sink_form form)
{
    struct unit_bytes text = form == SINK_SAM ? *file : inflated(file);
    assert_int_equal(text.n, job->text.n);
    assert_memory_equal(text.data, job->text.data, text.n);
    if (form != SINK_SAM)
        unit_free(&text);
}

/* ---- tests ---- */

static void test_text_is_not_htslibs_or_depends_on_threads(void **state)
{
    (void)state;
    for (size_t f = 0; f < N_OF(forms); f++)
        for (int finishes = 0; finishes < 2; finishes++) {
            record_finish_fn *finish = finishes ? reverse_strand : NULL;
            struct job *job = job_new(5 + f, finish);
            struct unit_bytes first = {NULL, 0, 0};
            for (size_t t = 0; t < N_OF(team_sizes); t++) {
                int fd = unit_temp_file();
                assert_int_equal(write_job(job, fd, forms[f], team_sizes[t], finish), 0);
                struct unit_bytes file = unit_read_file(fd);
                close(fd);
                same_text(job, &file, forms[f]);
                if (t == 0)
                    first = file;
                assert_int_equal(file.n, first.n);
                assert_memory_equal(file.data, first.data, file.n);
                if (t > 0)
                    unit_free(&file);
            }
            unit_free(&first);
            job_free(job);
        }
}

static void test_full_disk_passes(void **state)
{
    (void)state;
    struct job *job = job_new(1, NULL);
    for (size_t f = 0; f < N_OF(forms); f++) {
        int fd = open("/dev/full", O_WRONLY);
        MUST(fd >= 0);
        assert_int_equal(write_job(job, fd, forms[f], 3, NULL), -1);
        assert_non_null(strstr(latch.message, "No space left"));
        close(fd);
    }
    job_free(job);
}

static void test_record_that_changed_is_written(void **state)
{
    (void)state;
    struct job *job = job_new(2, NULL);
    store_le32(((struct bam_record *)(uintptr_t)job->refs[N / 2].data)->seq_len, 1 << 30);
    int fd = unit_temp_file();
    assert_int_equal(write_job(job, fd, SINK_SAM, 3, NULL), -1);
    assert_non_null(strstr(latch.message, "changed in memory"));
    close(fd);
    job_free(job);
}

/* ---- memory ---- */

enum { RING = 20, LINES = 30 };

/* Records whose lines are some three times as long, as for some long reads with ML. */
static void append_ml(struct unit_bytes *records, uint32_t seq, uint32_t n_ml)
{
    uint8_t *aux = malloc(8 + n_ml);
    MUST(aux);
    memset(aux, 200, 8 + n_ml);
    memcpy(aux, "MLBC", 4);
    store_le32(aux + 4, n_ml);
    struct unit_record r = {.ref_id = -1, .pos = -1, .flag = 4, .name = "long", .seq_len = seq, .aux = aux, .n_aux = 8 + n_ml};
    unit_append_record(records, &r);
    free(aux);
}

/* The most memory that is allocated while records of one kind are written. */
static size_t peak_of(const struct bgzf_sink_options *how, const struct unit_bytes *record, size_t n)
{
    size_t before = unit_allocated(), peak = before, n_failed = 0;
    struct output_blocks *blocks = output_blocks_open(how);
    MUST(blocks);
    #pragma omp parallel num_threads(how->engine->n_threads)
    if (omp_get_thread_num() == 0) {
        output_blocks_how(blocks)->header = header;
        for (size_t i = 0; i < n; i++) {
            struct record_ref ref = {record->data, (uint32_t)record->n, 0, 0};
            n_failed += output_blocks_put(blocks, &(struct record_list){.records = &ref, .n = 1}) < 0;
            size_t now = unit_allocated();
            peak = now > peak ? now : peak;
        }
        n_failed += output_blocks_finish(blocks) < 0;
    }
    output_blocks_close(blocks);
    assert_int_equal(n_failed, 0);
    return peak - before;
}

static void check_memory(enum sink_form form, int level, int n_threads, uint32_t seq, uint32_t n_ml)
{
    struct unit_bytes record = {NULL, 0, 0};
    append_ml(&record, seq, n_ml);
    const struct engine engine = {.latch = &latch, .n_threads = n_threads};
    struct bgzf_sink_options how = {.fd = open("/dev/null", O_WRONLY), .path = "the output", .form = form, .level = level,
                                    .engine = &engine, .n_slots = RING};
    memset(&latch, 0, sizeof latch);
    size_t line = seq + 4 * n_ml, peak = peak_of(&how, &record, LINES * (1 + 4 * BGZF_FILL / record.n));
    size_t most = output_blocks_memory(form, n_threads, RING, level, 0) + (size_t)n_threads * 3 * line;
    if (peak > most)
        fail_msg("form %d, level %d, %d threads, lines of %zu bytes: %zu bytes of memory, planned are %zu", (int)form, level,
                 n_threads, line, peak, most);
    close(how.fd);
    unit_free(&record);
}

static void test_text_takes_more_memory_than_is_planned(void **state)
{
    (void)state;
    static const int levels[] = {0, 1}, threads[] = {1, 3};
    for (size_t f = 0; f < N_OF(forms); f++)
        for (size_t l = 0; l < N_OF(levels); l++)
            for (size_t t = 0; t < N_OF(threads); t++) {
                check_memory(forms[f], levels[l], threads[t], 1000, 3000);
                if (threads[t] > 1) {            /* each thread adds its share */
                    check_memory(forms[f], levels[l], threads[t], 150000, 60000);
                    check_memory(forms[f], levels[l], threads[t], 100000, 800000);
                }
            }
}

/* ---- one slot ---- */

static struct sam_text *open_text(const struct engine *engine, const struct record_out_options *how)
{
    struct bgzf_sink_options sink = {.path = "the output", .form = SINK_SAM, .engine = engine, .n_slots = RING};
    struct sam_text *text = sam_text_new(&sink, how);
    MUST(text);
    memset(&latch, 0, sizeof latch);
    return text;
}

static void test_room_that_a_slot_had_is_taken_back_twice(void **state)
{
    (void)state;
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    const struct record_out_options how = {.header = header, .format = sam, .latch = &latch};
    struct sam_text *text = open_text(&engine, &how);
    struct unit_bytes record = {NULL, 0, 0};
    append_ml(&record, 1000, 600000);
    const struct record_ref line = {record.data, (uint32_t)record.n, 0, 0};
    for (uint32_t slot = 0; slot < RING; slot++)
        assert_true(sam_text_begin(text, slot, NULL));
    for (uint32_t slot = 1; slot < RING; slot++) {
        assert_false(sam_text_begin(text, 0, &line));
        sam_text_give_back(text, slot);
    }
    assert_true(sam_text_begin(text, 0, &line));
    assert_false(sam_text_begin(text, 1, NULL));
    sam_text_free(text);
    unit_free(&record);
}

static void test_memory_of_a_long_line_is_kept(void **state)
{
    (void)state;
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    const struct record_out_options how = {.header = header, .format = sam, .latch = &latch};
    struct sam_text *text = open_text(&engine, &how);
    static const uint32_t n_ml[] = {600000, 10};
    size_t before = unit_allocated(), line = 2 * (size_t)n_ml[0];
    for (int i = 0; i < 2; i++) {
        struct unit_bytes record = {NULL, 0, 0};
        const uint8_t *bytes;
        uint64_t checksum;
        append_ml(&record, 1000, n_ml[i]);
        const struct record_ref ref = {record.data, (uint32_t)record.n, 0, 0};
        assert_true(sam_text_begin(text, 0, record.n > BGZF_FILL ? &ref : NULL));
        uint32_t n = sam_text_records(text, 0, &ref, 1, &checksum, &bytes);
        assert_true(i == 0 ? n > line : n > 0);
        sam_text_give_back(text, 0);
        unit_free(&record);
    }
    assert_in_range(unit_allocated() - before, 0, line);
    sam_text_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_not_htslibs_or_depends_on_threads),
        cmocka_unit_test(test_full_disk_passes),
        cmocka_unit_test(test_record_that_changed_is_written),
        cmocka_unit_test(test_text_takes_more_memory_than_is_planned),
        cmocka_unit_test(test_room_that_a_slot_had_is_taken_back_twice),
        cmocka_unit_test(test_memory_of_a_long_line_is_kept),
    };
    header = sam_hdr_parse(sizeof header_text - 1, header_text);
    MUST(header);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sam_hdr_destroy(header);
    return failed;
}
