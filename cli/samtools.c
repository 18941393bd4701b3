/* SPDX-License-Identifier: MIT */
/* Ours are `samtools sort`, `samtools report`, which samtools does not have, and bgzip, by that name or as a command;
 * every other command goes to the next samtools on PATH. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/affinity.h"
#include "cli/bgzip_main.h"
#include "cli/commands.h"
#include "cli/report_command.h"
#include "cli/sort_check.h"
#include "cli/sort_args.h"
#include "cli/sort_paths.h"
#include "cli/sort_plan.h"
#include "cli/upstream.h"

extern char **environ;          /* not all unistd.h have it */

static bool is_sort(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "sort") == 0;
}

/* Where the words of a bgzip command begin; -1: it is none. */
static int bgzip_at(int argc, char **argv)
{
    return argc > 0 && bgzip_main_is_name(argv[0]) ? 0 : argc > 1 && strcmp(argv[1], "bgzip") == 0 ? 1 : -1;
}

/* ---------------------------------------------------- idle threads sleep */

#ifdef __linux__
#include <sys/syscall.h>

/* env with one more variable, unless it says already how threads wait. The caller frees the array; NULL: it does, or
 * there is no memory. */
static char **with_policy(char **env, char *policy)
{
    static const char *const names[] = {"OMP_WAIT_POLICY=", "GOMP_SPINCOUNT=", "KMP_BLOCKTIME="};
    size_t n = 0;
    for (; env[n]; n++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strncmp(env[n], names[i], strlen(names[i])) == 0)
                return NULL;
    char **more = malloc((n + 2) * sizeof *more);
    if (more) {
        more[0] = policy;
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

/* Starts the program once more with OMP_WAIT_POLICY=passive, unless env says how threads wait (numbers in
 * doc/tried.md). libgomp reads its settings in its constructor, so setting the variable now is too late. Returns if
 * there is nothing to do, or if it cannot be done; then the runtime's own rule holds.
 *
 * glibc calls what stands in .preinit_array before the constructors of all libraries: then libgomp has neither shown
 * its settings (OMP_DISPLAY_ENV) nor bound the first thread. Libraries that a user preloads stand in for readlink() and
 * execv() and are not ready for them yet; hence the system calls. */
static void settle_early(int argc, char **argv, char **env)
{
    static char passive[] = "OMP_WAIT_POLICY=passive";
    char program[PATH_MAX];
    char **more = is_sort(argc, argv) || bgzip_at(argc, argv) >= 0 ? with_policy(env, passive) : NULL;
    if (more && find_program(program) == 0)
        syscall(SYS_execve, program, argv, more);
    free(more);
}
__attribute__((section(".preinit_array"), used)) static void (*const settle)(int, char **, char **) = settle_early;

/* musl does not call that. Then the first thread may be bound already, and would start the program bound. */
static void settle_late(int argc, char **argv)
{
    struct affinity bound;
    affinity_unbind(&bound);
    settle_early(argc, argv, environ);
    affinity_narrow(&bound);
}
#else
static void settle_late(int argc, char **argv) { (void)argc, (void)argv; }
#endif

/* ------------------------------------------------------------- commands */

/* If a standard stream is closed, the next file would get its number, and messages would go among the records. So
 * closed streams are opened, in a way in which they neither give nor take anything. */
static int hold_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return -1;
    return 0;
}

static int sort_main(int argc, char **argv)
{
    struct sort_opts opts;
    int status = EXIT_FAILURE;
    signal(SIGXFSZ, SIG_IGN);                    /* a limit on file sizes (ulimit -f) is an error like a full disk */
    enum sort_args_result parsed = sort_args_parse(&opts, argc, argv);
    if (parsed == SORT_ARGS_DONE)
        status = EXIT_SUCCESS;
    else if (parsed == SORT_ARGS_RUN && sort_paths_check(&opts) == 0)
        status = opts.check ? sort_check(&opts) : opts.plan ? sort_plan(&opts) : bam_sort(&opts);
    sort_args_free(&opts);
    return status;
}

/* Prints the help and the versions, on the streams and with the statuses of samtools: without a command, the list of
 * commands is an error. -1: it is another command. */
static int tell(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "", *about = argc > 2 ? argv[2] : "";
    bool help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0;
    if (help && strcmp(about, "sort") == 0)
        sort_args_usage(stdout);
    else if (strcmp(word, "--env") == 0)
        return upstream_print_env(argv[0]);
    else if (strcmp(word, "--version-only") == 0)
        commands_version_only(stdout);
    else if (strcmp(word, "--version") == 0 || strcmp(help ? about : word, "version") == 0)
        commands_version(stdout);
    else if (argc < 2 || (help && argc == 2))
        commands_print(help ? stdout : stderr);
    else
        return -1;
    return argc < 2 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int bgzip = bgzip_at(argc, argv);
    if (bgzip >= 0 || is_sort(argc, argv)) {
        settle_late(argc, argv);
        return hold_closed_streams() < 0 ? EXIT_FAILURE
             : bgzip >= 0 ? bgzip_main(argc - bgzip, argv + bgzip) : sort_main(argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "report") == 0)
        return report_command(argc, argv);
    int status = tell(argc, argv);
    if (status >= 0)
        return status;
    struct affinity bound;
    affinity_unbind(&bound);
    return upstream_exec(argv);
}
