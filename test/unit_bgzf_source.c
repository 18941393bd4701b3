/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include "codec/bgzf_block.h"
#include "bgzf_omp.h"
#include "base/latch.h"
#include "read/read_ahead.h"
#include "unit_source.h"
#include "unit_stdin.h"

enum { PIECE = 128 << 10, MAX_BLOCKS = 6000 };
static const int team_sizes[] = {1, 2, 3, 8};

/* ---- a BGZF file with given properties, which begins like BAM, and its data ---- */

struct input {
    struct unit_bytes file, data;
    uint64_t offset[MAX_BLOCKS];         /* offset of block i in the file */
    uint32_t size[MAX_BLOCKS];           /* size of block i, inflated */
    size_t n;
    struct bgzf_codec *codec;
    uint64_t seed;
};

static struct input *input_new(int level, uint64_t seed)
{
    struct input *in = calloc(1, sizeof *in);
    MUST(in);
    in->codec = bgzf_codec_new(level);
    MUST(in->codec);
    in->seed = seed;
    return in;
}

static void input_free(struct input *in)
{
    bgzf_codec_free(in->codec);
    unit_free(&in->file);
    unit_free(&in->data);
    free(in);
}

static void add_block(struct input *in, uint32_t size)
{
    uint8_t block[BGZF_MAX_BLOCK], *data = unit_more(&in->data, size);
    for (uint32_t i = 0; i < size; i++)
        data[i] = "ACGT"[unit_below(&in->seed, 4)];
    if (in->n == 0 && size >= 4)
        memcpy(data, "BAM\1", 4);
    if (size > 0) {
        in->offset[in->n] = in->file.n;
        in->size[in->n++] = size;
    }
    unit_append(&in->file, block, bgzf_block_deflate(in->codec, data, size, block));
}

/* Adds blocks: most of them are small, some are full, and some have one byte. */
static void add_random_blocks(struct input *in, size_t n)
{
    for (; in->n == 0 && n > 0; n--)
        add_block(in, 1000);
    while (n-- > 0) {
        uint32_t kind = unit_below(&in->seed, 64);
        add_block(in, kind == 0 ? BGZF_FILL : kind == 1 ? 1 : 1 + unit_below(&in->seed, 2500));
    }
}

static void add_eof(struct input *in)
{
    unit_append(&in->file, bgzf_block_eof, BGZF_EOF_SIZE);
}

static int input_file(const struct input *in)
{
    int fd = unit_temp_file();
    unit_write(fd, in->file.data, in->file.n);
    return fd;
}

/* ---- reading it ---- */

struct reading {
    const struct input *in;
    struct latch latch;
    struct unit_source opened;
    struct bgzf_source *source;          /* the source of `opened` */
    uint32_t n_slots;                    /* the number of its slots */
    uint8_t *out;                        /* room for exactly in->data */
    size_t placed;                       /* bytes of out that were given to blocks */
    size_t n;                            /* blocks taken back */
    int result;                          /* result of the last peek or take */
    int wrong;                           /* a block came back different from the file */
    int saw_eof;
    atomic_size_t inflated;              /* calls of note_inflated() */
    atomic_int wrong_inflated;
    size_t trip_at;                      /* trip the latch in this call; 0: never */
};

static void note_inflated(void *arg, const struct bgzf_source_block *block)
{
    struct reading *r = arg;
    size_t at = (size_t)(block->data - r->out);
    if (memcmp(block->data, r->in->data.data + at, block->size) != 0
        || block->slot >= r->n_slots)
        atomic_store(&r->wrong_inflated, 1);
    if (atomic_fetch_add(&r->inflated, 1) + 1 == r->trip_at)
        latch_fail(&r->latch, "tripped in a task");
}

static int take_one(struct reading *r, int wait)
{
    struct bgzf_source_block block;
    int taken = bgzf_source_take(r->source, wait, &block);
    if (taken <= 0)
        return taken;
    if (r->n >= r->in->n || block.file_offset != r->in->offset[r->n]
        || block.size != r->in->size[r->n]
        || memcmp(block.data, r->in->data.data + (block.data - r->out), block.size) != 0)
        r->wrong = 1;
    r->n++;
    return 1;
}

/* The loop of a consumer, which the main thread runs. */
static int read_blocks(struct reading *r)
{
    uint32_t size;
    int found, taken = 0;
    while ((found = bgzf_source_peek(r->source, &size)) > 0) {
        if (bgzf_source_ring_full(r->source) && take_one(r, 1) < 0)
            return -1;
        if (r->placed + size > r->in->data.n)
            abort();
        bgzf_source_hand_out(r->source, r->out + r->placed, NULL);
        r->placed += size;
        while ((taken = take_one(r, 0)) > 0)
            ;
        if (taken < 0)
            return -1;
    }
    while (found == 0 && (taken = take_one(r, 1)) > 0)
        ;
    return found < 0 ? found : taken;
}

static uint32_t ring_size = UNIT_SOURCE_SLOTS;

static void reading_open(struct reading *r, const struct input *in, const char *path,
                         int n_threads, size_t piece)
{
    memset(r, 0, sizeof *r);
    r->in = in;
    r->out = must_alloc(in->data.n);
    r->n_slots = ring_size;
    MUST(unit_source_open_ring(&r->opened, path, n_threads, ring_size, piece, &r->latch) == 0);
    r->source = r->opened.blocks;
    bgzf_source_on_inflated(r->source, note_inflated, r);
}

static void reading_close(struct reading *r)
{
    unit_source_close(&r->opened);
    free(r->out);
}

static void read_all(struct reading *r, int n_threads)
{
    #pragma omp parallel num_threads(n_threads)
    if (omp_get_thread_num() == 0)
    r->result = read_blocks(r);
    r->saw_eof = bgzf_source_saw_eof_block(r->source);
}

static void read_path(struct reading *r, const struct input *in, const char *path, int n_threads,
                      size_t piece)
{
    reading_open(r, in, path, n_threads, piece);
    read_all(r, n_threads);
    reading_close(r);
}

static void read_input(struct reading *r, const struct input *in, int n_threads, size_t piece)
{
    char path[64];
    int fd = input_file(in);
    read_path(r, in, unit_fd_path(path, fd), n_threads, piece);
    close(fd);
}

static void check_whole(const struct reading *r)
{
    assert_string_equal(r->latch.message, "");
    assert_int_equal(r->result, 0);
    assert_int_equal(r->n, r->in->n);
    assert_int_equal(r->placed, r->in->data.n);
    assert_int_equal(r->wrong, 0);
    assert_int_equal(atomic_load(&r->inflated), r->in->n);
    assert_int_equal(atomic_load(&r->wrong_inflated), 0);
}

/* Checks a failure: the message has `part` and the offset, and the blocks that were taken before are right. */
static void check_failed(const struct reading *r, const char *part, uint64_t offset)
{
    char text[64];
    snprintf(text, sizeof text, "offset %llu:", (unsigned long long)offset);
    assert_int_equal(r->result, -1);
    assert_true(latch_tripped(&r->latch));
    assert_non_null(strstr(r->latch.message, part));
    if (!strstr(r->latch.message, text))
        fail_msg("\"%s\" does not say \"%s\"", r->latch.message, text);
    assert_int_equal(r->wrong, 0);
    assert_int_equal(atomic_load(&r->wrong_inflated), 0);
}

/* ---- tests: order and completeness ---- */

static void test_blocks_come_back_in_file_order_at_any_team_size(void **state)
{
    (void)state;
    struct input *in = input_new(1, 1);
    struct reading r;
    add_random_blocks(in, 5000);
    add_eof(in);
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        read_input(&r, in, team_sizes[i], PIECE);
        check_whole(&r);
        assert_int_equal(r.saw_eof, 1);
    }
    input_free(in);
}

/* Blocks that do not compress and pieces hardly larger: every block crosses an edge. */
static void test_no_block_is_lost_at_the_edges_of_pieces(void **state)
{
    (void)state;
    static const size_t pieces[]
        = {BGZF_MAX_BLOCK, BGZF_MAX_BLOCK + 1, 70001, 100000, PIECE, 1 << 20};
    struct input *in = input_new(0, 2);
    struct reading r;
    for (int i = 0; i < 40; i++)
        add_block(in, i % 3 ? BGZF_FILL : 1 + unit_below(&in->seed, 5000));
    add_eof(in);
    for (size_t i = 0; i < N_OF(pieces); i++)
        for (size_t j = 0; j < N_OF(team_sizes); j++) {
            read_input(&r, in, team_sizes[j], pieces[i]);
            check_whole(&r);
        }
    input_free(in);
}

/* A few small blocks, so that every byte of a block can be the first of a piece. */
static struct input *small_input(uint64_t seed)
{
    struct input *in = input_new(1, seed);
    for (int i = 0; i < 30; i++)
        add_block(in, 1 + unit_below(&in->seed, 200));
    add_eof(in);
    return in;
}

static void test_blocks_over_many_pieces_smaller_than_they_are(void **state)
{
    (void)state;
    struct input *in = small_input(23);
    struct reading r;
    for (size_t piece = 1; piece < 200; piece++)
        for (size_t j = 0; j < N_OF(team_sizes); j++) {
            read_input(&r, in, team_sizes[j], piece);
            check_whole(&r);
            assert_int_equal(r.saw_eof, 1);
        }
    input_free(in);
}

/* The file ends exactly where a piece is full, or one byte before or after that place. */
static void test_file_that_ends_with_a_piece(void **state)
{
    (void)state;
    for (int delta = -1; delta <= 1; delta++) {
        struct input *in = input_new(0, 3);
        struct reading r;
        add_block(in, BGZF_FILL);
        add_block(in, 30000);
        enum { STORED = BGZF_HEADER + 5 + BGZF_FOOTER };
        add_block(in, (uint32_t)(PIECE - in->file.n - STORED - BGZF_EOF_SIZE + (size_t)delta));
        add_eof(in);
        assert_int_equal(in->file.n, PIECE + delta);
        read_input(&r, in, 2, PIECE);
        check_whole(&r);
        assert_int_equal(r.saw_eof, 1);
        input_free(in);
    }
}

static void test_many_more_threads_than_cores(void **state)
{
    (void)state;
    struct input *in = input_new(1, 4);
    struct reading r;
    add_random_blocks(in, 700);
    add_eof(in);
    for (int i = 0; i < 20; i++) {
        read_input(&r, in, i % 2 ? 48 : 16, PIECE);   /* large batches have 6 slots */
        check_whole(&r);
    }
    input_free(in);
}

/* If memory is short there are hardly more slots than threads, or fewer. */
static void test_ring_of_any_size_loses_no_block(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 7, 1000};
    struct input *in = input_new(1, 21);
    struct reading r;
    add_random_blocks(in, 700);
    add_eof(in);
    for (size_t i = 0; i < N_OF(sizes); i++)
        for (size_t j = 0; j < N_OF(team_sizes); j++) {
            ring_size = sizes[i];
            read_input(&r, in, team_sizes[j], PIECE);
            ring_size = UNIT_SOURCE_SLOTS;
            check_whole(&r);
        }
    input_free(in);
}

/* The caller frees the codecs, after the last source is closed. */
static void test_sources_share_the_codecs_of_the_caller(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    struct bgzf_codec *codecs[THREADS] = {NULL}, **all = malloc(sizeof codecs);
    struct input *in = input_new(1, 41);
    struct reading r;
    char path[64];
    int fd = input_file((add_random_blocks(in, 300), add_eof(in), in));
    memcpy(all, codecs, sizeof codecs);
    for (int i = 0; i < 2; i++) {
        reading_open(&r, in, unit_fd_path(path, fd), THREADS, PIECE);
        struct bgzf_source_options how = {.input = r.opened.format->window, .path = path,
                                          .engine = &r.opened.engine, .n_slots = r.n_slots, .codecs = all};
        bgzf_source_close(r.source);
        r.source = r.opened.blocks = bgzf_source_open(&how);
        assert_non_null(r.source);
        bgzf_source_on_inflated(r.source, note_inflated, &r);
        read_all(&r, THREADS);
        reading_close(&r);
        check_whole(&r);
        for (int j = 0; j < THREADS; j++)        /* those that the first source made stay */
            assert_true(!codecs[j] || codecs[j] == all[j]);
        memcpy(codecs, all, sizeof codecs);
    }
    assert_true(codecs[0] || codecs[1] || codecs[2]);
    bgzf_codec_free_all(all, THREADS);
    close(fd);
    input_free(in);
}

static void test_memory_that_is_counted_grows_with_all_that_takes_it(void **state)
{
    (void)state;
    size_t one = bgzf_source_memory(1, 64);
    assert_true(bgzf_source_memory(64, 64) > one);
    assert_true(bgzf_source_memory(1, 640) > one);
    assert_true(read_ahead_memory(1 << 20, READ_AHEAD_PIECES) >= 3 << 20);       /* being scanned, used, read */
    assert_true(read_ahead_memory(2 << 20, READ_AHEAD_PIECES) >= 6 << 20);
}

static void test_empty_blocks_in_the_middle_are_passed_over(void **state)
{
    (void)state;
    struct input *in = input_new(1, 5);
    struct reading r;
    add_block(in, 100);
    for (int i = 0; i < 7000; i++)               /* more than a piece full */
        add_eof(in);
    add_block(in, 200);
    bgzf_codec_free(in->codec);
    in->codec = bgzf_codec_new(0);
    add_block(in, 0);                            /* stored: not of 28 bytes */
    add_block(in, 300);
    add_eof(in);
    read_input(&r, in, 2, PIECE);
    check_whole(&r);
    assert_int_equal(r.saw_eof, 1);
    input_free(in);
}

static void test_missing_eof_block_is_noticed(void **state)
{
    (void)state;
    struct input *in = input_new(1, 6);
    struct reading r;
    add_block(in, 100);
    read_input(&r, in, 2, PIECE);
    check_whole(&r);
    assert_int_equal(r.saw_eof, 0);
    add_eof(in);
    add_block(in, 100);                          /* the EOF block counts only at the end */
    read_input(&r, in, 2, PIECE);
    check_whole(&r);
    assert_int_equal(r.saw_eof, 0);
    bgzf_codec_free(in->codec);
    in->codec = bgzf_codec_new(0);
    add_block(in, 0);                            /* empty, but not that block: stored */
    read_input(&r, in, 2, PIECE);
    check_whole(&r);
    assert_int_equal(r.saw_eof, 0);
    input_free(in);
}

static void test_file_without_data(void **state)
{
    (void)state;
    struct unit_source opened;
    char path[64];
    struct latch latch = {0};
    int fd = unit_temp_file();
    assert_int_equal(unit_source_open(&opened, unit_fd_path(path, fd), 2, PIECE, &latch), -1);
    assert_non_null(strstr(latch.message, "empty"));
    unit_source_close(&opened);

    struct input *in = input_new(1, 7);
    struct reading r;
    add_eof(in);
    read_input(&r, in, 2, PIECE);
    check_whole(&r);
    assert_int_equal(r.saw_eof, 1);
    input_free(in);
    close(fd);
}

static void read_pipe(struct reading *r, const struct input *in, int n_threads, size_t piece)
{
    pid_t child;
    int old = unit_feed_stdin(&in->file, 9000, &child);
    read_path(r, in, "-", n_threads, piece);
    unit_restore_stdin(old);
    unit_feed_ended(child);
}

static void test_pipe_that_gives_a_little_at_a_time(void **state)
{
    (void)state;
    struct input *in = input_new(1, 9);
    struct reading r;
    add_random_blocks(in, 800);
    add_eof(in);
    read_pipe(&r, in, 3, PIECE);
    check_whole(&r);
    assert_int_equal(r.saw_eof, 1);
    input_free(in);
}

static void test_pipe_with_blocks_over_many_pieces(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 2, 7, 50, 127, 128, 1000};
    struct input *in = small_input(24);
    struct reading r;
    for (size_t i = 0; i < N_OF(pieces); i++)
        for (size_t j = 0; j < N_OF(team_sizes); j++) {
            read_pipe(&r, in, team_sizes[j], pieces[i]);
            check_whole(&r);
        }
    input_free(in);
}

/* No block is requested, but the writer can still write more than a pipe holds. */
static void test_writer_of_a_pipe_waits_though_there_is_room(void **state)
{
    (void)state;
    struct input *in = input_new(0, 25);
    struct reading r;
    pid_t child;
    for (int i = 0; i < 25; i++)
        add_block(in, BGZF_FILL);
    int old = unit_feed_stdin(&in->file, 9000, &child);
    reading_open(&r, in, "-", 2, PIECE);
    unit_feed_ended(child);
    #pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
    r.result = read_blocks(&r);
    unit_restore_stdin(old);
    check_whole(&r);
    reading_close(&r);
    input_free(in);
}

/* Opens a pipe as standard input. It has got half of a file, up to the middle of block 50. Returns the other end. */
static int open_half(struct reading *r, const struct input *in, int *old)
{
    int ends[2];
    MUST(pipe(ends) == 0);
    *old = unit_replace_stdin(ends[0]);
    unit_write(ends[1], in->file.data, in->offset[50] + 10);
    reading_open(r, in, "-", 2, PIECE);
    return ends[1];
}

static void inflate_half(struct reading *r)
{
    uint32_t size;
    for (; r->n < 50; r->n++) {
        assert_int_equal(bgzf_source_peek(r->source, &size), 1);
        assert_int_equal(bgzf_source_inflate(r->source, r->out + r->placed), 0);
        r->placed += size;
    }
}

static void test_writer_that_pauses_keeps_back_what_it_has_written(void **state)
{
    (void)state;
    struct input *in = input_new(1, 26);
    struct reading r;
    int old;
    add_random_blocks(in, 100);
    int end = open_half(&r, in, &old);
    inflate_half(&r);                            /* would hang */
    unit_write(end, in->file.data + in->offset[50] + 10, in->file.n - in->offset[50] - 10);
    close(end);
    #pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
    r.result = read_blocks(&r);
    unit_restore_stdin(old);
    assert_int_equal(r.result, 0);
    assert_int_equal(r.n, in->n);
    assert_int_equal(r.wrong, 0);
    reading_close(&r);
    input_free(in);
}

static void *trip_later(void *arg)
{
    usleep(20000);
    latch_fail(arg, "tripped elsewhere");
    return NULL;
}

/* A pipe that stays open and silent, in the middle of a block: waiting threads end when another failure occurs, and
 * when all is closed. */
static void test_silent_pipe_keeps_the_program_from_ending(void **state)
{
    (void)state;
    struct input *in = input_new(1, 27);
    add_random_blocks(in, 100);
    for (int trip = 0; trip <= 1; trip++) {
        struct reading r;
        uint32_t size;
        int old, end = open_half(&r, in, &old);
        inflate_half(&r);
        if (trip) {
            pthread_t other;
            MUST(pthread_create(&other, NULL, trip_later, &r.latch) == 0);
            assert_int_equal(bgzf_source_peek(r.source, &size), -1);
            pthread_join(other, NULL);
        }
        reading_close(&r);
        unit_restore_stdin(old);
        close(end);
    }
    input_free(in);
}

/* pthread_create() below replaces that of the C library: if this is set, no more threads can be created.
 * ThreadSanitizer has its own pthread_create(), which must not be left out. */
static bool no_threads;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN
#endif
#endif
#ifndef HAS_TSAN
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    create_fn *create;
    memcpy(&create, &found, sizeof create);
    return no_threads ? EAGAIN : create(thread, attr, start, arg);
}
#endif

static void test_pipe_needs_a_thread(void **state)
{
    (void)state;
    struct input *in = input_new(1, 28);
    struct reading r;
    add_random_blocks(in, 800);
    no_threads = true;
    read_pipe(&r, in, 1, PIECE);
    no_threads = false;
    check_whole(&r);
    input_free(in);
}

/* `samtools sort - < file` in a script that has read a part of the file itself. */
static void test_redirected_file_is_read_from_its_beginning(void **state)
{
    (void)state;
    enum { BEFORE = 1000 };
    struct input *in = small_input(29);
    static const size_t pieces[] = {10, 100, PIECE};
    for (size_t i = 0; i < N_OF(pieces); i++) {
        uint8_t junk[BEFORE] = {0};
        struct reading r;
        int fd = unit_temp_file();
        unit_write(fd, junk, BEFORE);
        unit_write(fd, in->file.data, in->file.n);
        lseek(fd, BEFORE, SEEK_SET);
        int old = unit_replace_stdin(dup(fd));
        read_path(&r, in, "-", 3, pieces[i]);
        unit_restore_stdin(old);
        check_whole(&r);                         /* offsets count from there */
        assert_int_equal(lseek(fd, 0, SEEK_CUR), BEFORE + in->file.n);
        close(fd);
    }
    input_free(in);
}

/* Hands out the peeked block, and takes it back. */
static void pass_block(struct reading *r, uint32_t size)
{
    struct bgzf_source_block block;
    bgzf_source_hand_out(r->source, r->out + r->placed, NULL);
    r->placed += size;
    assert_int_equal(bgzf_source_take(r->source, 1, &block), 1);
    assert_int_equal(block.size, size);
}

/* Checks that bytes that are put back come again, even if another block was peeked, and even after the last block. */
static void check_put_back(struct input *in)
{
    char path[64];
    int fd = input_file(in);
    for (size_t first = 2; first <= in->n; first += 66) {
        struct reading r;
        uint32_t size;
        reading_open(&r, in, unit_fd_path(path, fd), 1, PIECE);
        for (size_t i = 0; i < first && bgzf_source_peek(r.source, &size) > 0; i++)
            pass_block(&r, size);
        bgzf_source_peek(r.source, &size);
        size_t back = 1 + unit_below(&in->seed, (uint32_t)r.placed);
        r.placed -= back;
        assert_int_equal(bgzf_source_put_back(r.source, r.out + r.placed, back), 0);
        memset(r.out + r.placed, 0, back);
        while (bgzf_source_peek(r.source, &size) > 0)
            pass_block(&r, size);
        assert_int_equal(r.placed, in->data.n);
        assert_memory_equal(r.out, in->data.data, r.placed);
        assert_int_equal(r.wrong_inflated, 0);
        assert_int_equal(bgzf_source_saw_eof_block(r.source), 1);
        reading_close(&r);
    }
    close(fd);
}

static void test_bytes_that_are_put_back_come_again(void **state)
{
    (void)state;
    struct input *in = input_new(1, 300);
    add_random_blocks(in, 200);
    add_eof(in);
    check_put_back(in);
    input_free(in);
}

/* Adds a block as a member of plain gzip, that is, without its extra field. */
static void add_member(struct input *in)
{
    static const uint8_t head[] = {31, 139, 8, 0, 0, 0, 0, 0, 0, 255};
    size_t at = in->file.n, less = BGZF_HEADER - sizeof head;
    add_block(in, BGZF_FILL);
    memcpy(in->file.data + at, head, sizeof head);
    memmove(in->file.data + at + sizeof head, in->file.data + at + BGZF_HEADER, in->file.n - at - BGZF_HEADER);
    in->file.n -= less;
}

/* Data that were decompressed and peeked before that are not lost. */
static void test_bytes_are_put_back_in_plain_gzip(void **state)
{
    (void)state;
    struct input *in = input_new(1, 300);
    add_random_blocks(in, 1);
    for (size_t i = 0; i < 140; i++)
        add_member(in);
    check_put_back(in);
    input_free(in);
}

/* ---- tests: the ring ---- */

/* Hands out blocks without taking any back. *fits: the number of blocks that were handed out. */
static void fill_ring(struct reading *r, uint32_t *fits)
{
    uint32_t size;
    *fits = 0;
    while (!bgzf_source_ring_full(r->source) && bgzf_source_peek(r->source, &size) > 0) {
        bgzf_source_hand_out(r->source, r->out + r->placed, NULL);
        r->placed += size;
        ++*fits;
    }
}

static void test_full_ring_takes_one_block_for_each_taken_back(void **state)
{
    (void)state;
    struct input *in = input_new(1, 10);
    struct reading r;
    uint32_t fits = 0, size, again = 0;
    int taken = 0, full_after_take = -1, full_after_hand_out = -1, rest = -1;
    char path[64];
    int fd = input_file((add_random_blocks(in, 400), add_eof(in), in));
    reading_open(&r, in, unit_fd_path(path, fd), 2, PIECE);
    #pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        fill_ring(&r, &fits);
        taken = take_one(&r, 1);
        full_after_take = bgzf_source_ring_full(r.source);
        if (bgzf_source_peek(r.source, &size) > 0) {
            bgzf_source_hand_out(r.source, r.out + r.placed, NULL);
            r.placed += size;
        }
        full_after_hand_out = bgzf_source_ring_full(r.source);
        while ((rest = take_one(&r, 1)) > 0)
            again++;
        r.result = read_blocks(&r);
    }
    assert_int_equal(fits, r.n_slots);
    assert_int_equal(taken, 1);
    assert_int_equal(full_after_take, 0);
    assert_int_equal(full_after_hand_out, 1);
    assert_int_equal(rest, 0);
    assert_int_equal(again, fits);
    check_whole(&r);
    reading_close(&r);
    close(fd);
    input_free(in);
}

static void test_peek_repeats_itself_until_the_block_is_handed_out(void **state)
{
    (void)state;
    struct input *in = input_new(1, 11);
    struct reading r;
    uint32_t size[3] = {0, 0, 0};
    int found[3], early = -1;
    char path[64];
    int fd = input_file((add_block(in, 111), add_block(in, 222), add_eof(in), in));
    reading_open(&r, in, unit_fd_path(path, fd), 1, PIECE);
    #pragma omp parallel num_threads(1)
    if (omp_get_thread_num() == 0) {
        early = take_one(&r, 1);                 /* none is handed out: it must not wait */
        found[0] = bgzf_source_peek(r.source, &size[0]);
        found[1] = bgzf_source_peek(r.source, &size[1]);
        bgzf_source_hand_out(r.source, r.out, NULL);
        r.placed = size[0];
        found[2] = bgzf_source_peek(r.source, &size[2]);
        r.result = read_blocks(&r);
    }
    assert_int_equal(early, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(found[i], 1);
        assert_int_equal(size[i], i < 2 ? 111 : 222);
    }
    check_whole(&r);
    reading_close(&r);
    close(fd);
    input_free(in);
}

static void test_header_blocks_inflated_at_once_are_not_handed_out(void **state)
{
    (void)state;
    struct input *in = input_new(1, 12);
    struct reading r;
    uint32_t size;
    char path[64];
    int fd = input_file((add_random_blocks(in, 300), add_eof(in), in));
    reading_open(&r, in, unit_fd_path(path, fd), 2, PIECE);
    for (; r.n < 200; r.n++) {
        assert_int_equal(bgzf_source_peek(r.source, &size), 1);
        assert_int_equal(size, in->size[r.n]);
        assert_int_equal(bgzf_source_inflate(r.source, r.out + r.placed), 0);
        r.placed += size;
    }
    assert_memory_equal(r.out, in->data.data, r.placed);
    #pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
    r.result = read_blocks(&r);
    assert_int_equal(r.result, 0);
    assert_int_equal(r.n, in->n);
    assert_int_equal(r.wrong, 0);
    assert_int_equal(atomic_load(&r.inflated), 100);
    reading_close(&r);
    close(fd);
    input_free(in);
}

/* ---- tests: failures ---- */

static void test_damaged_block_is_reported_with_its_offset(void **state)
{
    (void)state;
    struct input *in = input_new(1, 14);
    struct reading r;
    add_random_blocks(in, 1000);
    add_eof(in);
    static const size_t at[] = {0, 1, 499, 999};
    for (size_t i = 0; i < N_OF(at); i++)
        for (size_t j = 0; j < N_OF(team_sizes); j++) {
            uint64_t end = at[i] + 1 < in->n ? in->offset[at[i] + 1] : in->file.n - BGZF_EOF_SIZE;
            in->file.data[end - 8] ^= 1;         /* CRC */
            read_input(&r, in, team_sizes[j], PIECE);
            in->file.data[end - 8] ^= 1;
            check_failed(&r, "CRC", in->offset[at[i]]);
            assert_int_equal(r.n, at[i]);
        }
    input_free(in);
}

static void test_file_cut_inside_a_block_is_reported_with_its_offset(void **state)
{
    (void)state;
    struct input *in = input_new(1, 17);
    struct reading r;
    add_random_blocks(in, 200);
    uint64_t last = in->offset[in->n - 1], size = in->file.n - last;
    static const size_t keep[] = {1, 2, 3, 11, 17, 18, 27};
    for (size_t i = 0; i < N_OF(keep); i++) {
        in->file.n = last + (keep[i] < size ? keep[i] : size - 1);
        read_input(&r, in, 2, PIECE);
        check_failed(&r, "truncated", last);
    }
    in->file.n = last + size - 1;
    read_input(&r, in, 2, PIECE);
    check_failed(&r, "truncated", last);
    input_free(in);
}

static void test_garbage_between_blocks_is_reported_with_its_offset(void **state)
{
    (void)state;
    struct input *in = input_new(1, 18);
    struct reading r;
    add_random_blocks(in, 200);
    uint64_t at = in->file.n;
    unit_append(&in->file, "garbage", 7);
    read_input(&r, in, 2, PIECE);
    check_failed(&r, "no BGZF block", at);
    in->file.n = at;
    unit_append(&in->file, "\x1f\x8b\x08\0\0\0\0\0\0\3abcdefgh", 18);
    read_input(&r, in, 2, PIECE);
    check_failed(&r, "damaged", at);             /* as the plain gzip that it looks like */
    in->file.n = at;                             /* larger than the bytes kept from piece to piece */
    unit_append(&in->file, "\x1f\x8b\x08\4\0\0\0\0\0\3\xff\xff", 12);
    memset(unit_more(&in->file, 2 * BGZF_MAX_BLOCK), 0, 2 * BGZF_MAX_BLOCK);
    read_input(&r, in, 2, 70000);
    check_failed(&r, "contradict", at);
    input_free(in);
}

static void test_file_that_becomes_shorter_or_longer_meanwhile(void **state)
{
    (void)state;
    struct input *in = input_new(1, 32);
    char path[64];
    add_random_blocks(in, 1000);
    for (int longer = 0; longer <= 1; longer++) {
        struct reading r;
        uint64_t last = in->offset[in->n - 1], cut = last + 5;
        int fd = unit_temp_file();
        unit_write(fd, in->file.data, longer ? cut : in->file.n);
        reading_open(&r, in, unit_fd_path(path, fd), 3, PIECE);
        if (longer)
            unit_write(fd, in->file.data + cut, in->file.n - cut);
        else
            MUST(ftruncate(fd, (off_t)cut) == 0);
        #pragma omp parallel num_threads(3)
        if (omp_get_thread_num() == 0)
        r.result = read_blocks(&r);
        if (longer)
            check_whole(&r);
        else
            check_failed(&r, "shorter", cut);
        reading_close(&r);
        close(fd);
    }
    input_free(in);
}

static void test_latch_tripped_elsewhere_ends_the_reading(void **state)
{
    (void)state;
    struct input *in = input_new(1, 19);
    add_random_blocks(in, 1000);
    char path[64];
    int fd = input_file(in);
    for (size_t i = 0; i < N_OF(team_sizes); i++) {
        struct reading r;
        reading_open(&r, in, unit_fd_path(path, fd), team_sizes[i], PIECE);
        r.trip_at = 300;
        #pragma omp parallel num_threads(team_sizes[i])
        if (omp_get_thread_num() == 0)
        r.result = read_blocks(&r);
        assert_int_equal(r.result, -1);
        assert_string_equal(r.latch.message, "tripped in a task");
        assert_int_equal(r.wrong, 0);
        assert_true(r.n < in->n);
        reading_close(&r);
    }
    close(fd);
    input_free(in);
}

static void test_closing_nothing_is_allowed(void **state)
{
    (void)state;
    bgzf_source_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_come_back_in_file_order_at_any_team_size),
        cmocka_unit_test(test_no_block_is_lost_at_the_edges_of_pieces),
        cmocka_unit_test(test_blocks_over_many_pieces_smaller_than_they_are),
        cmocka_unit_test(test_file_that_ends_with_a_piece),
        cmocka_unit_test(test_many_more_threads_than_cores),
        cmocka_unit_test(test_ring_of_any_size_loses_no_block),
        cmocka_unit_test(test_sources_share_the_codecs_of_the_caller),
        cmocka_unit_test(test_memory_that_is_counted_grows_with_all_that_takes_it),
        cmocka_unit_test(test_empty_blocks_in_the_middle_are_passed_over),
        cmocka_unit_test(test_missing_eof_block_is_noticed),
        cmocka_unit_test(test_file_without_data),
        cmocka_unit_test(test_pipe_that_gives_a_little_at_a_time),
        cmocka_unit_test(test_pipe_with_blocks_over_many_pieces),
        cmocka_unit_test(test_writer_of_a_pipe_waits_though_there_is_room),
        cmocka_unit_test(test_writer_that_pauses_keeps_back_what_it_has_written),
        cmocka_unit_test(test_silent_pipe_keeps_the_program_from_ending),
        cmocka_unit_test(test_pipe_needs_a_thread),
        cmocka_unit_test(test_redirected_file_is_read_from_its_beginning),
        cmocka_unit_test(test_bytes_that_are_put_back_come_again),
        cmocka_unit_test(test_bytes_are_put_back_in_plain_gzip),
        cmocka_unit_test(test_full_ring_takes_one_block_for_each_taken_back),
        cmocka_unit_test(test_peek_repeats_itself_until_the_block_is_handed_out),
        cmocka_unit_test(test_header_blocks_inflated_at_once_are_not_handed_out),
        cmocka_unit_test(test_damaged_block_is_reported_with_its_offset),
        cmocka_unit_test(test_file_cut_inside_a_block_is_reported_with_its_offset),
        cmocka_unit_test(test_garbage_between_blocks_is_reported_with_its_offset),
        cmocka_unit_test(test_file_that_becomes_shorter_or_longer_meanwhile),
        cmocka_unit_test(test_latch_tripped_elsewhere_ends_the_reading),
        cmocka_unit_test(test_closing_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
