/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/out_file.h"
#include "base/out_pieces.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "base/bgzf_ticket.h"

enum {
    CACHE_LINE = 64,
    TAKEN_AT_ONCE = 16,          /* blocks that a writer takes: at most 1 MiB */
    GATHERED = 9,                /* blocks of level 0 that a writer waits for: 512 KiB and more */
    /* Network file systems and cloud disks perform best with several writes at a time. A local file system does one
     * write at a time for each file, so more writers would only wait for each other. */
    WRITERS = 4, THREADS_PER_WRITER = 2,
    LENGTH_BITS = 31,            /* a SAM record may be long. This leaves 33 bits for numbers: 500 TB */
};

/*                 C: finished blocks, by number
 *                 +-----+-----+-----+-----+-----+-----+
 * finish -------> | i-2 | i-1 | i   | i+1 | i+2 | ... |
 *                 +-----+-----+-----+-----+-----+-----+
 *                    \     \     ^
 *                     written    the ticket: block i gets its place in the file next
 *
 * How blocks are written. A thread that has deflated block i stores its length: the block is finished. Then the thread
 * becomes a writer, unless there are enough. A writer takes the ticket's block, if it is finished, and the finished
 * blocks after it (it sets their lengths to 0). It adds up the lengths, which gives the blocks' places in the file,
 * and calls placed(). Then it moves the ticket on, so that the next writer may begin. Only then does it write the
 * blocks, by pieces or gathered, and free their slots. Several threads write into a regular file at the same time. No
 * thread waits for its turn: if the thread of a finished block does not take it, a writer will.
 *
 * Gathered blocks. Blocks of level 0 and of SAM are large, and blocks for a pipe have no places. The writer writes such
 * blocks without a copy. It claims all blocks that have places and that no other writer has claimed (it moves `claimed`
 * on to the ticket), but at least `gathered` of them. While the main thread waits for a slot out of turn (`flushing`),
 * one is enough.
 *
 * Pieces. Deflated blocks are small, so a regular file is written in pieces of piece_size bytes (base/out_pieces.h). A
 * writer takes a block only if the block's last byte lies in a piece that has its buffer. (The piece of its first byte
 * has one, too: it is the same piece, or blocks before this one lie in it.) The thread that completes a piece writes
 * it. The main thread writes the last piece, with the EOF block.
 *
 * No block is forgotten. A thread that finishes a block stores the length first. Then it counts itself among the
 * writers, even if it only finds that there are enough. A thread that stops being a writer, even for that reason,
 * checks afterwards whether there is work and room for a writer. There is work if the ticket's block is finished and
 * its piece has a buffer, or if enough blocks are gathered. In that case the thread begins again. (The main thread
 * leaves that to a thread that is still counted.) All these operations are sequentially consistent. Consider the very
 * last change of the number of writers: all lengths, places and tickets were stored before it, and the number is 0 now.
 * So all blocks before the ticket's are copied or claimed, except for fewer than `gathered` blocks, and complete pieces
 * are written. At most one piece is incomplete, and there are at least two buffers: the piece of the ticket's block has
 * one. So the thread that made the change would not have left a finished block.
 *
 * No block is written twice or early. The length is stored with the block's number, and taken by compare-and-swap
 * while the ticket is that number. From then until the ticket is stored, the length is 0. So one thread at a time
 * calls placed() and adds up lengths. The place is stored before the ticket: if the swap succeeds, the place read
 * after the ticket was that block's.
 *
 * Slots become free in any order: when their blocks are written, or when their blocks are copied and the pieces that
 * this completed are written. So when all slots are free, only the last piece is left. The main thread takes slots in
 * the ring's order.
 *
 * No deadlock, for any number of slots >= 1. Tasks never wait, except in write(). The main thread waits for one slot,
 * and meanwhile runs all blocks that are READY. So every block that was handed out is TAKEN (its thread will finish
 * it), finished (once the blocks before it are finished, a writer will take it, as shown above) or taken by a writer
 * (which will free the slot, or leave it to be gathered). The main thread waits for the oldest slot when all slots are
 * handed out, and there are more than `gathered` slots. When it waits for another slot, no block stays gathered. */
struct ticket_slot {
    uint64_t number;             /* number of the block; set by the main thread, before READY */
    _Atomic uint64_t finished;   /* number << LENGTH_BITS | length; 0: not finished, or taken by a writer */
    const uint8_t *bytes;        /* to be written; set by the thread that finishes the block */
    uint64_t place;              /* place of the block; this field and the next one are set by the thread that takes the
                                  * block, before the ticket is stored */
    size_t length;
};

struct bgzf_ticket {
    struct bgzf_ticket_options opt;
    struct ticket_slot *slots;
    off_t begin;                 /* place in the file of the first block; -1: blocks are written at the file's current
                                  * position */
    int most_writers;
    struct out_pieces *pieces;   /* NULL: there are no pieces */
    _Atomic uint64_t placed;     /* bytes in all blocks before the ticket's; stored by the thread that took the ticket's
                                  * block */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;   /* the block that gets its place next */
    _Atomic uint64_t claimed;    /* without pieces: blocks before this one are written, or a writer is writing them */
    uint64_t gathered;           /* a writer claims at least this number of blocks ... */
    atomic_bool flushing;        /* ... unless the main thread has set this */
    atomic_int writers;          /* threads that write, or that have not yet found that there are enough writers */
};

int bgzf_ticket_writers(int n_threads)
{
    int share = n_threads / THREADS_PER_WRITER;
    return share < 1 ? 1 : share < WRITERS ? share : WRITERS;
}

/* Each writer writes one piece, and one more piece takes the blocks that come meanwhile. */
static uint32_t n_pieces(int n_writers)
{
    return (uint32_t)n_writers + 1;
}

size_t bgzf_ticket_pieces(int n_writers, size_t piece_size)
{
    return n_pieces(n_writers) * piece_size;
}

size_t bgzf_ticket_memory(uint32_t n_slots)
{
    return n_slots * sizeof(struct ticket_slot);
}

/* Leaves a slot to each thread, and half of the other slots to blocks that are not gathered yet. */
static uint64_t n_gathered(const struct bgzf_ticket_options *o)
{
    uint64_t threads = (uint64_t)o->engine->n_threads, most = o->n_slots > threads + 1 ? (o->n_slots - threads) / 2 : 1;
    return most < GATHERED ? most : GATHERED;
}

/* Returns where the blocks begin in a file that can be written to at any position; -1 for other files. */
static off_t position(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || flags & O_APPEND || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;                               /* with O_APPEND, even pwrite() appends */
    return lseek(fd, 0, SEEK_CUR);
}

static int ticket_alloc(struct bgzf_ticket *t)
{
    struct out_pieces_options how = {.fd = t->opt.fd, .path = t->opt.path, .begin = (uint64_t)t->begin,
                                     .piece_size = t->opt.piece_size, .n = n_pieces(t->most_writers),
                                     .latch = t->opt.engine->latch};
    t->slots = calloc(t->opt.n_slots, sizeof *t->slots);
    if (t->begin >= 0 && t->opt.piece_size > 0 && !(t->pieces = out_pieces_new(&how)))
        return -1;
    return t->slots ? 0 : -1;
}

struct bgzf_ticket *bgzf_ticket_open(const struct bgzf_ticket_options *options)
{
    struct bgzf_ticket *t = aligned_alloc(CACHE_LINE, sizeof *t);
    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    t->opt = *options;
    t->begin = position(options->fd);
    t->gathered = n_gathered(options);
    t->most_writers = t->begin >= 0 ? options->n_writers : 1;
    if (ticket_alloc(t) == 0)
        return t;
    bgzf_ticket_close(t);
    return NULL;
}

void bgzf_ticket_close(struct bgzf_ticket *t)
{
    if (!t)
        return;
    out_pieces_free(t->pieces);
    free(t->slots);
    free(t);
}

static struct ticket_slot *slot_of(struct bgzf_ticket *t, uint64_t number)
{
    return &t->slots[task_ring_slot(t->opt.ring, number)];
}

static uint32_t length_of(uint64_t finished)
{
    return (uint32_t)(finished & ((1u << LENGTH_BITS) - 1));
}

/* Returns whether block `number`, which lies at this place, can be taken: it is finished, and the piece in which it
 * ends has a buffer. After an error no buffer is necessary, because the block will not be copied. */
static bool can_take(struct bgzf_ticket *t, uint64_t number, uint64_t place, uint64_t *finished)
{
    *finished = atomic_load(&slot_of(t, number)->finished);
    return *finished != 0 && *finished >> LENGTH_BITS == number
        && (!t->pieces || latch_tripped(t->opt.engine->latch)
            || out_pieces_has_room(t->pieces, (uint64_t)t->begin + place + length_of(*finished)));
}

/* Takes the block, which lies at this place, if it can be taken. */
static bool take_block(struct bgzf_ticket *t, uint64_t number, uint64_t place)
{
    uint64_t finished;
    struct ticket_slot *slot = slot_of(t, number);
    if (!can_take(t, number, place, &finished) || !atomic_compare_exchange_strong(&slot->finished, &finished, 0))
        return false;
    slot->place = place;
    slot->length = length_of(finished);
    return true;
}

static void release_slots(struct bgzf_ticket *t, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        task_ring_release(t->opt.ring, task_ring_slot(t->opt.ring, i));
}

/* Gives places to the ticket's block and to the blocks after it that can be taken. Copies these blocks to the pieces,
 * if there are pieces. False: the ticket's block cannot be taken. */
static bool place_blocks(struct bgzf_ticket *t)
{
    uint64_t first = atomic_load(&t->ticket), end = first, begin = atomic_load(&t->placed), next = begin;
    size_t most = t->pieces ? t->opt.piece_size : SIZE_MAX;   /* leaves pieces to other writers */
    for (; end - first < TAKEN_AT_ONCE && next - begin < most && take_block(t, end, next); end++)
        next += slot_of(t, end)->length;
    if (end == first)
        return false;
    enum stage before = clocks_enter(t->opt.engine->clocks, STAGE_WRITE);
    bool sound = !latch_tripped(t->opt.engine->latch);
    for (uint64_t i = first; sound && i < end; i++) {
        const struct ticket_slot *slot = slot_of(t, i);
        t->opt.placed(t->opt.arg, task_ring_slot(t->opt.ring, i), slot->place, slot->place + slot->length);
    }
    atomic_store(&t->placed, next);
    atomic_store(&t->ticket, end);
    for (uint64_t i = first, at = (uint64_t)t->begin + begin; t->pieces && sound && i < end; i++) {
        out_pieces_copy(t->pieces, slot_of(t, i)->bytes, slot_of(t, i)->length, at);
        at += slot_of(t, i)->length;
    }
    clocks_leave(t->opt.engine->clocks, before, t->pieces && sound ? next - begin : 0);
    if (t->pieces)
        release_slots(t, first, end);
    return true;
}

/* place: as in the call of placed(). */
static int write_at(struct bgzf_ticket *t, struct iovec *iov, int n, uint64_t place)
{
    off_t at = t->begin < 0 ? -1 : t->begin + (off_t)place;
    return out_file_write_at(t->opt.fd, t->opt.path, iov, n, at, t->opt.engine->latch);
}

/* Returns how many blocks can be written now, beginning with `first`, the first block that no writer has claimed. */
static uint64_t n_ready(struct bgzf_ticket *t, uint64_t first)
{
    uint64_t n = t->pieces ? 0 : atomic_load(&t->ticket) - first;
    n = n < TAKEN_AT_ONCE ? n : TAKEN_AT_ONCE;
    return n >= t->gathered || atomic_load(&t->flushing) ? n : 0;
}

/* Claims gathered blocks and writes them. False: not enough blocks are gathered. */
static bool write_gathered(struct bgzf_ticket *t)
{
    struct iovec iov[TAKEN_AT_ONCE];
    uint64_t first = atomic_load(&t->claimed), n, size = 0;
    do {
        if ((n = n_ready(t, first)) == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&t->claimed, &first, first + n));
    for (uint64_t i = 0; i < n; i++) {
        const struct ticket_slot *slot = slot_of(t, first + i);
        iov[i] = (struct iovec){(void *)(uintptr_t)slot->bytes, slot->length};
        size += slot->length;
    }
    enum stage before = clocks_enter(t->opt.engine->clocks, STAGE_WRITE);
    bool sound = write_at(t, iov, (int)n, slot_of(t, first)->place) == 0;
    clocks_leave(t->opt.engine->clocks, before, sound ? size : 0);
    release_slots(t, first, first + n);
    return true;
}

static bool write_blocks(struct bgzf_ticket *t)
{
    return (int)place_blocks(t) | (int)write_gathered(t);
}

static bool is_writer_wanted(struct bgzf_ticket *t)
{
    uint64_t finished, ticket = atomic_load(&t->ticket);
    return atomic_load(&t->writers) < t->most_writers
        && (can_take(t, ticket, atomic_load(&t->placed), &finished) || n_ready(t, atomic_load(&t->claimed)) > 0);
}

/* Writes finished blocks, unless enough other threads do. The main thread has blocks to hand out. So it ceases after
 * one turn if another thread, which will check again, is counted as a writer. As the only writer it continues while
 * blocks are finished. */
static void serve_ticket(struct bgzf_ticket *t)
{
    bool is_main = task_thread() == 0, has_others;
    do {
        if (atomic_fetch_add(&t->writers, 1) < t->most_writers)
            while (write_blocks(t) && !is_main)
                ;
        has_others = atomic_fetch_sub(&t->writers, 1) > 1;
    } while (!(is_main && has_others) && is_writer_wanted(t));
}

void bgzf_ticket_begin(struct bgzf_ticket *t, uint64_t number)
{
    slot_of(t, number)->number = number;
}

void bgzf_ticket_finish(struct bgzf_ticket *t, uint32_t index, const uint8_t *bytes, uint32_t length)
{
    struct ticket_slot *slot = &t->slots[index];
    slot->bytes = bytes;
    atomic_store(&slot->finished, slot->number << LENGTH_BITS | length);
    serve_ticket(t);
}

void bgzf_ticket_flush(struct bgzf_ticket *t, bool flush)
{
    atomic_store(&t->flushing, flush);
    if (flush)
        serve_ticket(t);
}

bool bgzf_ticket_passed(const struct bgzf_ticket *t, uint64_t number)
{
    return atomic_load(&t->ticket) >= number;
}

int bgzf_ticket_end(struct bgzf_ticket *t, const uint8_t *last, size_t size)
{
    struct iovec iov = {(void *)(uintptr_t)last, size};
    uint64_t place = atomic_load(&t->placed), at = (uint64_t)t->begin + place, end = at + size;
    enum stage before = clocks_enter(t->opt.engine->clocks, STAGE_WRITE);
    if (t->pieces && !latch_tripped(t->opt.engine->latch))
        out_pieces_copy(t->pieces, last, size, at);
    if (t->pieces)
        out_pieces_end(t->pieces, end);
    else if (size > 0)
        write_at(t, &iov, 1, place);
    clocks_leave(t->opt.engine->clocks, before, size);
    if (latch_tripped(t->opt.engine->latch))             /* even if only a block before it failed */
        return -1;
    if (t->begin >= 0)
        lseek(t->opt.fd, (off_t)end, SEEK_SET);
    return 0;
}
