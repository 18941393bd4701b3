/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/ascii.h"
#include "base/machine.h"
#include "base/runtime_env.h"
#include "cli/thread_count.h"

static const long MOST = RUNTIME_ENV_THREADS_MAX;

/* Parses digits, perhaps after a sign. As in samtools, a number that does not fit into an int is not a number. */
static bool parse(const char *text, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    return end != text && !*end && !errno && *number >= INT_MIN && *number <= INT_MAX;
}

static int at_least_one(long n)
{
    return n < 1 ? 1 : (int)n;
}

/* Adds the first thread to n others, if there is a CPU for it. The first thread works like the others, so with more
 * threads than CPUs they would wait for each other: flagstat -@ 2 takes 7 to 10 % more time on two CPUs. */
static long with_more(long n, int more)
{
    return more && n > 0 && n >= machine_cpus() ? n : n + more;
}

enum thread_count_result thread_count_parse(const char *text, int more, int *n_threads)
{
    long n;
    if (strcmp(text, "auto") == 0)
        n = machine_cpus();
    else if (!parse(text, &n))
        return THREAD_COUNT_WRONG_TEXT;
    else
        n = n > MOST ? n : with_more(n < 0 ? 0 : n, more);
    *n_threads = at_least_one(n < MOST ? n : MOST);
    return n > MOST ? THREAD_COUNT_TOO_MANY : THREAD_COUNT_TAKEN;
}

const char *thread_count_settle(int *n_threads)
{
    const char *text = getenv(THREAD_COUNT_SETTING);
    if (!text || !*text)                         /* scripts clear a variable by setting it to an empty string */
        return NULL;
    bool added = *text == '+', is_number = ascii_is_digit(text[added]);
    int n;
    if ((!is_number && strcmp(text, "auto") != 0) || thread_count_parse(text + added, 0, &n) != THREAD_COUNT_TAKEN
        || (is_number && atoi(text + added) < 1))
        return text;
    long all = added ? (long)*n_threads + n : n;
    *n_threads = (int)(all < MOST ? all : MOST);
    return NULL;
}
