/* SPDX-License-Identifier: MIT */
/* The blocks of all ranks in rank 0's file: the place of each rank's blocks, and the file that a rank may write to. */
#include "unit.h"
#include <fcntl.h>
#include "base/latch.h"
#include "base/task_ring.h"
#include "mpi/output_gather.h"
#include "mpi/shared_file.h"
#include "no_mpi/mpi.h"

struct team {
    int n_threads;
    void (*work)(void *arg);
    void *arg;
};

void __real_task_team(int n_threads, void (*work)(void *), void *arg);
void __wrap_task_team(int n_threads, void (*work)(void *), void *arg);

static void run_team(void *team)
{
    const struct team *t = team;
    __real_task_team(t->n_threads, t->work, t->arg);
}

/* The linker calls this in place of task_team(). As in a program, only the main thread has parallel regions, one after
 * another: LLVM's OpenMP may use the memory of a thread that had one and has ended. */
void __wrap_task_team(int n_threads, void (*work)(void *), void *arg)
{
    struct team team = {n_threads, work, arg};
    unit_on_main_thread(run_team, &team);
}

enum { RANKS = 4, BYTES_MOST = 9 << 20, EOF_BLOCK = 28, CHUNK = 512 << 10 };   /* the last: bytes copied at once */

struct world {
    char name[PATH_MAX];         /* name of rank 0's file; "": not known */
    int fd[RANKS];
    size_t size[RANKS];          /* without the EOF block */
};

static int temp_file(char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "/tmp/unit_output_gather-XXXXXX");
    int fd = mkstemp(path);
    MUST(fd >= 0);
    return fd;
}

static void be_rank(int rank, void *arg)
{
    struct world *w = arg;
    struct mpi_team team = {.rank = rank, .size = RANKS};
    struct latch latch = {0};
    uint64_t places[RANKS];
    struct output_part part = {w->fd[rank], "out", rank == 0 ? w->name : "", 1 + rank % 3};
    MUST(output_gather(&team, &part, places, &latch) == 0);
    for (int i = 0, at = 0; rank == 0 && i < RANKS; at += (int)w->size[i++])
        MUST(places[i] == (uint64_t)at);
}

static uint8_t byte_of(int rank, size_t i)
{
    return (uint8_t)(i * 7 + i / 251 + (size_t)rank * 31);
}

static void make_parts(struct world *w, char paths[RANKS][PATH_MAX])
{
    static const size_t sizes[RANKS] = {100, BYTES_MOST, 0, CHUNK + 1};
    uint8_t *bytes = must_alloc(BYTES_MOST + EOF_BLOCK);
    for (int r = 0; r < RANKS; r++) {
        w->size[r] = sizes[r];
        for (size_t i = 0; i < sizes[r] + EOF_BLOCK; i++)
            bytes[i] = i < sizes[r] ? byte_of(r, i) : (uint8_t)(200 + i - sizes[r]);
        w->fd[r] = temp_file(paths[r]);
        MUST(write(w->fd[r], bytes, sizes[r] + EOF_BLOCK) == (ssize_t)(sizes[r] + EOF_BLOCK));
    }
    free(bytes);
}

static void expect_whole(const struct world *w)
{
    size_t total = EOF_BLOCK, at = 0;
    for (int r = 0; r < RANKS; r++)
        total += w->size[r];
    uint8_t *bytes = must_alloc(total);
    assert_int_equal(lseek(w->fd[0], 0, SEEK_END), total);
    assert_int_equal(pread(w->fd[0], bytes, total, 0), total);
    for (int r = 0; r < RANKS; r++)
        for (size_t i = 0; i < w->size[r]; i++)
            MUST(bytes[at++] == byte_of(r, i));
    for (size_t i = 0; i < EOF_BLOCK; i++)
        MUST(bytes[at++] == 200 + i);
    free(bytes);
}

static void gather_on(const int hosts[RANKS], bool named)
{
    struct world w = {.name = ""};
    char paths[RANKS][PATH_MAX];
    memcpy(unit_world.host, hosts, RANKS * sizeof *hosts);
    make_parts(&w, paths);
    if (named)
        strcpy(w.name, paths[0]);
    unit_ranks(RANKS, be_rank, &w);
    expect_whole(&w);
    for (int r = 0; r < RANKS; r++) {
        close(w.fd[r]);
        unlink(paths[r]);
    }
}

static void test_blocks_lie_elsewhere(void **state)
{
    (void)state;
    static const int hosts[][RANKS] = {{0, 0, 0, 0}, {0, 1, 2, 3}, {0, 0, 1, 1}, {1, 0, 0, 1}};
    for (size_t i = 0; i < N_OF(hosts); i++)
        for (int named = 0; named < 2; named++)
            gather_on(hosts[i], named);
}

/* Numbers of processes, and names, may belong to other files on another host or in another container. */
static void test_other_file_is_written_to(void **state)
{
    (void)state;
    char path[PATH_MAX], other[PATH_MAX];
    int fd = temp_file(path), fd_other = temp_file(other);
    struct shared_file told = shared_file_describe(fd, path), wrong = told;
    int opened = shared_file_open(&told, true);
    assert_true(opened >= 0);
    close(opened);
    wrong.fd = fd_other;
    assert_int_equal(shared_file_open(&wrong, true), -1);
    strcpy(wrong.name, other);
    assert_int_equal(shared_file_open(&wrong, false), -1);
    wrong.name[0] = '\0';
    assert_int_equal(shared_file_open(&wrong, false), -1);
    told.device++;
    assert_int_equal(shared_file_open(&told, true), -1);
    opened = shared_file_open(&told, false);        /* another host numbers devices differently */
    assert_true(opened >= 0);
    close(opened);
    close(fd);
    close(fd_other);
    unlink(path);
    unlink(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_lie_elsewhere),
        cmocka_unit_test(test_other_file_is_written_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
