/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/input_name.h"
#include "base/out_file.h"
#include "base/message.h"
#include "engine/engine_opts.h"
#include "base/temp_prefix.h"
#include "cli/paths.h"
#include "read/held_data.h"

/* Returns whether two files that do not exist yet would be the same one. The paths may be links. */
static bool same_place(const char *path_a, const char *path_b)
{
    char a[PATH_MAX], b[PATH_MAX];
    return out_file_target(path_a, a) == 0 && out_file_target(path_b, b) == 0 && out_file_is_same_place(a, b);
}

/* Gets the status of the file; "-" stands for fd. */
static bool look(const char *path, int fd, struct stat *st)
{
    return (strcmp(path, "-") == 0 ? fstat(fd, st) : stat(path, st)) == 0;
}

/* Returns whether both are one file. Pipes and devices do not count: they may have any number of writers. */
static bool same_file(const char *a, int fd_a, const char *b, int fd_b)
{
    struct stat x, y;
    bool has_a = look(a, fd_a, &x), has_b = look(b, fd_b, &y);
    if (has_a && has_b)
        return S_ISREG(x.st_mode) && out_file_is_same(&x, &y);
    return !has_a && !has_b && same_place(a, b);
}

/* Returns whether two of our own outputs are one file. Standard output takes only one, unless it is a terminal or
 * /dev/null. */
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

/* ---- our files other than the output, which must not replace anything that is read ---- */

/* Returns whether an existing name leads to that file. */
static bool leads_to(const char *name, const struct stat *file)
{
    struct stat st;
    return stat(input_name_local(name), &st) == 0 && out_file_is_same(&st, file);
}

/* Returns whether the first n characters of `part` lead to that file. */
static bool part_leads_to(const char *part, size_t n, const struct stat *file)
{
    char name[PATH_MAX];
    if (n == 0 || n >= sizeof name)
        return false;
    memcpy(name, part, n);
    name[n] = 0;
    return leads_to(name, file);
}

/* Returns whether the value of an option names the file: "x.bed", "in.bam##idx##in.bai", "cram,reference=ref.fa". */
static bool value_names(const char *value, const struct stat *file)
{
    size_t n;
    const char *index = input_name_index(value, &n);
    if (leads_to(value, file))
        return true;
    if (index && (part_leads_to(value, n, file) || leads_to(index, file)))
        return true;
    for (const char *c = value; *c; c++)
        if ((*c == '=' || *c == ',') && part_leads_to(c + 1, strcspn(c + 1, ","), file))
            return true;
    return false;
}

/* Returns whether the file is an index of a file that is read, by the names that htslib looks for. */
static bool is_index_of(const char *name, const struct stat *file)
{
    static const char *const endings[] = {".bai", ".csi", ".crai", ".fai", ".gzi"};
    char index[PATH_MAX];
    const char *base = input_name_base(name), *dot = strrchr(base, '.');
    int n = (int)strlen(name), stem = dot && dot > base ? (int)(dot - name) : n;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (snprintf(index, sizeof index, "%s%s", name, endings[i]) < (int)sizeof index && leads_to(index, file))
            return true;
        if (snprintf(index, sizeof index, "%.*s%s", stem, name, endings[i]) < (int)sizeof index
            && leads_to(index, file))
            return true;
    }
    return false;
}

/* Returns how else the command line reads that file; NULL: it does not read it. */
static const char *read_as(const struct engine_opts *o, const struct stat *file)
{
    for (size_t i = 0; i < o->n_values; i++)
        if (value_names(o->values[i], file))
            return o->values[i];
    for (size_t i = 0; i < o->in.n; i++) {
        const char *index = o->in.indexes ? o->in.indexes[i] : NULL;
        if ((index && leads_to(index, file)) || is_index_of(o->in.paths[i], file))
            return "an index of the input";
    }
    if ((o->in.reference && is_index_of(o->in.reference, file))
        || (o->order.index_fasta && is_index_of(o->order.index_fasta, file)))
        return "an index of the reference";
    return NULL;
}

/* Returns the command if it writes no records, and its output is the text of a counter; NULL: it writes records. */
static const char *counts_only(const struct output_request *out)
{
    return out->n_counters > 0 && !out->counted[0] ? out->counters[0].command : NULL;
}

/* Checks a file that we write besides records, such as a report. -1, reported, if it would destroy the user's
 * data. */
static int check_own(const struct engine_opts *o, const char *path, const char *what)
{
    struct stat file;
    if (strcmp(path, "-") == 0 || stat(path, &file) < 0 || !S_ISREG(file.st_mode))
        return 0;
    const char *other = read_as(o, &file), *kind = other ? NULL : held_data_kind(path);
    if (other)
        return message_error("%s cannot be the %s: the command line also names it elsewhere (%s). Nothing was "
                             "read.", path, what, other);
    if (kind)
        return message_error("%s holds %s, so the %s does not replace it. Name another file, or remove this one first. "
                             "Nothing was read.", path, kind, what);
    return 0;
}

/* Returns whether input i is a pipe that is also an earlier input. */
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

/* Returns whether the size of an input cannot be known beforehand. */
static bool has_pipe(const struct input_request *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (!input_name_is_file(in->paths[i]))
            return true;
    return false;
}

/* Warns of places where no temporary file can be made: a sort of a file fails at its start if it needs them, but a pipe
 * might be read for hours. It is not a mistake, because samtools sorts records that fit into memory. The default place
 * is only checked if it is unknown whether it is needed. */
static void warn_of_places(const struct engine_opts *o)
{
    char dir[PATH_MAX];
    bool named = !o->default_prefix;
    for (size_t i = 0; i < o->n_temp_prefixes && (named || has_pipe(&o->in)); i++)
        if (access(temp_prefix_directory(o->temp_prefixes[i], dir), W_OK | X_OK) < 0)
            message_warning("cannot create a temporary file in %s: %s. The sort will fail if the records do not fit "
                            "into memory. -T names another place", dir, strerror(errno));
}

static int check_folders(const struct input_request *in)
{
    struct stat st;
    for (size_t i = 0; i < in->n; i++)
        if (strcmp(in->paths[i], "-") != 0 && stat(in->paths[i], &st) == 0 && S_ISDIR(st.st_mode))
            return message_error("%s is a directory, not a file of reads. Nothing was read.", in->paths[i]);
    return 0;
}

int paths_check(const struct engine_opts *o)
{
    enum { INDEX, CHECKSUM, REPORT, TRACE, STATISTICS, COUNTED, FILES = COUNTED + COUNTERS };
    struct {
        const char *path, *what;
    } file[FILES] = {
        [INDEX] = {o->out.index, "index"},
        [CHECKSUM] = {o->out.checksum, "checksum"},
        [REPORT] = {o->report.file, "report"},
        [TRACE] = {o->report.trace_file, "trace"},
        [STATISTICS] = {o->statistics, "statistics"},
    };
    for (size_t i = 0; i < o->out.n_counters; i++) {
        file[COUNTED + i].path = o->out.counted[i];
        file[COUNTED + i].what = o->out.counters[i].command;
    }
    if (check_folders(&o->in) < 0)
        return -1;
    const char *text = counts_only(&o->out);
    if (!o->check && (text || !out_file_replaces(o->out.path)) && is_input(&o->in, o->out.path))
        return refuse(o->out.path, "input", text ? text : "output, because no other file can replace it");
    if (text && check_own(o, o->out.path, text) < 0)
        return -1;
    /* The data of a pipe come only once: if we opened it again, we would wait forever. */
    for (size_t i = 1; i < o->in.n; i++)
        if (is_pipe_again(&o->in, i))
            return message_error("%s is a pipe and cannot be read twice. Nothing was read.", o->in.paths[i]);
    for (size_t i = 0; i < FILES; i++) {
        if (!file[i].path)
            continue;
        if (is_input(&o->in, file[i].path))
            return refuse(file[i].path, "input", file[i].what);
        if (!o->check && same_output(file[i].path, o->out.path))
            return refuse(file[i].path, "output", file[i].what);
        for (size_t k = 0; k < i; k++)
            if (file[k].path && same_output(file[i].path, file[k].path))
                return refuse(file[i].path, file[k].what, file[i].what);
        if (i != INDEX && check_own(o, file[i].path, file[i].what) < 0)
            return -1;
    }
    if (!o->check && !o->plan)
        warn_of_places(o);
    return 0;
}
