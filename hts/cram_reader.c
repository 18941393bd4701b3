/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <htslib/cram.h>
#include <htslib/faidx.h>
#include <htslib/hts_log.h>
#include "bam/bam_header.h"
#include "hts/ref_sums.h"
#include "base/byte_buffer.h"
#include "hts/hts_file.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "hts/cram_input.h"
#include "hts/cram_reader.h"
#include "hts/hts_reader.h"
#include "read/input_file.h"
#include "read/record_slice.h"

/* A container that is decoded. The main thread walks over the headers of containers, and hands out one container after
 * the other. Each slot has its own file of htslib. The task of a slot seeks to the container, and reads as many records
 * as the container's slices have. The slot is free when these records are taken. */
struct cram_slot {
    samFile *file;               /* the claimer's, as are all fields below except `place` */
    bam1_t *record;
    struct cram_place place;     /* the main thread sets it before READY */
    struct record_slice made;    /* the records as BAM */
    uint64_t n;                  /* number of records; the fault is in the record after them */
    enum hts_fault fault;
    bool ended;                  /* htslib reported the end of the file after these records */
};

/* LENT: the consumer holds the records of this many containers. It copies them, which takes a hundredth of the time to
 * decode them. */
enum { LENT = 2 };
static const size_t RECORDS = (size_t)4 << 20;   /* usual bytes of BAM records in a container that htslib writes */

struct cram_reader {
    struct input_options opt;
    const struct input_file *file;
    struct cram_input *cram;     /* main thread, as are all fields below except the slots */
    struct hts_reader *reader;   /* the reader that has read the header ... */
    samFile *first;              /* ... its file ... */
    struct ref_sums *sums;       /* ... and its checksums, which see the references of mapped reads; NULL: there are
                                  * none */
    struct htslib_use use;
    struct cram_slot *slots;     /* use.n_threads of them */
    struct task_ring ring;       /* a slot is handed out to be decoded, and taken back when its slice is taken */
    uint64_t end;                /* end of the last container that was handed out */
    bool at_end;                 /* all containers are handed out */
    bool has_ended;              /* all containers are handed out, and the bytes after them were looked at */
    uint64_t n;                  /* number of records that were taken */
};

/* Returns how many containers are decoded at once (n_threads), and the memory for them besides htslib's first file.
 * Each thread has one, and some wait until the containers before them are decoded. A slot takes what a thread of htslib
 * takes, the records, and a header. */
static struct htslib_use use_of(const struct htslib_room *room, size_t header, int n_threads)
{
    enum { MOST = 64, DECODED = 16 << 20 };
    const size_t each = DECODED + RECORDS + bam_header_memory(header, 0, true), lent = LENT * RECORDS;
    uint64_t base = hts_file_use(true, false, room, 1).bytes + lent;
    uint64_t most = room->bytes > base ? (room->bytes - base) / each : 0, n = 2 + 3 * (uint64_t)n_threads / 2;
    n = n < most ? n : most;
    n = n < MOST ? n : MOST;
    return (struct htslib_use){.n_threads = (int)n, .bytes = (size_t)n * each + lent};
}

size_t cram_reader_memory_most(const struct htslib_room *room, size_t header, int n_threads)
{
    size_t alone = hts_file_use(true, false, room, n_threads).bytes;
    size_t in_tasks = hts_file_use(true, false, room, 1).bytes + use_of(room, header, n_threads).bytes;
    return alone > in_tasks ? alone : in_tasks;
}

/* ------------------------------------------------------------------- tasks */

/* Returns whether htslib has read beyond the container. It continues with the next container, without an error, if it
 * finds fewer records than expected. */
static bool is_beyond(const struct cram_slot *c)
{
    return (uint64_t)htell(cram_fd_get_fp(c->file->fp.cram)) > c->place.end;
}

static enum hts_fault read_record(const struct cram_reader *r, struct cram_slot *c)
{
    errno = 0;
    int status = sam_read1(c->file, cram_fd_get_header(c->file->fp.cram), c->record);
    if (status < 0) {
        c->ended = status == -1;
        return c->ended && errno == ENOMEM ? HTS_NO_MEMORY : HTS_BROKEN;
    }
    if (r->sums && !(c->record->core.flag & BAM_FUNMAP))
        ref_sums_see(r->sums, c->record->core.tid);
    return is_beyond(c) ? HTS_BROKEN : hts_reader_append(&c->made, c->record, r->opt.far);
}

/* Decodes the container of a claimed slot. */
static void decode(void *reader, uint32_t slot)
{
    const struct cram_reader *r = reader;
    struct cram_slot *c = &r->slots[slot];
    if (latch_tripped(r->opt.engine->latch))
        return;
    enum stage before = clocks_enter(r->opt.engine->clocks, STAGE_PARSE);
    if (cram_seek(c->file->fp.cram, (off_t)c->place.begin, SEEK_SET) < 0)
        c->fault = HTS_BROKEN;
    while (c->n < c->place.n && !c->fault) {
        c->fault = read_record(r, c);
        c->n += c->fault == HTS_FINE;
    }
    clocks_records(r->opt.engine->clocks, c->n);
    clocks_leave(r->opt.engine->clocks, before, c->place.end - c->place.begin);
}

/* ------------------------------------------------------------- main thread */

/* Hands out the next container that has records. 1: done; 0: no slot is free, or there is no such container; -1:
 * failed, and the error is recorded in the latch. */
static int hand_out(struct cram_reader *r)
{
    if (r->at_end || task_ring_full(&r->ring))
        return 0;
    struct cram_slot *c = &r->slots[task_ring_next(&r->ring)];
    int found;
    do {
        found = cram_input_next(r->cram, &c->place);
    } while (found > 0 && c->place.n == 0);      /* htslib skips these, too */
    r->at_end = found == 0;
    if (found > 0) {
        input_file_expect(r->file, c->place.begin, c->place.end - c->place.begin);
        r->end = c->place.end;
        task_ring_hand_out(&r->ring);
    }
    return found;
}

/* Records in the latch why the container could not be decoded. */
static int report_fault(const struct cram_reader *r, const struct cram_slot *c)
{
    uint64_t n = r->n + c->n;
    if (c->ended && c->fault == HTS_BROKEN && cram_input_check(r->cram, n) < 0)
        return -1;
    return c->fault == HTS_BROKEN ? hts_reader_broken(r->reader, n + 1) : hts_reader_fault(&r->opt, c->fault, n + 1);
}

/* Makes the first file read the bytes after the last container. If the end-of-file container is missing there, htslib
 * warns when the file is closed. */
static int end_of_records(struct cram_reader *r)
{
    cram_fd *first = r->first->fp.cram;
    if ((r->end == 0 || cram_seek(first, (off_t)r->end, SEEK_SET) == 0)
        && sam_read1(r->first, cram_fd_get_header(first), r->slots->record) >= 0)
        return hts_reader_fault(&r->opt, HTS_BROKEN, r->n + 1);
    return cram_input_check(r->cram, r->n) < 0 ? -1 : hts_reader_check_sums(r->reader);
}

static enum chunk_state advance(void *reader)
{
    struct cram_reader *r = reader;
    int handed;
    while ((handed = hand_out(r)) > 0)
        ;
    if (handed < 0)
        return CHUNK_FAILED;
    if (!task_ring_empty(&r->ring))
        return task_ring_state(&r->ring, task_ring_oldest(&r->ring)) == TASK_DONE ? CHUNK_MADE : CHUNK_AWAITED;
    if (!r->has_ended && end_of_records(r) < 0)
        return CHUNK_FAILED;
    r->has_ended = true;
    return CHUNK_NONE;
}

static int take(void *reader, struct record_slice *slice)
{
    struct cram_reader *r = reader;
    struct cram_slot *c = &r->slots[task_ring_oldest(&r->ring)];
    if (latch_tripped(r->opt.engine->latch))
        return -1;
    if (c->fault)
        return report_fault(r, c);
    struct record_slice made = c->made;
    made.number = r->n + 1;
    made.offset = c->place.end;
    r->n += c->n;
    c->made = *slice;
    record_slice_reuse(&c->made, RECORDS);
    c->n = 0;
    task_ring_take(&r->ring);
    *slice = made;
    return 0;
}

static bool help(void *reader)
{
    return task_ring_help(&((struct cram_reader *)reader)->ring);
}

static int end(void *reader, struct tally *given)
{
    const struct cram_reader *r = reader;
    *given = (struct tally){.n = r->n, .counts_only = true};
    return 0;
}

struct record_stream cram_reader_stream(struct cram_reader *r)
{
    return (struct record_stream){advance, take, help, end, r, .most_lent = LENT};
}

size_t cram_reader_memory(const struct cram_reader *r)
{
    return r ? r->use.bytes : 0;
}

/* ----------------------------------------------------------- open and close */

bool cram_reader_may(const struct input_file *file, const struct input_options *options, const htsFormat *format,
                     const struct cram_input *cram)
{
    return cram && format->version.major == 3 && file->begin == 0 && options->engine->n_threads > 1
        && !options->format_options;
}

/* Returns whether htslib may be able to read the file that a UR tag names. */
static bool is_within_reach(const char *place)
{
    place += strncmp(place, "file:", 5) == 0 ? 5 : 0;
    return strstr(place, "://") || access(place, R_OK) == 0;
}

/* Returns whether htslib can decode without a change of the shared list of references. While it decodes, htslib looks
 * for a reference that is not in the FASTA that the user named. If it then finds the file of a UR tag, it changes the
 * list of references while other files use it. */
static bool references_are_known(sam_hdr_t *header, const char *fasta)
{
    bool known = true;
    kstring_t place = KS_INITIALIZE;
    faidx_t *index = fasta ? fai_load3(fasta, NULL, NULL, 0) : NULL;
    for (int i = 0; known && i < sam_hdr_nref(header); i++) {
        const char *name = sam_hdr_tid2name(header, i);
        known = (index && faidx_has_seq(index, name))
             || sam_hdr_find_tag_id(header, "SQ", "SN", name, "UR", &place) != 0 || !is_within_reach(place.s);
    }
    fai_destroy(index);
    ks_free(&place);
    return known;
}

/* Opens the file once more, with its own offset. NULL: failed, and errno says why. */
static samFile *open_again(const struct cram_reader *r)
{
    char path[sizeof "/proc/self/fd/" + 3 * sizeof(int)];
    snprintf(path, sizeof path, "/proc/self/fd/%d", r->file->fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    hFILE *file = fd < 0 ? NULL : hdopen(fd, "r");
    samFile *sam = file ? hts_hopen(file, r->opt.given, "r") : NULL;
    if (!sam && file)
        hclose_abruptly(file);
    else if (!file && fd >= 0)
        close(fd);
    return sam;
}

/* Opens another file for a slot. It shares the references of the first file. */
static int open_slot(struct cram_reader *r, struct cram_slot *c, refs_t *references)
{
    struct latch ours = {0};                     /* an error is not recorded: if this slot cannot be opened, the others
                                                  * suffice */
    struct hts_file_options how = {
        .path = r->opt.path, .reference = r->opt.reference, .n_threads = 1, .latch = &ours,
    };
    htsThreadPool no_threads = {0};
    if (!(c->file = open_again(r)) || !(c->record = bam_init1()))
        return -1;
    return hts_file_set_up(c->file, &no_threads, &how) < 0 ? -1
         : references ? hts_set_opt(c->file, CRAM_OPT_SHARED_REF, references) : 0;
}

/* Opens as many slots as possible. htslib's messages are off, because the first file has already produced them all.
 * Returns the number of slots. */
static uint32_t open_slots(struct cram_reader *r)
{
    uint32_t n = 0;
    enum htsLogLevel level = hts_get_log_level();
    hts_set_log_level(HTS_LOG_OFF);
    while (n < (uint32_t)r->use.n_threads
           && open_slot(r, &r->slots[n], cram_get_refs(r->first)) == 0)
        n++;
    hts_set_log_level(level);
    return n;
}

/* Returns how many files the slots may keep open, besides the files of the other parts. */
static int most_files(void)
{
    enum { OTHERS = 64 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    return (int)limit.rlim_cur - OTHERS;
}

int cram_reader_open(struct cram_reader **reader, const struct input_file *file, const struct input_options *options,
                     struct cram_input *cram, struct hts_reader *first, sam_hdr_t *header)
{
    enum { LEAST = 2 };
    struct htslib_use use = use_of(&options->htslib, sam_hdr_length(header), options->engine->n_threads);
    *reader = NULL;
    if (use.n_threads > most_files())
        use.n_threads = most_files();
    if (use.n_threads < LEAST || !references_are_known(header, options->reference))
        return 0;
    struct cram_reader *r = *reader = calloc(1, sizeof *r);
    if (!r || !(r->slots = calloc((size_t)use.n_threads, sizeof *r->slots)))
        return latch_fail(options->engine->latch, "%s: out of memory", options->path);
    r->opt = *options;
    r->file = file;
    r->cram = cram;
    r->reader = first;
    r->first = hts_reader_file(first);
    r->sums = hts_reader_sums(first);
    r->use = use;
    struct task_ring_options ring = {.n_slots = open_slots(r), .run = decode, .arg = r};
    if (ring.n_slots < LEAST) {
        cram_reader_close(r);
        *reader = NULL;
        return 0;
    }
    return task_ring_open(&r->ring, &ring) == 0
         ? 0 : latch_fail(options->engine->latch, "%s: out of memory", options->path);
}

void cram_reader_close(struct cram_reader *r)
{
    if (!r)
        return;
    task_ring_close(&r->ring, r->has_ended && !latch_tripped(r->opt.engine->latch));
    for (int i = 0; r->slots && i < r->use.n_threads; i++) {
        struct cram_slot *c = &r->slots[i];
        if (c->file)
            hts_close(c->file);
        bam_destroy1(c->record);
        record_slice_free(&c->made);
    }
    free(r->slots);
    free(r);
}
