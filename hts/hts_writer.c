/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "hts/ref_lookup.h"
#include "hts/ref_sums.h"
#include "hts/hts_writer.h"
#include "hts/hts_file.h"
#include "hts/htslib_version.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/message.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "stats/counts.h"
#include "hts/bam_index.h"
#include "hts/cram_settings.h"
#include "write/out_count.h"
#include "write/out_pipe.h"
#include "write/output_request.h"

enum { CSI_MIN_SHIFT = 14 };     /* as samtools index -c */

enum {
    BATCH_RECORDS = 128,         /* largest number of records in a batch, ... */
    BATCH_BYTES = 64 << 10,      /* ... and most bytes of them, unless a single record is longer */
    RECORD_KEPT = 1 << 10,       /* memory that a bam1_t keeps for the next record */
};

/* Records that a task prepares for htslib. */
struct batch {
    struct record_ref records[BATCH_RECORDS];   /* this and the next two: set by the main thread before the batch is
                                                 * handed out */
    uint32_t n;
    size_t size;
    struct record_out ready[BATCH_RECORDS];   /* this and the next two: set by the claimer before DONE */
    uint64_t checksum;
    int result;
};

struct hts_writer {
    const struct output_request *request;
    struct memory_rings rings;
    int out_fd;                  /* descriptor of the file */
    const char *path;            /* path of the file, for messages */
    const struct engine *engine;
    samFile *sam;
    int fd;                      /* the descriptor that `sam` writes to */
    htsThreadPool threads;       /* threads of `sam` */
    struct htslib_use use;       /* the memory that htslib uses, and its number of threads */
    struct out_pipe *pipe;       /* the pipe that `sam` writes to; NULL: it writes to the file itself */
    struct out_count *count;     /* counts the CRAM in the pipe; otherwise NULL */
    uint64_t n;                  /* records written */
    sam_hdr_t *header;           /* the caller's */
    bool needs_refs;             /* htslib must not do without references */
    const char *fasta;           /* the FASTA used for CRAM; NULL: none ... */
    struct ref_sums *sums;       /* ... and the sums of its sequences; NULL: none */
    struct record_out_options how;   /* its sums are NULL if htslib compares them */
    uint64_t checksum;
    struct batch *batches;
    struct task_ring ring;       /* ring of the batches: a batch is handed out when full, and taken back when written */
    size_t under_way;            /* bytes of records in batches that are handed out */
    struct batch *filling;       /* the next batch of the ring, if it has records; otherwise NULL */
};

static int failed(struct hts_writer *w, const char *what)
{
    /* ENOENT comes from the search for references, not from a write to an open file. */
    return latch_fail(w->engine->latch, "%s %s failed: %s", what, w->path,
                      hts_file_cause(errno == ENOENT ? 0 : errno));
}

/* Records in the latch a failure that htslib does not explain: it may have had wrong sequences, or lacked one. Returns
 * -1. */
static int failed_records(struct hts_writer *w)
{
    int no = errno;
    if (w->sums && ref_sums_check_all(w->sums) < 0)
        return -1;
    const char *missing = w->sums || w->needs_refs ? ref_lookup_missing(w->header, w->fasta) : NULL;
    errno = no;
    if (!missing || (errno && errno != ENOENT))
        return failed(w, "writing");
    return latch_fail(w->engine->latch, "writing %s failed: reference %s was not found. Name a "
                      "FASTA that has it (--reference), or write CRAM without references (-O cram,no_ref=1)", w->path,
                      missing);
}

/* Reports the failure of one record, which the index may not have room for. Returns -1. */
static int failed_record(struct hts_writer *w, const bam1_t *b)
{
    struct bam_index_entry entry = {.end = bam_endpos(b), .ref_id = b->core.tid};
    return errno == ERANGE && w->request->index
         ? bam_index_refuse(w->header, &entry, bam_get_qname(b), w->path, w->engine->latch) : failed_records(w);
}

/* CRAM uses a pipe even without threads, because htslib's results do not report all errors. -1: out of memory. */
static int open_pipe(struct hts_writer *w)
{
    bool is_cram = w->request->format.format == cram;
    if (is_cram && !(w->count = out_count_new()))
        return -1;
    if (is_cram || w->use.n_threads > 1) {
        struct out_pipe_options how = {w->out_fd, w->path, is_cram ? out_count_see : NULL, w->count, w->engine->latch};
        w->pipe = out_pipe_open(&how);
    }
    if (!w->pipe)
        w->use.n_threads = 1;
    return 0;
}

static int open_sam(struct hts_writer *w)
{
    char mode[16], level[4] = "";
    htsFormat format = w->request->format;       /* htslib needs it writable */
    w->use = hts_file_use(format.format == cram, true, &w->rings.writer, w->rings.job.n_threads);
    /* Threads that make an index of lines would write outside their memory if a tag holds a line end. Our tasks make
     * most SAM. */
    if (format.format == sam)
        w->use.n_threads = 1;
    if (open_pipe(w) < 0)
        return failed(w, "writing");
    w->fd = w->pipe ? out_pipe_end(w->pipe) : dup(w->out_fd);
    hFILE *file = w->fd < 0 ? NULL : hdopen(w->fd, "w");
    if (!file)
        return failed(w, "writing");
    /* A compression level applies to compressed formats; -l does not make SAM SAM.gz. */
    if (w->request->level >= 0 && (format.format == cram || format.compression != no_compression))
        snprintf(level, sizeof level, "%d", w->request->level % 10);
    snprintf(mode, sizeof mode, "w%s%s%s",
             format.format == cram ? "c" : format.format == fastq_format ? "f"
             : format.format == fasta_format ? "F" : "",
             format.format != cram && format.compression == bgzf ? "z" : "", level);
    w->sam = hts_hopen(file, w->path, mode);
    if (!w->sam) {
        hclose_abruptly(file);
        return failed(w, "opening");
    }
    return 0;
}

static int set_up(struct hts_writer *w)
{
    struct hts_file_options how = {
        .path = w->path,
        .writing = true,
        .format_options = w->request->format.specific,
        .reference = w->request->reference,
        .n_threads = w->use.n_threads,
        .no_threads = w->request->format.format == sam,
        .latch = w->engine->latch,
    };
    /* The version is set before the user's options, which may set another. */
    const char *version = w->request->format.format == cram ? cram_settings_version(htslib_version()) : NULL;
    if (version && hts_set_opt(w->sam, CRAM_OPT_VERSION, version) < 0)
        return failed(w, "setting up");
    return hts_file_set_up(w->sam, &w->threads, &how);
}

/* ---- in tasks ---- */

/* Converts each record of the batch to a bam1_t. */
static void convert_batch(void *writer, uint32_t slot)
{
    struct hts_writer *w = writer;
    struct batch *batch = &w->batches[slot];
    enum stage before = clocks_enter(w->engine->clocks, STAGE_GATHER);
    batch->checksum = 0;
    batch->result = 0;
    for (uint32_t i = 0; i < batch->n && batch->result == 0; i++) {
        batch->ready[i].slot = slot;
        batch->result = record_out_take(&batch->ready[i], &w->how, batch->records[i].data, batch->records[i].size,
                                        &batch->checksum);
    }
    clocks_leave(w->engine->clocks, before, batch->size);
}

/* ---- on the main thread ---- */

static int batches_alloc(struct hts_writer *w)
{
    uint32_t n = w->rings.sink_slots;
    struct task_ring_options ring = {.n_slots = n, .n_threads = w->engine->n_threads, .run = convert_batch, .arg = w};
    return task_ring_open(&w->ring, &ring) < 0 || !(w->batches = calloc(n, sizeof *w->batches)) ? -1 : 0;
}

struct hts_writer *hts_writer_open(const struct output_request *request, const struct memory_rings *rings, int fd,
                                   const char *path, const struct engine *engine)
{
    struct hts_writer *w = calloc(1, sizeof *w);
    if (!w) {
        latch_fail(engine->latch, "out of memory");
        return NULL;
    }
    w->request = request;
    w->rings = *rings;
    w->out_fd = fd;
    w->path = path;
    w->engine = engine;
    w->how = (struct record_out_options){.path = path, .format = request->format.format, .latch = engine->latch};
    errno = 0;
    if (batches_alloc(w) < 0)
        latch_fail(engine->latch, "out of memory");
    else if (open_sam(w) == 0 && set_up(w) == 0)
        return w;
    hts_writer_close(w);
    return NULL;
}

/* Keeps htslib from writing CRAM in ways that would not give the records back. */
static int settle_cram(struct hts_writer *w, sam_hdr_t *header, bool beyond)
{
    const struct output_request *request = w->request;
    struct cram_settings_case which = {htslib_version(), request->format.specific, request->reference, header, beyond};
    struct cram_settings how = cram_settings_choose(&which);
    int set = how.reference == CRAM_NO_REF ? hts_set_opt(w->sam, CRAM_OPT_NO_REF, 1)
            : how.reference == CRAM_NO_EMBED ? hts_set_opt(w->sam, CRAM_OPT_EMBED_REF, 0) : 0;
    if (how.reference == CRAM_NO_REF)
        hts_set_opt(w->sam, CRAM_OPT_EMBED_REF, 0);
    w->needs_refs = how.reference == CRAM_NO_EMBED;
    w->how.needs_seq = how.needs_seq;
    w->how.needs_quals = how.needs_quals;
    w->fasta = how.fasta;
    if (how.fasta && !(w->sums = ref_sums_new(header, how.fasta, w->path, w->engine->latch)))
        return -1;
    w->how.sums = cram_settings_compares_sums(which.htslib) ? NULL : w->sums;
    if (cram_settings_drops_groups(which.htslib) && sam_hdr_count_lines(header, "RG") >= 0)
        w->how.groups = header;
    if (how.why)
        message_warning("%s: %s", w->path, how.why);
    return set < 0 ? failed(w, "setting up") : 0;
}

int hts_writer_header(struct hts_writer *w, sam_hdr_t *header, const char *index, bool beyond)
{
    errno = 0;
    w->how.header = w->header = header;
    if (w->request->format.format == cram && settle_cram(w, header, beyond) < 0)
        return -1;
    if (sam_hdr_write(w->sam, header) < 0)
        return failed(w, "writing the header of");
    int min_shift = w->request->index_format == HTS_FMT_BAI ? 0 : CSI_MIN_SHIFT;
    if (index && sam_idx_init(w->sam, header, min_shift, index) < 0)
        return failed(w, "starting the index of");
    return 0;
}

struct record_out_options *hts_writer_how(struct hts_writer *w)
{
    return &w->how;
}

static int write_batch(struct hts_writer *w, struct batch *batch)
{
    for (uint32_t i = 0; i < batch->n && batch->result == 0; i++) {
        errno = 0;
        if (sam_write1(w->sam, w->header, &batch->ready[i].b) < 0)
            return failed_record(w, &batch->ready[i].b);
        record_out_trim(&batch->ready[i], RECORD_KEPT);
    }
    w->n += batch->n;
    w->checksum += batch->checksum;
    w->under_way -= batch->size;
    return batch->result;
}

/* Takes the oldest batch back and writes it. wait: waits until the batch is ready. 1: done; 0: there is no batch, or it
 * is not ready; -1: stop. */
static int write_oldest(struct hts_writer *w, bool wait)
{
    if (task_ring_empty(&w->ring) || latch_tripped(w->engine->latch))
        return latch_tripped(w->engine->latch) ? -1 : 0;
    uint32_t slot = task_ring_oldest(&w->ring);
    if (wait)
        task_ring_wait(&w->ring, slot, TASK_DONE, w->engine->latch, w->engine->clocks);
    if (task_ring_state(&w->ring, slot) != TASK_DONE)
        return latch_tripped(w->engine->latch) ? -1 : 0;
    enum stage before = clocks_enter(w->engine->clocks, STAGE_CONVERT);
    int result = write_batch(w, &w->batches[slot]);
    clocks_leave(w->engine->clocks, before, w->batches[slot].size);
    if (result == 0 && w->how.counts) {
        before = clocks_enter(w->engine->clocks, STAGE_JOIN);
        result = counts_join(w->how.counts, slot);
        clocks_leave(w->engine->clocks, before, 0);
    }
    task_ring_take(&w->ring);
    return result < 0 ? -1 : 1;
}

static void hand_out(struct hts_writer *w)
{
    w->under_way += w->filling->size;
    w->filling = NULL;
    task_ring_hand_out(&w->ring);
}

/* Returns whether the oldest batch must be written before another is begun. Batches of one long record need more memory
 * than they are counted with (hts_writer_batches_memory()), so fewer of them are in use. */
static bool must_write(const struct hts_writer *w)
{
    return task_ring_full(&w->ring) || w->under_way > (size_t)w->rings.sink_slots * BATCH_BYTES;
}

/* Writes the batches that are ready, and those that must be written. Then begins the next batch of the ring. -1: stop;
 * then a task may have that batch. */
static int begin_batch(struct hts_writer *w)
{
    int written = 1;
    while (written > 0)
        written = write_oldest(w, must_write(w));
    if (written < 0)
        return -1;
    w->filling = &w->batches[task_ring_next(&w->ring)];
    w->filling->n = 0;
    w->filling->size = 0;
    return 0;
}

static bool has_room(const struct batch *batch, size_t size)
{
    return batch->n == 0 || (batch->n < BATCH_RECORDS && batch->size + size <= BATCH_BYTES);
}

int hts_writer_put(struct hts_writer *w, const struct record_ref *records, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (w->filling && !has_room(w->filling, records[i].size))
            hand_out(w);
        if (!w->filling && begin_batch(w) < 0)
            return -1;
        w->filling->records[w->filling->n++] = records[i];
        w->filling->size += records[i].size;
    }
    return latch_tripped(w->engine->latch) ? -1 : 0;
}

uint64_t hts_writer_mark(const struct hts_writer *w)
{
    return task_ring_head(&w->ring) + (w->filling != NULL);
}

bool hts_writer_passed(const struct hts_writer *w, uint64_t mark)
{
    return w->ring.tail >= mark;
}

bool hts_writer_will_pass(const struct hts_writer *w, uint64_t mark)
{
    return task_ring_head(&w->ring) >= mark;
}

bool hts_writer_help(struct hts_writer *w)
{
    task_ring_make_task(&w->ring);               /* the caller of help waits: there may be no more for a while */
    return task_ring_help(&w->ring) || write_oldest(w, false) > 0;
}

static int write_rest(struct hts_writer *w)
{
    int written = 1;
    if (w->filling)
        hand_out(w);
    while (written > 0)
        written = write_oldest(w, true);
    return written;
}

int hts_writer_finish(struct hts_writer *w)
{
    if (write_rest(w) < 0)
        return -1;
    errno = 0;
    if (w->request->index && sam_idx_save(w->sam) < 0)
        return failed(w, "writing the index of");
    bool is_counted = w->pipe && w->count;
    int status = hts_close(w->sam);
    w->sam = NULL;
    out_pipe_close(w->pipe);
    w->pipe = NULL;
    if (status != 0)
        return failed_records(w);
    if (latch_tripped(w->engine->latch))
        return -1;
    return is_counted ? out_count_check(w->count, w->n, w->path, w->engine->latch) : 0;
}

/* Closes a file that will not be complete. htslib would write the rest of its buffer and an end marker as if the file
 * were complete. Both go to /dev/null, because the file may be one that is written directly. */
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
    ref_sums_free(w->sums);
    for (uint32_t i = 0; w->batches && i < w->rings.sink_slots; i++)
        for (int k = 0; k < BATCH_RECORDS; k++)
            record_out_close(&w->batches[i].ready[k]);
    task_ring_close(&w->ring, !latch_tripped(w->engine->latch));
    free(w->batches);
    free(w);
}

/* A record is in memory twice: as a bam1_t, with half its size again to grow, and as a finished copy. Both keep their
 * memory. */
size_t hts_writer_batches_memory(uint32_t n_batches)
{
    return task_ring_memory(n_batches)
         + n_batches * (sizeof(struct batch) + BATCH_BYTES / 2 * 5 + BATCH_RECORDS * 2 * RECORD_KEPT);
}

uint64_t hts_writer_checksum(const struct hts_writer *w)
{
    return w->checksum;
}
