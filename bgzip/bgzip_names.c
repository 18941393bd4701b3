/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/input_name.h"
#include "base/message.h"
#include "base/out_file.h"
#include "bgzip/bgzip_names.h"
#include "bgzip/bgzip_opts.h"
#include "read/held_data.h"

static bool is_dash(const char *name)
{
    return strcmp(name, "-") == 0;
}

static char *joined(const char *name, const char *ending)
{
    char *text = NULL;
    return asprintf(&text, "%s%s", name, ending) < 0 ? NULL : text;
}

/* The extension of a file's name, with its dot; NULL: none. */
static const char *ending_of(const char *name)
{
    const char *base = input_name_base(name), *dot = strrchr(base, '.');
    return dot && dot > base ? dot : NULL;
}

static bool is_gzip_ending(const char *ending)
{
    return strcasecmp(ending, ".gz") == 0 || strcasecmp(ending, ".bgz") == 0 || strcasecmp(ending, ".bgzf") == 0;
}

/* The name without its extension. *result: as that of bgzip_names_find(). */
static char *decompressed_name(const struct bgzip_opts *opts, const char *in, int *result)
{
    const char *ending = ending_of(in);
    if (ending && (is_gzip_ending(ending) || opts->force > 0))
        return strndup(in, (size_t)(ending - in));
    *result = ending ? BGZIP_DECLINED : -1;
    if (!ending)
        message_error("%s: the name has no extension to remove; rename it, or use -c or -o", in);
    else
        message_error("%s: unknown extension %s; use -f to remove it, or name the output (-c or -o)", in, ending);
    return NULL;
}

static char *out_name(const struct bgzip_opts *opts, const char *in, int *result)
{
    if (opts->output)
        return strdup(opts->output);
    if (opts->to_stdout || is_dash(in))
        return strdup("-");
    return opts->mode == BGZIP_COMPRESS ? joined(in, ".gz") : decompressed_name(opts, in, result);
}

/* Returns the name of the index, which the caller frees: that of the compressed file, or the one that it would have if
 * it did not go to standard output, with .gzi. *named becomes false if there is none. NULL: there is none, or out of
 * memory. */
static char *index_name(const struct bgzip_opts *opts, const struct bgzip_names *names, const char *in, bool *named)
{
    bool writes = opts->mode == BGZIP_COMPRESS && !opts->rebgzip, nameless = writes && is_dash(names->out);
    const char *compressed = writes && !nameless ? names->out : in;
    *named = !is_dash(compressed);
    return *named ? joined(compressed, nameless ? ".gz.gzi" : ".gzi") : NULL;
}

static bool needs_index(const struct bgzip_opts *o)
{
    return o->mode == BGZIP_REINDEX || (o->mode == BGZIP_COMPRESS && (o->index || o->rebgzip))
        || (o->mode == BGZIP_DECOMPRESS && o->ranged && o->offset > 0);
}

/* Returns whether both are one regular file, or will be. */
static bool is_same_file(const char *name, const char *other)
{
    struct stat st, other_st;
    if (is_dash(name) || is_dash(other))
        return false;
    bool there = stat(name, &st) == 0, other_there = stat(other, &other_st) == 0;
    if (there || other_there)
        return there && other_there && S_ISREG(st.st_mode) && out_file_is_same(&st, &other_st);
    return out_file_is_same_place(name, other);
}

/* Checks that a new index replaces no file of the same command line, and no data: the file after -I may have been
 * intended as the input. */
static int check_index(const char *index, const struct bgzip_opts *opts)
{
    for (size_t i = 0; i < opts->n_files; i++)
        if (is_same_file(index, opts->files[i]))
            return message_error("%s would be overwritten by an index", opts->files[i]);
    const char *kind = is_dash(index) ? NULL : held_data_kind(index);
    return kind ? message_error("%s holds %s, so the index does not replace it. Name another file, or remove this one "
                            "first", index, kind) : 0;
}

/* Checks that no file is written over another one of the same job. */
static int check_apart(const struct bgzip_names *names, const struct bgzip_opts *opts, const char *in)
{
    bool writes_index = names->index && !opts->rebgzip && opts->mode != BGZIP_DECOMPRESS;
    if (names->out && is_same_file(names->out, in))
        return message_error("%s would be overwritten by its own output", in);
    if (writes_index && check_index(names->index, opts) < 0)
        return -1;
    if (names->index && names->out && is_same_file(names->index, names->out))
        return message_error("%s cannot be both the output and the index", names->index);
    return 0;
}

/* Finds the name of the index. */
static int find_index(struct bgzip_names *names, const struct bgzip_opts *opts, const char *in)
{
    if (!needs_index(opts))
        return 0;
    if (!opts->index_name && opts->rebgzip)
        return message_error("-g needs -I FILE, the index that says where blocks begin");
    bool named = true;
    names->index = opts->index_name ? strdup(opts->index_name) : index_name(opts, names, in, &named);
    if (!named)
        return message_error("standard input has no name for the index: give one with -I");
    return names->index ? 0 : message_error("out of memory");
}

int bgzip_names_find(struct bgzip_names *names, const struct bgzip_opts *opts, const char *in)
{
    int result = 0;
    bool writes = opts->mode == BGZIP_COMPRESS || opts->mode == BGZIP_DECOMPRESS;
    *names = (struct bgzip_names){.out = writes ? out_name(opts, in, &result) : NULL};
    if (result != 0)
        return result;
    if (writes && !names->out)
        return message_error("out of memory");
    return find_index(names, opts, in) < 0 ? -1 : check_apart(names, opts, in);
}

void bgzip_names_free(struct bgzip_names *names)
{
    free(names->out);
    free(names->index);
    *names = (struct bgzip_names){0};
}

static bool asked(const char *out)
{
    if (!isatty(STDIN_FILENO))
        return false;
    fprintf(stderr, "bgzip: %s exists; overwrite it (y or n)? ", out);
    int answer = getchar();
    for (int c = answer; c != '\n' && c != EOF;)
        c = getchar();
    return answer == 'y' || answer == 'Y';
}

bool bgzip_names_may_write(const struct bgzip_names *names, const struct bgzip_opts *opts, const char *in)
{
    if (!names->out || opts->output || is_dash(names->out) || access(names->out, F_OK) < 0)
        return true;
    const char *ending = opts->mode == BGZIP_DECOMPRESS ? ending_of(in) : NULL;
    int forced_before = ending && !is_gzip_ending(ending);   /* one -f allows one of the two */
    if (opts->force > forced_before || asked(names->out))
        return true;
    message_error("%s exists and was kept. %s overwrites it", names->out, forced_before ? "A second -f" : "-f");
    return false;
}

bool bgzip_names_removes(const struct bgzip_names *names, const struct bgzip_opts *opts, const char *in)
{
    struct stat s;
    return names->out && !opts->keep && !opts->to_stdout && !opts->output && !is_dash(in) && !input_name_is_url(in)
        && lstat(in, &s) == 0 && S_ISREG(s.st_mode);
}
