/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "bam_arena.h"
#include "bam_index.h"
#include "bgzf_block.h"
#include "bgzf_sink.h"
#include "bgzf_slot.h"
#include "latch.h"
#include "sink_verify.h"
#include "stats.h"

enum {
    CACHE_LINE = 64,
    WRITE_AT_ONCE = 16,          /* blocks per writev */
    SINK_PIECES = BGZF_FILL / BAM_MIN_RECORD + 1,
};


/*        U: what goes into block i            C: block i compressed
 *        +-----+-----+-----+-----+            +-----+-----+-----+-----+
 * put -> | i   | i+1 | i+2 |  .. |  deflate-> | i   | i+1 | i+2 |  .. |  -> write, in order
 *        +-----+-----+-----+-----+            +-----+-----+-----+-----+
 *
 * Two circular buffers with the same slots, and one ticket: the number of the
 * block to be written next (Weeks and Luecke 2017, section 4.4). A U slot holds
 * the list of the block's pieces; gathering them into bytes is part of the
 * deflate task, so the master moves 16 bytes per record and no record.
 *
 * Who writes: a thread that has finished block i stores its length in C, then
 * looks whether the ticket is served. Whoever finds the ticket's block finished
 * claims it (length back to 0), writes it and all finished ones after it, and
 * serves the ticket on. Nobody waits for his turn: a finished block that is not
 * served yet is left to the thread that serves the ticket.
 *
 * No block is forgotten: its finisher stores the length and then reads the
 * ticket; the server stores the ticket and then reads the length. All four are
 * sequentially consistent, so at least one of the two sees the other.
 * No block is written twice or early: the length is stored with the block's
 * number, and claimed by compare-and-swap while the ticket is that number.
 *
 * No deadlock, for any number of slots >= 1: tasks never wait (except in
 * write()); the master waits only for the oldest slot, whose block is READY
 * (then the master runs it), TAKEN (its thread will finish it) or finished
 * (then, by the above, some thread is about to write it).
 */
struct sink_slot {
    atomic_int state;            /* bgzf_slot.h; DONE is never seen: writing frees the slot */
    uint32_t n;                  /* pieces; master, before READY */
    uint32_t size;               /* bytes in them; master, before READY */
    uint64_t number;             /* of the block; master, before READY */
    _Atomic uint64_t finished;   /* number << LENGTH_BITS | length; 0: not finished, or claimed */
    struct bgzf_piece *pieces;   /* U */
    uint8_t *compressed;         /* C */
    struct bam_index_entry *entries;   /* of the records that end in it; claimer, before finished */
    uint32_t n_entries;
    struct verify_ends ends;     /* claimer, before finished */
};

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
    uint64_t head;               /* number of the next block to be begun; master */
    uint64_t help;               /* no READY slot before this one; master */
    uint64_t checksum;           /* after finish; master */
    bgzf_finish_fn *finish;      /* master, before the first block */
    struct sink_verify *verify;  /* NULL: nothing is; master, before the first block */
    struct bam_index *index;     /* NULL: none; used by the thread that serves the ticket */
    uint64_t written;            /* bytes; by the thread that serves the ticket */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;   /* the block to be written next */
};

static int sink_alloc(struct bgzf_sink *k)
{
    int n = k->opt.n_threads;
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

struct bgzf_sink *bgzf_sink_open(const struct bgzf_sink_options *options)
{
    struct bgzf_sink *k = aligned_alloc(CACHE_LINE, sizeof *k);
    if (k) {
        memset(k, 0, sizeof *k);
        k->opt = *options;
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
    free(k->slots);
    free(k->threads);
    free(k);
}

/* Copies the pieces of a block together, fetching ahead: in sorted order they
 * lie anywhere in the arena, and their first lines would each be a cache miss. */
static void gather(const struct sink_slot *slot, bgzf_finish_fn *finish, uint8_t *out)
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
            sum += bam_checksum_segment(data, p->size, p->segment);
        data += p->size;
    }
    return sum;
}

/* Notes what the index needs of the records that end in this block. */
static void list_entries(struct sink_slot *slot)
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
        if (before + p->size == bam_record_size((const struct bam_record *)record))
            slot->entries[slot->n_entries++] = bam_index_entry(record, after);
    }
}

/* Enters the blocks first .. end - 1, which begin at k->written, into the index;
 * looks whether they follow each other. */
static void enter_blocks(struct bgzf_sink *k, uint64_t first, uint64_t end, const struct iovec *iov)
{
    for (uint64_t i = first; i < end; i++, iov++) {
        const struct sink_slot *slot = &k->slots[i % k->opt.n_slots];
        uint64_t next = k->written + iov->iov_len;
        bool records = slot->pieces[0].segment != NO_RECORD;   /* the header ends its block */
        if (k->index && records && bam_index_add(k->index, k->written, slot->size, next, slot->entries, slot->n_entries) < 0)
            latch_fail(k->opt.latch, "%s: a record cannot be put into the index. Try CSI instead of BAI",
                       k->opt.path);
        if (k->verify)
            sink_verify_join(k->verify, &slot->ends);
        k->written = next;
    }
}

/* Writes all of iov[n]. -1: told to the latch. */
static int write_all(struct bgzf_sink *k, struct iovec *iov, int n)
{
    while (n > 0 && !latch_tripped(k->opt.latch)) {
        ssize_t done = writev(k->opt.fd, iov, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return latch_fail(k->opt.latch, "writing %s failed: %s", k->opt.path, strerror(errno));
        for (; n > 0 && (size_t)done >= iov->iov_len; iov++, n--)
            done -= (ssize_t)iov->iov_len;
        if (n > 0) {
            iov->iov_base = (uint8_t *)iov->iov_base + done;
            iov->iov_len -= (size_t)done;
        }
    }
    return n > 0 ? -1 : 0;
}

/* Claims block `number` if it is finished: its length, else 0. */
static uint32_t claim_finished(struct sink_slot *slot, uint64_t number)
{
    uint64_t finished = atomic_load(&slot->finished);
    if (finished == 0 || finished >> LENGTH_BITS != number)
        return 0;
    return atomic_compare_exchange_strong(&slot->finished, &finished, 0)
         ? (uint32_t)(finished & ((1u << LENGTH_BITS) - 1)) : 0;
}

/* Writes the block the ticket is at and all finished ones after it. */
static void serve_ticket(struct bgzf_sink *k)
{
    for (;;) {
        uint64_t first = atomic_load(&k->ticket), number = first;
        struct iovec iov[WRITE_AT_ONCE];
        uint32_t length;
        int n = 0;
        while (n < WRITE_AT_ONCE
               && (length = claim_finished(&k->slots[number % k->opt.n_slots], number)) > 0) {
            iov[n++] = (struct iovec){k->slots[number % k->opt.n_slots].compressed, length};
            number++;
        }
        if (n == 0)
            return;
        if (!latch_tripped(k->opt.latch)) {
            enum stage before = stats_enter(k->opt.stats, k->index ? STAGE_INDEX : STAGE_WRITE);
            uint64_t written = k->written;
            enter_blocks(k, first, number, iov); /* before write_all(), which consumes iov */
            stats_leave(k->opt.stats, before, 0);
            stats_enter(k->opt.stats, STAGE_WRITE);
            write_all(k, iov, n);
            stats_leave(k->opt.stats, before, k->written - written);
        }
        for (uint64_t i = first; i < number; i++)
            slot_pass(&k->slots[i % k->opt.n_slots].state, SLOT_FREE);
        atomic_store(&k->ticket, number);
    }
}

static void verify_block(struct bgzf_sink *k, struct sink_slot *slot, const uint8_t *data, uint32_t length)
{
    enum stage before = stats_enter(k->opt.stats, STAGE_VERIFY);
    if (sink_verify_block(k->verify, omp_get_thread_num(), slot->compressed, length, data, slot->size) == 0)
        sink_verify_order(k->verify, slot->pieces, slot->n, &slot->ends);
    stats_leave(k->opt.stats, before, slot->size);
}

/* Deflates the block of a claimed slot and sees to the writing. */
static void sink_run(struct bgzf_sink *k, struct sink_slot *slot)
{
    uint32_t length = 1;                         /* after a failure: any, nothing is written */
    if (!latch_tripped(k->opt.latch)) {
        struct sink_thread *t = &k->threads[omp_get_thread_num()];
        uint8_t *data = bgzf_stored_data(t->codec, slot->compressed);
        if (!data)
            data = t->gathered;
        enum stage before = stats_enter(k->opt.stats, STAGE_GATHER);
        gather(slot, k->finish, data);
        t->checksum += checksum_block(slot, data);
        if (k->index)
            list_entries(slot);
        stats_leave(k->opt.stats, before, slot->size);
        stats_enter(k->opt.stats, STAGE_DEFLATE);
        length = bgzf_block_deflate(t->codec, data, slot->size, slot->compressed);
        stats_leave(k->opt.stats, before, slot->size);
        if (k->verify)
            verify_block(k, slot, data, length);
    }
    atomic_store(&slot->finished, slot->number << LENGTH_BITS | length);
    serve_ticket(k);
}

int bgzf_sink_help(struct bgzf_sink *k)
{
    uint64_t oldest = atomic_load(&k->ticket), end = k->head - (k->filling != NULL);
    if (k->help < oldest)
        k->help = oldest;
    for (; k->help < end; k->help++) {
        struct sink_slot *slot = &k->slots[k->help % k->opt.n_slots];
        if (slot_claim(&slot->state)) {
            sink_run(k, slot);
            return 1;
        }
    }
    return 0;
}

/* Helps until the ticket has passed block `number`. */
static int sink_wait(struct bgzf_sink *k, uint64_t number)
{
    unsigned spins = 0;
    enum stage before = stats_enter(k->opt.stats, STAGE_WAIT);
    while (atomic_load(&k->ticket) <= number && !latch_tripped(k->opt.latch))
        if (!bgzf_sink_help(k))
            slot_pause(&spins);
    stats_leave(k->opt.stats, before, 0);
    return atomic_load(&k->ticket) > number ? 0 : -1;
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
    struct sink_slot *slot = k->filling;
    if (!slot)
        return 0;
    k->filling = NULL;
    slot_pass(&slot->state, SLOT_READY);

    #pragma omp task default(none) firstprivate(k, slot)
    if (slot_claim(&slot->state))
        sink_run(k, slot);
    return latch_tripped(k->opt.latch) ? -1 : 0;
}

uint64_t bgzf_sink_mark(const struct bgzf_sink *k)
{
    return k->head;
}

bool bgzf_sink_passed(const struct bgzf_sink *k, uint64_t mark)
{
    return atomic_load(&k->ticket) >= mark;
}

bool bgzf_sink_will_pass(const struct bgzf_sink *k, uint64_t mark)
{
    return !k->filling || mark < k->head;
}

static int sink_begin(struct bgzf_sink *k)
{
    if (k->head >= k->opt.n_slots && sink_wait(k, k->head - k->opt.n_slots) < 0)
        return -1;
    struct sink_slot *slot = &k->slots[k->head % k->opt.n_slots];
    slot->number = k->head++;
    slot->n = slot->size = 0;
    k->filling = slot;
    return 0;
}

/* Puts as many pieces into the block being filled as fit; returns how many. All
 * that is done for each record on the master: so it adds up sizes, and no more. */
static size_t fill(struct sink_slot *slot, const struct bgzf_piece *pieces, size_t n)
{
    uint32_t room = BGZF_FILL - slot->size;
    size_t most = SINK_PIECES - slot->n, fit = 0;
    most = n < most ? n : most;
    while (fit < most && pieces[fit].size <= room)
        room -= pieces[fit++].size;
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

int bgzf_sink_put(struct bgzf_sink *k, const struct bgzf_piece *records, size_t n)
{
    while (n > 0) {
        size_t taken = 1;
        if (records->size > BGZF_FILL) {
            if (put_long(k, records->data, records->size, true) < 0)
                return -1;
        } else if (!k->filling && sink_begin(k) < 0) {
            return -1;
        } else if ((taken = fill(k->filling, records, n)) == 0 && bgzf_sink_flush(k) < 0) {
            return -1;
        }
        records += taken;
        n -= taken;
    }
    return 0;
}

void bgzf_sink_set_verify(struct bgzf_sink *k, struct sink_verify *verify)
{
    k->verify = verify;
}

void bgzf_sink_set_finish(struct bgzf_sink *k, bgzf_finish_fn *finish)
{
    k->finish = finish;
}

int bgzf_sink_finish(struct bgzf_sink *k)
{
    if (bgzf_sink_flush(k) < 0 || (k->head > 0 && sink_wait(k, k->head - 1) < 0))
        return -1;
    for (int i = 0; i < k->opt.n_threads; i++)
        k->checksum += k->threads[i].checksum;
    struct iovec eof = {(void *)(uintptr_t)bgzf_eof_block, BGZF_EOF_SIZE};
    return write_all(k, &eof, 1);                /* -1 too if a block before it failed */
}

uint64_t bgzf_sink_checksum(const struct bgzf_sink *k)
{
    return k->checksum;
}

size_t bgzf_sink_memory(int n_threads, uint32_t n_slots, int level)
{
    return n_slots * (sizeof(struct sink_slot) + SINK_PIECES * sizeof(struct bgzf_piece) + BGZF_MAX_BLOCK)
         + (size_t)n_threads * (bgzf_codec_memory(level) + BGZF_FILL);
}
