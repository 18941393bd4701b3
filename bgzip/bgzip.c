/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>
#include "base/byte_window.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/machine.h"
#include "base/message.h"
#include "base/out_file.h"
#include "base/task_ring.h"
#include "bgzip/bgzip.h"
#include "bgzip/bgzip_names.h"
#include "bgzip/bgzip_opts.h"
#include "bgzip/bgzip_pass.h"
#include "bgzip/gzi_index.h"
#include "codec/bgzf_block.h"
#include "read/input_file.h"
#include "read/read_ahead.h"

enum { PIECE = 1 << 20 };        /* bytes that are read at once */

/* The output of one input, or of all inputs with -o. */
struct bgzip_output {
    struct out_file out;
    const char *index_name;      /* NULL: no index is made */
    struct out_file index_file;
    struct gzi_index index;
    struct gzi_place end;        /* bytes in `out`, and the bytes of their data */
};

/* The work on one input. */
struct bgzip {
    const struct bgzip_opts *opts;
    const char *in;              /* "-": standard input */
    struct bgzip_names names;
    struct input_file input;
    struct stat st;              /* status of the input; mode 0: it is not a file */
    struct read_ahead *ahead;
    struct bgzip_output *to, own;
    struct gzi_index index;      /* that is read */
    struct bgzip_pass_options how;
    struct bgzip_pass *pass;
    struct bgzip_pass_result result;
    struct engine engine;
    struct latch latch;
};

static bool makes_index(const struct bgzip_opts *o)
{
    return o->mode == BGZIP_REINDEX || (o->mode == BGZIP_COMPRESS && o->index && !o->rebgzip);
}

/* -------------------------------------------------------------------- open */

/* The kind of data, text or BAM, as htslib detects it by its first bytes. It decides where blocks may end. */
static enum cut_kind data_kind(const struct bgzip *b)
{
    htsFormat format;
    if (hts_detect_format(b->input.hfile, &format) < 0 || format.compression != no_compression)
        return CUT_ANYWHERE;
    switch (format.format) {
    case bam: return CUT_RECORDS;
    case text_format: case sam: case vcf: case bed: case fasta_format: case fastq_format: return CUT_LINES;
    default: return CUT_ANYWHERE;
    }
}

/* Our own encoder of -l 1 is made for BAM: it deflates some text at 0.6 of the speed of htslib's (doc/dev/tried.md). */
static int level_for(enum cut_kind kind, int level)
{
    return kind != CUT_RECORDS && level == 1 ? BGZF_LEVEL_TEXT_1 : level;
}

static void set_compression(struct bgzip *b)
{
    const struct bgzip_opts *o = b->opts;
    enum cut_kind kind = data_kind(b);
    b->how.compress = true;
    b->how.level = level_for(kind, o->level);
    b->how.cut = (struct block_cut){.kind = o->rebgzip ? CUT_PLACES : o->binary ? CUT_ANYWHERE : kind,
                                    .places = &b->index};
}

static int check_compressed(struct bgzip *b)
{
    static const uint8_t magic[2] = {0x1f, 0x8b};
    uint8_t first[sizeof magic] = {0};
    ssize_t n = hpeek(b->input.hfile, first, sizeof first);
    if (n < 0)
        return input_file_failed(&b->input);
    return memcmp(first, magic, sizeof magic) == 0 ? 0 : latch_fail(&b->latch, "%s is not compressed", b->input.path);
}

/* Moves the input to the block in which the range begins. */
static int begin_range(struct bgzip *b)
{
    struct gzi_place place = gzi_index_find(&b->index, b->opts->offset);
    b->how.skip = b->opts->offset - place.data;
    b->how.most = b->opts->size;
    b->how.file_begin = place.file;
    b->how.only_blocks = b->opts->offset > 0;
    if (b->opts->offset == 0)
        return 0;
    if (b->input.begin < 0)
        return latch_fail(&b->latch, "%s: -b needs a file that can be read from any offset", b->input.path);
    b->input.begin += (off_t)place.file;
    return 0;
}

static int open_input(struct bgzip *b)
{
    if (input_file_open(&b->input, b->in, &b->latch) < 0)
        return -1;
    if (b->input.fd >= 0 && fstat(b->input.fd, &b->st) == 0 && S_ISDIR(b->st.st_mode))
        return latch_fail(&b->latch, "%s is a directory", b->input.path);
    b->how = (struct bgzip_pass_options){.path = b->input.path, .most = UINT64_MAX};
    if (b->opts->mode == BGZIP_COMPRESS)
        set_compression(b);
    else if (check_compressed(b) < 0)
        return -1;
    b->how.only_blocks = b->opts->mode == BGZIP_REINDEX;
    return 0;
}

/* Reads the index if it is needed. */
static int read_index(struct bgzip *b)
{
    if (b->names.index && !makes_index(b->opts) && gzi_index_read(&b->index, b->names.index, &b->latch) < 0)
        return -1;
    return b->opts->ranged ? begin_range(b) : 0;
}

static int open_output(struct bgzip_output *o, const char *path, struct latch *latch)
{
    if (o->index_name && out_file_open(&o->index_file, o->index_name, latch) < 0)
        return -1;
    return out_file_open(&o->out, path, latch);
}

static int open_own_output(struct bgzip *b)
{
    if (b->to != &b->own)
        return 0;
    b->own.index_name = makes_index(b->opts) ? b->names.index : NULL;
    return open_output(&b->own, b->names.out ? b->names.out : "/dev/null", &b->latch);
}

static int open_all(struct bgzip *b)
{
    if (open_input(b) < 0 || read_index(b) < 0 || open_own_output(b) < 0)
        return -1;
    b->ahead = read_ahead_open(&b->input, PIECE, READ_AHEAD_PIECES, NULL);
    if (!b->ahead)
        return latch_fail(&b->latch, "%s: out of memory for read buffers", b->input.path);
    input_file_advise(&b->input);
    b->how.input = read_ahead_window(b->ahead);
    b->how.fd = b->to->out.fd;
    b->how.out_path = b->to->out.path;
    b->how.engine = &b->engine;
    b->how.index = b->to->index_name ? &b->to->index : NULL;
    b->how.before = b->to->end;
    b->pass = bgzip_pass_open(&b->how);
    return b->pass ? 0 : -1;
}

/* --------------------------------------------------------------------- run */

/* Removes the output, unless it is committed. */
static void abandon_output(struct bgzip_output *o)
{
    out_file_abandon(&o->out);
    out_file_abandon(&o->index_file);
}

/* Ends the pass at a signal: the end of the parallel region waits for all threads, and one may be blocked in a write to
 * a pipe that is not read. */
static void leave_by_signal(struct bgzip *b)
{
    if (!latch_signalled())
        return;
    abandon_output(b->to);
    latch_reraise();
}

static void in_team(void *bgzip)
{
    struct bgzip *b = bgzip;
    latch_hide_signals(false);
    if (out_file_begin(&b->to->out, &b->latch) == 0)
        bgzip_pass_run(b->pass, &b->result);
    leave_by_signal(b);
}

/* The number of threads that can be started after the buffers have taken address space; at most the number that the
 * buffers are for. The runtime would end the process if one could not be started. Warns once, for all files. */
static int team_of(const struct bgzip *b)
{
    static bool told;
    const char *why;
    int wanted = b->opts->n_threads, had = machine_team(wanted, 0, &why), most = b->engine.n_threads;
    int n = had < most ? had : most;
    if (had < wanted && !told)
        message_warning("only %d of %d threads can be started: %s", n, wanted, why);
    told |= had < wanted;
    return n;
}

static void run(struct bgzip *b)
{
    int n_threads = team_of(b);
    latch_hide_signals(true);
    task_team(n_threads, in_team, b);
    latch_hide_signals(false);
}

/* ------------------------------------------------------------------ finish */

/* Gives the output the times of the input, as bgzip 1.20 and later do. */
static void keep_times(const struct bgzip *b)
{
#ifdef __APPLE__
    struct timespec times[2] = {b->st.st_atimespec, b->st.st_mtimespec};
#else
    struct timespec times[2] = {b->st.st_atim, b->st.st_mtim};
#endif
    if (b->names.out && strcmp(b->names.out, "-") != 0 && S_ISREG(b->st.st_mode))
        futimens(b->own.out.fd, times);             /* without permission to set them, the times stay as they are */
}

static int finish_index(struct bgzip_output *o, struct latch *latch)
{
    if (!o->index_name)
        return 0;
    return out_file_begin(&o->index_file, latch) < 0
        || gzi_index_write(&o->index, o->index_file.fd, o->index_name, latch) < 0
        || out_file_finish(&o->index_file, latch) < 0 ? -1 : 0;
}

/* Gives the files their names, the index last, because it is useless without the data. */
static int commit_output(struct bgzip_output *o, struct latch *latch)
{
    return out_file_finish(&o->out, latch) < 0 || finish_index(o, latch) < 0 || out_file_commit(&o->out, latch) < 0
        || out_file_commit(&o->index_file, latch) < 0 ? -1 : 0;
}

/* Commits the output after the input was read to its end. With -o for several inputs, only counts its bytes. */
static int commit(struct bgzip *b)
{
    b->to->end.file += b->result.compressed;
    b->to->end.data += b->result.data;
    if (b->to != &b->own)
        return 0;
    keep_times(b);
    if (commit_output(&b->own, &b->latch) < 0)
        return -1;
    if (bgzip_names_removes(&b->names, b->opts, b->in) && unlink(b->in) < 0)
        return latch_fail(&b->latch, "%s was written, but %s cannot be removed: %s", b->names.out, b->in,
                          strerror(errno));
    return 0;
}

/* Prints warnings. The output is complete in any case. */
static void print_warnings(const struct bgzip *b)
{
    if (b->result.lacks_eof_block)
        message_warning("%s: EOF marker is absent. The input is probably truncated", b->input.path);
    if (b->result.lacks_places)
        message_warning("%s ends before some offsets in %s. Is that the index of another file?", b->input.path,
                  b->names.index);
}

static int check_range(struct bgzip *b)
{
    uint64_t data = b->opts->ranged ? b->result.data + (b->opts->offset - b->how.skip) : 0;
    return b->opts->ranged && b->opts->offset > data
         ? latch_fail(&b->latch, "%s: -b %llu is beyond the end: it holds %llu bytes", b->input.path,
                      (unsigned long long)b->opts->offset, (unsigned long long)data) : 0;
}

static void close_all(struct bgzip *b)
{
    bgzip_pass_close(b->pass);
    read_ahead_close(b->ahead);
    input_file_close(&b->input);
    abandon_output(&b->own);
    gzi_index_free(&b->own.index);
    gzi_index_free(&b->index);
    bgzip_names_free(&b->names);
}

static const struct bgzip_output no_output = {.out.fd = -1, .index_file.fd = -1};

/* Processes one file. all: the output of all files; NULL: each has its own. Returns 0, -1 if it failed, or
 * BGZIP_DECLINED; if not 0, the reason was printed. */
static int one_file(const struct bgzip_opts *opts, const char *in, struct bgzip_output *all, int n_threads)
{
    struct bgzip b = {.opts = opts, .in = in, .own = no_output, .engine.n_threads = n_threads};
    b.engine.latch = &b.latch;
    b.to = all ? all : &b.own;
    int result = bgzip_names_find(&b.names, opts, in);
    if (result == 0 && !bgzip_names_may_write(&b.names, opts, in))
        result = BGZIP_DECLINED;
    if (result == 0) {
        if (open_all(&b) == 0)
            run(&b);
        result = latch_tripped(&b.latch) || check_range(&b) < 0 || commit(&b) < 0 ? -1 : 0;
        if (result == 0)
            print_warnings(&b);
        else
            message_error("%s", b.latch.message);
    }
    close_all(&b);
    return result;
}

/* ----------------------------------------------------------------- command */

/* Processes all files. Returns the worst result, as one_file(). */
static int all_files(const struct bgzip_opts *o, struct bgzip_output *all, int n_threads)
{
    int result = 0;
    bool shared = all || o->to_stdout;
    if (o->n_files == 0)
        return one_file(o, "-", all, n_threads);
    for (size_t i = 0; i < o->n_files && (result == 0 || !shared); i++) {
        int one = one_file(o, o->files[i], all, n_threads);
        result = one < 0 || result == 0 ? one : result;
    }
    return result;
}

/* Writes all files to the output of -o. */
static int all_to_one(const struct bgzip_opts *o, int n_threads)
{
    struct latch latch = {0};
    struct bgzip_output all = no_output;
    char *beside = NULL;
    int result = -1;
    if (makes_index(o) && !o->index_name && asprintf(&beside, "%s.gzi", o->output) < 0)
        return message_error("out of memory");
    all.index_name = makes_index(o) ? beside ? beside : o->index_name : NULL;
    if (open_output(&all, o->output, &latch) == 0)
        result = all_files(o, &all, n_threads);
    if (result == 0)
        result = commit_output(&all, &latch);
    abandon_output(&all);
    gzi_index_free(&all.index);
    free(beside);
    if (latch.message[0])
        message_error("%s", latch.message);
    return result;
}

int bgzip(const struct bgzip_opts *o)
{
    machine_share_heaps();
    const char *why;
    int n_threads = machine_team(o->n_threads, 0, &why);
    bool to_one = o->output && o->n_files > 1 && (o->mode == BGZIP_COMPRESS || o->mode == BGZIP_DECOMPRESS);
    int result = to_one ? all_to_one(o, n_threads) : all_files(o, NULL, n_threads);
    latch_reraise();
    return result < 0 ? EXIT_FAILURE : result;
}
