/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include "base/latch.h"

/* PIPE is caught, too, but never blocked. */
static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF};

/* ---- failures ---- */

static void test_nothing_is_tripped_at_first(void **state)
{
    (void)state;
    struct latch latch = {0};
    assert_false(latch_tripped(&latch));
    latch_reraise();                             /* without a signal: it returns */
}

static void test_first_failure_is_not_overwritten(void **state)
{
    (void)state;
    struct latch latch = {0};
    assert_int_equal(latch_fail(&latch, "%s: record %d", "in.bam", 7), -1);
    assert_true(latch_tripped(&latch));
    assert_int_equal(latch_fail(&latch, "%s", "a later one"), -1);
    assert_string_equal(latch.message, "in.bam: record 7");
}

static void test_message_too_long_is_cut_and_ended(void **state)
{
    (void)state;
    struct latch latch = {0};
    char longer[2 * sizeof latch.message];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    latch_fail(&latch, "%s", longer);
    assert_int_equal(strlen(latch.message), sizeof latch.message - 1);
    assert_memory_equal(latch.message, longer, sizeof latch.message - 1);
}

/* All threads fail at once: the message is that of one thread, and complete. */
static void test_messages_of_threads_do_not_mix(void **state)
{
    (void)state;
    enum { N_THREADS = 16, LENGTH = 900 };
    for (int round = 0; round < 50; round++) {
        struct latch latch = {0};
        int wrong = 0;
        #pragma omp parallel for num_threads(N_THREADS) schedule(static) reduction(+:wrong)
        for (int i = 0; i < N_THREADS; i++) {
            char text[LENGTH + 1];
            memset(text, 'a' + i, LENGTH);
            text[LENGTH] = 0;
            wrong += latch_fail(&latch, "%s", text) != -1 || !latch_tripped(&latch);
        }
        assert_int_equal(wrong, 0);
        assert_int_equal(strlen(latch.message), LENGTH);
        for (int i = 1; i < LENGTH; i++)
            assert_int_equal(latch.message[i], latch.message[0]);
    }
}

/* A thread that sees the tripped latch reads the message, and so does the thread that fails second. */
static void test_message_is_read_before_it_is_written(void **state)
{
    (void)state;
    enum { ROUNDS = 3000, LENGTH = 900 };
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct latch latch = {0};
        #pragma omp parallel for num_threads(3) schedule(static) reduction(+:wrong)
        for (int i = 0; i < 3; i++) {
            if (i == 0)
                while (!latch_tripped(&latch))
                    sched_yield();
            else
                latch_fail(&latch, "%*d", LENGTH, i);
            wrong += strlen(latch.message) != LENGTH || !latch_failed(&latch);
        }
    }
    assert_int_equal(wrong, 0);
}

/* ---- signals: each in a separate process, which returns a status ---- */

static int status_of(int (*child)(int), int argument)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(argument));
    MUST(waitpid(pid, &status, 0) == pid);
    return status;
}

static void check_exit(int (*child)(int), int argument)
{
    int status = status_of(child, argument);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void check_killed(int (*child)(int), int sig)
{
    int status = status_of(child, sig);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), sig);
}

static int note_signal(int sig)
{
    struct latch latch = {0};
    latch_catch_signals();
    raise(sig);
    return !latch_tripped(&latch);
}

static void test_signal_trips_every_latch(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(signals); i++)
        check_exit(note_signal, signals[i]);
}

static int note_and_reraise(int sig)
{
    if (note_signal(sig))
        return 1;
    latch_reraise();
    return 2;
}

static void test_process_ends_by_the_signal_it_caught(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(signals); i++)
        check_killed(note_and_reraise, signals[i]);
}

/* latch_stop() has the effect of a signal, but is not taken for one. If a signal was caught before, that signal
 * counts. */
static int stop(int sig)
{
    struct latch latch = {0};
    if (latch_signalled() || latch_stopped() || latch_failed(&latch)) return 1;
    if (sig) {
        latch_catch_signals();
        raise(sig);
    }
    latch_stop();
    if (!latch_tripped(&latch) || latch_failed(&latch) || !latch_signalled()) return 2;
    if (latch_signal() != sig || latch_stopped() != (sig == 0)) return 3;
    if (!sig)
        latch_reraise();                         /* returns */
    return 0;
}

static void test_stop_is_taken_for_a_signal(void **state)
{
    (void)state;
    check_exit(stop, 0);
    check_exit(stop, SIGTERM);
}

static int ignore_and_raise(int sig)
{
    struct latch latch = {0};
    signal(sig, SIG_IGN);
    latch_catch_signals();
    raise(sig);
    return latch_tripped(&latch);
}

static void test_signal_ignored_by_nohup_stays_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(signals); i++)
        check_exit(ignore_and_raise, signals[i]);
}

static bool hidden(int sig)
{
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, sig) == 1;
}

static void handled_by_another(int sig)
{
    (void)sig;
}

/* The handler is like a profiler's, which must continue in all threads. */
static int handle_and_raise(int sig)
{
    struct latch latch = {0};
    signal(sig, handled_by_another);
    latch_catch_signals();
    latch_hide_signals(true);
    bool hides = hidden(sig);
    raise(sig);
    return hides || latch_tripped(&latch);
}

static void test_handler_of_another_is_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(signals); i++)
        check_exit(handle_and_raise, signals[i]);
}

/* The threads write, and PIPE arrives in them. */
static void *write_to_nobody(void *latch)
{
    int ends[2];
    MUST(pipe(ends) == 0);
    close(ends[0]);
    if (write(ends[1], "x", 1) < 0)
        latch_fail(latch, "broken pipe");
    return NULL;
}

static int broken_pipe(int sig)
{
    struct latch latch = {0};
    pthread_t thread;
    signal(sig, SIG_DFL);
    latch_catch_signals();
    latch_hide_signals(true);
    MUST(pthread_create(&thread, NULL, write_to_nobody, &latch) == 0);
    latch_hide_signals(false);
    pthread_join(thread, NULL);
    if (!latch_tripped(&latch))
        return 1;
    latch_reraise();
    return 2;
}

static void test_broken_pipe_of_a_thread_ends_the_process_uncaught_or_not_at_all(void **state)
{
    (void)state;
    check_killed(broken_pipe, SIGPIPE);
}

static int uncaught(int sig)
{
    raise(sig);
    return 1;
}

static void test_signals_are_not_caught_before_they_are_asked_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(signals); i++)
        check_killed(uncaught, signals[i]);
}

/* A read that waits for a byte which never comes, and a process that signals again and again,
 * and at last kills the reader. */
static int interrupted_read(int sig)
{
    int ends[2], status;
    char byte;
    latch_catch_signals();
    MUST(pipe(ends) == 0);
    pid_t reader = getpid(), pest = fork();
    if (pest == 0) {
        for (int i = 0; i < 2000 && kill(reader, sig) == 0; i++)
            usleep(1000);
        kill(reader, SIGKILL);
        _exit(0);
    }
    ssize_t n = read(ends[0], &byte, 1);
    int error = errno;
    kill(pest, SIGKILL);
    while (waitpid(pest, &status, 0) < 0)
        ;
    return n != -1 || error != EINTR;
}

static void test_read_that_waits_is_interrupted(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(signals); i++)
        check_exit(interrupted_read, signals[i]);
}

/* ---- signals and threads ---- */

static void *hidden_in_thread(void *count)
{
    for (size_t i = 0; i < N_OF(signals); i++)
        *(size_t *)count += hidden(signals[i]);
    return NULL;
}

static void test_only_the_calling_thread_sees_signals(void **state)
{
    (void)state;
    pthread_t thread;
    size_t in_thread = 0, in_master = 0;
    latch_hide_signals(true);
    MUST(pthread_create(&thread, NULL, hidden_in_thread, &in_thread) == 0);
    latch_hide_signals(false);
    hidden_in_thread(&in_master);
    pthread_join(thread, NULL);
    assert_int_equal(in_thread, N_OF(signals));
    assert_int_equal(in_master, 0);
}

static void test_hiding_leaves_other_signals_alone(void **state)
{
    (void)state;
    latch_hide_signals(true);
    bool others = hidden(SIGSEGV) || hidden(SIGPIPE) || hidden(SIGCHLD) || hidden(SIGTSTP);
    latch_hide_signals(false);
    assert_false(others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_tripped_at_first),
        cmocka_unit_test(test_first_failure_is_not_overwritten),
        cmocka_unit_test(test_message_too_long_is_cut_and_ended),
        cmocka_unit_test(test_messages_of_threads_do_not_mix),
        cmocka_unit_test(test_message_is_read_before_it_is_written),
        cmocka_unit_test(test_signal_trips_every_latch),
        cmocka_unit_test(test_stop_is_taken_for_a_signal),
        cmocka_unit_test(test_process_ends_by_the_signal_it_caught),
        cmocka_unit_test(test_signal_ignored_by_nohup_stays_ignored),
        cmocka_unit_test(test_handler_of_another_is_replaced),
        cmocka_unit_test(test_broken_pipe_of_a_thread_ends_the_process_uncaught_or_not_at_all),
        cmocka_unit_test(test_signals_are_not_caught_before_they_are_asked_for),
        cmocka_unit_test(test_read_that_waits_is_interrupted),
        cmocka_unit_test(test_only_the_calling_thread_sees_signals),
        cmocka_unit_test(test_hiding_leaves_other_signals_alone),
    };
    /* The parent process may have ignored or blocked them. */
    for (size_t i = 0; i < N_OF(signals); i++)
        signal(signals[i], SIG_DFL);
    latch_hide_signals(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
