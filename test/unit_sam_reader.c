/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <inttypes.h>
#include <omp.h>
#include "hts/bam1_bytes.h"
#include "codec/bgzf_block.h"
#include "base/byte_buffer.h"
#include "read/input_format.h"
#include "read/slice_feed.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "unit_htslib.h"

/* ---- texts ---- */

static const char header[] = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\n@SQ\tSN:b\tLN:5000000000\n@CO\tline with @ in it\n";
enum { HEADER_LINES = 4 };

static void append_text(struct unit_bytes *b, const char *text)
{
    unit_append(b, text, strlen(text));
}

/* A line of up to max_seq bases; some are as short as possible. */
static void append_line(struct unit_bytes *b, uint64_t *seed, uint32_t number, uint32_t max_seq)
{
    char start[128];
    uint32_t n = unit_below(seed, 4) ? unit_below(seed, max_seq) + 1 : 0;
    if (n == 0) {
        append_text(b, "r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n");
        return;
    }
    int size = snprintf(start, sizeof start, "read%" PRIu32 "\t%d\t%s\t%" PRIu32 "\t60\t%" PRIu32 "M\t=\t7\t-5\t", number,
                        unit_below(seed, 2) ? 16 : 0, unit_below(seed, 2) ? "a" : "b", unit_below(seed, 900) + 1, n);
    unit_append(b, start, (size_t)size);
    for (uint32_t i = 0; i < n; i++)
        unit_append(b, &"ACGTN"[unit_below(seed, 5)], 1);
    append_text(b, unit_below(seed, 2) ? "\t*\tNM:i:3" : "\t*\tXB:B:s,1,-2\tXZ:Z:@text");
    append_text(b, unit_below(seed, 8) ? "\n" : "\r\n");
}

static struct unit_bytes make_text(uint64_t seed, uint32_t n_lines, uint32_t max_seq)
{
    struct unit_bytes b = {NULL, 0, 0};
    append_text(&b, header);
    for (uint32_t i = 0; i < n_lines; i++)
        append_line(&b, &seed, i, max_seq);
    return b;
}

/* The text in BGZF blocks of block_size bytes. The first is larger, because htslib detects SAM by it. */
enum { FIRST_BLOCK = 32 };

static struct unit_bytes in_blocks(const struct unit_bytes *text, uint32_t block_size)
{
    struct unit_bytes b = {NULL, 0, 0};
    struct bgzf_codec *codec = bgzf_codec_new(1);
    uint8_t block[BGZF_MAX_BLOCK];
    MUST(codec);
    for (size_t at = 0, n = block_size < FIRST_BLOCK ? FIRST_BLOCK : block_size; at < text->n; at += n, n = block_size) {
        n = text->n - at < n ? text->n - at : n;
        unit_append(&b, block, bgzf_block_deflate(codec, text->data + at, (uint32_t)n, block));
    }
    unit_append(&b, bgzf_block_eof, BGZF_EOF_SIZE);
    bgzf_codec_free(codec);
    return b;
}

/* ---- the oracle: htslib's reader, one line at a time ---- */

static struct unit_bytes records_by_htslib(const struct unit_bytes *text, sam_hdr_t **sam)
{
    struct unit_bytes all = {NULL, 0, 0};
    struct byte_buffer one = {NULL, 0, 0};
    hFILE *file = hopen("mem:", "r:", exact_copy(text->data, text->n), text->n);
    samFile *in = file ? hts_hopen(file, "in.sam", "r") : NULL;
    bam1_t *b = bam_init1();
    int status;
    MUST(in && b && (*sam = sam_hdr_read(in)));
    while ((status = sam_read1(in, *sam, b)) >= 0) {
        one.n = 0;
        assert_true(bam1_bytes_append(&one, b) >= 0);
        unit_append(&all, one.p, one.n);
    }
    assert_int_equal(status, -1);
    free(one.p);
    bam_destroy1(b);
    hts_close(in);
    return all;
}

/* ---- reading ---- */

struct reading {
    int n_threads;
    uint32_t block_size;         /* bytes in a block of BGZF; 0: plain text */
    size_t text_size;            /* plain text is also read in pieces of this many bytes */
    uint32_t n_chunks;
    bool far;
    uint64_t header_max;
};

static struct latch latch;
static struct engine engine = {.latch = &latch};

static struct input_format *open_text(const struct unit_bytes *text, const struct reading *how)
{
    static char path[64];        /* the source refers to it */
    int fd = unit_temp_file();
    struct input_options options = {
        .engine = &engine, .n_pieces = 16, .far = how->far,
        .header_max = how->header_max ? how->header_max : 1 << 20,
        .chunks = {.piece_size = how->text_size, .source_slots = 3, .n_chunks = how->n_chunks, .chunk_size = how->text_size,
                .records_size = 100},
    };
    struct unit_bytes packed = {NULL, 0, 0};
    if (how->block_size)
        packed = in_blocks(text, how->block_size);
    memset(&latch, 0, sizeof latch);
    engine.n_threads = how->n_threads;
    unit_write(fd, packed.data ? packed.data : text->data, packed.data ? packed.n : text->n);
    options.path = unit_fd_path(path, fd);
    struct input_format *source = input_format_open(&options);
    close(fd);
    unit_free(&packed);
    return source;
}

static struct slice_feed open_feed(struct input_format *source, uint32_t n_slices, size_t most)
{
    struct slice_feed feed;
    MUST(slice_feed_open(&feed, &source->stream, n_slices, most, &engine) == 0);
    return feed;
}

/* Takes the next span, which has complete records. */
static bool take(struct slice_feed *feed, struct slice_span *span)
{
    if (slice_feed_await(feed, task_no_help, NULL) != CHUNK_MADE)
        return false;
    *span = slice_feed_take(feed);
    size_t size = 0;
    for (uint32_t i = 0; i < span->n; i++) {
        struct bam_key key = span->slice->keys[span->first + i];
        assert_ptr_equal(bam_key_record(span->slice->records.p, key), span->bytes + size);
        size += bam_key_record_size(span->slice->records.p, key);
    }
    assert_int_equal(size, span->size);
    return true;
}

static int append_all(struct input_format *source, struct unit_bytes *to)
{
    struct slice_feed feed = open_feed(source, 2, 1 + to->n % 300);
    struct slice_span span;
    while (take(&feed, &span)) {
        assert_true(span.n == 1 || span.size <= feed.most);
        unit_append(to, span.bytes, span.size);
        slice_span_release(&span);
    }
    enum chunk_state state = slice_feed_advance(&feed);
    slice_feed_close(&feed);
    return latch_tripped(&latch) || state == CHUNK_FAILED ? -1 : 0;
}

/* Returns the records of a text. *status: -1 if the text is refused. */
static struct unit_bytes read_text(const struct unit_bytes *text, const struct reading *how, int *status)
{
    struct unit_bytes got = {NULL, 0, 0};
    struct input_format *source = open_text(text, how);
    if (!source)
        fail_msg("%s", latch.message);
    #pragma omp parallel num_threads(how->n_threads)
    if (omp_get_thread_num() == 0)
    *status = append_all(source, &got);
    sam_hdr_destroy(input_format_header(source));
    input_format_close(source);
    return got;
}

static void check_read(const struct unit_bytes *text, const struct unit_bytes *want, const struct reading *how)
{
    int status;
    struct unit_bytes got = read_text(text, how, &status);
    if (status != 0)
        fail_msg("%s", latch.message);
    assert_int_equal(got.n, want->n);
    assert_memory_equal(got.data, want->data, want->n);
    unit_free(&got);
}

/* ---- results ---- */

static const size_t sizes[] = {64, 65, 100, 257, 1000};

/* The records are the same for all sizes. Each place of the text is at the end of a block and of a chunk once. */
static void check_all_sizes(const struct unit_bytes *text, int n_threads)
{
    sam_hdr_t *sam;
    struct unit_bytes want = records_by_htslib(text, &sam);
    for (size_t i = 0; i < N_OF(sizes); i++)
        for (uint32_t n_chunks = 2; n_chunks <= 5; n_chunks++)
            for (uint32_t block = 0; block <= 64; block = block ? block * 4 : 1)
                check_read(text, &want, &(struct reading){n_threads, block, sizes[i], n_chunks, false, 0});
    sam_hdr_destroy(sam);
    unit_free(&want);
}

static void test_a_cut_changes_lines(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct unit_bytes text = make_text(seed, 40, seed % 2 ? 12 : 300);
        check_all_sizes(&text, seed % 3 ? 1 : 4);
        text.n -= text.data[text.n - 2] == '\r' ? 2 : 1;     /* the last line without its end */
        check_all_sizes(&text, 1);
        unit_free(&text);
    }
}

static void test_header_alone_gives_records(void **state)
{
    (void)state;
    struct unit_bytes text = make_text(1, 0, 1);
    check_all_sizes(&text, 1);
    text.n--;
    check_all_sizes(&text, 1);
    unit_free(&text);
}

static void test_lines_without_header_are_lost(void **state)
{
    (void)state;
    struct unit_bytes text = {NULL, 0, 0};
    append_text(&text, "r2\t4\t*\t0\t0\t*\t*\t0\t0\tAC\tII\nr1\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n");
    check_all_sizes(&text, 1);
    unit_free(&text);
}

static void test_threads_change_records(void **state)
{
    (void)state;
    struct unit_bytes text = make_text(7, 20000, 100);
    sam_hdr_t *sam;
    struct unit_bytes want = records_by_htslib(&text, &sam);
    for (int n = 2; n <= 8; n *= 2)
        for (uint32_t block = 0; block <= 5000; block += 2500)
            check_read(&text, &want, &(struct reading){n, block, 5000, 2 * (uint32_t)n, false, 0});
    sam_hdr_destroy(sam);
    unit_free(&want);
    unit_free(&text);
}

static void test_header_is_another_than_htslibs(void **state)
{
    (void)state;
    struct unit_bytes text = make_text(3, 5, 10);
    sam_hdr_t *want;
    struct unit_bytes records = records_by_htslib(&text, &want);
    for (uint32_t block = 0; block <= 64; block = block ? 4 * block : 1) {
        struct input_format *source = open_text(&text, &(struct reading){1, block, 64, 2, false, 0});
        MUST(source);
        sam_hdr_t *got = input_format_header(source);
        assert_string_equal(sam_hdr_str(got), sam_hdr_str(want));
        assert_int_equal(sam_hdr_nref(got), 2);
        sam_hdr_destroy(got);
        input_format_close(source);
    }
    sam_hdr_destroy(want);
    unit_free(&records);
    unit_free(&text);
}

static void test_bytes_that_are_used_are_overwritten(void **state)
{
    (void)state;
    enum { HELD = 3 };
    struct unit_bytes text = make_text(9, 300, 30), copies[HELD] = {{NULL, 0, 0}};
    struct slice_span held[HELD], other;
    struct input_format *source = open_text(&text, &(struct reading){1, 0, 1000, 2, false, 0});
    MUST(source);
    struct slice_feed feed = open_feed(source, HELD + 1, SIZE_MAX);
    for (int i = 0; i < HELD; i++) {
        MUST(take(&feed, &held[i]));
        unit_append(&copies[i], held[i].bytes, held[i].size);
    }
    MUST(take(&feed, &other));
    slice_span_release(&other);
    assert_int_equal(slice_feed_advance(&feed), CHUNK_AWAITED);      /* because the first is held */
    for (int i = 0; i < HELD; i++) {
        assert_memory_equal(held[i].bytes, copies[i].data, copies[i].n);
        slice_span_release(&held[i]);
        unit_free(&copies[i]);
    }
    while (take(&feed, &other))
        slice_span_release(&other);
    slice_feed_close(&feed);
    sam_hdr_destroy(input_format_header(source));
    input_format_close(source);
    unit_free(&text);
}

static bool release(void *span)
{
    struct slice_span *p = span;
    bool held = p->users;
    if (held)
        slice_span_release(p);
    p->users = NULL;
    return held;
}

/* All slices are lent. Reading continues only because the borrower releases one when it is asked for help. */
static void test_a_borrower_is_not_asked_for_help(void **state)
{
    (void)state;
    struct unit_bytes text = make_text(9, 300, 30);
    struct slice_span first, other;
    struct input_format *source = open_text(&text, &(struct reading){1, 0, 1000, 2, false, 0});
    MUST(source);
    struct slice_feed feed = open_feed(source, 2, SIZE_MAX);
    MUST(take(&feed, &first) && take(&feed, &other));
    assert_int_equal(slice_feed_await(&feed, release, &first), CHUNK_MADE);
    assert_null(first.users);
    slice_span_release(&other);
    slice_feed_close(&feed);
    sam_hdr_destroy(input_format_header(source));
    input_format_close(source);
    unit_free(&text);
}

/* ---- errors ---- */

/* Checks that the text is refused at that record, counted from 0. */
static void check_fault(const struct unit_bytes *text, uint32_t number, const struct reading *how, const char *why)
{
    int status;
    char place[64];
    struct unit_bytes got = read_text(text, how, &status);
    snprintf(place, sizeof place, ": record %" PRIu32 " (line %" PRIu32 ") ", number + 1, HEADER_LINES + number + 1);
    assert_int_equal(status, -1);
    if (!strstr(latch.message, place) || !strstr(latch.message, why))
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", latch.message, place, why);
    unit_free(&got);
}

static struct unit_bytes text_with(uint32_t n_lines, uint32_t at, const char *line)
{
    uint64_t seed = at;
    struct unit_bytes text = {NULL, 0, 0};
    append_text(&text, header);
    for (uint32_t i = 0; i < n_lines; i++) {
        if (i == at)
            append_text(&text, line);
        append_line(&text, &seed, i, 20);
    }
    return text;
}

static void check_line(const char *line, const char *why)
{
    enum { LINES = 30 };
    for (uint32_t at = 0; at < LINES; at++) {
        struct unit_bytes text = text_with(LINES, at, line);
        for (size_t i = 0; i < N_OF(sizes); i++)
            check_fault(&text, at, &(struct reading){i % 2 ? 4 : 1, i % 3 ? 0 : 50, sizes[i], 4, false, 0}, why);
        unit_free(&text);
    }
}

static void test_broken_line_is_passed_or_another_is_told(void **state)
{
    (void)state;
    check_line("r\t0\ta\tbroken\n", "has a POS that is not a number");
    check_line("r\t0\ta\t1\n", "has fewer than the 11 fields of SAM. Nothing was written. The line begins \"r\\t0\\ta\\t1\"");
    check_line("\n", "The line is empty");
    check_line("r\t0\ta\t99999999999999999\t60\t*\t*\t0\t0\tA\t*\n", "use -O sam");
    check_line("[M::process] read 66666 sequences (10000000 bp)...\n", "Is it from a log?");
    check_line("r\t0\ta\t1\t6[M::mem_pestat] (25, 50, 75) percentile\n", "Is it from a log?");
}

static const char far_line[] = "r\t0\tb\t4000000001\t60\t1M\t=\t4000000002\t3000000000\tA\t*\n";

static void test_position_beyond_32_bits_is_passed_where_it_does_not_fit(void **state)
{
    (void)state;
    check_line(far_line, "use -O sam");
}

static void test_position_beyond_32_bits_is_kept_where_it_fits(void **state)
{
    (void)state;
    struct unit_bytes text = text_with(30, 20, far_line);
    sam_hdr_t *sam;
    struct unit_bytes want = records_by_htslib(&text, &sam);
    for (size_t i = 0; i < N_OF(sizes); i++)
        check_read(&text, &want, &(struct reading){1, 0, sizes[i], 3, true, 0});
    sam_hdr_destroy(sam);
    unit_free(&want);
    unit_free(&text);
}

/* Takes a slice only when no more chunks can be filled. block_size: as in struct reading. */
static void check_late(const struct unit_bytes *text, size_t want, uint32_t block_size, uint32_t n_chunks)
{
    struct input_format *source = open_text(text, &(struct reading){1, block_size, 100, n_chunks, false, 0});
    MUST(source);
    struct record_stream *s = &source->stream;
    struct record_slice slice = {.n = 0};
    enum chunk_state now;
    size_t got = 0;
    while ((now = s->advance(s->producer)) != CHUNK_NONE) {
        if (s->help(s->producer) || now == CHUNK_AWAITED)
            continue;
        MUST(s->take(s->producer, &slice) == 0);
        got += slice.records.n;
    }
    assert_int_equal(got, want);
    record_slice_free(&slice);
    sam_hdr_destroy(input_format_header(source));
    input_format_close(source);
}

/* All chunks are in use when the text ends inside a line, which needs one more. */
static void test_last_line_is_lost_while_all_chunks_are_in_use(void **state)
{
    (void)state;
    struct unit_bytes text = make_text(4, 12, 40);
    sam_hdr_t *sam;
    for (size_t header_size = sizeof header - 1; text.n > header_size + 400;) {
        text.n -= text.data[text.n - 1] == '\n';
        text.n -= text.data[text.n - 1] == '\r';
        struct unit_bytes want = records_by_htslib(&text, &sam);
        for (uint32_t n_chunks = 2; n_chunks <= 9; n_chunks++) {
            check_late(&text, want.n, 0, n_chunks);
            check_late(&text, want.n, 60, n_chunks);
        }
        sam_hdr_destroy(sam);
        unit_free(&want);
        while (text.data[text.n - 1] != '\n')    /* without its last line */
            text.n--;
    }
    unit_free(&text);
}

static void test_header_takes_all_memory(void **state)
{
    (void)state;
    struct unit_bytes text = make_text(1, 0, 1);
    while (text.n < 100000)
        append_text(&text, "@CO\tmore\n");
    struct input_format *source = open_text(&text, &(struct reading){1, 0, 4096, 2, false, 50000});
    assert_null(source);
    assert_non_null(strstr(latch.message, "its header takes more than the memory"));
    unit_free(&text);
}

static void test_broken_header_is_found_late(void **state)
{
    (void)state;
    struct unit_bytes text = {NULL, 0, 0};
    append_text(&text, "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\n@SQ\tSN:a\tLN:1000\nr\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n");
    struct input_format *source = open_text(&text, &(struct reading){1, 0, 4096, 2, false, 0});
    assert_null(source);
    assert_non_null(strstr(latch.message, "header"));
    unit_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cut_changes_lines),
        cmocka_unit_test(test_header_alone_gives_records),
        cmocka_unit_test(test_lines_without_header_are_lost),
        cmocka_unit_test(test_threads_change_records),
        cmocka_unit_test(test_header_is_another_than_htslibs),
        cmocka_unit_test(test_bytes_that_are_used_are_overwritten),
        cmocka_unit_test(test_a_borrower_is_not_asked_for_help),
        cmocka_unit_test(test_broken_line_is_passed_or_another_is_told),
        cmocka_unit_test(test_position_beyond_32_bits_is_passed_where_it_does_not_fit),
        cmocka_unit_test(test_position_beyond_32_bits_is_kept_where_it_fits),
        cmocka_unit_test(test_last_line_is_lost_while_all_chunks_are_in_use),
        cmocka_unit_test(test_header_takes_all_memory),
        cmocka_unit_test(test_broken_header_is_found_late),
    };
    hts_set_log_level(HTS_LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
