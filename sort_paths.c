/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "out_file.h"
#include "sort_opts.h"
#include "sort_paths.h"

static bool same_inode(const struct stat *x, const struct stat *y)
{
    return x->st_dev == y->st_dev && x->st_ino == y->st_ino;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Of files that are not there yet. */
static bool same_place(const char *a, const char *b)
{
    struct stat x, y;
    char *dir_a = out_file_directory(a), *dir_b = out_file_directory(b);
    bool same = strcmp(base_of(a), base_of(b)) == 0 && dir_a && dir_b && stat(dir_a, &x) == 0 && stat(dir_b, &y) == 0
             && same_inode(&x, &y);
    free(dir_a);
    free(dir_b);
    return same;
}

/* Pipes and devices may have any number of writers. */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;
    if (strcmp(a, b) == 0)
        return !has_a || S_ISREG(x.st_mode);
    return has_a && has_b ? S_ISREG(x.st_mode) && same_inode(&x, &y) : !has_a && !has_b && same_place(a, b);
}

static bool is_input(const struct sort_opts *o, const char *path)
{
    bool is = strcmp(path, "-") != 0 && same_file(path, o->in);
    for (size_t i = 0; i < o->n_more; i++)
        is = is || same_file(path, o->more[i]);
    return is;
}

static int refuse(const char *path, const char *what, const char *other)
{
    fprintf(stderr, "samtools sort: %s cannot be both %s and %s. Nothing was read.\n",
            strcmp(path, "-") == 0 ? "standard output" : path, what, other);
    return -1;
}

int sort_paths_check(const struct sort_opts *o)
{
    const struct {
        const char *path, *what;
    } file[] = {{o->out.index, "index"}, {o->checksum, "checksum"}, {o->report_file, "report"}, {o->trace_file, "trace"}};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        if (!file[i].path)
            continue;
        if (is_input(o, file[i].path))
            return refuse(file[i].path, "input", file[i].what);
        if (!o->check && same_file(file[i].path, o->out.path))
            return refuse(file[i].path, "output", file[i].what);
        for (size_t k = 0; k < i; k++)
            if (file[k].path && same_file(file[i].path, file[k].path))
                return refuse(file[i].path, file[k].what, file[i].what);
    }
    return 0;
}
