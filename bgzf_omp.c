/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include "bam_arena.h"
#include "bam_index.h"
#include "bgzf_block.h"
#include "bgzf_omp.h"
#include "bgzf_slot.h"
#include "byte_source.h"
#include "latch.h"

enum {
    CACHE_LINE = 64,
    N_PIECES = 3,                /* one being read into, one being inflated, one in between */
    WRITE_AT_ONCE = 16,          /* blocks per writev */
    SINK_PIECES = BGZF_FILL / BAM_MIN_RECORD + 1,
};
/* ---------------------------------------------------------------- source */

/* A buffer of compressed input. */
struct piece {
    uint8_t *data;
    size_t size;                 /* bytes read; master */
    uint64_t file_offset;        /* of data[0]; master */
    atomic_int users;            /* blocks handed out and not yet inflated: master adds, tasks subtract */
};

struct source_slot {
    atomic_int state;            /* bgzf_slot.h */
    struct bgzf_frame frame;     /* these four: master, before READY */
    const uint8_t *compressed;
    struct piece *piece;
    struct bgzf_source_block block;
    enum bgzf_fault fault;       /* claimer, before DONE */
};

struct bgzf_source {
    struct bgzf_source_options opt;
    int framed;                  /* BGZF blocks; else plain bytes, cut anywhere */
    struct piece pieces[N_PIECES];
    unsigned piece;              /* the one being scanned; master, as all below but codecs */
    size_t at;                   /* where in it */
    int at_eof;                  /* read() returned 0 */
    int eof_block;               /* the last block seen was the empty one of 28 bytes */
    int peeked;                  /* frame is the block at `at` */
    struct bgzf_frame frame;
    struct source_slot *slots;
    uint64_t head, tail;         /* blocks handed out, blocks taken back */
    uint64_t help;               /* no READY slot before this one */
    bgzf_inflated_fn *inflated;
    void *inflated_arg;
    struct bgzf_codec **codecs;  /* one per thread, each used by its thread only */
};

static struct bgzf_codec **codecs_new(int n_threads, int level)
{
    struct bgzf_codec **codecs = calloc((size_t)n_threads, sizeof *codecs);
    for (int i = 0; codecs && i < n_threads; i++) {
        codecs[i] = bgzf_codec_new(level);
        if (!codecs[i]) {
            while (i-- > 0)
                bgzf_codec_free(codecs[i]);
            free(codecs);
            return NULL;
        }
    }
    return codecs;
}

static void codecs_free(struct bgzf_codec **codecs, int n_threads)
{
    for (int i = 0; codecs && i < n_threads; i++)
        bgzf_codec_free(codecs[i]);
    free(codecs);
}

static int source_alloc(struct bgzf_source *s)
{
    s->slots = calloc(s->opt.n_slots, sizeof *s->slots);
    s->codecs = codecs_new(s->opt.n_threads, 0);
    for (int i = 0; i < N_PIECES; i++)
        if (!(s->pieces[i].data = malloc(s->opt.piece_size)))
            return -1;
    return s->slots && s->codecs ? 0 : -1;
}

struct bgzf_source *bgzf_source_open(const struct bgzf_source_options *options)
{
    struct bgzf_source *s = calloc(1, sizeof *s);
    if (!s) {
        latch_fail(options->latch, "%s: out of memory", options->path);
        return NULL;
    }
    s->opt = *options;
    s->framed = byte_source_framing(options->input) == BYTES_BGZF;
    if (source_alloc(s) == 0)
        return s;
    latch_fail(options->latch, "%s: out of memory for read buffers; try fewer threads (-@)", options->path);
    bgzf_source_close(s);
    return NULL;
}

void bgzf_source_close(struct bgzf_source *s)
{
    if (!s)
        return;
    for (int i = 0; i < N_PIECES; i++)
        free(s->pieces[i].data);
    codecs_free(s->codecs, s->opt.n_threads);
    free(s->slots);
    free(s);
}

void bgzf_source_on_inflated(struct bgzf_source *s, bgzf_inflated_fn *fn, void *arg)
{
    s->inflated = fn;
    s->inflated_arg = arg;
}

static enum bgzf_fault source_inflate(struct bgzf_source *s, const uint8_t *p,
                                      const struct bgzf_frame *frame, uint8_t *dst)
{
    if (s->framed)
        return bgzf_block_inflate(s->codecs[omp_get_thread_num()], p, frame, dst);
    memcpy(dst, p, frame->size);
    return BGZF_OK;
}

/* Inflates the block of a claimed slot. */
static void source_run(struct bgzf_source *s, struct source_slot *slot)
{
    if (!latch_tripped(s->opt.latch)) {
        slot->fault = source_inflate(s, slot->compressed, &slot->frame, slot->block.data);
        if (!slot->fault && s->inflated)
            s->inflated(s->inflated_arg, &slot->block);
    }
    atomic_fetch_sub_explicit(&slot->piece->users, 1, memory_order_release);
    slot_pass(&slot->state, SLOT_DONE);
}

/* Runs one block that nobody has claimed yet; 0 if there is none. */
static int source_help(struct bgzf_source *s)
{
    if (s->help < s->tail)
        s->help = s->tail;
    for (; s->help < s->head; s->help++) {
        struct source_slot *slot = &s->slots[s->help % s->opt.n_slots];
        if (slot_claim(&slot->state)) {
            source_run(s, slot);
            return 1;
        }
    }
    return 0;
}

/* Moves on to the next piece, which begins with what is left of this one. */
static int source_rotate(struct bgzf_source *s)
{
    struct piece *from = &s->pieces[s->piece], *to = &s->pieces[(s->piece + 1) % N_PIECES];
    unsigned spins = 0;
    while (atomic_load_explicit(&to->users, memory_order_acquire) > 0) {
        if (latch_tripped(s->opt.latch))
            return -1;
        if (!source_help(s))
            slot_pause(&spins);
    }
    to->size = from->size - s->at;
    to->file_offset = from->file_offset + s->at;
    memcpy(to->data, from->data + s->at, to->size);
    s->piece = (s->piece + 1) % N_PIECES;
    s->at = 0;
    return 0;
}

/* Reads once into the current piece, or a fresh one when it is full. */
static int source_read(struct bgzf_source *s)
{
    if (s->pieces[s->piece].size == s->opt.piece_size && source_rotate(s) < 0)
        return -1;
    struct piece *p = &s->pieces[s->piece];
    ssize_t n = byte_source_read(s->opt.input, p->data + p->size, s->opt.piece_size - p->size);
    if (n < 0)
        return -1;
    s->at_eof = n == 0;
    p->size += (size_t)n;
    return 0;
}

/* The frame of the block at p; plain bytes make a block of all that is there. */
static enum bgzf_fault frame_at(const struct bgzf_source *s, const uint8_t *p, size_t avail,
                                struct bgzf_frame *frame)
{
    if (avail == 0)
        return BGZF_MORE;
    if (s->framed)
        return bgzf_block_frame(p, avail, frame);
    frame->size = frame->inflated_size = avail < BGZF_FILL ? (uint32_t)avail : BGZF_FILL;
    frame->data_offset = 0;
    return BGZF_OK;
}

/* Finds the next block, empty or not, as bgzf_source_peek() does. */
static int source_frame(struct bgzf_source *s)
{
    for (;;) {
        struct piece *p = &s->pieces[s->piece];
        size_t avail = p->size - s->at;
        enum bgzf_fault fault = frame_at(s, p->data + s->at, avail, &s->frame);
        if (fault == BGZF_OK)
            return 1;
        if (fault == BGZF_MORE && s->at_eof && avail == 0)
            return 0;
        if (fault != BGZF_MORE || s->at_eof)
            return latch_fail(s->opt.latch, "%s: at file offset %llu: %s. Nothing was written; check "
                              "that the file is complete", s->opt.path,
                              (unsigned long long)(p->file_offset + s->at), bgzf_fault_text(fault));
        if (source_read(s) < 0)
            return -1;
    }
}

int bgzf_source_peek(struct bgzf_source *s, uint32_t *inflated_size)
{
    while (!s->peeked) {
        int found = source_frame(s);
        if (found <= 0)
            return found;
        if (s->frame.inflated_size > 0) {
            s->peeked = 1;
            s->eof_block = 0;
        } else {
            s->eof_block = s->frame.size == BGZF_EOF_SIZE;
            s->at += s->frame.size;
        }
    }
    *inflated_size = s->frame.inflated_size;
    return 1;
}

int bgzf_source_ring_full(const struct bgzf_source *s)
{
    return s->head - s->tail == s->opt.n_slots;
}

void bgzf_source_hand_out(struct bgzf_source *s, uint8_t *dst)
{
    struct piece *p = &s->pieces[s->piece];
    uint32_t index = (uint32_t)(s->head++ % s->opt.n_slots);
    struct source_slot *slot = &s->slots[index];
    slot->frame = s->frame;
    slot->compressed = p->data + s->at;
    slot->piece = p;
    slot->fault = BGZF_OK;
    slot->block = (struct bgzf_source_block){p->file_offset + s->at, dst, s->frame.inflated_size, index};
    atomic_fetch_add_explicit(&p->users, 1, memory_order_relaxed);
    slot_pass(&slot->state, SLOT_READY);
    s->at += s->frame.size;
    s->peeked = 0;

    #pragma omp task default(none) firstprivate(s, slot)
    if (slot_claim(&slot->state))
        source_run(s, slot);
}

static int block_failed(struct bgzf_source *s, uint64_t file_offset, enum bgzf_fault fault)
{
    return latch_fail(s->opt.latch, "%s: block at file offset %llu: %s. Nothing was written; get a "
                      "good copy of the file", s->opt.path, (unsigned long long)file_offset,
                      bgzf_fault_text(fault));
}

int bgzf_source_inflate(struct bgzf_source *s, uint8_t *dst)
{
    struct piece *p = &s->pieces[s->piece];
    enum bgzf_fault fault = source_inflate(s, p->data + s->at, &s->frame, dst);
    if (fault)
        return block_failed(s, p->file_offset + s->at, fault);
    s->at += s->frame.size;
    s->peeked = 0;
    return 0;
}

int bgzf_source_take(struct bgzf_source *s, int wait, struct bgzf_source_block *block)
{
    if (s->head == s->tail)
        return 0;
    struct source_slot *slot = &s->slots[s->tail % s->opt.n_slots];
    unsigned spins = 0;
    while (slot_state(&slot->state) != SLOT_DONE) {
        if (!wait)
            return 0;
        if (!source_help(s))
            slot_pause(&spins);
    }
    *block = slot->block;
    slot_pass(&slot->state, SLOT_FREE);
    s->tail++;
    if (slot->fault)
        return block_failed(s, block->file_offset, slot->fault);
    return latch_tripped(s->opt.latch) ? -1 : 1;
}

int bgzf_source_saw_eof_block(const struct bgzf_source *s)
{
    return s->eof_block || !s->framed;
}

size_t bgzf_source_memory(int n_threads, uint32_t n_slots, size_t piece_size)
{
    return N_PIECES * piece_size + n_slots * sizeof(struct source_slot) + (size_t)n_threads * bgzf_codec_memory(0);
}

/* ------------------------------------------------------------------ sink */

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
};

enum { LENGTH_BITS = 20 };
_Static_assert(BGZF_MAX_BLOCK < 1 << LENGTH_BITS, "a length fits");

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
static void gather(const struct sink_slot *slot, uint8_t *out)
{
    enum { AHEAD = 6 };
    for (uint32_t i = 0; i < slot->n; i++) {
        if (i + AHEAD < slot->n) {
            const struct bgzf_piece *next = &slot->pieces[i + AHEAD];
            for (uint32_t at = 0; at < next->size && at < 512; at += CACHE_LINE)
                __builtin_prefetch(next->data + at);
        }
        memcpy(out, slot->pieces[i].data, slot->pieces[i].size);
        out += slot->pieces[i].size;
    }
}

static uint64_t checksum_block(const struct sink_slot *slot, const uint8_t *data)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < slot->n; i++) {
        const struct bgzf_piece *p = &slot->pieces[i];
        if (p->segment != BGZF_NO_RECORD)
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
        if (p->segment == BGZF_NO_RECORD)
            continue;
        size_t before = (size_t)p->segment * BGZF_FILL;
        const uint8_t *record = p->data - before;
        if (before + p->size == bam_record_size((const struct bam_record *)record))
            slot->entries[slot->n_entries++] = bam_index_entry(record, after);
    }
}

/* Enters the blocks first .. end - 1, which begin at k->written, into the index. */
static void enter_blocks(struct bgzf_sink *k, uint64_t first, uint64_t end, const struct iovec *iov)
{
    for (uint64_t i = first; i < end; i++, iov++) {
        const struct sink_slot *slot = &k->slots[i % k->opt.n_slots];
        uint64_t next = k->written + iov->iov_len;
        bool records = slot->pieces[0].segment != BGZF_NO_RECORD;   /* the header ends its block */
        if (k->index && records && bam_index_add(k->index, k->written, slot->size, next, slot->entries, slot->n_entries) < 0)
            latch_fail(k->opt.latch, "%s: a record cannot be put into the index. Try CSI instead of BAI",
                       k->opt.path);
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
            enter_blocks(k, first, number, iov); /* before write_all(), which consumes iov */
            write_all(k, iov, n);
        }
        for (uint64_t i = first; i < number; i++)
            slot_pass(&k->slots[i % k->opt.n_slots].state, SLOT_FREE);
        atomic_store(&k->ticket, number);
    }
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
        gather(slot, data);
        t->checksum += checksum_block(slot, data);
        if (k->index)
            list_entries(slot);
        length = bgzf_block_deflate(t->codec, data, slot->size, slot->compressed);
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
    while (atomic_load(&k->ticket) <= number) {
        if (latch_tripped(k->opt.latch))
            return -1;
        if (!bgzf_sink_help(k))
            slot_pause(&spins);
    }
    return 0;
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

int bgzf_sink_put(struct bgzf_sink *k, struct bgzf_piece piece)
{
    if (k->filling && (k->filling->size + piece.size > BGZF_FILL || k->filling->n == SINK_PIECES)
        && bgzf_sink_flush(k) < 0)
        return -1;
    if (!k->filling && sink_begin(k) < 0)
        return -1;
    struct sink_slot *slot = k->filling;
    slot->pieces[slot->n++] = piece;
    slot->size += piece.size;
    return 0;
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
