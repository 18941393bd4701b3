/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/out_file.h"
#include "base/message.h"
#include "plan/sort_opts.h"
#include "base/temp_prefix.h"
#include "cli/sort_paths.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether files that are not there yet would be the same one; there may be links to them. */
static bool same_place(const char *path_a, const char *path_b)
{
    struct stat x, y;
    char a[PATH_MAX], b[PATH_MAX], dir[PATH_MAX];
    return out_file_target(path_a, a) == 0 && out_file_target(path_b, b) == 0
        && strcmp(base_of(a), base_of(b)) == 0 && stat(out_file_directory(a, dir), &x) == 0
        && stat(out_file_directory(b, dir), &y) == 0 && out_file_is_same(&x, &y);
}

/* Looks at the file; "-" stands for fd. */
static bool look(const char *path, int fd, struct stat *st)
{
    return (strcmp(path, "-") == 0 ? fstat(fd, st) : stat(path, st)) == 0;
}

/* Whether the two are one file. Pipes and devices are none: they may have any number of writers. */
static bool same_file(const char *a, int fd_a, const char *b, int fd_b)
{
    struct stat x, y;
    bool has_a = look(a, fd_a, &x), has_b = look(b, fd_b, &y);
    if (has_a && has_b)
        return S_ISREG(x.st_mode) && out_file_is_same(&x, &y);
    return !has_a && !has_b && same_place(a, b);
}

/* Whether two of our own outputs are one. Standard output takes only one, unless it is a terminal or /dev/null. */
static bool same_output(const char *a, const char *b)
{
    struct stat x, y;
    bool dash_a = strcmp(a, "-") == 0, dash_b = strcmp(b, "-") == 0;
    if (dash_a != dash_b && look(a, STDOUT_FILENO, &x) && look(b, STDOUT_FILENO, &y))
        return !S_ISCHR(x.st_mode) && out_file_is_same(&x, &y);
    return (dash_a && dash_b) || same_file(a, STDOUT_FILENO, b, STDOUT_FILENO);
}

static bool is_input(const struct input_request *in, const char *path)
{
    for (size_t i = 0; i < in->n; i++)
        if (same_file(path, STDOUT_FILENO, in->paths[i], STDIN_FILENO))
            return true;
    return false;
}

static int refuse(const char *path, const char *what, const char *other)
{
    return message_error("%s cannot be both %s and %s. Nothing was read.",
                         strcmp(path, "-") == 0 ? "standard output" : path, what, other);
}

/* Whether input i is a pipe that an input before it is, too. */
static bool is_pipe_again(const struct input_request *in, size_t i)
{
    struct stat x, y;
    if (!look(in->paths[i], STDIN_FILENO, &x) || !S_ISFIFO(x.st_mode))
        return false;
    while (i-- > 0)
        if (look(in->paths[i], STDIN_FILENO, &y) && out_file_is_same(&x, &y))
            return true;
    return false;
}

/* Whether nothing tells beforehand how much an input holds. */
static bool has_pipe(const struct input_request *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (!input_name_is_file(in->paths[i]))
            return true;
    return false;
}

/* Of places where no temporary file can be made: a sort of a file fails at its start if it needs them, but a pipe might
 * be read for hours. They are no mistake, for samtools sorts what fits into memory. The place that is taken if the user
 * names none counts only where nobody knows whether it is needed. */
static void warn_of_places(const struct sort_opts *o)
{
    char dir[PATH_MAX];
    bool named = !o->default_prefix;
    for (size_t i = 0; i < o->n_temp_prefixes && (named || has_pipe(&o->in)); i++)
        if (access(temp_prefix_directory(o->temp_prefixes[i], dir), W_OK | X_OK) < 0)
            message_warning("no temporary file can be made in %s: %s. The sort will fail if the records do not fit "
                            "into memory. -T names another place", dir, strerror(errno));
}

int sort_paths_check(const struct sort_opts *o)
{
    const struct {
        const char *path, *what;
    } file[] = {{o->out.index, "index"}, {o->out.checksum, "checksum"}, {o->report.file, "report"},
                {o->report.trace_file, "trace"}, {o->statistics, "statistics"}};
    if (!o->check && !out_file_replaces(o->out.path) && is_input(&o->in, o->out.path))
        return refuse(o->out.path, "input", "output, since no other file can take its place");
    /* What comes by a pipe comes once: if we opened it again, we would wait for ever. */
    for (size_t i = 1; i < o->in.n; i++)
        if (is_pipe_again(&o->in, i))
            return message_error("%s is a pipe and cannot be read twice. Nothing was read.", o->in.paths[i]);
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        if (!file[i].path)
            continue;
        if (is_input(&o->in, file[i].path))
            return refuse(file[i].path, "input", file[i].what);
        if (!o->check && same_output(file[i].path, o->out.path))
            return refuse(file[i].path, "output", file[i].what);
        for (size_t k = 0; k < i; k++)
            if (file[k].path && same_output(file[i].path, file[k].path))
                return refuse(file[i].path, file[k].what, file[i].what);
    }
    if (!o->check && !o->plan)
        warn_of_places(o);
    return 0;
}
