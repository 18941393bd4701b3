/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "bam_arena.h"
#include "codec/bgzf_block.h"
#include "base/engine.h"
#include "base/latch.h"
#include "write/output_block.h"

enum { MAX_PIECES = 60000, MAX_BLOCKS = 20000, PIECE = 1 << 16 };
static const int team_sizes[] = {1, 2, 3, 8};
static uint32_t ring_size = 32;
static size_t piece_size = PIECE;

/* ---- the input of the sink ---- */

struct job {
    struct unit_bytes data;
    struct record_ref piece[MAX_PIECES];     /* data: offset into the bytes until bound */
    uint8_t flush_after[MAX_PIECES];
    size_t n;
    uint64_t checksum;                       /* over the pieces that belong to records */
    uint64_t seed;
};

/* A piece with this segment is not a record. */
static const uint32_t HEADER = 1;

static struct job *job_new(uint64_t seed)
{
    struct job *job = calloc(1, sizeof *job);
    MUST(job);
    job->seed = seed;
    return job;
}

static void job_free(struct job *job)
{
    unit_free(&job->data);
    free(job);
}

static void add_piece(struct job *job, uint32_t size, uint32_t segment, int random)
{
    static const uint8_t bases[4] = {'A', 'C', 'G', 'T'};
    MUST(job->n < MAX_PIECES);
    uint8_t *p = unit_more(&job->data, size);
    for (uint32_t i = 0; i < size; i++)
        p[i] = random ? (uint8_t)unit_random(&job->seed) : bases[unit_below(&job->seed, 4)];
    if (segment != HEADER)
        job->checksum += record_checksum(p, size);
    job->piece[job->n++] = (struct record_ref){NULL, size, (uint16_t)segment, 0};
}

/* Header bytes, then records of all sizes, some longer than a block, as the driver puts them. */
static void add_random_pieces(struct job *job, size_t n)
{
    add_piece(job, 500, HEADER, 0);
    job->flush_after[0] = 1;
    while (n-- > 0) {
        uint32_t kind = unit_below(&job->seed, 500);
        if (kind == 0) {
            add_piece(job, 2 * BGZF_FILL + 1 + unit_below(&job->seed, BGZF_FILL), 0, 0);
        } else {
            add_piece(job, 37 + unit_below(&job->seed, kind < 20 ? 20000 : 600), 0,
                      kind % 16 == 0);
        }
    }
}

/* The pieces point into the bytes once these no longer move. */
static void bind(struct job *job)
{
    const uint8_t *at = job->data.data;
    for (size_t i = 0; i < job->n; at += job->piece[i++].size)
        job->piece[i].data = at;
}

static struct job *random_job(uint64_t seed, size_t n)
{
    struct job *job = job_new(seed);
    add_random_pieces(job, n);
    bind(job);
    return job;
}

/* Notes of writes at a place in a file, by any thread. */
enum { MAX_NOTES = 2000 };
static struct write_note {
    uint64_t at, size;
} notes[MAX_NOTES];
static atomic_int n_notes;
static int fail_at;                              /* from this one on the disk is full; 0: never */

/* ---- the sink at work ---- */

static int put_records(struct output_blocks *sink, const struct record_ref *records, size_t n)
{
    return output_blocks_put(sink, &(struct record_list){.records = (struct record_ref *)records, .n = n});
}

struct writing {
    struct latch latch;
    size_t put;                              /* pieces taken by the sink */
    int result;                              /* result of output_blocks_finish(), or of the put that failed */
    uint64_t checksum;
};

static struct output_blocks *open_sink(int fd, int level, uint32_t n_slots, const struct engine *engine)
{
    struct bgzf_sink_options options = {.fd = fd, .path = "the output", .level = level, .n_slots = n_slots,
                                        .piece_size = piece_size, .engine = engine};
    struct output_blocks *sink = output_blocks_open(&options);
    MUST(sink);
    return sink;
}

static int put_all(struct writing *w, struct output_blocks *sink, const struct job *job)
{
    while (w->put < job->n) {
        size_t first = w->put;
        if (job->piece[first].segment == HEADER) {
            w->put++;
            if (output_blocks_put_header(sink, job->piece[first].data, job->piece[first].size) < 0)
                return -1;
        } else {
            size_t most = 1 + first * 7 % 50;    /* some at a time */
            while (w->put < job->n && w->put < first + most && job->piece[w->put].segment != HEADER
                   && (w->put == first || !job->flush_after[w->put - 1]))
                w->put++;
            if (put_records(sink, job->piece + first, w->put - first) < 0)
                return -1;
        }
        if (job->flush_after[w->put - 1] && output_blocks_flush(sink) < 0)
            return -1;
    }
    return output_blocks_finish(sink);
}

static void write_job(struct writing *w, const struct job *job, int fd, int level, int n_threads)
{
    memset(w, 0, sizeof *w);
    atomic_store(&n_notes, 0);
    struct output_blocks *sink = open_sink(fd, level, ring_size, &(struct engine){.latch = &w->latch, .n_threads = n_threads});
    #pragma omp parallel num_threads(n_threads)
    if (omp_get_thread_num() == 0)
    w->result = put_all(w, sink, job);
    w->checksum = output_blocks_checksum(sink);
    output_blocks_close(sink);
}

/* Inflated sizes of the blocks of the last file that was inflated. */
static uint32_t block_sizes[MAX_BLOCKS];

static struct unit_bytes inflate_all(const struct unit_bytes *file, size_t *n)
{
    struct unit_bytes data = {NULL, 0, 0};
    struct bgzf_codec *codec = bgzf_codec_new(0);
    MUST(codec);
    *n = 0;
    for (size_t at = 0; at < file->n;) {
        struct bgzf_frame frame;
        MUST(bgzf_block_frame(file->data + at, file->n - at, &frame) == BGZF_OK && *n < MAX_BLOCKS);
        uint8_t *to = unit_more(&data, frame.inflated_size);
        MUST(bgzf_block_inflate(codec, file->data + at, &frame, to) == BGZF_OK);
        block_sizes[(*n)++] = frame.inflated_size;
        at += frame.size;
    }
    bgzf_codec_free(codec);
    return data;
}

/* Sizes of the blocks that the pieces must give: as many complete pieces as fit, or a part of one that is longer; the
 * EOF block. */
static size_t expected_blocks(const struct job *job, uint32_t *sizes)
{
    size_t n = 0;
    uint32_t filling = 0;
    for (size_t i = 0; i < job->n; i++) {
        uint32_t size = job->piece[i].size;
        if (filling > 0 && filling + size > BGZF_FILL) {
            sizes[n++] = filling;
            filling = 0;
        }
        for (; size > BGZF_FILL; size -= BGZF_FILL)
            sizes[n++] = BGZF_FILL;
        filling += size;
        if (job->flush_after[i]) {
            sizes[n++] = filling;
            filling = 0;
        }
    }
    if (filling > 0)
        sizes[n++] = filling;
    sizes[n++] = 0;
    return n;
}

/* The blocks of the file must hold the bytes of the job; returns the number of blocks. */
static size_t check_data(const struct unit_bytes *file, const struct job *job)
{
    size_t n;
    struct unit_bytes data = inflate_all(file, &n);
    assert_int_equal(data.n, job->data.n);
    if (data.n)
        assert_memory_equal(data.data, job->data.data, data.n);
    unit_free(&data);
    return n;
}

static void check_file(const struct unit_bytes *file, const struct job *job)
{
    static uint32_t want[MAX_BLOCKS];
    size_t n = check_data(file, job);
    assert_int_equal(n, expected_blocks(job, want));
    assert_memory_equal(block_sizes, want, n * sizeof *want);
    assert_memory_equal(file->data + file->n - BGZF_EOF_SIZE, bgzf_block_eof, BGZF_EOF_SIZE);
}

/* Reads an open file in the same way, and closes it. */
static void check_and_close(int fd, const struct job *job)
{
    struct unit_bytes file = unit_read_file(fd);
    check_file(&file, job);
    unit_free(&file);
    close(fd);
}

static void write_whole(const struct job *job, int fd, int level, int n_threads)
{
    struct writing w;
    write_job(&w, job, fd, level, n_threads);
    assert_string_equal(w.latch.message, "");
    assert_int_equal(w.result, 0);
    assert_int_equal(w.put, job->n);
    assert_int_equal(w.checksum, job->checksum);
}

static struct unit_bytes write_to_temp(const struct job *job, int level, int n_threads)
{
    int fd = unit_temp_file();
    write_whole(job, fd, level, n_threads);
    struct unit_bytes file = unit_read_file(fd);
    close(fd);
    return file;
}

static void check_output(const struct job *job, int level, int n_threads)
{
    int fd = unit_temp_file();
    write_whole(job, fd, level, n_threads);
    check_and_close(fd, job);
}

static void check_output_of_all_teams(const struct job *job, int level)
{
    for (size_t i = 0; i < N_OF(team_sizes); i++)
        check_output(job, level, team_sizes[i]);
}

/* Writing must fail with this message. */
static void check_failure(const struct job *job, int fd, int n_threads, const char *message)
{
    struct writing w;
    write_job(&w, job, fd, 1, n_threads);
    assert_int_equal(w.result, -1);
    assert_non_null(strstr(w.latch.message, "the output"));
    assert_non_null(strstr(w.latch.message, message));
    close(fd);
}

/* ---- tests: the output ---- */

static void test_pieces_come_out_whole_and_in_order_at_any_team_size(void **state)
{
    (void)state;
    struct job *job = random_job(1, 10000);
    check_output_of_all_teams(job, 1);
    job_free(job);
}

static void test_output_is_the_same_at_any_team_size(void **state)
{
    (void)state;
    static const int levels[] = {BGZF_LEVEL_DEFAULT, 0, 3};
    struct job *job = random_job(2, 2000);
    for (size_t l = 0; l < N_OF(levels); l++) {
        struct unit_bytes first = write_to_temp(job, levels[l], 1);
        check_file(&first, job);
        for (size_t i = 1; i < N_OF(team_sizes); i++) {
            struct unit_bytes file = write_to_temp(job, levels[l], team_sizes[i]);
            assert_int_equal(file.n, first.n);
            assert_memory_equal(file.data, first.data, first.n);
            unit_free(&file);
        }
        unit_free(&first);
    }
    job_free(job);
}

/* Counts again for each record. */
static void check_fit(const struct record_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        size_t end = i;
        for (uint32_t room = BGZF_FILL; end < list->n && list->records[end].size <= room; end++)
            room -= list->records[end].size;
        assert_int_equal(list->fit[i], end == list->n ? 0 : end - i);
    }
}

/* Makes lists like merge tasks. The sink uses two of three until it has passed them; the others may change at once. */
static int put_lists(struct output_blocks *sink, const struct job *job, struct record_list *lists, size_t each)
{
    if (output_blocks_put_header(sink, job->piece[0].data, job->piece[0].size) < 0 || output_blocks_flush(sink) < 0)
        return -1;
    for (size_t i = 1, k = 0; i < job->n; k++) {
        struct record_list *list = &lists[k];
        MUST(record_list_alloc(list, each) == 0);
        for (record_list_empty(list); list->n < each && i < job->n; i++)
            record_list_add(list, job->piece[i].data, job->piece[i].size, 0);
        check_fit(list);
        struct record_list to_put = *list;
        if (k % 3 == 2)
            to_put.fit = NULL;
        if (output_blocks_put(sink, &to_put) < 0)
            return -1;
        if (k % 3 == 2)
            memset(list->records, 0, each * sizeof *list->records);
    }
    return output_blocks_finish(sink);
}

static void test_blocks_that_lists_are_cut_into_beforehand(void **state)
{
    (void)state;
    enum { N = 6000 };
    static const size_t each[] = {1, 50, 170, 1000, 5000, N};
    struct job *job = random_job(30, N);
    for (size_t t = 0; t < 2; t++)
        for (size_t e = 0; e < N_OF(each); e++) {
            int n_threads = team_sizes[(e + 2 * t) % N_OF(team_sizes)];
            struct latch latch = {0};
            struct record_list *lists = calloc(N + 1, sizeof *lists);
            int fd = unit_temp_file(), result = -1;
            struct output_blocks *sink = open_sink(fd, 1, ring_size, &(struct engine){.latch = &latch, .n_threads = n_threads});
            MUST(lists);
            #pragma omp parallel num_threads(n_threads)
            if (omp_get_thread_num() == 0)
            result = put_lists(sink, job, lists, each[e]);
            assert_int_equal(result, 0);
            assert_int_equal(output_blocks_checksum(sink), job->checksum);
            output_blocks_close(sink);
            check_and_close(fd, job);
            for (size_t k = 0; k <= N; k++)
                record_list_free(&lists[k]);
            free(lists);
        }
    job_free(job);
}

/* Thousands of blocks of a few bytes: the ring turns over quickly, tickets race. */
static void test_ring_turned_over_hundreds_of_times(void **state)
{
    (void)state;
    struct job *job = job_new(3);
    for (int i = 0; i < 5000; i++) {
        add_piece(job, 37 + unit_below(&job->seed, 60), 0, 1);
        job->flush_after[i] = 1;
    }
    bind(job);
    for (size_t i = 0; i < N_OF(team_sizes); i++)
        check_output(job, i % 2, team_sizes[i]);
    job_free(job);
}

static void test_many_more_threads_than_cores(void **state)
{
    (void)state;
    struct job *job = job_new(4);
    for (int i = 0; i < 600; i++) {
        add_piece(job, 37 + unit_below(&job->seed, 3000), 0, 0);
        job->flush_after[i] = unit_below(&job->seed, 4) != 0;
    }
    bind(job);
    for (int i = 0; i < 20; i++)
        check_output(job, 1, 16);
    job_free(job);
}

/* If memory is short there are hardly more slots than threads, or fewer than are written at once. */
static void test_ring_of_any_size_writes_the_same(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 15, 16, 17, 200};
    struct job *job = random_job(22, 1500);
    uint32_t usual = ring_size;
    for (size_t i = 0; i < N_OF(sizes); i++) {
        ring_size = sizes[i];
        check_output_of_all_teams(job, 1);
    }
    ring_size = usual;
    job_free(job);
}

static void test_nothing_put_gives_only_the_eof_block(void **state)
{
    (void)state;
    struct job *job = job_new(5);
    struct unit_bytes file = write_to_temp(job, 6, 2);
    assert_int_equal(file.n, BGZF_EOF_SIZE);
    assert_memory_equal(file.data, bgzf_block_eof, BGZF_EOF_SIZE);
    unit_free(&file);
    job_free(job);
}

static void test_flush_of_nothing_writes_no_block(void **state)
{
    (void)state;
    struct job *job = job_new(6);
    struct latch latch = {0};
    int fd = unit_temp_file(), failed = -1;
    struct output_blocks *sink = open_sink(fd, 1, ring_size, &(struct engine){.latch = &latch, .n_threads = 2});
    add_piece(job, 100, 0, 0);
    bind(job);
    #pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        failed = output_blocks_flush(sink) < 0;
        failed += output_blocks_flush(sink) < 0;
        failed += put_records(sink, job->piece, 1) < 0;
        failed += output_blocks_flush(sink) < 0;
        failed += output_blocks_flush(sink) < 0;
        failed += output_blocks_finish(sink) < 0;
    }
    assert_int_equal(failed, 0);
    output_blocks_close(sink);
    job->flush_after[0] = 1;
    check_and_close(fd, job);
    job_free(job);
}

static void test_block_filled_to_the_last_byte(void **state)
{
    (void)state;
    struct job *job = job_new(7);
    add_piece(job, BGZF_FILL, 0, 1);
    add_piece(job, BGZF_FILL - 37, 0, 1);
    add_piece(job, 37, 0, 1);                    /* fits exactly */
    add_piece(job, BGZF_FILL - 37, 0, 1);
    add_piece(job, 38, 0, 1);                    /* one byte too long */
    bind(job);
    for (int level = 0; level <= 9; level += 3)
        check_output(job, level, 2);
    job_free(job);
}

static void test_block_full_of_the_smallest_records(void **state)
{
    (void)state;
    struct job *job = job_new(8);
    for (int i = 0; i < 10000; i++)
        add_piece(job, BAM_MIN_RECORD, 0, 0);
    bind(job);
    check_output(job, 1, 2);
    job_free(job);
}

/* Pieces smaller than any record: a block may hold fewer bytes, but no piece is lost. */
static void test_more_pieces_than_a_slot_has_room_for(void **state)
{
    (void)state;
    struct job *job = job_new(9);
    for (int i = 0; i < 20000; i++)
        add_piece(job, 1, 0, 1);
    bind(job);
    struct unit_bytes file = write_to_temp(job, 1, 2);
    assert_true(check_data(&file, job) <= 100);
    unit_free(&file);
    job_free(job);
}

static void test_writing_begins_where_the_file_stands(void **state)
{
    (void)state;
    struct job *job = random_job(10, 500);
    int fd = unit_temp_file();
    unit_write(fd, "before", 6);
    write_whole(job, fd, 1, 3);
    assert_int_equal(fcntl(fd, F_GETFD) >= 0, 1);            /* fd belongs to the caller */
    struct unit_bytes file = unit_read_file(fd);
    assert_memory_equal(file.data, "before", 6);
    struct unit_bytes rest = {file.data + 6, file.n - 6, 0};
    check_file(&rest, job);
    unit_free(&file);
    close(fd);
    job_free(job);
}

/* `samtools sort >> file` and a script that continues to write: with O_APPEND a place in the file means nothing. */
static void test_file_that_is_appended_to(void **state)
{
    (void)state;
    struct job *job = random_job(24, 1000);
    for (int append = 0; append <= 1; append++)
        for (size_t i = 0; i < N_OF(team_sizes); i++) {
            int fd = unit_temp_file();
            unit_write(fd, "before", 6);
            if (append) {
                fcntl(fd, F_SETFL, O_APPEND);
                lseek(fd, 2, SEEK_SET);
            }
            write_whole(job, fd, 1, team_sizes[i]);
            unit_write(fd, "after", 5);
            struct unit_bytes file = unit_read_file(fd);
            assert_memory_equal(file.data, "before", 6);
            assert_memory_equal(file.data + file.n - 5, "after", 5);
            struct unit_bytes rest = {file.data + 6, file.n - 11, 0};
            check_file(&rest, job);
            unit_free(&file);
            close(fd);
        }
    job_free(job);
}

/* ---- tests: the checksum ---- */

static void test_header_bytes_are_not_in_the_checksum(void **state)
{
    (void)state;
    struct job *job = job_new(11);
    for (int i = 0; i < 100; i++)
        add_piece(job, 1000, HEADER, 1);
    bind(job);
    assert_int_equal(job->checksum, 0);
    struct unit_bytes file = write_to_temp(job, 1, 2);
    check_data(&file, job);
    unit_free(&file);
    job_free(job);
}

static void test_segments_of_a_long_record_sum_to_its_checksum(void **state)
{
    (void)state;
    struct job *job = job_new(12);
    add_piece(job, 2 * BGZF_FILL + 4567, 0, 1);
    bind(job);
    assert_int_equal(job->checksum, record_checksum(job->data.data, job->data.n));
    check_output(job, 0, 3);                     /* compares with the sink's */
    job_free(job);
}

/* ---- tests: writing under difficulties ---- */

/* writev() and pwritev() below replace those of the C library, for files that are written in order (at < 0) or
 * anywhere. */
static ssize_t write_now(int fd, const struct iovec *iov, int n, off_t at)
{
    return at < 0 ? syscall(SYS_writev, fd, iov, n) : syscall(SYS_pwritev, fd, iov, n, (long)at, 0L);
}

/* Threads that are writing now, and the most there ever were. While writers_wait is set, a writer waits for another
 * one, but not for ever. */
static atomic_int writing_now, writing_most;
static bool writers_wait;

static void count_writer(void)
{
    enum { PATIENCE = 5000 };                    /* ms */
    int now = atomic_fetch_add(&writing_now, 1) + 1;
    if (now > atomic_load(&writing_most))
        atomic_store(&writing_most, now);
    for (int i = 0; writers_wait && atomic_load(&writing_most) < 2 && i < PATIENCE; i++)
        usleep(1000);
}

static ssize_t write_counted(int fd, const struct iovec *iov, int n, off_t at)
{
    count_writer();
    ssize_t done = write_now(fd, iov, n, at);
    atomic_fetch_sub(&writing_now, 1);
    return done;
}

ssize_t writev(int fd, const struct iovec *iov, int n)
{
    return write_counted(fd, iov, n, -1);
}

static bool note_write(const struct iovec *iov, int n, off_t at)
{
    int i = atomic_fetch_add(&n_notes, 1);
    MUST(i < MAX_NOTES);
    notes[i] = (struct write_note){(uint64_t)at, 0};
    for (int j = 0; j < n; j++)
        notes[i].size += iov[j].iov_len;
    return fail_at == 0 || i + 1 < fail_at;
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
    if (note_write(iov, n, at))
        return write_counted(fd, iov, n, at);
    errno = ENOSPC;
    return -1;
}

/* Anywhere in a file several threads write, else one at a time. */
static void test_blocks_wait_for_the_block_before_them_to_be_written(void **state)
{
    (void)state;
    struct job *job = random_job(25, 3000);
    for (int append = 0; append <= 1; append++) {
        int fd = unit_temp_file();
        if (append)
            fcntl(fd, F_SETFL, O_APPEND);
        atomic_store(&writing_most, 0);
        writers_wait = !append;
        write_whole(job, fd, 1, 8);
        writers_wait = false;
        assert_true(append ? atomic_load(&writing_most) == 1 : atomic_load(&writing_most) >= 2);
        check_and_close(fd, job);
    }
    job_free(job);
}

/* All writes except the last end at multiples of the part size, and begin there, the first one except at the file's
 * first position. */
static void check_notes(uint64_t begin, uint64_t end)
{
    uint64_t sum = 0;
    for (int i = 0; i < n_notes; i++) {
        uint64_t at = notes[i].at, last = at + notes[i].size;
        assert_true(at == begin || at % piece_size == 0);
        assert_true(last == end || last == (at / piece_size + 1) * piece_size);
        sum += notes[i].size;
    }
    assert_int_equal(sum, end - begin);
}

static void test_regular_file_is_written_in_small_pieces(void **state)
{
    (void)state;
    static const size_t piece_sizes[] = {1 << 16, 1 << 17, 1 << 19};
    static const uint64_t begins[] = {0, 6, (1 << 16) - 1, (1 << 19) + 1};
    struct job *job = random_job(26, 4000);
    for (size_t p = 0; p < N_OF(piece_sizes); p++)
        for (size_t b = 0; b < N_OF(begins); b++)
            for (size_t i = 0; i < 4; i++) {
                int fd = unit_temp_file();
                MUST(ftruncate(fd, (off_t)begins[b]) == 0 && lseek(fd, 0, SEEK_END) >= 0);
                piece_size = piece_sizes[p];
                write_whole(job, fd, i % 2, team_sizes[(p + b + i / 2 * 2) % N_OF(team_sizes)]);
                struct unit_bytes file = unit_read_file(fd);
                check_notes(begins[b], file.n);
                struct unit_bytes rest = {file.data + begins[b], file.n - begins[b], 0};
                check_file(&rest, job);
                unit_free(&file);
                close(fd);
            }
    piece_size = PIECE;
    job_free(job);
}

/* This happens with -u, if blocks are large enough. */
static void test_blocks_are_written_in_parts_only(void **state)
{
    (void)state;
    struct job *job = random_job(28, 3000);
    piece_size = 0;
    check_output_of_all_teams(job, 0);
    piece_size = PIECE;
    job_free(job);
}

/* Other threads are copying into later parts when a part no longer fits. */
static void test_disk_that_is_full_in_the_midst_of_a_file_is_no_error(void **state)
{
    (void)state;
    struct job *job = random_job(27, 3000);
    for (size_t i = 0; i < N_OF(team_sizes); i++)
        for (int n_writes = 1, at = 1; at <= n_writes; at++) {
            int fd = unit_temp_file();
            if (at == 1) {
                write_whole(job, fd, 1, team_sizes[i]);
                n_writes = n_notes;
                assert_true(n_writes > 5);
            }
            fail_at = at;
            check_failure(job, fd, team_sizes[i], "No space left");
            fail_at = 0;
        }
    job_free(job);
}

/* Reads the pipe in bites of odd sizes, so that the writer has to wait again and again. */
static pid_t slow_reader(int from, int other_end, int to)
{
    pid_t child = fork();
    if (child == 0) {
        static uint8_t bite[4000];
        uint64_t seed = 16;
        ssize_t n;
        close(other_end);
        while ((n = read(from, bite, 1 + unit_below(&seed, sizeof bite))) > 0)
            unit_write(to, bite, (size_t)n);
        _exit(n < 0);
    }
    close(from);
    return child;
}

static void test_slow_reader_of_a_pipe_gets_everything(void **state)
{
    (void)state;
    struct job *job = random_job(17, 3000);
    int ends[2], status, fd = unit_temp_file();
    MUST(pipe(ends) == 0);
#ifdef F_SETPIPE_SZ
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
#endif
    pid_t child = slow_reader(ends[0], ends[1], fd);
    write_whole(job, ends[1], 1, 3);
    close(ends[1]);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    check_and_close(fd, job);
    job_free(job);
}

static void test_latch_tripped_elsewhere_ends_the_writing(void **state)
{
    (void)state;
    struct job *job = random_job(18, 3000);
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        struct latch latch = {0};
        int fd = unit_temp_file(), result = 0;
        struct output_blocks *sink = open_sink(fd, 1, ring_size, &(struct engine){.latch = &latch, .n_threads = team_sizes[i]});
        size_t put = 1;                      /* the first piece is a header */
        #pragma omp parallel num_threads(team_sizes[i])
        if (omp_get_thread_num() == 0) {
            for (; put < job->n && result == 0; put++) {
                if (put == job->n / 2)
                    latch_fail(&latch, "tripped elsewhere");
                result = put_records(sink, job->piece + put, 1);
            }
            if (result == 0)
                result = output_blocks_finish(sink);
        }
        assert_int_equal(result, -1);
        assert_true(put < job->n);
        assert_string_equal(latch.message, "tripped elsewhere");
        output_blocks_close(sink);
        close(fd);
    }
    job_free(job);
}

static void test_sink_closed_before_it_is_finished(void **state)
{
    (void)state;
    struct job *job = job_new(19);
    struct latch latch = {0};
    int fd = unit_temp_file(), result = -1;
    struct output_blocks *sink = open_sink(fd, 1, ring_size, &(struct engine){.latch = &latch, .n_threads = 2});
    add_piece(job, 100, 0, 0);
    bind(job);
    #pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
    result = put_records(sink, job->piece, 1);
    assert_int_equal(result, 0);
    output_blocks_close(sink);
    output_blocks_close(NULL);
    struct unit_bytes file = unit_read_file(fd);
    assert_int_equal(file.n, 0);
    unit_free(&file);
    close(fd);
    job_free(job);
}

/* ---- tests: marks, after which memory is used again ---- */

static void test_marks_before_anything_is_put(void **state)
{
    (void)state;
    struct latch latch = {0};
    int fd = unit_temp_file();
    struct output_blocks *sink = open_sink(fd, 1, 4, &(struct engine){.latch = &latch, .n_threads = 1});
    struct bgzf_sink *blocks = output_blocks_sink(sink);
    uint64_t mark = bgzf_sink_mark(blocks);
    assert_true(bgzf_sink_passed(blocks, mark));
    assert_true(bgzf_sink_passed(blocks, 0));      /* the sink was never used */
    assert_true(bgzf_sink_will_pass(blocks, mark));
    assert_int_equal(bgzf_sink_help(blocks), 0);
    output_blocks_close(sink);
    close(fd);
}

/* Without a flush it will never be written: a caller that only waits would wait forever. */
static void test_mark_is_not_passed_while_its_block_is_being_filled(void **state)
{
    (void)state;
    struct latch latch = {0};
    uint8_t piece[100] = {1};
    struct record_ref small = {piece, sizeof piece, 0, 0};
    int fd = unit_temp_file();
    struct output_blocks *sink = open_sink(fd, 1, 4, &(struct engine){.latch = &latch, .n_threads = 1});
    struct bgzf_sink *blocks = output_blocks_sink(sink);
    #pragma omp parallel num_threads(1)
    if (omp_get_thread_num() == 0) {
        assert_int_equal(put_records(sink, &small, 1), 0);
        uint64_t first = bgzf_sink_mark(blocks);
        assert_false(bgzf_sink_passed(blocks, first));
        assert_false(bgzf_sink_will_pass(blocks, first));
        assert_int_equal(output_blocks_flush(sink), 0);
        assert_true(bgzf_sink_will_pass(blocks, first));
        bgzf_sink_help(blocks);
        assert_true(bgzf_sink_passed(blocks, first));
        assert_int_equal(put_records(sink, &small, 1), 0);
        uint64_t second = bgzf_sink_mark(blocks);
        assert_true(bgzf_sink_passed(blocks, first));      /* later data do not matter */
        assert_true(bgzf_sink_will_pass(blocks, first));
        assert_false(bgzf_sink_passed(blocks, second));
        assert_int_equal(output_blocks_finish(sink), 0);
        assert_true(bgzf_sink_passed(blocks, second));
    }
    output_blocks_close(sink);
    close(fd);
}

/* A piece's memory, freed as soon as that is allowed. */
struct lent {
    uint8_t data[3000];
    uint64_t mark;
    bool in_use;
};

static int wait_until_passed(struct output_blocks *sink, uint64_t mark, struct latch *latch)
{
    struct bgzf_sink *blocks = output_blocks_sink(sink);
    if (!bgzf_sink_will_pass(blocks, mark) && output_blocks_flush(sink) < 0)
        return -1;
    while (!bgzf_sink_passed(blocks, mark))
        if (latch_tripped(latch))
            return -1;
        else
            bgzf_sink_help(blocks);
    return 0;
}

/* The pieces lie in a ring, like the buffers of runs, and are overwritten once they have passed. */
static int put_lent(struct output_blocks *sink, struct job *job, struct lent *ring, size_t n_ring, struct latch *latch)
{
    for (size_t i = 0; i < job->n; i++) {
        struct lent *lent = &ring[i % n_ring];
        if (lent->in_use && wait_until_passed(sink, lent->mark, latch) < 0)
            return -1;
        memset(lent->data, 0xee, sizeof lent->data);
        memcpy(lent->data, job->piece[i].data, job->piece[i].size);
        struct record_ref piece = {lent->data, job->piece[i].size, 0, 0};
        if (put_records(sink, &piece, 1) < 0)
            return -1;
        lent->mark = bgzf_sink_mark(output_blocks_sink(sink));
        lent->in_use = true;
    }
    return output_blocks_finish(sink);
}

static void test_pieces_may_change_once_their_mark_is_passed(void **state)
{
    (void)state;
    static const size_t rings[] = {1, 5, 100};
    struct job *job = job_new(23);
    for (int i = 0; i < 2000; i++)
        add_piece(job, 37 + unit_below(&job->seed, 2900), 0, i % 8 == 0);
    bind(job);
    for (size_t i = 0; i < N_OF(team_sizes); i++)
        for (size_t j = 0; j < N_OF(rings); j++) {
            struct latch latch = {0};
            struct lent *ring = calloc(rings[j], sizeof *ring);
            int fd = unit_temp_file(), result = -1;
            struct output_blocks *sink = open_sink(fd, 1, 7, &(struct engine){.latch = &latch, .n_threads = team_sizes[i]});
            MUST(ring);
            #pragma omp parallel num_threads(team_sizes[i])
            if (omp_get_thread_num() == 0)
            result = put_lent(sink, job, ring, rings[j], &latch);
            assert_int_equal(result, 0);
            assert_int_equal(output_blocks_checksum(sink), job->checksum);
            output_blocks_close(sink);
            struct unit_bytes file = unit_read_file(fd);
            check_data(&file, job);
            unit_free(&file);
            free(ring);
            close(fd);
        }
    job_free(job);
}

/* The other threads are busy elsewhere and do not get to their tasks. */
static void test_help_does_the_work_that_nobody_has_begun(void **state)
{
    (void)state;
    enum { N = 5 };
    struct latch latch = {0};
    static uint8_t bytes[BGZF_FILL];
    int fd = unit_temp_file(), helped = 0;
    bool passed = false, passed_before = true, let_go = false;
    struct output_blocks *sink = open_sink(fd, 1, N + 1, &(struct engine){.latch = &latch, .n_threads = 2});
    struct bgzf_sink *blocks = output_blocks_sink(sink);
    #pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1)
            for (bool go = false; !go;) {
                #pragma omp atomic read
                go = let_go;
            }
        if (omp_get_thread_num() == 0) {
            for (int i = 0; i < N; i++)
                put_records(sink, &(struct record_ref){bytes, BGZF_FILL, 0, 0}, 1);
            output_blocks_flush(sink);
            uint64_t mark = bgzf_sink_mark(blocks);
            passed_before = bgzf_sink_passed(blocks, mark);
            while (helped < N && bgzf_sink_help(blocks))
                helped++;
            passed = bgzf_sink_passed(blocks, mark);
            #pragma omp atomic write
            let_go = true;
            output_blocks_finish(sink);
        }
    }
    assert_int_equal(helped, N);
    assert_false(passed_before);
    assert_true(passed);
    output_blocks_close(sink);
    close(fd);
}

/* A thread that looks for work while a block is being filled must find that block later. One thread: here no other one
 * can take it. */
static void test_help_while_a_block_is_being_filled_does_not_forget_it(void **state)
{
    (void)state;
    struct latch latch = {0};
    uint8_t piece[100] = {1};
    int fd = unit_temp_file(), early = -1, late = -1, passed = -1;
    struct output_blocks *sink = open_sink(fd, 1, 4, &(struct engine){.latch = &latch, .n_threads = 1});
    struct bgzf_sink *blocks = output_blocks_sink(sink);
    #pragma omp parallel num_threads(1)
    if (omp_get_thread_num() == 0) {
        put_records(sink, &(struct record_ref){piece, sizeof piece, 0, 0}, 1);
        early = bgzf_sink_help(blocks);
        output_blocks_flush(sink);
        uint64_t mark = bgzf_sink_mark(blocks);
        if (!bgzf_sink_passed(blocks, mark))       /* unless the runtime ran the task at once */
            late = bgzf_sink_help(blocks);
        passed = bgzf_sink_passed(blocks, mark);
    }
    assert_int_equal(early, 0);
    assert_int_not_equal(late, 0);
    assert_int_equal(passed, 1);
    output_blocks_close(sink);
    close(fd);
}

static void test_memory_that_is_counted_grows_with_all_that_takes_it(void **state)
{
    (void)state;
    size_t one = output_blocks_memory(SINK_BAM, 1, 16, 1, PIECE);
    assert_true(one > 16 * BGZF_MAX_BLOCK);
    assert_true(output_blocks_memory(SINK_BAM, 64, 16, 1, PIECE) > one);
    assert_true(output_blocks_memory(SINK_BAM, 1, 160, 1, PIECE) > one);
    assert_true(output_blocks_memory(SINK_BAM, 1, 16, 9, PIECE) > one);   /* libdeflate's best level needs megabytes */
    assert_true(output_blocks_memory(SINK_BAM, 1, 16, 0, PIECE) <= one);
    assert_true(output_blocks_memory(SINK_BAM, 1, 16, 1, 2 * PIECE) >= one + 2 * PIECE);   /* two buffers at least */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_come_out_whole_and_in_order_at_any_team_size),
        cmocka_unit_test(test_output_is_the_same_at_any_team_size),
        cmocka_unit_test(test_blocks_that_lists_are_cut_into_beforehand),
        cmocka_unit_test(test_ring_turned_over_hundreds_of_times),
        cmocka_unit_test(test_many_more_threads_than_cores),
        cmocka_unit_test(test_ring_of_any_size_writes_the_same),
        cmocka_unit_test(test_nothing_put_gives_only_the_eof_block),
        cmocka_unit_test(test_flush_of_nothing_writes_no_block),
        cmocka_unit_test(test_block_filled_to_the_last_byte),
        cmocka_unit_test(test_block_full_of_the_smallest_records),
        cmocka_unit_test(test_more_pieces_than_a_slot_has_room_for),
        cmocka_unit_test(test_writing_begins_where_the_file_stands),
        cmocka_unit_test(test_file_that_is_appended_to),
        cmocka_unit_test(test_header_bytes_are_not_in_the_checksum),
        cmocka_unit_test(test_segments_of_a_long_record_sum_to_its_checksum),
        cmocka_unit_test(test_blocks_wait_for_the_block_before_them_to_be_written),
        cmocka_unit_test(test_regular_file_is_written_in_small_pieces),
        cmocka_unit_test(test_blocks_are_written_in_parts_only),
        cmocka_unit_test(test_disk_that_is_full_in_the_midst_of_a_file_is_no_error),
        cmocka_unit_test(test_slow_reader_of_a_pipe_gets_everything),
        cmocka_unit_test(test_latch_tripped_elsewhere_ends_the_writing),
        cmocka_unit_test(test_sink_closed_before_it_is_finished),
        cmocka_unit_test(test_marks_before_anything_is_put),
        cmocka_unit_test(test_mark_is_not_passed_while_its_block_is_being_filled),
        cmocka_unit_test(test_pieces_may_change_once_their_mark_is_passed),
        cmocka_unit_test(test_help_does_the_work_that_nobody_has_begun),
        cmocka_unit_test(test_help_while_a_block_is_being_filled_does_not_forget_it),
        cmocka_unit_test(test_memory_that_is_counted_grows_with_all_that_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
