/* SPDX-License-Identifier: MIT */
/* Our commands are those of cli/commands.c, `samtools report`, which samtools does not have, and bgzip, by that name or
 * as a command. Every other command goes to the next samtools on PATH. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/affinity.h"
#include "base/runtime_env.h"
#include "cli/bgzip_main.h"
#include "cli/commands.h"
#include "cli/report_command.h"
#include "cli/upstream.h"

static const struct command *own_command(int argc, char **argv)
{
    return commands_find(argc > 1 ? argv[1] : NULL);
}

/* Returns the index of a bgzip command's first word; -1: not bgzip. */
static int bgzip_at(int argc, char **argv)
{
    return argc > 0 && bgzip_main_is_name(argv[0]) ? 0 : argc > 1 && strcmp(argv[1], "bgzip") == 0 ? 1 : -1;
}

/* Returns whether the command uses a team of OpenMP threads. */
static bool has_team(int argc, char **argv)
{
    return own_command(argc, argv) || bgzip_at(argc, argv) >= 0;
}

#ifdef __linux__
static void settle_early(int argc, char **argv, char **env)
{
    if (has_team(argc, argv))
        runtime_env_settle(argv, env);
}
__attribute__((section(".preinit_array"), used)) static void (*const settle)(int, char **, char **) = settle_early;
#endif

/* ------------------------------------------------------------- commands */

/* If a standard stream is closed, the next file would get its number, and messages would go among the records. So
 * closed streams are opened such that they can neither be read nor written. */
static int hold_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return -1;
    return 0;
}

/* -1, reported: the stacks that ulimit -s allows are too small. Our threads and htslib's would end without a
 * message. */
static int check_stack(void)
{
    enum { LEAST = 256 };
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur >= LEAST << 10)
        return 0;
    fprintf(stderr, "samtools: a stack may only have %llu KiB here, but threads need %d. Nothing was read; run ulimit "
                    "-s 8192 first\n", (unsigned long long)(stack.rlim_cur >> 10), LEAST);
    return -1;
}

/* Prints the words for the completion of each shell (doc/samtools-omp.*). If command is NULL, the words are the
 * commands. */
static void print_completion_words(const char *command)
{
    if (command && strcmp(command, "bgzip") == 0)
        bgzip_main_words(stdout);
    else
        commands_words(command, stdout);
}

/* Prints the help and the versions, on the streams and with the statuses of samtools: without a command, the list of
 * commands is an error. -1: it is another command. */
static int tell(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "", *about = argc > 2 ? argv[2] : "";
    bool help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0;
    const struct command *command = help ? commands_find(about) : NULL;
    if (command)
        commands_usage(command, stdout);
    else if (strcmp(word, "--env") == 0 || strncmp(word, "--env=", 6) == 0)
        return upstream_print_env(argv[0], word[5] ? word + 6 : "");
    else if (strcmp(word, "--complete") == 0)
        print_completion_words(argc > 2 ? argv[2] : NULL);
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
    if (has_team(argc, argv)) {
        runtime_env_settle_late(argv);
        return hold_closed_streams() < 0 || check_stack() < 0 ? EXIT_FAILURE
             : bgzip >= 0 ? bgzip_main(argc - bgzip, argv + bgzip)
             : commands_run(own_command(argc, argv), argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "report") == 0)
        return report_command(argc, argv);
    int status = tell(argc, argv);
    if (status >= 0)
        return status;
    const char *word = strcmp(argv[1], "help") == 0 ? argv[2] : argv[1], *meant = commands_meant(word);
    if (meant && strcmp(meant, word) != 0)
        fprintf(stderr, "samtools: there is no command '%s'. Did you mean %s?\n", word, meant);
    struct affinity bound;
    affinity_unbind(&bound);
    return upstream_exec(argv);
}
