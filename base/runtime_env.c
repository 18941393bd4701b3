/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/ascii.h"
#include "base/runtime_env.h"

extern char **environ;          /* some unistd.h lack it */

#define CPUS "GOMP_CPU_AFFINITY"
#define THREADS "OMP_NUM_THREADS"
/* Carries the warning over to the new start. */
#define WARNING "SAMTOOLS_OMP_WARNING"

/* ------------------------------------------------------------ lists of CPUs */

struct cpu_range {
    unsigned long from, to, step;
};

static bool take_number(const char **at, unsigned long *n)
{
    char *end;
    if (!ascii_is_digit(**at))
        return false;
    *n = strtoul(*at, &end, 10);
    *at = end;
    return true;
}

/* Takes "3", "1-5" or "0-14:2" and the separator after it. False: it is none of these. */
static bool take_range(const char **at, struct cpu_range *r)
{
    *r = (struct cpu_range){.step = 1};
    *at += strspn(*at, " \t\n");
    if (!take_number(at, &r->from))
        return false;
    r->to = r->from;
    if (**at == '-' && (++*at, !take_number(at, &r->to) || r->to < r->from))
        return false;
    if (**at == ':' && (++*at, !take_number(at, &r->step) || r->step == 0))
        return false;
    size_t blanks = strspn(*at, " \t\n");
    *at += blanks;
    if (**at == ',')
        return *++*at != 0;
    return **at == 0 || blanks > 0;
}

/* Writes the CPUs of the range that are allowed. Returns whether all are. */
static bool put_allowed(const struct cpu_range *r, const struct affinity *allowed, FILE *to)
{
    bool all = true;
    for (unsigned long cpu = r->from; cpu <= r->to; cpu += r->step) {
        if (cpu >= AFFINITY_CPUS)
            return false;
        if (!affinity_has(allowed, (int)cpu))
            all = false;
        else
            fprintf(to, "%s%lu", ftell(to) > 0 ? " " : "", cpu);
    }
    return all;
}

char *runtime_env_usable_cpus(const char *list, const struct affinity *allowed)
{
    char *usable = NULL;
    size_t size = 0;
    FILE *to = allowed->known ? open_memstream(&usable, &size) : NULL;
    bool good = to && *list, all = good;
    for (struct cpu_range r; good && *list;) {
        good = take_range(&list, &r);
        all = good && put_allowed(&r, allowed, to) && all;
    }
    bool done = to && fclose(to) == 0;
    if (done && !good)
        *usable = 0;                             /* drops the CPUs before the fault */
    if (done && !all)
        return usable;
    free(usable);
    return NULL;
}

bool runtime_env_counts_threads(const char *text)
{
    for (bool more = true; more; more = *text++ == ',') {
        unsigned long n = 0;
        text += strspn(text, " \t");
        if (!take_number(&text, &n) || n == 0)
            return false;
        text += strspn(text, " \t");
    }
    return text[-1] == 0;
}

/* ---------------------------------------------------------- the environment */

/* Returns the value of a variable; NULL: it is not set. */
static const char *value_of(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

static bool is_one_of(const char *variable, const char *const *names)
{
    size_t n = strcspn(variable, "=");
    for (; *names; names++)
        if (strlen(*names) == n && strncmp(variable, *names, n) == 0)
            return true;
    return false;
}

/* Adds NAME=VALUE at the end of an array with room for it. False: out of memory. */
static bool add(char **env, size_t *n, const char *name, const char *text)
{
    if (asprintf(&env[*n], "%s=%s", name, text) < 0)
        env[*n] = NULL;
    return env[*n] && (++*n, env[*n] = NULL, true);
}

static bool says_how_to_wait(char *const *env)
{
    return value_of(env, "OMP_WAIT_POLICY") || value_of(env, "GOMP_SPINCOUNT") || value_of(env, "KMP_BLOCKTIME");
}

/* Copies the variables of env that are not in `left_out`. Returns the number of those left out; -1: out of memory. */
static int copy_others(char **to, size_t *n, char *const *env, const char *const *left_out)
{
    int out = 0;
    for (*to = NULL; *env; env++) {
        if (is_one_of(*env, left_out))
            out++;
        else if (!(to[*n] = strdup(*env)))
            return -1;
        else
            to[++*n] = NULL;
    }
    return out;
}

/* Makes the warning about unsuitable variables; NULL if there is none. usable: the CPUs that may be used; NULL: all.
 * The caller frees it. */
static char *warning_of(const char *cpus, const char *usable, const char *threads)
{
    char *text = NULL, *more = NULL;
    if (threads && asprintf(&more, THREADS "=%s is not a number of threads; ignored", threads) < 0)
        return NULL;
    const char *which = usable && *usable ? "CPUs that this job may not use. Continuing with CPU "
                                          : "no CPU that this job may use; ignored";
    if (usable && asprintf(&text, CPUS "=%s names %s%s%s%s", cpus, which, usable, more ? "; " : "",
                           more ? more : "") < 0)
        text = NULL;
    if (!usable)
        return more;
    free(more);
    return text;
}

char **runtime_env_suited(char **env, const struct affinity *allowed)
{
    enum { ADDED = 3 };
    const char *list = value_of(env, CPUS), *threads = value_of(env, THREADS);
    char *usable = list ? runtime_env_usable_cpus(list, allowed) : NULL;
    const char *bad_threads = threads && !runtime_env_counts_threads(threads) ? threads : NULL;
    char *warning = warning_of(list, usable, bad_threads);
    const char *left_out[6] = {"OMP_STACKSIZE", "GOMP_STACKSIZE", "KMP_STACKSIZE"};
    size_t n = 0, had = 0, names = 3;
    if (usable)
        left_out[names++] = CPUS;
    if (bad_threads)
        left_out[names++] = THREADS;
    while (env[had])
        had++;
    char **suited = malloc((had + ADDED + 1) * sizeof *suited);
    int out = suited ? copy_others(suited, &n, env, left_out) : -1;
    bool passive = !says_how_to_wait(env), good = out > 0 || (out == 0 && passive);
    good = good && (!passive || add(suited, &n, "OMP_WAIT_POLICY", "passive"))
                && (!usable || !*usable || add(suited, &n, CPUS, usable))
                && (!warning || add(suited, &n, WARNING, warning));
    free(usable);
    free(warning);
    if (good)
        return suited;
    runtime_env_free(suited);
    return NULL;
}

void runtime_env_free(char **env)
{
    for (char **each = env; each && *each; each++)
        free(*each);
    free(env);
}

const char *runtime_env_warning(void)
{
    return getenv(WARNING);
}

/* -------------------------------------------------------- the second start */

#ifdef __linux__
#include <fcntl.h>
#include <sys/syscall.h>

/* The path of the program's file, for ps and killall. -1: it is unknown (no /proc), or it is the loader of `ld.so
 * ./samtools`, which needs more arguments than we have. */
static int find_program(char path[PATH_MAX])
{
    long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    const char *base = strrchr(path, '/');
    return base && !strstr(base, ".so") ? 0 : -1;
}

void runtime_env_settle(char **argv, char **env)
{
    char program[PATH_MAX];
    struct affinity allowed = affinity_now();
    char **suited = runtime_env_suited(env, &allowed);
    if (suited && find_program(program) == 0)
        syscall(SYS_execve, program, argv, suited);
    runtime_env_free(suited);
}

void runtime_env_settle_late(char **argv)
{
    struct affinity bound;
    affinity_unbind(&bound);
    runtime_env_settle(argv, environ);
    affinity_narrow(&bound);
}
#else
void runtime_env_settle(char **argv, char **env) { (void)argv, (void)env; }
void runtime_env_settle_late(char **argv) { (void)argv; }
#endif

int runtime_env_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    int n = text ? atoi(text) : 1;               /* a list "4,2": its first number */
    return n < 1 ? 1 : n > RUNTIME_ENV_THREADS_MAX ? RUNTIME_ENV_THREADS_MAX : n;
}
