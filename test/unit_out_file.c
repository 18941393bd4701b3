/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "write/out_text.h"

enum { NOBODY = 65534 };

static char dir[32];                     /* a new one for each test, removed after it */
static struct latch latch;
static struct out_file out;

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/unit-XXXXXX");
    memset(&latch, 0, sizeof latch);
    umask(022);
    return mkdtemp(dir) ? chdir("/tmp") : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    umask(022);
    return system(command);
}

/* ---- helpers ---- */

/* Paths in the directory; four of them are valid at a time. */
static const char *in_dir(const char *name)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % N_OF(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void make_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0);
    unit_write(fd, text, strlen(text));
    fchmod(fd, mode);
    close(fd);
}

static void check_text(const char *path, const char *want)
{
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    struct unit_bytes got = unit_read_file(fd);
    assert_int_equal(got.n, strlen(want));
    assert_memory_equal(got.data, want, got.n);
    unit_free(&got);
    close(fd);
}

static void check_mode(const char *path, mode_t want)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, want);
}

static int is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static int n_files(const char *path)
{
    DIR *d = opendir(path);
    MUST(d);
    int n = -2;                                  /* . and .. */
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int n_open(void)
{
    return n_files("/proc/self/fd");
}

static int put_in_place(struct out_file *out, struct latch *latch)
{
    if (out_file_finish(out, latch) < 0 || out_file_commit(out, latch) < 0)
        return -1;
    out_file_abandon(out);
    return 0;
}

static void write_and_commit(const char *path, const char *text)
{
    assert_int_equal(out_file_open(&out, path, &latch), 0);
    unit_write(out.fd, text, strlen(text));
    assert_int_equal(put_in_place(&out, &latch), 0);
    assert_string_equal(latch.message, "");
    assert_int_equal(out.fd, -1);
}

/* ---- a file that is not there yet ---- */

static void test_new_file_is_invisible_until_it_is_whole(void **state)
{
    (void)state;
    const char *path = in_dir("new.bam");
    int before = n_open();
    assert_int_equal(out_file_open(&out, path, &latch), 0);
    unit_write(out.fd, "part", 4);
    assert_int_equal(access(path, F_OK), -1);
    unit_write(out.fd, "whole", 5);
    assert_int_equal(put_in_place(&out, &latch), 0);
    check_text(path, "partwhole");
    assert_int_equal(n_files(dir), 1);
    assert_int_equal(n_open(), before);
}

static void test_abandoned_new_file_leaves_nothing(void **state)
{
    (void)state;
    int before = n_open();
    assert_int_equal(out_file_open(&out, in_dir("new.bam"), &latch), 0);
    unit_write(out.fd, "half", 4);
    out_file_abandon(&out);
    assert_int_equal(n_files(dir), 0);
    assert_int_equal(n_open(), before);
    out_file_abandon(&out);                      /* once more does no harm */
    assert_int_equal(n_open(), before);
}

static void test_name_without_directory(void **state)
{
    (void)state;
    assert_int_equal(chdir(dir), 0);
    write_and_commit("bare.bam", "x");
    write_and_commit("bare.bam", "xy");
    check_text(in_dir("bare.bam"), "xy");
    assert_int_equal(n_files(dir), 1);
}

/* ---- a file that is there ---- */

static void test_old_file_stays_until_the_new_one_is_whole(void **state)
{
    (void)state;
    const char *path = in_dir("old.bam");
    make_file(path, "old", 0644);
    int reader = open(path, O_RDONLY);           /* as -o in.bam in.bam has it */
    assert_int_equal(out_file_open(&out, path, &latch), 0);
    unit_write(out.fd, "new", 3);
    check_text(path, "old");
    assert_int_equal(put_in_place(&out, &latch), 0);
    check_text(path, "new");
    struct unit_bytes still = unit_read_file(reader);
    assert_int_equal(still.n, 3);
    assert_memory_equal(still.data, "old", 3);
    unit_free(&still);
    close(reader);
    assert_int_equal(n_files(dir), 1);
}

/* ---- symbolic links ---- */

static void test_link_to_nothing_makes_the_file_it_names(void **state)
{
    (void)state;
    mkdir(in_dir("data"), 0755);
    assert_int_equal(symlink("data/new.bam", in_dir("dangling.bam")), 0);
    write_and_commit(in_dir("dangling.bam"), "new");
    assert_true(is_link(in_dir("dangling.bam")));
    check_text(in_dir("data/new.bam"), "new");
    check_mode(in_dir("data/new.bam"), 0644);
    assert_int_equal(n_files(dir), 2);
}

/* ---- paths that cannot be written: reported before anything is read ---- */

static void test_empty_name_is_refused(void **state)
{
    (void)state;
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(out_file_open(&out, "", &latch), -1);
    assert_true(latch_tripped(&latch));
    out_file_abandon(&out);
}

static void test_target_that_became_a_directory_is_told_at_the_end(void **state)
{
    (void)state;
    int before = n_open();
    assert_int_equal(out_file_open(&out, in_dir("x.bam"), &latch), 0);
    unit_write(out.fd, "x", 1);
    mkdir(in_dir("x.bam"), 0755);
    assert_int_equal(put_in_place(&out, &latch), -1);
    assert_non_null(strstr(latch.message, "x.bam"));
    out_file_abandon(&out);
    assert_int_equal(n_files(dir), 1);
    assert_int_equal(n_open(), before);
}

static void test_directory_that_went_away_is_told_at_the_end(void **state)
{
    (void)state;
    mkdir(in_dir("gone"), 0755);
    assert_int_equal(out_file_open(&out, in_dir("gone/x.bam"), &latch), 0);
    unit_write(out.fd, "x", 1);
    assert_int_equal(rename(in_dir("gone"), in_dir("moved")), 0);
    assert_int_equal(put_in_place(&out, &latch), -1);
    assert_true(latch_tripped(&latch));
    out_file_abandon(&out);
}

/* ---- not a regular file: written directly ---- */

/* Makes the file standard output. Returns the old one. */
static int begin_standard_output(int file)
{
    fflush(stdout);
    int old = dup(STDOUT_FILENO);
    dup2(file, STDOUT_FILENO);
    return old;
}

static void end_standard_output(int old)
{
    dup2(old, STDOUT_FILENO);
    close(old);
}

static void test_what_is_taken_back_from_standard_output_stays_or_takes_more_along(void **state)
{
    (void)state;
    int file = unit_temp_file();
    unit_write(file, "old", 3);
    int old = begin_standard_output(file);
    bool at_end = out_file_can_take_back("-");
    int opened = out_file_open(&out, "-", &latch);
    unit_write(out.fd, "bytes", 5);
    int taken = out_file_take_back(&out);
    unit_write(out.fd, "new", 3);
    out_file_abandon(&out);
    lseek(file, 0, SEEK_SET);
    bool in_front = out_file_can_take_back("-");
    end_standard_output(old);
    assert_true(at_end && !in_front);
    assert_int_equal(opened, 0);
    assert_int_equal(taken, 0);
    struct unit_bytes got = unit_read_file(file);
    assert_int_equal(got.n, 6);
    assert_memory_equal(got.data, "oldnew", 6);
    unit_free(&got);
    close(file);
}

/* ---- names that go before the file does ---- */

static void test_file_that_is_never_committed_keeps_a_name(void **state)
{
    (void)state;
    assert_int_equal(out_file_open(&out, in_dir("out"), &latch), 0);
    out_file_drop_name(&out);                    /* it has none yet */
    assert_int_equal(out_file_finish(&out, &latch), 0);
    assert_int_equal(n_files(dir), 1);
    out_file_drop_name(&out);
    assert_int_equal(n_files(dir), 0);
    out_file_abandon(&out);
}

/* Does the work in a process of its own, and returns the status with which it exits. */
static int exit_status(int (*work)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(work());
    MUST(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* 0: all is correct; otherwise the number of the failed step. */
static int drop_all(void)
{
    if (out_file_open(&out, in_dir("out"), &latch) < 0 || out_file_finish(&out, &latch) < 0 || n_files(dir) != 1) return 1;
    out_file_drop_all_names();
    if (n_files(dir) != 0) return 2;
    if (out_file_commit(&out, &latch) == 0 || n_files(dir) != 0) return 3;
    out_file_abandon(&out);
    memset(&latch, 0, sizeof latch);
    if (out_file_open(&out, in_dir("late"), &latch) < 0 || out_file_finish(&out, &latch) < 0) return 4;
    if (n_files(dir) != 0) return 5;
    return 0;
}

static void test_name_given_after_all_were_dropped_stays(void **state)
{
    (void)state;
    assert_int_equal(exit_status(drop_all), 0);
}

/* ---- without /proc there are no unnamed files: a temporary name beside the target ---- */

/* 0: all is correct; otherwise the number of the failed step. */
static int work_without_proc(void)
{
    struct stat st;
    if ((geteuid() != 0 && unshare(CLONE_NEWUSER) < 0) || chroot(dir) < 0 || chdir("/") < 0)
        return 77;
    umask(027);
    if (out_file_open(&out, "/new.bam", &latch) < 0) return 1;
    if (!out.temp[0] || access(out.temp, F_OK) < 0 || n_files("/") != 1) return 2;
    out_file_abandon(&out);
    if (n_files("/") != 0) return 3;
    if (out_file_open(&out, "/new.bam", &latch) < 0) return 4;
    unit_write(out.fd, "new", 3);
    if (access("/new.bam", F_OK) == 0) return 5;
    if (put_in_place(&out, &latch) < 0 || n_files("/") != 1) return 6;
    if (stat("/new.bam", &st) < 0 || st.st_size != 3 || (st.st_mode & 07777) != 0640) return 7;
    if (out_file_open(&out, "/no/new.bam", &latch) == 0) return 8;
    if (n_files("/") != 1) return 9;
    raise(SIGTERM);                              /* while there was a name it must not end us */
    return !latch_tripped(&(struct latch) {0});
}

static void test_temporary_name_where_there_are_no_unnamed_files(void **state)
{
    (void)state;
    int status = exit_status(work_without_proc);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

#ifdef __SANITIZE_ADDRESS__
enum { HAS_LIMIT = 0 };                  /* it has reserved far more memory than that */
#else
enum { HAS_LIMIT = 1 };
#endif

/* Memory ends while it prints, and is there again afterwards. */
static int print_in_vain(void *arg, FILE *to)
{
    struct rlimit old, low = {.rlim_cur = 1};
    (void)arg;
    MUST(getrlimit(RLIMIT_AS, &old) == 0);
    low.rlim_max = old.rlim_max;
    MUST(setrlimit(RLIMIT_AS, &low) == 0);
    for (int i = 0; i < 1 << 20; i++)
        fputs("row\n", to);
    return setrlimit(RLIMIT_AS, &old);
}

static void test_text_that_was_not_printed_whole_is_refused(void **state)
{
    (void)state;
    if (!HAS_LIMIT)
        skip();
    const char *path = in_dir("text");
    assert_int_equal(out_file_open(&out, path, &latch), 0);
    assert_int_equal(out_text_print(&out, print_in_vain, NULL, &latch), -1);
    assert_non_null(strstr(latch.message, "out of memory for its text"));
    out_file_abandon(&out);
    assert_int_equal(access(path, F_OK), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_that_is_never_committed_keeps_a_name),
        TEST(test_name_given_after_all_were_dropped_stays),
        TEST(test_new_file_is_invisible_until_it_is_whole),
        TEST(test_abandoned_new_file_leaves_nothing),
        TEST(test_name_without_directory),
        TEST(test_old_file_stays_until_the_new_one_is_whole),
        TEST(test_link_to_nothing_makes_the_file_it_names),
        TEST(test_empty_name_is_refused),
        TEST(test_target_that_became_a_directory_is_told_at_the_end),
        TEST(test_directory_that_went_away_is_told_at_the_end),
        TEST(test_what_is_taken_back_from_standard_output_stays_or_takes_more_along),
        TEST(test_temporary_name_where_there_are_no_unnamed_files),
        TEST(test_text_that_was_not_printed_whole_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
