/* SPDX-License-Identifier: MIT */
/* The number of threads of a command: from -@ and the environment. */
#ifndef THREAD_COUNT_H
#define THREAD_COUNT_H

/* The environment variable. */
#define THREAD_COUNT_SETTING "SAMTOOLS_OMP_THREADS"
/* The message about a bad value; %s is the value. */
#define THREAD_COUNT_WRONG THREAD_COUNT_SETTING "=%s: it can be a number of threads in all (8), auto for all CPUs of " \
                           "the job, or +1 for one more than -@ gives"

enum thread_count_result {
    THREAD_COUNT_WRONG_TEXT = -1,    /* not a number */
    THREAD_COUNT_TAKEN,
    THREAD_COUNT_TOO_MANY,       /* replaced by the largest possible number: RUNTIME_ENV_THREADS_MAX in total */
};

/* Parses the value of -@: a number of threads, or "auto", which is the number of CPUs that this process may use (by its
 * affinity mask and its control group). more: 1 if the value does not count the first thread, as in most commands of
 * samtools; otherwise 0. The first thread is added to the number only if there is a CPU for it. *n_threads: in total,
 * at least 1. */
enum thread_count_result thread_count_parse(const char *text, int more, int *n_threads);

/* Applies SAMTOOLS_OMP_THREADS to the number: "8" and "auto" replace it, "+1" is added to it. Returns the value of the
 * variable if it is none of these; NULL: done, or the variable is not set. */
const char *thread_count_settle(int *n_threads);

#endif
