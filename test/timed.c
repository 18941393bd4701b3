// SPDX-License-Identifier: MIT
/*
 * timed FILE COMMAND [ARG]...: runs COMMAND, writes one line to FILE and exits with
 * COMMAND's status (128 + signal number if a signal ended it).
 *
 *     wall=SECONDS cpu=SECONDS rss_kb=PEAK
 *
 * rss_kb is the peak resident set of COMMAND or of its largest child, in KiB. It exists because
 * a fresh machine has neither python nor /usr/bin/time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t)
{
    return t.tv_sec + t.tv_usec * 1e-6;
}

static int report(const char *path, double wall)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    long rss_kb = used.ru_maxrss;
#ifdef __APPLE__
    rss_kb /= 1024; /* bytes there */
#endif
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fprintf(f, "wall=%.3f cpu=%.3f rss_kb=%ld\n", wall,
            seconds(used.ru_utime) + seconds(used.ru_stime), rss_kb);
    return fclose(f);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: timed FILE COMMAND [ARG]...\n");
        return 2;
    }
    double start = now();
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        fprintf(stderr, "timed: %s: %s\n", argv[2], strerror(errno));
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        fprintf(stderr, "timed: %s: %s\n", argv[2], strerror(errno));
        return 126;
    }
    if (report(argv[1], now() - start) < 0) {
        fprintf(stderr, "timed: %s: %s\n", argv[1], strerror(errno));
        return 126;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
