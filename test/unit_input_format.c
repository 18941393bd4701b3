/* SPDX-License-Identifier: MIT */
#include "engine/chunk_plan.h"
#include "unit.h"
#include <fcntl.h>
#include "codec/bgzf_block.h"
#include "base/byte_window.h"
#include "base/endian_io.h"
#include "read/header_read.h"
#include "read/input_file.h"
#include "read/input_format.h"
#include "read/input_request.h"
#include "read/input.h"
#include "read/slice_feed.h"
#include "base/engine.h"
#include "base/latch.h"
#include "unit_htslib.h"
#include "unit_stdin.h"

/* ---- inputs ---- */

static const char text[] = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\n@SQ\tSN:b\tLN:70000\n";
static const char sam_lines[] =
    "r1\t0\ta\t11\t60\t4M\t*\t0\t0\tACGT\tIIII\tNM:i:0\n"
    "r2\t16\tb\t60001\t9\t2S3M1D4M\t=\t5\t-77\tACGTACGTA\t*\tMD:Z:3^A4\tXB:B:s,1,-2\n"
    "r3\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n";

/* The bytes of a BAM file before compression: header and two records. The header's text begins with this line. */
static struct unit_bytes raw_bam_of(const char *line)
{
    struct unit_bytes b = {NULL, 0, 0};
    unit_append(&b, "BAM\1", 4);
    unit_append_le32(&b, sizeof text - 1);
    unit_append(&b, line, strlen(line));
    unit_append(&b, text + strlen(line), sizeof text - 1 - strlen(line));
    unit_append_le32(&b, 2);
    unit_append_le32(&b, 2);
    unit_append(&b, "a", 2);
    unit_append_le32(&b, 1000);
    unit_append_le32(&b, 2);
    unit_append(&b, "b", 2);
    unit_append_le32(&b, 70000);
    unit_append_smallest(&b, 7);
    unit_append_smallest(&b, 5);
    return b;
}

static struct unit_bytes raw_bam(void)
{
    return raw_bam_of("@HD\tVN:1.6\n");
}

/* Returns the bytes in blocks of block_size, after `first` empty ones. */
static struct unit_bytes bgzf_bam_of(const char *line, uint32_t block_size, int first)
{
    struct unit_bytes raw = raw_bam_of(line), b = {NULL, 0, 0};
    struct bgzf_codec *codec = bgzf_codec_new(6);
    uint8_t block[BGZF_MAX_BLOCK];
    MUST(codec);
    while (first-- > 0)
        unit_append(&b, bgzf_block_eof, BGZF_EOF_SIZE);
    for (size_t at = 0; at < raw.n; at += block_size) {
        uint32_t n = raw.n - at < block_size ? (uint32_t)(raw.n - at) : block_size;
        unit_append(&b, block, bgzf_block_deflate(codec, raw.data + at, n, block));
    }
    unit_append(&b, bgzf_block_eof, BGZF_EOF_SIZE);
    bgzf_codec_free(codec);
    unit_free(&raw);
    return b;
}

static struct unit_bytes bgzf_bam(uint32_t block_size, int first)
{
    return bgzf_bam_of("@HD\tVN:1.6\n", block_size, first);
}

/* ---- reading ---- */

static struct latch latch;
static const struct engine engine = {.latch = &latch, .n_threads = 1};
static size_t piece_size = 1000;

static struct input_format *open_path(const char *path)
{
    struct input_options options = {.path = path, .engine = &engine, .piece_size = piece_size, .n_pieces = 16,
                                    .header_max = 1 << 20,
                                    .chunks = chunk_plan_text(1 << 20, 1, 1)};
    memset(&latch, 0, sizeof latch);
    return input_format_open(&options);
}

static struct input_file open_raw(const char *path)
{
    struct input_file file;
    memset(&latch, 0, sizeof latch);
    MUST(input_file_open(&file, path, &latch) == 0);
    return file;
}

static struct input_format *open_bytes(const void *data, size_t n)
{
    static char path[64];        /* the source refers to it */
    int fd = unit_temp_file();
    unit_write(fd, data, n);
    struct input_format *source = open_path(unit_fd_path(path, fd));
    close(fd);
    return source;
}

/* Reads the rest. */
static struct unit_bytes read_rest(struct input_format *input)
{
    struct unit_bytes b = {NULL, 0, 0};
    struct byte_window *w = input->window;
    int found;
    while ((found = byte_window_more(w, task_no_help, NULL)) > 0) {
        assert_true(w->size > 0);
        unit_append(&b, w->data, w->size);
        byte_window_skip(w, w->size);
    }
    assert_int_equal(found, 0);
    assert_int_equal(byte_window_more(w, task_no_help, NULL), 0);
    return b;
}

/* The file's bytes are returned unchanged, in reads of any size. */
static void check_bytes(const struct unit_bytes *file, enum input_framing framing)
{
    static const size_t sizes[] = {1, 2, 3, 100, 1 << 20};
    for (size_t i = 0; i < N_OF(sizes); i++) {
        piece_size = sizes[i];
        struct input_format *source = open_bytes(file->data, file->n);
        if (!source)
            fail_msg("%s", latch.message);
        assert_int_equal(source->framing, framing);
        struct unit_bytes got = read_rest(source);
        assert_int_equal(got.n, file->n);
        assert_memory_equal(got.data, file->data, got.n);
        assert_string_equal(latch.message, "");
        unit_free(&got);
        input_format_close(source);
    }
}

/* ---- BAM ---- */

static void test_bam_is_given_as_it_is(void **state)
{
    (void)state;
    struct unit_bytes file = bgzf_bam(BGZF_FILL, 0);
    check_bytes(&file, INPUT_BGZF);
    unit_free(&file);
}

static void test_bam_without_compression_is_given_as_it_is(void **state)
{
    (void)state;
    struct unit_bytes file = raw_bam();
    check_bytes(&file, INPUT_RAW_BAM);
    unit_free(&file);
}

static void test_bam_larger_than_what_was_read_ahead(void **state)
{
    (void)state;
    struct unit_bytes file = raw_bam();
    while (file.n < 1000000)
        unit_append_smallest(&file, (int32_t)file.n);
    piece_size = 70001;
    struct input_format *source = open_bytes(file.data, file.n);
    MUST(source);
    struct unit_bytes got = read_rest(source);
    assert_int_equal(got.n, file.n);
    assert_memory_equal(got.data, file.data, got.n);
    input_format_close(source);
    unit_free(&got);
    unit_free(&file);
}

/* Writers may end a block anywhere, also inside "BAM\1". samtools 1.24 reads such a file. */
static void test_magic_that_is_split_over_blocks(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 8; size++) {
        struct unit_bytes file = bgzf_bam(size, 0);
        check_bytes(&file, INPUT_BGZF);
        unit_free(&file);
    }
}

/* `cat` of BAM files without header, or of an empty part, makes such files. samtools 1.24 reads them. */
static void test_empty_blocks_before_the_header(void **state)
{
    (void)state;
    for (int first = 1; first <= 3; first++) {
        struct unit_bytes file = bgzf_bam(BGZF_FILL, first);
        check_bytes(&file, INPUT_BGZF);
        unit_free(&file);
    }
}

/* A pipe, which has no size, in place of standard input; it gives one byte at a time. */
static void check_stdin(const struct unit_bytes *file, enum input_framing framing)
{
    pid_t child;
    int old = unit_feed_stdin(file, 1, &child);
    struct input_format *source = open_path("-");
    enum input_framing found = source ? source->framing : INPUT_RECORDS;
    uint64_t size = source ? source->size : 1;
    struct unit_bytes got = {NULL, 0, 0};
    if (source)
        got = read_rest(source);
    input_format_close(source);
    unit_restore_stdin(old);
    unit_feed_ended(child);
    assert_int_equal(found, framing);
    assert_int_equal(size, 0);
    assert_int_equal(got.n, file->n);
    assert_memory_equal(got.data, file->data, got.n);
    unit_free(&got);
}

static void test_pipe_that_gives_a_byte_at_a_time_and_has_no_size(void **state)
{
    (void)state;
    struct unit_bytes file = bgzf_bam(50, 0), raw = raw_bam();
    check_stdin(&file, INPUT_BGZF);
    check_stdin(&raw, INPUT_RAW_BAM);
    unit_free(&file);
    unit_free(&raw);
}

/* ---- SAM, converted to records ---- */

/* ---- sizes, from which the amount of data is estimated ---- */

static void test_size_of_a_file_and_of_what_has_none(void **state)
{
    (void)state;
    struct unit_bytes file = bgzf_bam(50, 0), raw = raw_bam();
    struct input_format *source = open_bytes(file.data, file.n);
    MUST(source);
    assert_int_equal(source->size, file.n);
    byte_window_more(source->window, task_no_help, NULL);
    assert_int_equal(source->size, file.n);  /* not the rest */
    input_format_close(source);
    source = open_bytes(raw.data, raw.n);
    MUST(source);
    assert_int_equal(source->size, raw.n);
    input_format_close(source);

    struct unit_bytes sam = {NULL, 0, 0};        /* its size is no estimate of the records */
    unit_append(&sam, text, sizeof text - 1);
    unit_append(&sam, sam_lines, sizeof sam_lines - 1);
    source = open_bytes(sam.data, sam.n);
    MUST(source);
    assert_int_equal(source->size, 0);
    sam_hdr_destroy(input_format_header(source));
    input_format_close(source);
    unit_free(&sam);
    unit_free(&file);
    unit_free(&raw);
}

/* ---- ways to read the bytes ---- */

static void test_place_in_a_file_is_counted_from_where_it_stood(void **state)
{
    (void)state;
    struct unit_bytes file = bgzf_bam(50, 0);
    uint8_t got[1000];
    int fd = unit_temp_file();
    unit_write(fd, "before", 6);
    unit_write(fd, file.data, file.n);
    lseek(fd, 6, SEEK_SET);
    int old = unit_replace_stdin(dup(fd));
    struct input_file source = open_raw("-");
    unit_restore_stdin(old);
    MUST(file.n > 20 && file.n < sizeof got);
    assert_int_equal(input_file_access(&source), INPUT_ANYWHERE);
    assert_int_equal(input_file_read_at(&source, got, 10, 10), 10);
    assert_memory_equal(got, file.data + 10, 10);
    assert_int_equal(input_file_read_at(&source, got, sizeof got, 0), file.n);
    assert_memory_equal(got, file.data, file.n);
    assert_int_equal(input_file_read_at(&source, got, 1, file.n), 0);
    assert_int_equal(input_file_read_at(&source, got, 1, file.n + 1000), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 6 + file.n);        /* as after read() */
    input_file_close(&source);
    close(fd);
    unit_free(&file);
}

/* SAM has no end marker that would be missed. */
static void test_file_that_becomes_shorter_ends_there(void **state)
{
    (void)state;
    char path[64];
    uint8_t got[100];
    struct unit_bytes file = bgzf_bam(50, 0);
    int fd = unit_temp_file();
    unit_write(fd, file.data, file.n);
    struct input_file source = open_raw(unit_fd_path(path, fd));
    MUST(file.n > 20);
    MUST(ftruncate(fd, 20) == 0);
    assert_int_equal(input_file_read_at(&source, got, 20, 0), 20);
    assert_string_equal(latch.message, "");
    assert_int_equal(input_file_read_at(&source, got, 10, 15), -1);
    assert_non_null(strstr(latch.message, "became shorter"));
    input_file_close(&source);
    close(fd);
    unit_free(&file);
}

static void test_pipe_is_ready_with_what_htslib_has_read_and_at_its_end(void **state)
{
    (void)state;
    struct unit_bytes file = bgzf_bam(50, 0);
    uint8_t got[1000];
    int ends[2];
    MUST(pipe(ends) == 0);
    unit_write(ends[1], file.data, file.n);
    close(ends[1]);
    int old = unit_replace_stdin(ends[0]);
    struct input_file source = open_raw("-");
    htsFormat format;
    MUST(hts_detect_format(source.hfile, &format) == 0);
    unit_restore_stdin(old);
    assert_int_equal(input_file_access(&source), INPUT_FROM_PIPE);
    assert_true(input_file_ready(&source, 0));   /* the bytes that htslib has read */
    assert_int_equal(input_file_read(&source, got, sizeof got), file.n);
    assert_true(input_file_ready(&source, 0));   /* the end */
    assert_int_equal(input_file_read(&source, got, sizeof got), 0);
    input_file_close(&source);
    unit_free(&file);
}

/* ---- unreadable files ---- */

static void test_tripped_latch_ends_the_reading(void **state)
{
    (void)state;
    struct unit_bytes file = bgzf_bam(50, 0);
    int fd = unit_temp_file();
    char path[64];
    uint8_t buffer[10];
    unit_write(fd, file.data, file.n);
    struct input_file source = open_raw(unit_fd_path(path, fd));
    assert_int_equal(input_file_read(&source, buffer, sizeof buffer), sizeof buffer);
    latch_fail(&latch, "elsewhere");
    assert_int_equal(input_file_read(&source, buffer, sizeof buffer), -1);
    assert_string_equal(latch.message, "elsewhere");
    input_file_close(&source);
    close(fd);
    unit_free(&file);
}

/* ---- files that begin like the one before ---- */

struct alike {
    size_t n, n_at_once;         /* number of files, and of those whose header was read when they were opened */
    sam_hdr_t *before;
    size_t n_same;               /* number of files that have the header of the file before */
};

static int join_alike(void *arg, struct input *in)
{
    struct alike *a = arg;
    a->n++;
    a->n_at_once += !in->format->window && !in->stream.producer && !in->source;
    a->n_same += in->header.sam == a->before;
    a->before = in->header.sam;
    return 0;
}

/* Opens files of these bytes, like merge; the last is standard input if `piped`. Returns the counts. */
static struct alike open_alike(const struct unit_bytes *const *files, size_t n, bool piped)
{
    enum { MOST = 4 };
    char paths[MOST][64], *names[MOST] = {paths[0], paths[1], paths[2], paths[3]};
    int fds[MOST], old = -1;
    pid_t child = -1;
    struct alike found = {0};
    struct inputs inputs;
    struct input_request request = {.paths = names, .n = n};
    struct inputs_options how = {.request = &request, .header_max = 1 << 20, .waits = true, .join = join_alike,
                                      .arg = &found, .engine = &engine};
    memset(&latch, 0, sizeof latch);
    how.rings.job = (struct memory_job){.n_threads = 1, .n_inputs = n};
    how.rings.piece_size = piece_size;
    how.rings.n_pieces = 16;
    how.rings.chunks = chunk_plan_text(1 << 20, 1, 1);
    how.rings.source_slots = 4;
    for (size_t i = 0; i < n; i++) {
        unit_write(fds[i] = unit_temp_file(), files[i]->data, files[i]->n);
        unit_fd_path(paths[i], fds[i]);
    }
    if (piped) {
        names[n - 1] = strcpy(paths[n - 1], "-");
        old = unit_feed_stdin(files[n - 1], 1000, &child);
    }
    MUST(inputs_open(&inputs, &how) == 0 && found.n == n);
    inputs_close(&inputs);
    if (piped) {
        unit_restore_stdin(old);
        unit_feed_ended(child);
    }
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    return found;
}

static void check_alike(const struct unit_bytes *const *files, size_t n, size_t at_once, size_t same)
{
    struct alike found = open_alike(files, n, false);
    assert_int_equal(found.n_at_once, at_once);
    assert_int_equal(found.n_same, same);
}

/* The header is in two blocks, the second of which also holds records. */
static void test_header_that_is_there_again_is_read_again(void **state)
{
    (void)state;
    struct unit_bytes a = bgzf_bam(50, 0), longer = bgzf_bam(50, 0), cut = bgzf_bam(60, 0), late = bgzf_bam(50, 0);
    struct unit_bytes other = bgzf_bam_of("@HD\tVN:1.5\n", 50, 0);
    unit_append(&longer, bgzf_block_eof, BGZF_EOF_SIZE);
    late.data[late.n - BGZF_EOF_SIZE - 1] ^= 1;  /* in the data after the header's blocks */
    check_alike((const struct unit_bytes *[]){&a, &longer, &late, &a}, 4, 4, 3);
    check_alike((const struct unit_bytes *[]){&a, &cut, &a, &other}, 4, 4, 2);
    check_alike((const struct unit_bytes *[]){&other, &a, &a, &other}, 4, 4, 1);
    struct alike found = open_alike((const struct unit_bytes *[]){&a, &a, &a}, 3, true);
    assert_int_equal(found.n_at_once, 2);        /* a pipe is not read twice */
    assert_int_equal(found.n_same, 2);
    unit_free(&a);
    unit_free(&longer);
    unit_free(&cut);
    unit_free(&late);
    unit_free(&other);
}

/* They are BAM, but this is detected as for any input. */
static void test_file_that_is_not_plainly_bam_is_opened_in_another_way(void **state)
{
    (void)state;
    struct unit_bytes a = bgzf_bam(50, 0), after_empty = bgzf_bam(50, 1), raw = raw_bam();
    struct unit_bytes sam = {(uint8_t *)text, sizeof text - 1, 0};
    check_alike((const struct unit_bytes *[]){&a, &after_empty, &raw, &sam}, 4, 1, 2);
    check_alike((const struct unit_bytes *[]){&after_empty, &a, &a}, 3, 2, 2);
    unit_free(&a);
    unit_free(&after_empty);
    unit_free(&raw);
}

static void test_header_in_a_damaged_block_is_not_taken(void **state)
{
    (void)state;
    struct unit_bytes a = bgzf_bam(BGZF_FILL, 0);
    struct known_headers known = {.n = 0};
    struct bam_header header = {.sam = NULL};
    struct bgzf_codec *codec = bgzf_codec_new(0);
    char path[64];
    int fd = unit_temp_file();
    a.data[a.n - BGZF_EOF_SIZE - BGZF_FOOTER] ^= 1;      /* a bit of the CRC-32 */
    unit_write(fd, a.data, a.n);
    struct input_file file = open_raw(unit_fd_path(path, fd));
    assert_int_equal(known_headers_read(&known, &header, &file, codec, 1 << 20), 0);
    assert_null(header.sam);
    assert_string_equal(latch.message, "");
    input_file_close(&file);
    known_headers_free(&known);
    bgzf_codec_free(codec);
    close(fd);
    unit_free(&a);
}

enum { STORED = 50006, LONG = 84 };    /* bytes in a block of stored_header(); its most blocks: over 4 MiB */

/* A BAM header whose text is a comment, in n_blocks stored blocks. */
static struct unit_bytes stored_header(struct bgzf_codec *stores, uint32_t n_blocks)
{
    static uint8_t raw[LONG * STORED], block[BGZF_MAX_BLOCK];
    size_t size = (size_t)n_blocks * STORED;
    struct unit_bytes a = {NULL, 0, 0};
    assert_true(size <= sizeof raw);
    memset(raw, 'x', size);
    memcpy(raw, "BAM\1\0\0\0\0@CO\t", 12);
    store_le32(raw + 4, (uint32_t)size - 12);
    raw[size - 5] = '\n';
    memset(raw + size - 4, 0, 4);
    for (size_t at = 0; at < size; at += STORED)
        unit_append(&a, block, bgzf_block_deflate(stores, raw + at, STORED, block));
    return a;
}

/* The first file's header is longer than the bytes that are read. */
static void test_after_a_long_header_another_file_is_read_in_vain(void **state)
{
    (void)state;
    struct bgzf_codec *stores = bgzf_codec_new(0);
    struct known_headers known = {.n = 0};
    struct bam_header header = {.sam = NULL};
    for (int i = 0; i < 2; i++) {
        struct unit_bytes a = stored_header(stores, i == 0 ? LONG : 1);
        char path[64];
        int fd = unit_temp_file();
        unit_write(fd, a.data, a.n);
        struct input_file file = open_raw(unit_fd_path(path, fd));
        assert_int_equal(known_headers_read(&known, &header, &file, stores, LONG * STORED), i);
        assert_int_equal(header.size, i * STORED);
        assert_string_equal(latch.message, "");
        bam_header_free(&header);
        input_file_close(&file);
        close(fd);
        unit_free(&a);
    }
    known_headers_free(&known);
    bgzf_codec_free(stores);
}

/* The header is longer than what is read first. */
static void test_header_longer_than_what_is_read_first_is_taken(void **state)
{
    (void)state;
    enum { SIZE = 6 * STORED };
    struct known_headers known = {.n = 0};
    struct bam_header header = {.sam = NULL};
    struct bgzf_codec *stores = bgzf_codec_new(0);
    struct unit_bytes a = stored_header(stores, 6);
    char path[64];
    int fd = unit_temp_file();
    unit_write(fd, a.data, a.n);
    struct input_file file = open_raw(unit_fd_path(path, fd));
    assert_int_equal(known_headers_read(&known, &header, &file, stores, SIZE), 1);
    assert_int_equal(header.size, SIZE);
    bam_header_free(&header);
    assert_int_equal(known_headers_read(&known, &header, &file, stores, SIZE - 1), 1);     /* not read again */
    assert_true(header.is_shared);
    bam_header_free(&header);
    known_headers_free(&known);
    assert_int_equal(known_headers_read(&known, &header, &file, stores, SIZE - 1), 0);
    assert_string_equal(latch.message, "");
    input_file_close(&file);
    known_headers_free(&known);
    bgzf_codec_free(stores);
    close(fd);
    unit_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bam_is_given_as_it_is),
        cmocka_unit_test(test_bam_without_compression_is_given_as_it_is),
        cmocka_unit_test(test_bam_larger_than_what_was_read_ahead),
        cmocka_unit_test(test_magic_that_is_split_over_blocks),
        cmocka_unit_test(test_empty_blocks_before_the_header),
        cmocka_unit_test(test_pipe_that_gives_a_byte_at_a_time_and_has_no_size),
        cmocka_unit_test(test_size_of_a_file_and_of_what_has_none),
        cmocka_unit_test(test_place_in_a_file_is_counted_from_where_it_stood),
        cmocka_unit_test(test_file_that_becomes_shorter_ends_there),
        cmocka_unit_test(test_pipe_is_ready_with_what_htslib_has_read_and_at_its_end),
        cmocka_unit_test(test_tripped_latch_ends_the_reading),
        cmocka_unit_test(test_header_that_is_there_again_is_read_again),
        cmocka_unit_test(test_file_that_is_not_plainly_bam_is_opened_in_another_way),
        cmocka_unit_test(test_header_in_a_damaged_block_is_not_taken),
        cmocka_unit_test(test_header_longer_than_what_is_read_first_is_taken),
        cmocka_unit_test(test_after_a_long_header_another_file_is_read_in_vain),
    };
    hts_set_log_level(HTS_LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
