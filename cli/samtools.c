/* SPDX-License-Identifier: MIT */
/* `samtools sort` is ours; every other command goes to the next samtools on PATH. */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bam_sort.h"
#include "cli/commands.h"
#include "cli/sort_check.h"
#include "cli/sort_opts.h"
#include "cli/sort_paths.h"
#include "cli/upstream.h"
#include "cli/version.h"

/* Idle threads shall sleep unless the user says otherwise: libgomp lets them
 * spin for milliseconds by default, which takes the core from an aligner on the
 * same node and gains nothing here (numbers in DESIGN.md). The runtime reads its
 * settings when it is loaded, before main(), so the program starts once more. */
static void settle_wait_policy(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME"))
        return;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);   /* by its name, for ps and killall */
    self[n > 0 ? n : 0] = 0;
    const char *base = strrchr(self, '/');
    bool is_loader = base && strstr(base, ".so");   /* of `ld.so ./samtools`, which wants more words than we have */
    if (base && !is_loader && setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
        execv(self, argv);
}

/* A file that got the number of a standard stream that is closed would get what is meant for that, messages
 * among the records. So these are opened, in a way in which they neither give nor take anything. */
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
    switch (sort_opts_parse(&opts, argc, argv)) {
    case SORT_OPTS_RUN:
        if (sort_paths_check(&opts) == 0)
            status = opts.check ? sort_check(&opts) : bam_sort(&opts);
        break;
    case SORT_OPTS_DONE:  status = EXIT_SUCCESS; break;
    case SORT_OPTS_ERROR: break;
    }
    sort_opts_free(&opts);
    return status;
}

/* What there is besides `sort`. The streams and statuses are those of samtools: without a command it
 * tells its commands as an error. -1: another command. */
static int tell(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "", *about = argc > 2 ? argv[2] : "";
    bool help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0;
    if (help && strcmp(about, "sort") == 0)
        sort_opts_usage(stdout);
    else if (strcmp(word, "--version-only") == 0)
        version_print_only(stdout);
    else if (strcmp(word, "--version") == 0 || strcmp(help ? about : word, "version") == 0)
        version_print(stdout);
    else if (argc < 2 || (help && argc == 2))
        commands_print(help ? stdout : stderr);
    else
        return -1;
    return argc < 2 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "sort") == 0) {
        settle_wait_policy(argv);
        return hold_closed_streams() < 0 ? EXIT_FAILURE : sort_main(argc, argv);
    }
    int status = tell(argc, argv);
    return status < 0 ? upstream_exec(argv) : status;
}
