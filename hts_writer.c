/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "bam1_bytes.h"
#include "bam_arena.h"
#include "byte_buffer.h"
#include "cram_count.h"
#include "cram_maps.h"
#include "hts_writer.h"
#include "hts_threads.h"
#include "latch.h"
#include "memory_plan.h"
#include "out_pipe.h"
#include "sam_count.h"

enum {
    CSI_MIN_SHIFT = 14,          /* as samtools index -c */
    MAPS_MAX = 32 << 10,         /* bytes of a container that are looked at: its maps take some 1 or 2 KiB */
};

struct hts_writer {
    struct hts_writer_options opt;
    samFile *sam;
    htsThreadPool threads;       /* of it */
    int n_threads;               /* to be had for it */
    struct out_pipe *pipe;       /* what it writes to; NULL: the file itself */
    out_pipe_see_fn *see;        /* what counts there; NULL: nothing does */
    struct cram_count cram;      /* by see_cram(), in the pipe's thread; read when the pipe is closed, as is the next */
    uint8_t maps[MAPS_MAX];      /* with it, as the next: how the container under way begins */
    bool maps_broken;            /* of one */
    struct sam_count lines;      /* by see_lines() */
    uint64_t n;                  /* records put */
    uint64_t header_lines;       /* before them, in SAM */
    sam_hdr_t *header;           /* the caller's */
    bool indexed;
    bam1_t *record;
    bgzf_finish_fn *finish;
    struct byte_buffer copy;     /* of the record that is finished */
    uint64_t checksum;
};

static int failed(struct hts_writer *w, const char *what)
{
    /* ENOENT is left from looking for references, not from writing to an open file. */
    return latch_fail(w->opt.latch, "%s %s failed: %s", what, w->opt.path,
                      errno && errno != ENOENT ? strerror(errno) : "htslib gave no reason");
}

/* The next n bytes of a container. */
static void see_maps(struct hts_writer *w, const uint8_t *bytes, size_t n)
{
    uint64_t at = w->cram.at - w->cram.inside;
    if (w->cram.inside == 0 || at >= MAPS_MAX)
        return;
    bool all = n == cram_count_rest(&w->cram) || n >= MAPS_MAX - at;
    n = n < MAPS_MAX - at ? n : MAPS_MAX - at;
    memcpy(w->maps + at, bytes, n);
    if (all && !cram_maps_whole(w->maps, at + n))
        w->maps_broken = true;
}

static void see_cram(void *writer, const uint8_t *bytes, size_t n)
{
    struct hts_writer *w = writer;
    while (n > 0) {
        uint64_t rest = cram_count_rest(&w->cram);
        size_t part = rest == 0 ? 1 : rest < n ? rest : n;
        if (rest > 0)
            see_maps(w, bytes, part);
        cram_count_feed(&w->cram, bytes, part);
        bytes += part;
        n -= part;
    }
}

static void see_lines(void *writer, const uint8_t *bytes, size_t n)
{
    struct hts_writer *w = writer;
    sam_count_feed(&w->lines, bytes, n);
}

/* Behind threads of htslib its results say little, and of CRAM never much: what comes out is counted.
 * FASTQ and FASTA it writes as they are put. -1: no memory. */
static int open_pipe(struct hts_writer *w)
{
    const htsFormat *format = w->opt.format;
    struct out_pipe_options how = {w->opt.fd, w->opt.path, NULL, w, w->opt.latch};
    if (format->format == cram)
        how.see = see_cram;
    else if (format->format == sam)
        how.see = see_lines;
    if (sam_count_start(&w->lines, format->compression != no_compression) < 0)
        return -1;
    if (format->format == cram || w->n_threads > 1)
        w->pipe = out_pipe_open(&how);
    if (!w->pipe)
        w->n_threads = 1;
    else
        w->see = how.see;
    return 0;
}

static int open_sam(struct hts_writer *w)
{
    char mode[16], level[4] = "";
    htsFormat format = *w->opt.format;           /* htslib wants it writable */
    w->n_threads = memory_plan_htslib(format.format == cram, true, w->opt.budget, w->opt.n_threads).n_threads;
    if (open_pipe(w) < 0)
        return failed(w, "writing");
    int fd = w->pipe ? out_pipe_end(w->pipe) : dup(w->opt.fd);
    hFILE *file = fd < 0 ? NULL : hdopen(fd, "w");
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

static int configure(struct hts_writer *w)
{
    if (w->opt.format->specific && hts_opt_apply(w->sam, w->opt.format->specific) < 0)
        return latch_fail(w->opt.latch, "%s: an output format option does not fit the format", w->opt.path);
    if (w->opt.reference && hts_set_fai_filename(w->sam, w->opt.reference) < 0)
        return latch_fail(w->opt.latch, "cannot use %s as reference", w->opt.reference);
    if (hts_threads_start(&w->threads, w->sam, w->n_threads) < 0)
        return failed(w, "starting threads for");
    return 0;
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
    cram_count_start(&w->cram);
    errno = 0;
    if (open_sam(w) == 0 && configure(w) == 0)
        return w;
    hts_writer_close(w);
    return NULL;
}

int hts_writer_header(struct hts_writer *w, sam_hdr_t *header, const char *index)
{
    errno = 0;
    w->header = header;
    w->indexed = index != NULL;
    if (sam_hdr_write(w->sam, header) < 0)
        return failed(w, "writing the header of");
    if (w->see == see_lines)
        w->header_lines = sam_count_lines(sam_hdr_str(header), sam_hdr_length(header));
    if (index && sam_idx_init(w->sam, header, CSI_MIN_SHIFT, index) < 0)
        return failed(w, "starting the index of");
    return 0;
}

void hts_writer_set_finish(struct hts_writer *w, bgzf_finish_fn *finish)
{
    w->finish = finish;
}

/* The record as it is written: others may still compare the one that was put. NULL: no memory. */
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

int hts_writer_put(struct hts_writer *w, const uint8_t *record, size_t size)
{
    if (!(record = finished(w, record, size)))
        return latch_fail(w->opt.latch, "out of memory for a record of %zu bytes", size);
    w->checksum += bam_checksum(record, size);
    if (bam1_from_record(w->record, (const struct bam_record *)record) < 0)
        return latch_fail(w->opt.latch, "out of memory");
    errno = 0;
    if (sam_write1(w->sam, w->header, w->record) < 0)
        return failed(w, "writing");
    w->n++;
    return latch_tripped(w->opt.latch) ? -1 : 0;
}

/* Lines may be more: a tag of BAM that has an end of line in it makes two of one, here as with samtools. */
static int check_written(const struct hts_writer *w)
{
    bool is_cram = w->see == see_cram;
    uint64_t n = w->header_lines + w->n;
    if (w->maps_broken)
        return latch_fail(w->opt.latch, "writing %s failed: htslib wrote a container that cannot be read", w->opt.path);
    if (!w->see || (is_cram ? cram_count_agrees(&w->cram, n) : sam_count_agrees(&w->lines, n)))
        return 0;
    return latch_fail(w->opt.latch, "writing %s failed: of %llu %s htslib wrote %llu", w->opt.path,
                      (unsigned long long)n, is_cram ? "records" : "lines",
                      (unsigned long long)(is_cram ? w->cram.records : w->lines.lines));
}

/* By what it counts of compressed SAM: sam_idx_save() of htslib 1.16 does not tell when a thread has given up. */
static bool index_is_whole(const struct hts_writer *w)
{
    const hts_idx_t *index = w->sam->idx;
    uint64_t n = index ? hts_idx_get_n_no_coor(index) : w->n, mapped, unmapped;
    for (int i = 0; index && i < hts_idx_nseq(index); i++)
        if (hts_idx_get_stat(index, i, &mapped, &unmapped) == 0)
            n += mapped + unmapped;
    return n == w->n;
}

int hts_writer_finish(struct hts_writer *w)
{
    errno = 0;
    if (w->indexed && (sam_idx_save(w->sam) < 0 || !index_is_whole(w)))
        return failed(w, "writing the index of");
    int status = hts_close(w->sam);
    w->sam = NULL;
    out_pipe_close(w->pipe);
    w->pipe = NULL;
    if (status != 0)
        return failed(w, "writing");
    return latch_tripped(w->opt.latch) ? -1 : check_written(w);
}

void hts_writer_close(struct hts_writer *w)
{
    if (!w)
        return;
    if (w->sam)
        hts_close(w->sam);
    hts_threads_end(&w->threads);
    out_pipe_close(w->pipe);
    sam_count_free(&w->lines);
    bam_destroy1(w->record);
    free(w->copy.p);
    free(w);
}

uint64_t hts_writer_checksum(const struct hts_writer *w)
{
    return w->checksum;
}
