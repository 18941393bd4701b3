/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/wait_policy.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>

static bool is_given(char **env, const char *name)
{
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return true;
    return false;
}

/* env with one more variable. The caller frees the array; NULL: no memory. */
static char **with_variable(char **env, char *variable)
{
    size_t n = 0;
    while (env[n])
        n++;
    char **more = malloc((n + 2) * sizeof *more);
    if (more) {
        more[0] = variable;
        memcpy(more + 1, env, (n + 1) * sizeof *env);
    }
    return more;
}

/* The program's file, by its name, for ps and killall. -1: there is no telling (no /proc), or it is the loader of
 * `ld.so ./samtools`, which wants more words than we have. */
static int find_program(char path[PATH_MAX])
{
    long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    const char *base = strrchr(path, '/');
    return base && !strstr(base, ".so") ? 0 : -1;
}

/* By system calls: libraries that a user preloads stand in for readlink() and execv(), and are not ready for them before
 * their constructors have run. */
void wait_policy_settle(char **argv, char **env)
{
    static char passive[] = "OMP_WAIT_POLICY=passive";
    char program[PATH_MAX];
    if (is_given(env, "OMP_WAIT_POLICY") || is_given(env, "GOMP_SPINCOUNT") || is_given(env, "KMP_BLOCKTIME")
        || find_program(program) < 0)
        return;
    char **more = with_variable(env, passive);
    if (more)
        syscall(SYS_execve, program, argv, more);
    free(more);
}

#else

void wait_policy_settle(char **argv, char **env)
{
    (void)argv;
    (void)env;
}

#endif
