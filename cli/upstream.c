/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/upstream.h"

/* Who runs and what it execs add "device:inode," to this variable, so that two copies of us on
 * one PATH do not exec each other for ever, nor we and a script that calls us. What is
 * started counts by its own path: in an emulator /proc/self/exe is the emulator, and there may be none. */
#define SEEN "SAMTOOLS_OMP_SEEN"

static void identity(const struct stat *st, char text[64])
{
    snprintf(text, 64, "%llx:%llx,", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
}

static void note(const char *path)
{
    struct stat st;
    char id[64], *list = NULL;
    const char *before = getenv(SEEN);
    if (stat(path, &st) < 0)
        return;
    identity(&st, id);
    if (asprintf(&list, "%s%s", before ? before : ",", id) >= 0)
        setenv(SEEN, list, 1);
    free(list);
}

/* An executable file that was not passed through. */
static bool usable(const char *path)
{
    struct stat st;
    char id[64], key[66];
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
        return false;
    identity(&st, id);
    snprintf(key, sizeof key, ",%s", id);
    const char *seen = getenv(SEEN);
    return !seen || !strstr(seen, key);
}

static void try_exec(const char *path, char **argv)
{
    if (usable(path)) {
        note(path);
        execv(path, argv);
    }
}

/* Cuts the first folder off a list such as PATH; the name of the samtools in it, to be freed. NULL: no more, or no memory. */
static char *next_on_path(const char **path)
{
    char *file = NULL;
    if (!*path)
        return NULL;
    size_t n = strcspn(*path, ":");
    if (asprintf(&file, "%.*s/samtools", n ? (int)n : 1, n ? *path : ".") < 0)
        return NULL;
    *path = (*path)[n] ? *path + n + 1 : NULL;
    return file;
}

static void search_path(char **argv)
{
    const char *path = getenv("PATH");
    for (char *file; (file = next_on_path(&path)); free(file))
        try_exec(file, argv);
}

char *upstream_find(void)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM"), *path = getenv("PATH");
    note("/proc/self/exe");
    if (chosen && *chosen)
        return usable(chosen) ? strdup(chosen) : NULL;
    char *file;
    while ((file = next_on_path(&path)) && !usable(file))
        free(file);
    return file;
}

int upstream_exec(char **argv)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM");
    note("/proc/self/exe");
    if (chosen && *chosen) {
        try_exec(chosen, argv);
        fprintf(stderr, "samtools: SAMTOOLS_UPSTREAM=%s cannot be run (it must be another samtools): %s\n",
                chosen, strerror(errno));
        return EXIT_FAILURE;
    }
    search_path(argv);
    fprintf(stderr, "samtools: '%s' is not part of samtools-omp, which has only 'sort', and no other samtools "
            "is on PATH; install one or set SAMTOOLS_UPSTREAM\n", argv[1] ? argv[1] : "(no command)");
    return EXIT_FAILURE;
}
