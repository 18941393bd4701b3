/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "base/affinity.h"
#include "bam/record_checksum.h"
#include "bam/bam1_bytes.h"
#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "write/hts_writer.h"
#include "base/hts_file.h"
#include "base/latch.h"
#include "write/out_count.h"
#include "write/out_pipe.h"

enum { CSI_MIN_SHIFT = 14 };     /* as samtools index -c */

struct hts_writer {
    struct hts_writer_options opt;
    samFile *sam;
    int fd;                      /* beneath it */
    htsThreadPool threads;       /* of it */
    struct htslib_use use;       /* the memory it takes, and how many threads it gets */
    struct out_pipe *pipe;       /* what it writes to; NULL: the file itself */
    struct out_count *count;     /* of what comes through it */
    uint64_t n;                  /* records put */
    sam_hdr_t *header;           /* the caller's */
    bam1_t *record;
    record_finish_fn *finish;
    struct byte_buffer copy;     /* of the record, for finish */
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
    if (w->opt.format->format == cram || w->use.n_threads > 1) {
        if (!(w->count = out_count_new(w->opt.format)))
            return -1;
        struct out_pipe_options how = {w->opt.fd, w->opt.path, out_count_see, w->count, w->opt.latch};
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
    /* Threads that make an index of lines would write outside of their memory if a tag holds an end of line. */
    if (w->opt.indexed && format.format == sam)
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

/* For SAM, the first record starts threads. */
static int write_first(struct hts_writer *w)
{
    struct affinity bound;
    affinity_widen(&bound);
    int status = sam_write1(w->sam, w->header, w->record);
    affinity_narrow(&bound);
    return status;
}

struct hts_writer *hts_writer_open(const struct hts_writer_options *options)
{
    struct hts_writer *w = calloc(1, sizeof *w);
    if (!w || !(w->record = bam_init1())) {
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

/* The record as it is written: a finished copy, since others may still compare the record that was put. NULL: no
 * memory. */
static const uint8_t *finished(struct hts_writer *w, const uint8_t *record, size_t size)
{
    if (!w->finish)
        return record;
    if (byte_buffer_reserve(&w->copy, size) < 0)
        return NULL;
    memcpy(w->copy.p, record, size);
    w->finish(w->copy.p);
    return w->copy.p;
}

/* Whether htslib can write the tags. For SAM it ignores the last three bytes; for CRAM a tag of NULs is the end. When
 * threads of htslib 1.16 meet a tag that they cannot write, they may wait for ever (SAM) or crash (CRAM). */
static bool can_write_tags(const bam1_t *b, bool is_cram)
{
    const uint8_t *p = bam_get_aux(b), *end = b->data + b->l_data;
    while (p && end - p > 3 && (*p || !is_cram)) {
        bool no_type = is_cram && p[2] == 'd', no_array = p[2] == 'B' && (p[3] == 'A' || p[3] == 'd');
        p = no_type || no_array ? NULL : bam_record_aux_next(p, end);
    }
    return p && (!is_cram || p == end || !*p);
}

int hts_writer_put(struct hts_writer *w, const uint8_t *record, size_t size)
{
    bool is_cram = w->opt.format->format == cram, is_sam = w->opt.format->format == sam;
    if (!(record = finished(w, record, size)))
        return latch_fail(w->opt.latch, "out of memory for a record of %zu bytes", size);
    w->checksum += record_checksum(record, size);
    if (!bam_record_fits((const struct bam_record *)record, size)
        || bam_record_check(record, size, sam_hdr_nref(w->header)).fault)
        return latch_fail(w->opt.latch, "writing %s failed: " BAM_RECORD_CHANGED, w->opt.path);
    if (bam1_from_record(w->record, (const struct bam_record *)record) < 0)
        return latch_fail(w->opt.latch, "out of memory");
    if ((is_cram || is_sam) && !can_write_tags(w->record, is_cram))
        return latch_fail(w->opt.latch, "%s: record %s has a tag that is broken or of a type that %s lacks",
                          w->opt.path, bam_get_qname(w->record), is_cram ? "CRAM" : "SAM");
    errno = 0;
    if ((w->n ? sam_write1(w->sam, w->header, w->record) : write_first(w)) < 0)
        return failed(w, "writing");
    w->n++;
    return latch_tripped(w->opt.latch) ? -1 : 0;
}

int hts_writer_finish(struct hts_writer *w)
{
    errno = 0;
    if (w->opt.indexed && sam_idx_save(w->sam) < 0)
        return failed(w, "writing the index of");
    bool piped = w->pipe;
    int status = hts_close(w->sam);
    w->sam = NULL;
    out_pipe_close(w->pipe);
    w->pipe = NULL;
    if (status != 0)
        return failed(w, "writing");
    if (latch_tripped(w->opt.latch))
        return -1;
    return piped ? out_count_check(w->count, w->header, w->n, w->opt.path, w->opt.latch) : 0;
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
    bam_destroy1(w->record);
    free(w->copy.p);
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
