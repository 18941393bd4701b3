/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/upstream.h"

/* We add "device:inode," of ourselves and of what we start to this variable. So two copies of us on one PATH do not
 * exec each other for ever, nor do we and a script that calls us. What we start is noted by its path, because in an
 * emulator its /proc/self/exe would be the emulator, and there may be no /proc. */
#define SEEN "SAMTOOLS_OMP_SEEN"

static void identity(const struct stat *st, char text[64])
{
    snprintf(text, 64, ",%llx:%llx,", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
}

void upstream_note(const char *path)
{
    struct stat st;
    char id[64], *list = NULL;
    const char *before = getenv(SEEN);
    if (stat(path, &st) < 0)
        return;
    identity(&st, id);
    if (asprintf(&list, "%s%s", before ? before : ",", id + 1) >= 0)
        setenv(SEEN, list, 1);
    free(list);
}

/* An executable file that was not passed through. */
static bool usable(const char *path)
{
    struct stat st;
    char id[64];
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
        return false;
    identity(&st, id);
    const char *seen = getenv(SEEN);
    return !seen || !strstr(seen, id);
}

/* The next usable samtools in the folders of *path, a list such as PATH, which is cut behind its folder. To be freed;
 * NULL: there is no more, or no memory. */
static char *next_on_path(const char **path)
{
    while (*path) {
        char *file = NULL;
        size_t n = strcspn(*path, ":");
        if (asprintf(&file, "%.*s/samtools", n ? (int)n : 1, n ? *path : ".") < 0)
            return NULL;
        *path = (*path)[n] ? *path + n + 1 : NULL;
        if (usable(file))
            return file;
        free(file);
    }
    return NULL;
}

char *upstream_find(void)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM"), *path = getenv("PATH");
    upstream_note("/proc/self/exe");
    if (chosen && *chosen)
        return usable(chosen) ? strdup(chosen) : NULL;
    return next_on_path(&path);
}

static void try_exec(const char *path, char **argv)
{
    upstream_note(path);
    execv(path, argv);
}

int upstream_exec(char **argv)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM"), *path = getenv("PATH");
    upstream_note("/proc/self/exe");
    if (chosen && *chosen) {
        if (usable(chosen))
            try_exec(chosen, argv);
        fprintf(stderr, "samtools: SAMTOOLS_UPSTREAM=%s cannot be run (it must be another samtools): %s\n",
                chosen, strerror(errno));
        return EXIT_FAILURE;
    }
    for (char *file; (file = next_on_path(&path)); free(file))
        try_exec(file, argv);
    fprintf(stderr, "samtools: '%s' is not part of samtools-omp, which has only 'sort', and no other samtools "
            "is on PATH; install one or set SAMTOOLS_UPSTREAM\n", argv[1] ? argv[1] : "(no command)");
    return EXIT_FAILURE;
}
