/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include "bam/record_search.h"
#include "base/byte_hash.h"
#include "base/engine.h"
#include "base/input_name.h"
#include "base/latch.h"
#include "base/message.h"
#include "bam/bam_header.h"
#include "codec/bgzf_block.h"
#include "mpi/input_split.h"
#include "mpi/mpi_wait.h"
#include "mpi/text_split.h"
#include "mpi/whole_input.h"
#include "read/input_format.h"
#include "read/input_part.h"
#include "read/input_request.h"

enum {
    SAMPLE_BYTES = BGZF_MAX_BLOCK,
    /* A start is looked for in a window of the stream, which has WINDOW_FIRST bytes at first, and WINDOW_MOST at
     * most. */
    WINDOW_FIRST = 256 << 10, WINDOW_MOST = 256 << 20,
};

#define NOT_READ "reading %s failed at file offset %llu"

struct split_file {
    const char *path;
    int fd;
    BGZF *bgzf;
    uint64_t size, first;        /* first: virtual offset of the first record */
    int32_t n_ref;
    bool is_stream;              /* a pipe or a URL: only rank 0 can read it, and only once */
    bool is_whole;               /* one rank reads all of it; also set for a stream */
    bool is_text;
    int reader;                  /* the rank that reads the file, if it is_whole */
    struct whole_input whole;
    struct text_split text;
    struct input_part part;      /* what this rank reads, if not whole */
    uint8_t *head, *tail;        /* the part points to these, and to its header */
    uint8_t *sample;             /* the file's first records */
    size_t sample_size;
    struct latch *latch;
};

/* ---- do all ranks see the same file? ---- */

/* The facts that must be the same for all ranks. */
struct identity {
    uint64_t size, seconds, beginning;
};

static int look(struct split_file *f, struct identity *id)
{
    struct stat st;
    uint8_t *bytes = malloc(BGZF_MAX_BLOCK);
    if (!bytes)
        return latch_fail(f->latch, "out of memory");
    ssize_t n = f->fd < 0 || fstat(f->fd, &st) < 0 ? -1 : pread(f->fd, bytes, BGZF_MAX_BLOCK, 0);
    if (n < 0)
        latch_fail(f->latch, "cannot open %s: %s", f->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        latch_fail(f->latch, "%s is not a regular file here, but it is one for rank 0", f->path);
    else
        *id = (struct identity){f->size = (uint64_t)st.st_size, (uint64_t)st.st_mtime, byte_hash(bytes, (size_t)n, 0)};
    free(bytes);
    return latch_tripped(f->latch) ? -1 : 0;
}

static int check_same(const struct mpi_team *team, const struct split_file *f, struct identity mine)
{
    struct identity first = mine;
    mpi_wait_bcast(&first, sizeof first, MPI_BYTE, 0);
    if (memcmp(&first, &mine, sizeof mine) != 0)
        latch_fail(f->latch, "%s is not the file that rank 0 sees (%llu bytes here, %llu there). Nothing was read",
                   f->path, (unsigned long long)mine.size, (unsigned long long)first.size);
    return mpi_team_agree(team, f->latch);
}

/* ---- where a part begins ---- */

/* Returns the offset of the first block at or after a place in the file; f->size if there is none. */
static uint64_t find_block(const struct split_file *f, uint64_t from)
{
    enum { LOOK = 2 * BGZF_MAX_BLOCK + BGZF_HEADER };
    uint8_t *p = malloc(LOOK);
    ssize_t n = p ? pread(f->fd, p, LOOK, (off_t)from) : 0;
    size_t at = n > 0 ? bgzf_block_find(p, (size_t)n) : 0;
    free(p);
    return n > 0 && at < (size_t)n ? from + at : f->size;
}

static int64_t virtual_of(const struct split_file *f, uint64_t block, uint8_t *scratch, size_t n)
{
    if (bgzf_seek(f->bgzf, (int64_t)(block << 16), SEEK_SET) < 0 || bgzf_read(f->bgzf, scratch, n) != (ssize_t)n)
        return -1;
    return bgzf_tell(f->bgzf);
}

/* Returns the virtual offset of the first record after a place in the file; the end of the file if no record is found.
 * In that case the rank before reads what there is, and reports the damage, if there is any. */
static uint64_t find_start(const struct split_file *f, uint64_t from)
{
    uint64_t block = find_block(f, from), none = f->size << 16;
    for (size_t window = WINDOW_FIRST; block < f->size && window <= WINDOW_MOST; window *= 4) {
        uint8_t *p = malloc(window);
        if (!p || bgzf_seek(f->bgzf, (int64_t)(block << 16), SEEK_SET) < 0) {
            free(p);
            return none;
        }
        ssize_t n = bgzf_read(f->bgzf, p, window);
        bool whole = n >= 0 && (size_t)n < window;
        size_t at = n > 0 ? record_search_start(p, (size_t)n, f->n_ref, whole) : 0;
        int64_t start = n > 0 && at < (size_t)n ? virtual_of(f, block, p, at) : -1;
        free(p);
        if (start >= 0)
            return (uint64_t)start;
        if (whole || n <= 0)
            return none;
    }
    return none;
}

/* ---- bytes in blocks that two parts share ---- */

/* Reads n bytes of the stream at a virtual offset. NULL: failed. */
static uint8_t *read_at(const struct split_file *f, uint64_t offset, size_t n)
{
    uint8_t *p = malloc(n + 1);
    if (p && bgzf_seek(f->bgzf, (int64_t)offset, SEEK_SET) == 0 && bgzf_read(f->bgzf, p, n) == (ssize_t)n)
        return p;
    free(p);
    latch_fail(f->latch, NOT_READ, f->path, (unsigned long long)(offset >> 16));
    return NULL;
}

/* Reads the rest of the block in which the part begins. */
static int read_head(struct split_file *f, uint64_t start, uint64_t end)
{
    uint8_t first;
    f->part.begin = start >> 16;
    if ((start & 0xffff) == 0)
        return 0;
    if (bgzf_seek(f->bgzf, (int64_t)start, SEEK_SET) < 0 || bgzf_read(f->bgzf, &first, 1) != 1)
        return latch_fail(f->latch, NOT_READ, f->path, (unsigned long long)(start >> 16));
    /* After the last byte of a block htslib no longer knows the length of the block. */
    bool was_last = (uint64_t)bgzf_tell(f->bgzf) >> 16 != start >> 16;
    size_t rest = was_last ? 1 : (size_t)(f->bgzf->block_length - (int)(start & 0xffff));
    bool ends_here = start >> 16 == end >> 16;
    f->part.head_size = ends_here ? (size_t)(end - start) : rest;
    if (!(f->head = read_at(f, start, f->part.head_size)))
        return -1;
    f->part.head = f->head;
    f->part.begin = ends_here ? end >> 16 : (uint64_t)bgzf_tell(f->bgzf) >> 16;
    return 0;
}

static int read_tail(struct split_file *f, uint64_t start, uint64_t end)
{
    f->part.end = end >> 16;
    if (start >> 16 == end >> 16 && f->part.head_size)
        return 0;
    f->part.tail_size = (size_t)(end & 0xffff);
    if (f->part.tail_size && !(f->tail = read_at(f, end >> 16 << 16, f->part.tail_size)))
        return -1;
    f->part.tail = f->tail;
    return 0;
}

/* Reads records from the beginning of the file. The last one may be cut. */
static int read_sample(struct split_file *f)
{
    ssize_t n = -1;
    f->sample = malloc(SAMPLE_BYTES);
    if (f->sample && bgzf_seek(f->bgzf, (int64_t)f->first, SEEK_SET) == 0)
        n = bgzf_read(f->bgzf, f->sample, SAMPLE_BYTES);
    f->sample_size = n > 0 ? (size_t)n : 0;
    return f->sample ? 0 : latch_fail(f->latch, "out of memory");
}

static int read_edges(struct split_file *f, uint64_t start, uint64_t end)
{
    if (start < end && (read_head(f, start, end) < 0 || read_tail(f, start, end) < 0))
        return -1;
    if (start >= end)
        f->part.begin = f->part.end = end >> 16;
    f->part.is_last = f->part.end == f->size && f->part.begin < f->part.end;
    return read_sample(f);
}

/* ---- all together ---- */

static void open_bam(struct split_file *f)
{
    f->bgzf = bgzf_open(f->path, "r");
    if (f->bgzf)
        f->part.sam = bam_hdr_read(f->bgzf);
    if (!f->part.sam) {
        latch_fail(f->latch, "%s: its header cannot be read", f->path);
        return;
    }
    f->first = (uint64_t)bgzf_tell(f->bgzf);
    f->n_ref = sam_hdr_nref(f->part.sam);
}

static void open_text(struct split_file *f)
{
    f->text.file = (struct input_file){.path = f->path, .fd = f->fd, .end = (off_t)f->size, .latch = f->latch};
    text_split_open(&f->text);
    f->first = f->text.first;
    f->part.sam = f->text.sam;
    f->sample = f->text.sample.p;
    f->sample_size = f->text.sample.n;
}

static void open_format(struct split_file *f, const hts_opt *options)
{
    htsFormat found = {0};
    hFILE *file = hopen(f->path, "r");
    int known = file ? hts_detect_format(file, &found) : -1;
    if (file)
        hclose_abruptly(file);
    if (known < 0) {
        latch_fail(f->latch, "cannot open %s: %s", f->path, strerror(errno));
        return;
    }
    enum input_kind kind = input_format_kind(&found);
    f->is_text = kind == INPUT_SAM_PLAIN;
    f->is_whole = !input_format_has_parts(kind, options);
    if (kind == INPUT_EMPTY)
        latch_fail(f->latch, "%s is empty: it has no header", f->path);
    else if (f->is_text)
        open_text(f);
    else if (!f->is_whole)
        open_bam(f);
}

/* Opens a file. Nothing is read yet of an input that one rank reads completely. */
static int open_file(struct split_file *f, const struct mpi_team *team, const char *path,
                     const struct inputs_options *how)
{
    struct identity id = {0};
    int stream = team->rank == 0 && input_name_is_stream(path);
    *f = (struct split_file){.path = path, .fd = -1, .latch = how->engine->latch};
    mpi_wait_bcast(&stream, 1, MPI_INT, 0);
    f->is_stream = f->is_whole = stream;
    if (stream)
        return 0;
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    look(f, &id);
    if (mpi_team_agree(team, f->latch) < 0 || check_same(team, f, id) < 0)
        return -1;
    open_format(f, how->request->format_options);
    return mpi_team_agree(team, f->latch);
}

/* Closes the file, except for what belongs to the rank's part. */
static void close_file(struct split_file *f)
{
    if (f->bgzf)
        bgzf_close(f->bgzf);
    if (f->fd >= 0)
        close(f->fd);
    f->bgzf = NULL;
    f->fd = -1;
}

/* Returns where the data of a file begin. */
static uint64_t data_of(const struct split_file *f)
{
    return f->is_text ? f->first : f->first >> 16;
}

/* Returns where a file ends. An input that one rank reads completely has only a beginning. */
static uint64_t end_of_file(const struct split_file *f)
{
    return f->is_whole ? 1 : f->is_text ? f->size : f->size << 16;
}

/* Returns where this rank's part of a file begins. skip: bytes of data before the rank's range, counted from where the
 * file's data begin. */
static uint64_t start_of(const struct split_file *f, int64_t skip)
{
    uint64_t from = data_of(f) + (uint64_t)skip;
    if (skip <= 0)
        return f->first;
    if (f->is_whole || from >= f->size)
        return end_of_file(f);
    return f->is_text ? text_split_find(&f->text, from) : find_start(f, from);
}

/* Sets starts[size + 1]: where each rank's part of the file begins, then where the last part ends. */
static void share_starts(const struct mpi_team *team, const struct split_file *f, int64_t skip, uint64_t *starts)
{
    uint64_t mine = start_of(f, skip);
    mpi_wait_allgather(&mine, 1, MPI_UINT64_T, starts);
    starts[team->size] = end_of_file(f);
    for (int i = team->size; i > 0; i--)         /* one long record may cover several ranges */
        if (starts[i - 1] > starts[i])
            starts[i - 1] = starts[i];
}

static void choose_part(struct split_file *f, const struct mpi_team *team, const uint64_t *starts)
{
    uint64_t start = starts[team->rank], end = starts[team->rank + 1];
    if (f->is_whole) {
        while (starts[f->reader + 1] == starts[f->reader])
            f->reader++;
    } else if (f->is_text) {
        f->part.begin = start;
        f->part.end = end;
    } else {
        read_edges(f, start, end);
    }
}

/* Returns the first file that the ranks can share. The parts of the ranks must be in the order of the input, so rank 0,
 * which reads the streams, also reads all files before them. */
static size_t first_shared(const struct split_file *files, size_t n)
{
    while (n > 0 && !files[n - 1].is_stream)
        n--;
    return n;
}

/* Divides the files among the ranks. The ranges of bytes are those of all files, one after the other, so the parts of
 * the ranks are in the order of the input. */
static void share_files(const struct mpi_team *team, struct split_file *files, size_t n, uint64_t *starts)
{
    size_t first = first_shared(files, n);
    uint64_t all = 0;
    for (size_t i = first; i < n; i++)
        all += files[i].size - data_of(&files[i]);
    int64_t skip = (int64_t)(all / (uint64_t)team->size * (uint64_t)team->rank);
    for (size_t i = 0; i < n; i++) {
        bool shared = i >= first;
        share_starts(team, &files[i], shared ? skip : team->rank ? INT64_MAX >> 1 : 0, starts);
        choose_part(&files[i], team, starts);
        skip -= shared ? (int64_t)(files[i].size - data_of(&files[i])) : 0;
    }
}

static int open_whole(struct input_split *s, const struct mpi_team *team, const struct inputs_options *how)
{
    for (size_t i = 0; i < s->n; i++) {
        struct split_file *f = &s->files[i];
        s->has_whole = s->has_whole || f->is_whole;
        if (f->is_whole && whole_input_open(&f->whole, team, f->reader, f->path, how, &s->in.each[i]) < 0)
            return -1;
    }
    return 0;
}

/* Opens the rank's parts of the files that are cut. */
static int open_parts(struct input_split *s, const struct inputs_options *how)
{
    for (size_t i = 0; i < s->n; i++) {
        struct split_file *f = &s->files[i];
        close_file(f);
        if (!f->is_whole && input_open(&s->in.each[i], f->path, &f->part, how) < 0)
            return -1;
    }
    return 0;
}

/* Makes the header of all inputs, as the ordinary program merges them. */
static int merge_headers(struct input_split *s, struct latch *latch)
{
    sam_hdr_t *all = s->in.each->header.sam;
    for (size_t i = 1; i < s->n; i++) {
        const char *path = s->files[i].path;
        int renamed = bam_header_merge(all, s->in.each[i].header.sam, NULL, path, latch);
        if (renamed < 0)
            return -1;
        if (renamed > 0)
            message_warning("%s: %d of its @PG lines are renamed to ID-XXXXXXXX, because earlier inputs have other "
                            "lines with the same IDs. Over MPI, PG tags of records are not renamed", path, renamed);
    }
    return (s->sam = sam_hdr_dup(all)) ? 0 : latch_fail(latch, "out of memory");
}

/* Finds the rank's part of each file. -1: some rank failed, and the error was reported. */
static int split(struct input_split *s, const struct mpi_team *team, const struct inputs_options *how, uint64_t *starts)
{
    for (; s->n < how->request->n; s->n++)
        if (open_file(&s->files[s->n], team, how->request->paths[s->n], how) < 0)
            return -1;
    share_files(team, s->files, s->n, starts);
    return mpi_team_agree(team, how->engine->latch);
}

/* Opens what this rank reads. -1: some rank failed, and the error was reported. */
static int open_inputs(struct input_split *s, const struct mpi_team *team, const struct inputs_options *how)
{
    const struct split_file *first = s->files;
    if (open_whole(s, team, how) < 0)
        return -1;
    if (open_parts(s, how) == 0 && merge_headers(s, how->engine->latch) == 0)
        inputs_complete(&s->in, how);
    s->sample = first->is_whole ? first->whole.sample : first->sample;
    s->sample_size = first->is_whole ? first->whole.sample_size : first->sample_size;
    return mpi_team_agree(team, how->engine->latch);
}

int input_split_open(struct input_split *s, const struct mpi_team *team, const struct inputs_options *options)
{
    struct inputs_options how = *options;
    uint64_t *starts = calloc((size_t)team->size + 1, sizeof *starts);
    *s = (struct input_split){.files = calloc(how.request->n, sizeof *s->files)};
    if (inputs_new(&s->in, &how) == 0 && (!s->files || !starts))
        latch_fail(how.engine->latch, "out of memory");
    s->in.n = s->in.each ? how.request->n : 0;
    how.codecs = s->in.codecs;
    bool opened = mpi_team_agree(team, how.engine->latch) == 0 && split(s, team, &how, starts) == 0
               && open_inputs(s, team, &how) == 0;
    free(starts);
    return opened ? 0 : -1;
}

void input_split_close(struct input_split *s)
{
    inputs_close(&s->in);
    for (size_t i = 0; i < s->n; i++) {
        close_file(&s->files[i]);
        sam_hdr_destroy(s->files[i].part.sam);
        free(s->files[i].head);
        free(s->files[i].tail);
        free(s->files[i].sample);
        whole_input_close(&s->files[i].whole);
    }
    sam_hdr_destroy(s->sam);
    free(s->files);
}
