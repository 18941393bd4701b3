/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include "bam/bam_record.h"
#include "base/byte_hash.h"
#include "base/latch.h"
#include "mpi/input_split.h"
#include "mpi/text_split.h"

enum {
    BLOCK_HEADER = 18, BLOCK_MOST = 65536,
    SAMPLE_BYTES = BLOCK_MOST,   /* what all ranks learn the names' shape from */
    /* Bytes of the stream in which so many records must follow each other. */
    WINDOW_FIRST = 256 << 10, WINDOW_MOST = 256 << 20, RECORDS_LEAST = 2,
};

#define NO_INPUT "%s: over MPI only a regular file of BAM in BGZF or of SAM text is sorted as yet. Nothing was read"

#define NOT_READ "reading %s failed at file offset %llu"

struct file {
    const char *path;
    int fd;
    BGZF *bgzf;
    uint64_t size, first;        /* first: virtual offset of the first record */
    int32_t n_ref;
    bool is_text;
    struct latch *latch;
};

/* ---- the same file? ---- */

/* What must be the same for all ranks. */
struct identity {
    uint64_t size, seconds, beginning;
};

static int look(struct file *f, struct identity *id)
{
    struct stat st;
    uint8_t *bytes = malloc(BLOCK_MOST);
    if (!bytes)
        return latch_fail(f->latch, "out of memory");
    ssize_t n = f->fd < 0 || fstat(f->fd, &st) < 0 ? -1 : pread(f->fd, bytes, BLOCK_MOST, 0);
    if (n < 0)
        latch_fail(f->latch, "cannot open %s: %s", f->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        latch_fail(f->latch, NO_INPUT, f->path);
    else
        *id = (struct identity){f->size = (uint64_t)st.st_size, (uint64_t)st.st_mtime, byte_hash(bytes, (size_t)n, 0)};
    free(bytes);
    return latch_tripped(f->latch) ? -1 : 0;
}

static int check_same(const struct mpi_team *team, const struct file *f, struct identity mine)
{
    struct identity first = mine;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (memcmp(&first, &mine, sizeof mine) != 0)
        latch_fail(f->latch, "%s is not the file that rank 0 sees (%llu bytes here, %llu there). Nothing was read",
                   f->path, (unsigned long long)mine.size, (unsigned long long)first.size);
    return mpi_team_agree(team, f->latch);
}

/* ---- where a part begins ---- */

/* Whether BGZF blocks follow each other from p[n] on; then the size of the first. 0: no. */
static uint32_t block_size(const uint8_t *p, size_t n)
{
    static const uint8_t magic[] = {31, 139, 8, 4}, extra[] = {6, 0, 'B', 'C', 2, 0};
    if (n < BLOCK_HEADER || memcmp(p, magic, sizeof magic) != 0 || memcmp(p + 10, extra, sizeof extra) != 0)
        return 0;
    return (uint32_t)p[16] + ((uint32_t)p[17] << 8) + 1;
}

/* The first block at or behind a place in the file. f->size: there is none. */
static uint64_t find_block(const struct file *f, uint64_t from)
{
    enum { LOOK = 2 * BLOCK_MOST + BLOCK_HEADER };
    uint8_t *p = malloc(LOOK);
    ssize_t n = p ? pread(f->fd, p, LOOK, (off_t)from) : 0;
    uint64_t found = f->size;
    for (size_t i = 0; n > 0 && i < (size_t)n && found == f->size; i++) {
        uint32_t size = block_size(p + i, (size_t)n - i);
        bool at_end = size && from + i + size == f->size;
        if (size && (at_end || (i + size < (size_t)n && block_size(p + i + size, (size_t)n - i - size))))
            found = from + i;
    }
    free(p);
    return found;
}

/* Where in p[n] records begin that follow each other to its end; n: nowhere. whole: the file ends there. */
static size_t find_record(const uint8_t *p, size_t n, int32_t n_ref, bool whole)
{
    for (size_t start = 0; start < n; start++) {
        size_t at = start;
        unsigned found = 0;
        enum bam_fault fault;
        while (!(fault = bam_record_check(p + at, n - at, n_ref).fault)) {
            at += bam_record_size((const struct bam_record *)(p + at));
            found++;
        }
        if (whole ? at == n && found > 0 : fault == BAM_CUT && found >= RECORDS_LEAST)
            return start;
    }
    return n;
}

static int64_t virtual_of(const struct file *f, uint64_t block, uint8_t *scratch, size_t n)
{
    if (bgzf_seek(f->bgzf, (int64_t)(block << 16), SEEK_SET) < 0 || bgzf_read(f->bgzf, scratch, n) != (ssize_t)n)
        return -1;
    return bgzf_tell(f->bgzf);
}

/* Virtual offset of the first record behind a place in the file; the file's end if none is found. Then the rank before
 * reads what there is, and tells of the damage, if it is that. */
static uint64_t find_start(const struct file *f, uint64_t from)
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
        size_t at = n > 0 ? find_record(p, (size_t)n, f->n_ref, whole) : 0;
        int64_t start = n > 0 && at < (size_t)n ? virtual_of(f, block, p, at) : -1;
        free(p);
        if (start >= 0)
            return (uint64_t)start;
        if (whole || n <= 0)
            return none;
    }
    return none;
}

/* ---- what lies in blocks that two parts share ---- */

/* Reads n bytes of the stream at a virtual offset. NULL: failed. */
static uint8_t *read_at(const struct file *f, uint64_t offset, size_t n)
{
    uint8_t *p = malloc(n + 1);
    if (p && bgzf_seek(f->bgzf, (int64_t)offset, SEEK_SET) == 0 && bgzf_read(f->bgzf, p, n) == (ssize_t)n)
        return p;
    free(p);
    latch_fail(f->latch, NOT_READ, f->path, (unsigned long long)(offset >> 16));
    return NULL;
}

/* The rest of the block in which the part begins. */
static int read_head(struct input_split *s, const struct file *f, uint64_t start, uint64_t end)
{
    uint8_t first;
    s->part.begin = start >> 16;
    if ((start & 0xffff) == 0)
        return 0;
    if (bgzf_seek(f->bgzf, (int64_t)start, SEEK_SET) < 0 || bgzf_read(f->bgzf, &first, 1) != 1)
        return latch_fail(f->latch, NOT_READ, f->path, (unsigned long long)(start >> 16));
    /* Behind a block's last byte htslib has forgotten its length. */
    bool was_last = (uint64_t)bgzf_tell(f->bgzf) >> 16 != start >> 16;
    size_t rest = was_last ? 1 : (size_t)(f->bgzf->block_length - (int)(start & 0xffff));
    bool ends_here = start >> 16 == end >> 16;
    s->part.head_size = ends_here ? (size_t)(end - start) : rest;
    if (!(s->head = read_at(f, start, s->part.head_size)))
        return -1;
    s->part.head = s->head;
    s->part.begin = ends_here ? end >> 16 : (uint64_t)bgzf_tell(f->bgzf) >> 16;
    return 0;
}

static int read_tail(struct input_split *s, const struct file *f, uint64_t start, uint64_t end)
{
    s->part.end = end >> 16;
    if (start >> 16 == end >> 16 && s->part.head_size)
        return 0;
    s->part.tail_size = (size_t)(end & 0xffff);
    if (s->part.tail_size && !(s->tail = read_at(f, end >> 16 << 16, s->part.tail_size)))
        return -1;
    s->part.tail = s->tail;
    return 0;
}

/* Records of the file's beginning, of which the last may be cut. */
static int read_sample(struct input_split *s, const struct file *f)
{
    ssize_t n = -1;
    s->sample = malloc(SAMPLE_BYTES);
    if (s->sample && bgzf_seek(f->bgzf, (int64_t)f->first, SEEK_SET) == 0)
        n = bgzf_read(f->bgzf, s->sample, SAMPLE_BYTES);
    s->part.sample = s->sample;
    s->part.sample_size = n > 0 ? (size_t)n : 0;
    return s->sample ? 0 : latch_fail(f->latch, "out of memory");
}

static int read_edges(struct input_split *s, const struct file *f, uint64_t start, uint64_t end)
{
    if (start < end && (read_head(s, f, start, end) < 0 || read_tail(s, f, start, end) < 0))
        return -1;
    if (start >= end)
        s->part.begin = s->part.end = end >> 16;
    s->part.is_last = s->part.end == f->size && s->part.begin < s->part.end;
    return read_sample(s, f);
}

/* ---- all together ---- */

static void open_bam(struct input_split *s, struct file *f)
{
    f->bgzf = bgzf_open(f->path, "r");
    if (f->bgzf)
        s->part.sam = bam_hdr_read(f->bgzf);
    if (!s->part.sam) {
        latch_fail(f->latch, "%s: its header cannot be read", f->path);
        return;
    }
    f->first = (uint64_t)bgzf_tell(f->bgzf);
    f->n_ref = sam_hdr_nref(s->part.sam);
}

/* As the ordinary program decides what it reads. */
static void open_file(struct input_split *s, struct file *f, struct text_split *text)
{
    htsFormat format = {.format = unknown_format};
    hFILE *file = hopen(f->path, "r");
    int known = file ? hts_detect_format(file, &format) : -1;
    if (file)
        hclose_abruptly(file);
    f->is_text = format.format == sam && format.compression == no_compression;
    if (known < 0)
        latch_fail(f->latch, "cannot open %s: %s", f->path, strerror(errno));
    else if (format.format == empty_format && format.compression != bgzf)
        latch_fail(f->latch, "%s is empty: there is not even a header", f->path);
    else if (!f->is_text && (format.format != bam || format.compression != bgzf))
        latch_fail(f->latch, NO_INPUT, f->path);
    else if (!f->is_text)
        open_bam(s, f);
    else if (text_split_open(text) == 0)
        f->first = text->first;
    if (f->is_text) {
        s->part.sam = text->sam;
        s->part.sample = s->sample = text->sample.p;
        s->part.sample_size = text->sample.n;
    }
}

/* starts[size + 1]: where each rank's part begins, and the last one ends. */
static void share_starts(const struct mpi_team *team, const struct file *f, const struct text_split *text,
                         uint64_t *starts)
{
    unsigned shift = f->is_text ? 0 : 16;
    uint64_t data = f->first >> shift, size = (uint64_t)team->size, rank = (uint64_t)team->rank;
    uint64_t from = data + (f->size - data) / size * rank;
    uint64_t mine = rank == 0 ? f->first : f->is_text ? text_split_find(text, from) : find_start(f, from);
    MPI_Allgather(&mine, 1, MPI_UINT64_T, starts, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    starts[team->size] = f->size << shift;
    for (int i = team->size; i > 0; i--)         /* a long record may go through several ranges */
        if (starts[i - 1] > starts[i])
            starts[i - 1] = starts[i];
}

static void share_file(struct input_split *s, const struct mpi_team *team, const struct file *f,
                       const struct text_split *text)
{
    uint64_t *starts = calloc((size_t)team->size + 1, sizeof *starts);
    if (!starts)
        latch_fail(f->latch, "out of memory");
    if (mpi_team_agree(team, f->latch) == 0) {
        share_starts(team, f, text, starts);
        if (f->is_text) {
            s->part.begin = starts[team->rank];
            s->part.end = starts[team->rank + 1];
        } else {
            read_edges(s, f, starts[team->rank], starts[team->rank + 1]);
        }
    }
    free(starts);
}

static int split_file(struct input_split *s, const struct mpi_team *team, struct file *f)
{
    struct identity id = {0};
    look(f, &id);
    if (mpi_team_agree(team, f->latch) < 0 || check_same(team, f, id) < 0)
        return -1;
    struct text_split text = {.path = f->path, .fd = f->fd, .size = f->size, .latch = f->latch};
    open_file(s, f, &text);
    if (mpi_team_agree(team, f->latch) < 0)
        return -1;
    share_file(s, team, f, &text);
    return mpi_team_agree(team, f->latch);
}

int input_split_open(struct input_split *s, const struct mpi_team *team, const char *path, struct latch *latch)
{
    *s = (struct input_split){.head = NULL};
    struct file f = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC), .latch = latch};
    int result = split_file(s, team, &f);
    if (f.bgzf)
        bgzf_close(f.bgzf);
    if (f.fd >= 0)
        close(f.fd);
    return result;
}

void input_split_close(struct input_split *s)
{
    sam_hdr_destroy(s->part.sam);
    free(s->head);
    free(s->tail);
    free(s->sample);
}
