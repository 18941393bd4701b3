/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "base/out_pieces.h"
#include "base/stats.h"
#include "base/task_ring.h"
#include "bgzf_sink.h"
#include "codec/bgzf_block.h"

enum {
    CACHE_LINE = 64,
    TAKEN_AT_ONCE = 16,          /* blocks that a writer takes: at most 1 MiB */
    GATHERED = 9,                /* blocks of level 0 that a writer waits for: 512 KiB and more */
    /* Network file systems and cloud disks want several writes at a time. A local file system does one write at a time
     * for each file: more writers would only wait for each other. */
    WRITERS = 4, THREADS_PER_WRITER = 2,
    LENGTH_BITS = 31,            /* a record of SAM may be long. This leaves 33 bits for numbers: 500 TB */
    /* Bytes of a piece. Parallel file systems and network disks want 512 KiB and more. 1 MiB took -u three times the
     * system time and more (ext4, Linux 6.18, a virtual machine). */
    PIECE_LEAST = 64 << 10, PIECE_MOST = 512 << 10,
};
_Static_assert((int)BGZF_MAX_BLOCK <= (int)PIECE_LEAST, "a block lies in two pieces at most");

/*          U: what goes into block i            C: block i compressed
 *          +-----+-----+-----+-----+            +-----+-----+-----+-----+
 * begin -> | i   | i+1 | i+2 |  .. |  deflate-> | i   | i+1 | i+2 |  .. |  -> write
 *          +-----+-----+-----+-----+            +-----+-----+-----+-----+
 *
 * There are two circular buffers with the same slots, and one ticket: the number of the block that gets its place in
 * the file next (Weeks and Luecke 2017, section 4.4). U is the owner's: a slot may hold references instead of bytes,
 * as fill() gathers the bytes in the deflate task.
 *
 * Who writes. A thread that has deflated block i stores its length in C: the block is finished. Then the thread
 * becomes a writer, unless there are enough. A writer takes the ticket's block, if it is finished, and the finished
 * ones after it (it sets their lengths to 0). It adds up the lengths, which gives the blocks' places in the file, and
 * calls placed(). Then it moves the ticket on, so that the next writer may begin. Only then the blocks are written and
 * their slots freed: by pieces, or gathered. Into a regular file several threads write at once. No thread waits for its
 * turn: a finished block that its thread does not take is left to the writers.
 *
 * Gathered blocks. Blocks of level 0 and of SAM are large, and those for a pipe have no places: these are written from
 * where they are. A writer claims all that have places and that no other writer has claimed (it moves `claimed` on to
 * the ticket), but at least `gathered` of them. While the main thread waits for a slot out of turn (`flushing`), one
 * is enough.
 *
 * Pieces. Deflated blocks are small. So a regular file is written in pieces of piece_size bytes (base/out_pieces.h). A
 * writer takes a block only if the block's last byte lies in a piece that has its buffer. (The piece of its first byte
 * has one, too: it is the same piece, or blocks before this one lie in it.) Who makes a piece whole writes it. The main
 * thread writes the last piece, with the EOF block.
 *
 * No block is forgotten. A thread that finishes a block stores the length first. Then it counts itself among the
 * writers, even if it only finds that there are enough. A thread that ceases to be a writer, for that reason too,
 * looks afterwards whether there is work and room for a writer, and then begins again: the ticket's block is finished
 * and its piece has a buffer, or enough blocks are gathered. (The main thread leaves that to a thread that is still
 * counted.) All these operations are sequentially consistent. Consider the very last change of the number of writers:
 * all lengths, places and tickets were stored before it, and the number is 0 now. So all blocks before the ticket's
 * are copied or claimed, but for fewer than `gathered`, and whole pieces are written. At most one piece is not whole,
 * and there are two buffers at least: the piece of the ticket's block has one. So the thread that made the change would
 * not have left a finished block.
 *
 * No block is written twice or early. The length is stored with the block's number, and taken by compare-and-swap
 * while the ticket is that number. From then until the ticket is stored, the length is 0. So one thread at a time
 * calls placed() and adds up lengths. The place is stored before the ticket: if the swap succeeds, the place read
 * after the ticket was that block's.
 *
 * Slots become free in any order, when their blocks are written, or are copied and the pieces that this made whole are
 * written. So when all slots are free, only the last piece is left. The main thread takes slots in the ring's order.
 *
 * No deadlock, for any number of slots >= 1. Tasks never wait, except in write(). The main thread waits for one slot,
 * and meanwhile runs all blocks that are READY. So every block that was handed out is TAKEN (its thread will finish
 * it), finished (once the blocks before it are finished, a writer will take it, as shown above) or taken by a writer
 * (which will free the slot, or leave it to be gathered). The main thread waits for the oldest slot when all are handed
 * out, which are more than `gathered`; when it waits for another one, nothing stays gathered. */
struct sink_slot {
    uint64_t number;             /* of the block; main thread, before READY */
    _Atomic uint64_t finished;   /* number << LENGTH_BITS | length; 0: not finished, or taken by a writer */
    const uint8_t *bytes;        /* to be written: C, or the owner's */
    uint8_t *compressed;         /* C; NULL: the owner makes the bytes */
    uint64_t place;              /* of the block; this and the next one: who takes it, before the ticket is stored */
    size_t length;
};

struct bgzf_sink {
    struct bgzf_sink_options opt;
    struct sink_slot *slots;
    uint8_t *compressed;         /* C of all slots */
    struct bgzf_codec **codecs;  /* of each thread: see bgzf_codec_of() */
    uint8_t *filled;             /* BGZF_MAX_BLOCK bytes per thread: what goes into its block */
    bool begun;                  /* the ring's next slot is being filled; main thread */
    struct task_ring ring;       /* of the slots; the writer of a slot's block releases it */
    struct task_ring ends;       /* each slot gives back some of the memory, when all blocks are written */
    off_t begin;                 /* place in the file of the first block; -1: written where the file stands */
    int most_writers;
    struct out_pieces *pieces;     /* NULL: there are no pieces */
    _Atomic uint64_t placed;     /* bytes in all blocks before the ticket's; stored by who has the ticket's block */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;   /* the block that gets its place next */
    _Atomic uint64_t claimed;    /* without pieces: blocks before this one are written, or some writer does it */
    uint64_t gathered;           /* blocks to be claimed at least ... */
    atomic_bool flushing;        /* ... unless the main thread has set this */
    atomic_int writers;          /* threads that write, or have yet to see that there are enough */
};

static void sink_run(void *sink, uint32_t index);

enum { ENDS = 16 };              /* parts of the memory that are given back at the same time */

/* Frees every ENDS-th codec, and with the first or the second of them a large buffer. */
static void free_part(void *sink, uint32_t number)
{
    struct bgzf_sink *k = sink;
    uint8_t **large = number == 0 ? &k->compressed : number == 1 ? &k->filled : NULL;
    for (int i = (int)number; k->codecs && i < k->opt.n_threads; i += ENDS) {
        bgzf_codec_free(k->codecs[i]);
        k->codecs[i] = NULL;
    }
    if (large) {
        free(*large);
        *large = NULL;
    }
}

/* Into a file with places to write to. */
static int most_writers(int n_threads)
{
    int share = n_threads / THREADS_PER_WRITER;
    return share < 1 ? 1 : share < WRITERS ? share : WRITERS;
}

/* Each writer writes one, and one takes what comes meanwhile. */
static size_t n_pieces(int n_threads)
{
    return (size_t)most_writers(n_threads) + 1;
}

static int parts_alloc(struct bgzf_sink *k)
{
    struct out_pieces_options how = {.fd = k->opt.fd, .path = k->opt.path, .begin = (uint64_t)k->begin,
                                    .piece_size = k->opt.piece_size, .n = (uint32_t)n_pieces(k->opt.n_threads),
                                    .latch = k->opt.latch};
    k->most_writers = most_writers(k->opt.n_threads);
    k->pieces = out_pieces_new(&how);
    return k->pieces ? 0 : -1;
}

/* Leaves slots to every thread, and half of the others to what is not gathered yet. */
static uint64_t n_gathered(const struct bgzf_sink_options *o)
{
    uint64_t threads = (uint64_t)o->n_threads, most = o->n_slots > threads + 1 ? (o->n_slots - threads) / 2 : 1;
    return most < GATHERED ? most : GATHERED;
}

static int sink_alloc(struct bgzf_sink *k)
{
    struct task_ring_options ring = {.n_slots = k->opt.n_slots, .n_threads = k->opt.n_threads, .bunches = true,
                                     .run = sink_run, .arg = k, .run_releases = true};
    struct task_ring_options ends = {.n_slots = ENDS, .run = free_part, .arg = k};
    if (task_ring_open(&k->ring, &ring) < 0 || task_ring_open(&k->ends, &ends) < 0)
        return -1;
    k->slots = calloc(k->opt.n_slots, sizeof *k->slots);
    if (k->opt.form != SINK_BAM)
        return k->slots ? 0 : -1;
    k->compressed = malloc((size_t)k->opt.n_slots * BGZF_MAX_BLOCK);
    k->codecs = calloc((size_t)k->opt.n_threads, sizeof *k->codecs);
    k->filled = malloc((size_t)k->opt.n_threads * BGZF_MAX_BLOCK);
    if (k->begin >= 0 && k->opt.piece_size > 0 && parts_alloc(k) < 0)
        return -1;
    for (uint32_t i = 0; k->slots && k->compressed && i < k->opt.n_slots; i++)
        k->slots[i].compressed = k->compressed + (size_t)i * BGZF_MAX_BLOCK;
    return k->slots && k->compressed && k->codecs && k->filled ? 0 : -1;
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
        k->gathered = n_gathered(options);
        k->most_writers = k->begin >= 0 && options->form != SINK_BAM ? most_writers(options->n_threads) : 1;
        if (sink_alloc(k) == 0)
            return k;
    }
    bgzf_sink_close(k);
    return NULL;
}

void bgzf_sink_close(struct bgzf_sink *k)
{
    if (!k)
        return;
    for (uint32_t i = 0; i < ENDS; i++)
        free_part(k, i);
    task_ring_close(&k->ring, !latch_tripped(k->opt.latch));
    task_ring_close(&k->ends, false);
    out_pieces_free(k->pieces);
    free(k->codecs);
    free(k->slots);
    free(k);
}

static uint32_t length_of(uint64_t finished)
{
    return (uint32_t)(finished & ((1u << LENGTH_BITS) - 1));
}

/* Whether block `number`, whose place this is, can be taken: a piece has a buffer where it ends, unless an error keeps
 * it from being copied. */
static bool can_take(struct bgzf_sink *k, uint64_t number, uint64_t place, uint64_t *finished)
{
    *finished = atomic_load(&k->slots[task_ring_slot(&k->ring, number)].finished);
    return *finished != 0 && *finished >> LENGTH_BITS == number
        && (!k->pieces || latch_tripped(k->opt.latch)
            || out_pieces_has_room(k->pieces, (uint64_t)k->begin + place + length_of(*finished)));
}

static struct sink_slot *slot_of(struct bgzf_sink *k, uint64_t number)
{
    return &k->slots[task_ring_slot(&k->ring, number)];
}

/* Takes the block, whose place this is, if that can be. */
static bool take_block(struct bgzf_sink *k, uint64_t number, uint64_t place)
{
    uint64_t finished;
    struct sink_slot *slot = slot_of(k, number);
    if (!can_take(k, number, place, &finished) || !atomic_compare_exchange_strong(&slot->finished, &finished, 0))
        return false;
    slot->place = place;
    slot->length = length_of(finished);
    return true;
}

static void release_slots(struct bgzf_sink *k, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        task_ring_release(&k->ring, task_ring_slot(&k->ring, i));
}

/* Gives their places to the ticket's block and those after it that can be taken, and copies them to the pieces, if
 * there are pieces. False: that block cannot be taken. */
static bool place_blocks(struct bgzf_sink *k)
{
    uint64_t first = atomic_load(&k->ticket), end = first, begin = atomic_load(&k->placed), next = begin;
    size_t most = k->pieces ? k->opt.piece_size : SIZE_MAX;   /* leaves pieces to other writers */
    for (; end - first < TAKEN_AT_ONCE && next - begin < most && take_block(k, end, next); end++)
        next += slot_of(k, end)->length;
    if (end == first)
        return false;
    enum stage before = stats_enter(k->opt.stats, STAGE_WRITE);
    bool sound = !latch_tripped(k->opt.latch);
    for (uint64_t i = first; sound && i < end; i++) {
        const struct sink_slot *slot = slot_of(k, i);
        k->opt.placed(k->opt.arg, task_ring_slot(&k->ring, i), slot->place, slot->place + slot->length);
    }
    atomic_store(&k->placed, next);
    atomic_store(&k->ticket, end);
    for (uint64_t i = first, at = (uint64_t)k->begin + begin; k->pieces && sound && i < end; i++) {
        out_pieces_copy(k->pieces, slot_of(k, i)->bytes, slot_of(k, i)->length, at);
        at += slot_of(k, i)->length;
    }
    stats_leave(k->opt.stats, before, k->pieces && sound ? next - begin : 0);
    if (k->pieces)
        release_slots(k, first, end);
    return true;
}

/* place: as placed() has it. */
static int write_at(struct bgzf_sink *k, struct iovec *iov, int n, uint64_t place)
{
    off_t at = k->begin < 0 ? -1 : k->begin + (off_t)place;
    return out_file_write_at(k->opt.fd, k->opt.path, iov, n, at, k->opt.latch);
}

/* How many blocks from `first` on, the first that no writer has claimed, can be written now. */
static uint64_t n_ready(struct bgzf_sink *k, uint64_t first)
{
    uint64_t n = k->pieces ? 0 : atomic_load(&k->ticket) - first;
    n = n < TAKEN_AT_ONCE ? n : TAKEN_AT_ONCE;
    return n >= k->gathered || atomic_load(&k->flushing) ? n : 0;
}

/* Claims gathered blocks and writes them. False: there are not enough. */
static bool write_gathered(struct bgzf_sink *k)
{
    struct iovec iov[TAKEN_AT_ONCE];
    uint64_t first = atomic_load(&k->claimed), n, size = 0;
    do {
        if ((n = n_ready(k, first)) == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&k->claimed, &first, first + n));
    for (uint64_t i = 0; i < n; i++) {
        const struct sink_slot *slot = slot_of(k, first + i);
        iov[i] = (struct iovec){(void *)(uintptr_t)slot->bytes, slot->length};
        size += slot->length;
    }
    enum stage before = stats_enter(k->opt.stats, STAGE_WRITE);
    bool sound = write_at(k, iov, (int)n, slot_of(k, first)->place) == 0;
    stats_leave(k->opt.stats, before, sound ? size : 0);
    release_slots(k, first, first + n);
    return true;
}

static bool write_blocks(struct bgzf_sink *k)
{
    return (int)place_blocks(k) | (int)write_gathered(k);
}

static bool is_writer_wanted(struct bgzf_sink *k)
{
    uint64_t finished, ticket = atomic_load(&k->ticket);
    return atomic_load(&k->writers) < k->most_writers
        && (can_take(k, ticket, atomic_load(&k->placed), &finished) || n_ready(k, atomic_load(&k->claimed)) > 0);
}

/* Writes finished blocks, unless enough other threads do. The main thread has blocks to hand out: it ceases if another
 * thread, which will look, is counted once it has written. As the only writer it goes on while blocks are finished. */
static void serve_ticket(struct bgzf_sink *k)
{
    bool is_main = task_thread() == 0, has_others;
    do {
        if (atomic_fetch_add(&k->writers, 1) < k->most_writers)
            while (write_blocks(k) && !is_main)
                ;
        has_others = atomic_fetch_sub(&k->writers, 1) > 1;
    } while (!(is_main && has_others) && is_writer_wanted(k));
}

/* Copies the block that the owner kept, if the data are what it says that it holds. Returns its length. 0: none is
 * kept. If there is an error, it is recorded. */
static uint32_t copy_kept(struct bgzf_sink *k, uint32_t index, const uint8_t *data, uint32_t size)
{
    uint32_t length = 0;
    const uint8_t *kept = k->opt.copies ? k->opt.kept(k->opt.arg, index, &length) : NULL;
    if (!kept)
        return 0;
    if (!bgzf_block_claims(kept, length, data, size)) {
        latch_fail(k->opt.latch, "writing %s failed: a block of the input that was to be copied has other records than "
                   "it had. Memory may be faulty, or this is our bug: please report it", k->opt.path);
        return 1;
    }
    memcpy(k->slots[index].compressed, kept, length);
    return length;
}

/* Makes the bytes of a claimed slot's block: fills and deflates it, or lets the owner. Returns their number; after an
 * error any, and nothing is written. */
static uint32_t sink_deflate(struct bgzf_sink *k, uint32_t index)
{
    struct sink_slot *slot = &k->slots[index];
    if (latch_tripped(k->opt.latch))
        return 1;
    if (k->opt.form != SINK_BAM)
        return k->opt.make(k->opt.arg, index, &slot->bytes);
    struct bgzf_codec *codec = bgzf_codec_of(k->codecs, task_thread(), k->opt.level);
    if (!codec) {
        latch_fail(k->opt.latch, BGZF_SINK_NO_MEMORY, k->opt.path);
        return 1;
    }
    uint8_t *compressed = slot->compressed, *data = bgzf_block_stored_data(codec, compressed);
    if (!data)
        data = k->filled + (size_t)task_thread() * BGZF_MAX_BLOCK;
    uint32_t size = k->opt.fill(k->opt.arg, index, data);
    enum stage before = stats_enter(k->opt.stats, STAGE_DEFLATE);
    uint32_t length = copy_kept(k, index, data, size);
    if (length == 0)
        length = bgzf_block_deflate(codec, data, size, compressed);
    stats_leave(k->opt.stats, before, size);
    slot->bytes = compressed;
    if (k->opt.deflated)
        k->opt.deflated(k->opt.arg, index, data, compressed, length);
    return length;
}

static void sink_run(void *sink, uint32_t index)
{
    struct bgzf_sink *k = sink;
    struct sink_slot *slot = &k->slots[index];
    uint32_t length = sink_deflate(k, index);
    atomic_store(&slot->finished, slot->number << LENGTH_BITS | length);
    serve_ticket(k);
}

void bgzf_sink_make_task(struct bgzf_sink *k)
{
    task_ring_make_task(&k->ring);
}

int bgzf_sink_help(struct bgzf_sink *k)
{
    return task_ring_help(&k->ring);
}

static int wait_for_slot(struct bgzf_sink *k, uint32_t slot)
{
    task_ring_wait(&k->ring, slot, TASK_FREE, k->opt.latch, k->opt.stats);
    return latch_tripped(k->opt.latch) ? -1 : 0;
}

int bgzf_sink_wait(struct bgzf_sink *k, uint32_t slot)
{
    atomic_store(&k->flushing, true);
    serve_ticket(k);
    int result = wait_for_slot(k, slot);
    atomic_store(&k->flushing, false);
    return result;
}

int bgzf_sink_begin(struct bgzf_sink *k, uint32_t *slot)
{
    *slot = task_ring_next(&k->ring);
    if (wait_for_slot(k, *slot) < 0)
        return -1;
    k->slots[*slot].number = task_ring_head(&k->ring);
    k->begun = true;
    return 0;
}

int bgzf_sink_hand_out(struct bgzf_sink *k)
{
    if (!k->begun)
        return 0;
    k->begun = false;
    task_ring_hand_out(&k->ring);
    return latch_tripped(k->opt.latch) ? -1 : 0;
}

uint64_t bgzf_sink_mark(const struct bgzf_sink *k)
{
    return task_ring_head(&k->ring) + k->begun * (1u + k->opt.copies);
}

bool bgzf_sink_passed(const struct bgzf_sink *k, uint64_t mark)
{
    return atomic_load(&k->ticket) >= mark;
}

bool bgzf_sink_will_pass(const struct bgzf_sink *k, uint64_t mark)
{
    return mark <= task_ring_head(&k->ring);
}

/* Adds the EOF block of BGZF, writes the last piece, and leaves the file at its end. All slots are free. */
static int write_eof(struct bgzf_sink *k)
{
    struct iovec eof = {(void *)(uintptr_t)bgzf_block_eof, k->opt.form == SINK_SAM ? 0 : BGZF_EOF_SIZE};
    uint64_t place = atomic_load(&k->placed), at = (uint64_t)k->begin + place, end = at + eof.iov_len;
    enum stage before = stats_enter(k->opt.stats, STAGE_WRITE);
    if (k->pieces && !latch_tripped(k->opt.latch))
        out_pieces_copy(k->pieces, eof.iov_base, eof.iov_len, at);
    if (k->pieces)
        out_pieces_end(k->pieces, end);
    else if (eof.iov_len > 0)
        write_at(k, &eof, 1, place);
    stats_leave(k->opt.stats, before, eof.iov_len);
    if (latch_tripped(k->opt.latch))             /* also if a block before it failed */
        return -1;
    if (k->begin >= 0)
        lseek(k->opt.fd, (off_t)end, SEEK_SET);
    return 0;
}

int bgzf_sink_finish(struct bgzf_sink *k)
{
    if (bgzf_sink_hand_out(k) < 0)
        return -1;
    for (uint32_t i = 0; i < k->opt.n_slots; i++)
        if (bgzf_sink_wait(k, i) < 0)
            return -1;
    task_ring_hand_out_all(&k->ends);
    return write_eof(k);
}

size_t bgzf_sink_piece_size(int n_threads, int level, size_t memory)
{
    size_t size = level == 0 ? 0 : PIECE_MOST;
    while (size > PIECE_LEAST && n_pieces(n_threads) * size > memory)
        size /= 2;
    return size;
}

size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level, size_t piece_size)
{
    return task_ring_memory(n_slots + ENDS) + n_slots * (sizeof(struct sink_slot) + BGZF_MAX_BLOCK)
         + (size_t)n_threads * (bgzf_codec_memory(level) + BGZF_MAX_BLOCK) + n_pieces(n_threads) * piece_size;
}
