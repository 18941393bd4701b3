/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "bam/record_checksum.h"
#include "bam/bam_record.h"
#include "write/bam_index.h"
#include "codec/bgzf_block.h"
#include "bgzf_sink.h"
#include "base/byte_hash.h"
#include "base/latch.h"
#include "write/sink_verify.h"
#include "base/stats.h"
#include "base/task_ring.h"

enum {
    CACHE_LINE = 64,
    WRITE_AT_ONCE = 16,          /* blocks per write: at most 1 MiB */
    /* Side by side, where that is possible: what network file systems and cloud disks
     * want. A local file system takes one at a time for each file, so that more would
     * only wait for each other, with fewer blocks each. */
    WRITERS = 4, THREADS_PER_WRITER = 2,
    SINK_PIECES = BGZF_FILL / BAM_MIN_RECORD + 1,
};


/*        U: what goes into block i            C: block i compressed
 *        +-----+-----+-----+-----+            +-----+-----+-----+-----+
 * put -> | i   | i+1 | i+2 |  .. |  deflate-> | i   | i+1 | i+2 |  .. |  -> write
 *        +-----+-----+-----+-----+            +-----+-----+-----+-----+
 *
 * Two circular buffers with the same slots, and one ticket: the number of the
 * block that gets its place in the file next (Weeks and Luecke 2017, section
 * 4.4). A U slot holds the list of the block's pieces; gathering them into bytes
 * is part of the deflate task, so the master moves 16 bytes per record and no record.
 *
 * Who writes: a thread that has finished block i stores its length in C and
 * becomes a writer, unless there are enough. A writer takes the ticket's block,
 * if it is finished, and the finished ones after it (their lengths back to 0);
 * he enters them into the index and adds up their lengths, which are their
 * places in the file. Then he serves the ticket on, so that the next writer may
 * begin, and only then writes his blocks and frees their slots: in a regular file
 * by pwrite(), beside the others; into a pipe as the only writer there is. Nobody
 * waits for his turn: a finished block that nobody takes is left to the writers.
 *
 * No block is forgotten: its finisher stores the length, then counts himself
 * among the writers, as all do, even if only to find that there are enough;
 * whoever ceases to be one, for that reason too, looks at the ticket and its
 * block's length afterwards, and begins again if it is finished and there is
 * room for him. All these are sequentially consistent. Consider the very last
 * change of the number of writers: all lengths and tickets were stored before,
 * and the number is 0, so who made it would not have left a finished block at
 * the ticket.
 * No block is written twice or early: the length is stored with the block's
 * number, and taken by compare-and-swap while the ticket is that number. Between
 * that and the storing of the ticket the number's length is 0, so there is one
 * thread at a time that may change the index and what is added up.
 *
 * Slots become free in any order; the master takes them in that of the ring.
 *
 * No deadlock, for any number of slots >= 1: tasks never wait (except in
 * write()); the master waits for one slot, and meanwhile runs all blocks that are
 * READY. So every block handed out comes to be TAKEN (its thread will finish it),
 * finished (once those before it are, some writer is about to take it, by the
 * above) or taken (its writer will free the slot).
 */
struct sink_slot {
    uint32_t n;                  /* pieces; master, before READY */
    uint32_t size;               /* bytes in them; master, before READY */
    uint64_t number;             /* of the block; master, before READY */
    _Atomic uint64_t finished;   /* number << LENGTH_BITS | length; 0: not finished, or taken by a writer */
    struct bgzf_piece *pieces;   /* U */
    uint8_t *compressed;         /* C */
    struct bam_index_entry *entries;   /* of the records that end in it; claimer, before finished */
    uint32_t n_entries;
    struct verify_ends ends;     /* claimer, before finished */
};

_Static_assert((int)RECORD_CHECKSUM_SEGMENT == (int)BGZF_FILL, "a block holds one segment of a long record");

enum { LENGTH_BITS = 20 };
_Static_assert(BGZF_MAX_BLOCK < 1 << LENGTH_BITS, "a length fits");

/* As the segment of a piece: header bytes, not counted in the checksum. */
static const uint32_t NO_RECORD = UINT32_MAX;

/* What one thread needs to deflate; its own cache lines. */
struct sink_thread {
    struct bgzf_codec *codec;
    uint8_t *gathered;           /* BGZF_FILL bytes */
    uint64_t checksum;
    char pad[CACHE_LINE - 3 * sizeof(void *)];
};

struct bgzf_sink {
    struct bgzf_sink_options opt;
    struct sink_slot *slots;
    struct sink_thread *threads;
    struct sink_slot *filling;   /* the slot being filled, NULL if none; master */
    struct task_ring ring;       /* of the slots; a slot is released by who writes its block */
    uint64_t checksum;           /* after finish; master */
    bgzf_sink_finish_fn *finish;      /* master, before the first block */
    struct sink_verify *verify;  /* NULL: nothing is; master, before the first block */
    off_t begin;                 /* place in the file of the first block; -1: written where the file stands */
    struct bam_index *index;     /* NULL: none; used by the thread that has the ticket's block */
    uint64_t placed;             /* bytes in all blocks before the ticket's; by that thread */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;   /* the block that gets its place next */
    atomic_int writers;          /* threads that write, or have yet to see that there are enough */
};

static void sink_run(void *sink, uint32_t index);

static int sink_alloc(struct bgzf_sink *k)
{
    int n = k->opt.n_threads;
    struct task_ring_options ring = {.n_slots = k->opt.n_slots, .n_threads = n, .run = sink_run, .arg = k,
                                     .run_releases = true};
    if (task_ring_open(&k->ring, &ring) < 0)
        return -1;
    k->slots = calloc(k->opt.n_slots, sizeof *k->slots);
    k->threads = calloc((size_t)n, sizeof *k->threads);
    if (!k->slots || !k->threads)
        return -1;
    for (uint32_t i = 0; i < k->opt.n_slots; i++) {
        k->slots[i].pieces = malloc(SINK_PIECES * sizeof(struct bgzf_piece));
        k->slots[i].compressed = malloc(BGZF_MAX_BLOCK);
        if (!k->slots[i].pieces || !k->slots[i].compressed)
            return -1;
    }
    for (int i = 0; i < n; i++) {
        k->threads[i].codec = bgzf_codec_new(k->opt.level);
        k->threads[i].gathered = malloc(BGZF_FILL);
        if (!k->threads[i].codec || !k->threads[i].gathered)
            return -1;
    }
    return 0;
}

/* Where the blocks of a file begin that can be written to anywhere; else -1. */
static off_t position(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || flags & O_APPEND || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;                               /* with O_APPEND pwrite() appends, too */
    return lseek(fd, 0, SEEK_CUR);
}

struct bgzf_sink *bgzf_sink_open(const struct bgzf_sink_options *options)
{
    struct bgzf_sink *k = aligned_alloc(CACHE_LINE, sizeof *k);
    if (k) {
        memset(k, 0, sizeof *k);
        k->opt = *options;
        k->begin = position(options->fd);
        if (sink_alloc(k) == 0)
            return k;
    }
    latch_fail(options->latch, "%s: out of memory for write buffers; try fewer threads (-@)", options->path);
    bgzf_sink_close(k);
    return NULL;
}

void bgzf_sink_close(struct bgzf_sink *k)
{
    if (!k)
        return;
    for (uint32_t i = 0; k->slots && i < k->opt.n_slots; i++) {
        free(k->slots[i].pieces);
        free(k->slots[i].compressed);
        free(k->slots[i].entries);
    }
    for (int i = 0; k->threads && i < k->opt.n_threads; i++) {
        bgzf_codec_free(k->threads[i].codec);
        free(k->threads[i].gathered);
    }
    task_ring_close(&k->ring, !latch_tripped(k->opt.latch));
    free(k->slots);
    free(k->threads);
    free(k);
}

/* Copies the pieces of a block together, fetching ahead: in sorted order they
 * lie anywhere in the arena, and their first lines would each be a cache miss. */
static void gather(const struct sink_slot *slot, bgzf_sink_finish_fn *finish, uint8_t *out)
{
    enum { AHEAD = 6 };
    for (uint32_t i = 0; i < slot->n; i++) {
        if (i + AHEAD < slot->n) {
            const struct bgzf_piece *next = &slot->pieces[i + AHEAD];
            for (uint32_t at = 0; at < next->size && at < 512; at += CACHE_LINE)
                __builtin_prefetch(next->data + at);
        }
        memcpy(out, slot->pieces[i].data, slot->pieces[i].size);
        if (finish && slot->pieces[i].segment == 0)
            finish(out);
        out += slot->pieces[i].size;
    }
}

static uint64_t checksum_block(const struct sink_slot *slot, const uint8_t *data)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < slot->n; i++) {
        const struct bgzf_piece *p = &slot->pieces[i];
        if (p->segment != NO_RECORD)
            sum += byte_hash(data, p->size, p->segment);
        data += p->size;
    }
    return sum;
}

static void list_entry(struct bgzf_sink *k, struct sink_slot *slot, const uint8_t *record, size_t size, uint32_t after)
{
    if (bam_index_takes(k->index, record, size))
        slot->entries[slot->n_entries++] = bam_index_entry(record, after);
    else
        latch_fail(k->opt.latch, "writing %s failed: " BAM_RECORD_CHANGED, k->opt.path);
}

/* Notes what the index needs of the records that end in this block. */
static void list_entries(struct bgzf_sink *k, struct sink_slot *slot)
{
    uint32_t after = 0;
    slot->n_entries = 0;
    for (uint32_t i = 0; i < slot->n; i++) {
        const struct bgzf_piece *p = &slot->pieces[i];
        after += p->size;
        if (p->segment == NO_RECORD)
            continue;
        size_t before = (size_t)p->segment * BGZF_FILL;
        const uint8_t *record = p->data - before;
        size_t size = bam_record_size((const struct bam_record *)record);
        if (before + p->size == size)
            list_entry(k, slot, record, size, after);
    }
}

/* Enters the blocks first .. end - 1 into the index, looks whether they follow each
 * other, and adds up their lengths. */
static void place_blocks(struct bgzf_sink *k, uint64_t first, uint64_t end, const struct iovec *iov)
{
    for (uint64_t i = first; i < end; i++, iov++) {
        const struct sink_slot *slot = &k->slots[i % k->opt.n_slots];
        uint64_t next = k->placed + iov->iov_len;
        bool records = slot->pieces[0].segment != NO_RECORD;   /* the header ends its block */
        if (k->index && records && bam_index_add(k->index, k->placed, slot->size, next, slot->entries, slot->n_entries) < 0)
            latch_fail(k->opt.latch, "%s: a record cannot be put into the index. Try CSI instead of BAI",
                       k->opt.path);
        if (k->verify)
            sink_verify_join(k->verify, &slot->ends);
        k->placed = next;
    }
}

static ssize_t write_some(const struct bgzf_sink *k, const struct iovec *iov, int n, uint64_t at)
{
    return k->begin < 0 ? writev(k->opt.fd, iov, n) : pwritev(k->opt.fd, iov, n, k->begin + (off_t)at);
}

/* Writes all of iov[n] to the place `at`. -1: told to the latch. */
static int write_all(const struct bgzf_sink *k, struct iovec *iov, int n, uint64_t at)
{
    while (n > 0 && !latch_tripped(k->opt.latch)) {
        ssize_t done = write_some(k, iov, n, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return latch_fail(k->opt.latch, "writing %s failed: %s", k->opt.path, strerror(errno));
        at += (uint64_t)done;
        for (; n > 0 && (size_t)done >= iov->iov_len; iov++, n--)
            done -= (ssize_t)iov->iov_len;
        if (n > 0) {
            iov->iov_base = (uint8_t *)iov->iov_base + done;
            iov->iov_len -= (size_t)done;
        }
    }
    return n > 0 ? -1 : 0;
}

static bool is_finished(struct sink_slot *slot, uint64_t number, uint64_t *finished)
{
    *finished = atomic_load(&slot->finished);
    return *finished != 0 && *finished >> LENGTH_BITS == number;
}

/* Takes block `number` to write it, if it is finished: its length, else 0. */
static uint32_t take_finished(struct sink_slot *slot, uint64_t number)
{
    uint64_t finished;
    return is_finished(slot, number, &finished) && atomic_compare_exchange_strong(&slot->finished, &finished, 0)
         ? (uint32_t)(finished & ((1u << LENGTH_BITS) - 1)) : 0;
}

static int most_writers(const struct bgzf_sink *k)
{
    int share = k->opt.n_threads / THREADS_PER_WRITER;
    return k->begin < 0 || share < 1 ? 1 : share < WRITERS ? share : WRITERS;
}

/* Writes the block the ticket is at and finished ones after it; false: it is not finished. */
static bool write_blocks(struct bgzf_sink *k)
{
    uint64_t first = atomic_load(&k->ticket), end = first;
    struct iovec iov[WRITE_AT_ONCE];
    uint32_t length;
    int n = 0;
    while (n < WRITE_AT_ONCE && (length = take_finished(&k->slots[end % k->opt.n_slots], end)) > 0)
        iov[n++] = (struct iovec){k->slots[end++ % k->opt.n_slots].compressed, length};
    if (n == 0)
        return false;
    uint64_t at = k->placed;
    enum stage before = stats_enter(k->opt.stats, k->index ? STAGE_INDEX : STAGE_WRITE);
    if (!latch_tripped(k->opt.latch))
        place_blocks(k, first, end, iov);
    uint64_t bytes = k->placed - at;
    atomic_store(&k->ticket, end);
    stats_leave(k->opt.stats, before, 0);
    stats_enter(k->opt.stats, STAGE_WRITE);
    write_all(k, iov, n, at);
    stats_leave(k->opt.stats, before, bytes);
    for (uint64_t i = first; i < end; i++)
        task_ring_release(&k->ring, task_ring_slot(&k->ring, i));
    return true;
}

static bool is_writer_wanted(struct bgzf_sink *k)
{
    uint64_t finished, ticket = atomic_load(&k->ticket);
    return atomic_load(&k->writers) < most_writers(k)
        && is_finished(&k->slots[ticket % k->opt.n_slots], ticket, &finished);
}

/* Writes what is finished, unless enough others do. */
static void serve_ticket(struct bgzf_sink *k)
{
    do {
        if (atomic_fetch_add(&k->writers, 1) < most_writers(k))
            while (write_blocks(k))
                ;
        atomic_fetch_sub(&k->writers, 1);
    } while (is_writer_wanted(k));
}

/* The checksum is then that of what inflates from the block: bytes that changed on their way to the encoder are as
 * wrong there as here. */
static uint64_t verify_block(struct bgzf_sink *k, struct sink_slot *slot, const uint8_t *data, uint32_t length)
{
    int thread = task_thread();
    uint64_t sum = 0;
    enum stage before = stats_enter(k->opt.stats, STAGE_VERIFY);
    if (sink_verify_block(k->verify, thread, slot->compressed, length, data, slot->size) == 0
        && sink_verify_order(k->verify, slot->pieces, slot->n, &slot->ends) == 0)
        sum = checksum_block(slot, sink_verify_inflated(k->verify, thread));
    stats_leave(k->opt.stats, before, slot->size);
    return sum;
}

/* Deflates the block of a claimed slot and sees to the writing. */
static void sink_run(void *sink, uint32_t index)
{
    struct bgzf_sink *k = sink;
    struct sink_slot *slot = &k->slots[index];
    uint32_t length = 1;                         /* after a failure: any, nothing is written */
    if (!latch_tripped(k->opt.latch)) {
        struct sink_thread *t = &k->threads[task_thread()];
        uint8_t *data = bgzf_block_stored_data(t->codec, slot->compressed);
        if (!data)
            data = t->gathered;
        enum stage before = stats_enter(k->opt.stats, STAGE_GATHER);
        gather(slot, k->finish, data);
        if (!k->verify)
            t->checksum += checksum_block(slot, data);
        if (k->index)
            list_entries(k, slot);
        stats_leave(k->opt.stats, before, slot->size);
        stats_enter(k->opt.stats, STAGE_DEFLATE);
        length = bgzf_block_deflate(t->codec, data, slot->size, slot->compressed);
        stats_leave(k->opt.stats, before, slot->size);
        if (k->verify)
            t->checksum += verify_block(k, slot, data, length);
    }
    atomic_store(&slot->finished, slot->number << LENGTH_BITS | length);
    serve_ticket(k);
}

int bgzf_sink_help(struct bgzf_sink *k)
{
    return task_ring_help(&k->ring);
}

/* Helps until the slot is free. */
static int sink_wait(struct bgzf_sink *k, uint32_t slot)
{
    task_ring_wait(&k->ring, slot, TASK_FREE, k->opt.latch, k->opt.stats);
    return latch_tripped(k->opt.latch) ? -1 : 0;
}

int bgzf_sink_set_index(struct bgzf_sink *k, struct bam_index *index)
{
    for (uint32_t i = 0; i < k->opt.n_slots; i++)
        if (!(k->slots[i].entries = malloc(SINK_PIECES * sizeof(struct bam_index_entry))))
            return -1;
    k->index = index;
    return 0;
}

int bgzf_sink_flush(struct bgzf_sink *k)
{
    if (!k->filling)
        return 0;
    k->filling = NULL;
    task_ring_hand_out(&k->ring);
    return latch_tripped(k->opt.latch) ? -1 : 0;
}

/* Blocks begun so far. */
uint64_t bgzf_sink_mark(const struct bgzf_sink *k)
{
    return task_ring_head(&k->ring) + (k->filling != NULL);
}

bool bgzf_sink_passed(const struct bgzf_sink *k, uint64_t mark)
{
    return atomic_load(&k->ticket) >= mark;
}

bool bgzf_sink_will_pass(const struct bgzf_sink *k, uint64_t mark)
{
    return !k->filling || mark < bgzf_sink_mark(k);
}

static int sink_begin(struct bgzf_sink *k)
{
    uint32_t index = task_ring_next(&k->ring);
    if (sink_wait(k, index) < 0)
        return -1;
    struct sink_slot *slot = &k->slots[index];
    slot->number = task_ring_head(&k->ring);
    slot->n = slot->size = 0;
    k->filling = slot;
    return 0;
}

/* Puts as many pieces into the block being filled as fit; returns how many. All
 * that is done for each record on the master: so it adds up sizes, and no more. */
static size_t fill(struct sink_slot *slot, const struct bgzf_piece *pieces, size_t n)
{
    enum { AHEAD = 64 };                         /* they are in another thread's cache */
    uint32_t room = BGZF_FILL - slot->size;
    size_t most = SINK_PIECES - slot->n, fit = 0;
    most = n < most ? n : most;
    while (fit < most && pieces[fit].size <= room) {
        __builtin_prefetch(pieces + fit + AHEAD);
        room -= pieces[fit++].size;
    }
    memcpy(slot->pieces + slot->n, pieces, fit * sizeof *pieces);
    slot->n += (uint32_t)fit;
    slot->size = BGZF_FILL - room;
    return fit;
}

/* Puts bytes that may be longer than a block, cut into segments of BGZF_FILL. */
static int put_long(struct bgzf_sink *k, const uint8_t *data, size_t size, bool is_record)
{
    for (uint32_t segment = 0; size > 0; segment++) {
        uint32_t n = size < BGZF_FILL ? (uint32_t)size : BGZF_FILL;
        struct bgzf_piece piece = {data, n, is_record ? segment : NO_RECORD};
        if (bgzf_sink_flush(k) < 0 || sink_begin(k) < 0)
            return -1;
        fill(k->filling, &piece, 1);
        data += n;
        size -= n;
    }
    return 0;
}

int bgzf_sink_put_header(struct bgzf_sink *k, const uint8_t *data, size_t size)
{
    return put_long(k, data, size, false);
}

/* Takes a long record, or as many as the block has room for; without any, the block goes. Their number, or -1. */
static ssize_t put_some(struct bgzf_sink *k, const struct bgzf_piece *records, size_t n)
{
    if (records->size > BGZF_FILL)
        return put_long(k, records->data, records->size, true) < 0 ? -1 : 1;
    if (!k->filling && sink_begin(k) < 0)
        return -1;
    size_t taken = fill(k->filling, records, n);
    return taken == 0 && bgzf_sink_flush(k) < 0 ? -1 : (ssize_t)taken;
}

int bgzf_sink_put(struct bgzf_sink *k, const struct bgzf_piece *records, size_t n)
{
    for (ssize_t taken; n > 0; records += taken, n -= (size_t)taken)
        if ((taken = put_some(k, records, n)) < 0)
            return -1;
    return 0;
}

void bgzf_sink_set_verify(struct bgzf_sink *k, struct sink_verify *verify)
{
    k->verify = verify;
}

void bgzf_sink_set_finish(struct bgzf_sink *k, bgzf_sink_finish_fn *finish)
{
    k->finish = finish;
}

/* Adds the EOF block and leaves the file at its end. */
static int write_eof(struct bgzf_sink *k)
{
    struct iovec eof = {(void *)(uintptr_t)bgzf_block_eof, BGZF_EOF_SIZE};
    if (write_all(k, &eof, 1, k->placed) < 0)    /* also if a block before it failed */
        return -1;
    if (k->begin >= 0)
        lseek(k->opt.fd, k->begin + (off_t)k->placed + BGZF_EOF_SIZE, SEEK_SET);
    return 0;
}

int bgzf_sink_finish(struct bgzf_sink *k)
{
    if (bgzf_sink_flush(k) < 0)
        return -1;
    for (uint32_t i = 0; i < k->opt.n_slots; i++)
        if (sink_wait(k, i) < 0)
            return -1;
    for (int i = 0; i < k->opt.n_threads; i++)
        k->checksum += k->threads[i].checksum;
    return write_eof(k);
}

uint64_t bgzf_sink_checksum(const struct bgzf_sink *k)
{
    return k->checksum;
}

size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level)
{
    return task_ring_memory(n_slots) + n_slots * (sizeof(struct sink_slot) + SINK_PIECES * sizeof(struct bgzf_piece) + BGZF_MAX_BLOCK)
         + (size_t)n_threads * (bgzf_codec_memory(level) + BGZF_FILL);
}
