/* SPDX-License-Identifier: MIT */
/* How many threads a command has: what -@ asks for, and what the environment makes of it. */
#ifndef THREAD_COUNT_H
#define THREAD_COUNT_H

/* The variable of the environment. */
#define THREAD_COUNT_SETTING "SAMTOOLS_OMP_THREADS"
/* The message about a bad value; %s is the value. */
#define THREAD_COUNT_WRONG THREAD_COUNT_SETTING "=%s: it can be a number of threads in all (8), auto for all CPUs of " \
                           "the job, or +1 for one more than -@ says"

enum thread_count_result {
    THREAD_COUNT_WRONG_TEXT = -1,    /* it is no number */
    THREAD_COUNT_TAKEN,
    THREAD_COUNT_TOO_MANY,       /* taken as the most that there can be: RUNTIME_ENV_THREADS_MAX in all */
};

/* The value of -@: a number of threads, or "auto", which is as many as this process may use CPUs (of its affinity mask
 * and its control group). more: how many threads there are beside those that the number counts; samtools' merge,
 * fixmate, markdup and collate count those beside the first. *n_threads: in all, at least 1. */
enum thread_count_result thread_count_parse(const char *text, int more, int *n_threads);

/* What SAMTOOLS_OMP_THREADS makes of the number: "8" and "auto" stand in its place, "+1" is added to it. Returns the
 * value of the variable if that is none of these; NULL: done, or there is no such variable. */
const char *thread_count_settle(int *n_threads);

#endif
