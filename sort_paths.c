/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "sort_paths.h"
#include "sort_opts.h"

/* Pipes and devices may have any number of writers. */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;
    if (strcmp(a, b) == 0)
        return !has_a || S_ISREG(x.st_mode);
    return has_a && has_b && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
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
