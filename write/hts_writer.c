/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "write/hts_writer.h"
#include "base/hts_file.h"
#include "base/latch.h"
#include "write/out_count.h"
#include "write/out_pipe.h"
#include "write/record_out.h"

enum { CSI_MIN_SHIFT = 14 };     /* as samtools index -c */

struct hts_writer {
    struct hts_writer_options opt;
    samFile *sam;
    int fd;                      /* beneath it */
    htsThreadPool threads;       /* of it */
    struct htslib_use use;       /* the memory it takes, and how many threads it gets */
    struct out_pipe *pipe;       /* what it writes to; NULL: the file itself */
    struct out_count *count;     /* of what comes through it, if that is CRAM; else NULL */
    uint64_t n;                  /* records put */
    sam_hdr_t *header;           /* the caller's */
    struct record_out record;
    record_finish_fn *finish;
    uint64_t checksum;
};

static int failed(struct hts_writer *w, const char *what)
{
    /* ENOENT is left from looking for references, not from writing to an open file. */
    return latch_fail(w->opt.latch, "%s %s failed: %s", what, w->opt.path,
                      errno && errno != ENOENT ? strerror(errno) : "htslib gave no reason");
}

/* CRAM goes through a pipe also without threads, because htslib's results say too little. -1: no memory. */
static int open_pipe(struct hts_writer *w)
{
    bool is_cram = w->opt.format->format == cram;
    if (is_cram && !(w->count = out_count_new()))
        return -1;
    if (is_cram || w->use.n_threads > 1) {
        struct out_pipe_options how = {w->opt.fd, w->opt.path, is_cram ? out_count_see : NULL, w->count, w->opt.latch};
        w->pipe = out_pipe_open(&how);
    }
    if (!w->pipe)
        w->use.n_threads = 1;
    return 0;
}

static int open_sam(struct hts_writer *w)
{
    char mode[16], level[4] = "";
    htsFormat format = *w->opt.format;           /* htslib wants it writable */
    w->use = memory_shares_htslib(format.format == cram, true, &w->opt.room, w->opt.n_threads);
    /* Threads that make an index of lines would write outside of their memory if a tag holds an end of line. Tasks of
     * ours make most of SAM. */
    if (format.format == sam)
        w->use.n_threads = 1;
    if (open_pipe(w) < 0)
        return failed(w, "writing");
    w->fd = w->pipe ? out_pipe_end(w->pipe) : dup(w->opt.fd);
    hFILE *file = w->fd < 0 ? NULL : hdopen(w->fd, "w");
    if (!file)
        return failed(w, "writing");
    /* A compression level belongs to the compressed formats; -l does not make SAM SAM.gz. */
    if (w->opt.level >= 0 && (format.format == cram || format.compression != no_compression))
        snprintf(level, sizeof level, "%d", w->opt.level % 10);
    snprintf(mode, sizeof mode, "w%s%s%s",
             format.format == cram ? "c" : format.format == fastq_format ? "f"
             : format.format == fasta_format ? "F" : "",
             format.format != cram && format.compression == bgzf ? "z" : "", level);
    w->sam = hts_hopen(file, w->opt.path, mode);
    if (!w->sam) {
        hclose_abruptly(file);
        return failed(w, "opening");
    }
    return 0;
}

static int set_up(struct hts_writer *w)
{
    struct hts_file_options how = {
        .path = w->opt.path,
        .writing = true,
        .format_options = w->opt.format->specific,
        .reference = w->opt.reference,
        .n_threads = w->use.n_threads,
        .latch = w->opt.latch,
    };
    return hts_file_set_up(w->sam, &w->threads, &how);
}

struct hts_writer *hts_writer_open(const struct hts_writer_options *options)
{
    struct hts_writer *w = calloc(1, sizeof *w);
    if (!w || record_out_open(&w->record) < 0) {
        latch_fail(options->latch, "out of memory");
        free(w);
        return NULL;
    }
    w->opt = *options;
    errno = 0;
    if (open_sam(w) == 0 && set_up(w) == 0)
        return w;
    hts_writer_close(w);
    return NULL;
}

int hts_writer_header(struct hts_writer *w, sam_hdr_t *header, const char *index)
{
    errno = 0;
    w->header = header;
    if (sam_hdr_write(w->sam, header) < 0)
        return failed(w, "writing the header of");
    if (index && sam_idx_init(w->sam, header, CSI_MIN_SHIFT, index) < 0)
        return failed(w, "starting the index of");
    return 0;
}

void hts_writer_set_finish(struct hts_writer *w, record_finish_fn *finish)
{
    w->finish = finish;
}

int hts_writer_put(struct hts_writer *w, const uint8_t *record, size_t size)
{
    struct record_out_options how = {w->opt.path, w->opt.format->format, w->header, w->finish, w->opt.latch};
    if (record_out_take(&w->record, &how, record, size, &w->checksum) < 0)
        return -1;
    errno = 0;
    if (sam_write1(w->sam, w->header, w->record.b) < 0)
        return failed(w, "writing");
    w->n++;
    return latch_tripped(w->opt.latch) ? -1 : 0;
}

int hts_writer_finish(struct hts_writer *w)
{
    errno = 0;
    if (w->opt.indexed && sam_idx_save(w->sam) < 0)
        return failed(w, "writing the index of");
    bool is_counted = w->pipe && w->count;
    int status = hts_close(w->sam);
    w->sam = NULL;
    out_pipe_close(w->pipe);
    w->pipe = NULL;
    if (status != 0)
        return failed(w, "writing");
    if (latch_tripped(w->opt.latch))
        return -1;
    return is_counted ? out_count_check(w->count, w->n, w->opt.path, w->opt.latch) : 0;
}

/* Closes a file that will not be whole. htslib would write what it has kept so far and an end as if the file were
 * whole. Both go to /dev/null, because the file may be one that is written directly. */
static void abandon(struct hts_writer *w)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, w->fd);
        close(null);
    }
    hts_close(w->sam);
}

void hts_writer_close(struct hts_writer *w)
{
    if (!w)
        return;
    if (w->sam)
        abandon(w);
    hts_file_end_threads(&w->threads);
    out_pipe_close(w->pipe);
    out_count_free(w->count);
    record_out_close(&w->record);
    free(w);
}

size_t hts_writer_memory(const struct hts_writer *w)
{
    return w->use.bytes;
}

uint64_t hts_writer_checksum(const struct hts_writer *w)
{
    return w->checksum;
}
