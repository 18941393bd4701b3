/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "base/affinity.h"
#include "base/byte_window.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "codec/frame_list.h"
#include "read/file_extents.h"
#include "read/input_file.h"
#include "read/read_ahead.h"

enum {
    /* The kernel is asked for this many pieces of a regular file after the one that is read. So the disk has several
     * requests even if only one thread reads (cloud disks give four streams three times the speed of one). */
    EXPECTED = 6,
    /* ms after which a sleeping thread looks at the latch, because an error or a signal does not wake it. */
    NAP = 50,
    READER_STACK = 256 << 10,    /* bytes; small, because they count towards a limit on address space */
};

/*   blocks of them are     looked at    read    being read            to be read
 *   being inflated
 *   +---------+---------+-------------+-------+---------+---------+---------+---------+
 *   | piece 4 | piece 5 |   piece 6   |   7   |    8    |    9    |   10    |   11    |
 *   +---------+---------+-------------+-------+---------+---------+---------+---------+
 *                        current                                             begun - 1
 *
 * A buffer begins with the list of blocks. After it there is room for the unused bytes of the piece before, because a
 * block may lie in two pieces:
 *
 *                       |   frames  |   KEPT   |          piece_size          |
 *                                       rest ->|
 * The state of a piece is the state of its slot in the ring. A piece that is DONE but not full is the last one. */
struct read_piece {
    uint8_t *data;               /* after the room; NULL: the buffer was freed */
    uint64_t number;             /* number of the piece in the order of the input; the main thread sets it before
                                  * READY */
    size_t filled;               /* bytes read: set by the main thread before READY, then by the claimer. Other threads
                                  * read it once the piece is DONE, or under the mutex if a thread reads the file */
    atomic_int users;            /* blocks in the piece that are not yet inflated: see struct byte_window */
    struct frame_list *frames;   /* if tasks read: made by the claimer before DONE, then owned by the main thread */
};

struct read_ahead {
    struct byte_window window;   /* must be first: more() gets it. It lies in the piece `current`; main thread, as is
                                  * the next field */
    uint64_t current;
    struct input_file *file;
    size_t piece_size;
    struct clocks *clocks;
    enum input_access access;    /* ANYWHERE: tasks read; FROM_PIPE: the thread reads; IN_TURN: the main thread reads */
    uint32_t n_pieces;
    struct task_ring ring;       /* ring of the pieces; piece number n is slot number n */
    pthread_t thread;            /* this and all fields below: for INPUT_FROM_PIPE */
    pthread_mutex_t mutex;
    pthread_cond_t room;         /* a piece has become READY, or `stop` is true */
    pthread_cond_t news;         /* more bytes have come, or the thread has ended */
    atomic_bool stop;            /* set by the main thread, under the mutex */
    int slot;                    /* the thread's slot of the clocks */
    struct read_piece pieces[];  /* n_pieces */
};

static struct read_piece *piece_of(struct read_ahead *a, uint64_t number)
{
    return &a->pieces[task_ring_slot(&a->ring, number)];
}

static uint32_t slot_of(const struct read_ahead *a, const struct read_piece *piece)
{
    return (uint32_t)(piece - a->pieces);
}

static bool is_done(const struct read_ahead *a, const struct read_piece *piece)
{
    return task_ring_state(&a->ring, slot_of(a, piece)) == TASK_DONE;
}

/* ------------------------------------------------------------------- tasks */

/* Reads a piece of a regular file, and lists its blocks. */
static void read_piece(void *ahead, uint32_t slot)
{
    struct read_ahead *a = ahead;
    struct read_piece *piece = &a->pieces[slot];
    uint64_t size = a->piece_size, at = piece->number * size;
    enum stage before = clocks_enter(a->clocks, STAGE_READ);
    const struct file_extents *extents = a->file->extents;
    if (!extents)
        input_file_expect(a->file, at + EXPECTED * size, size);
    ssize_t n = extents ? file_extents_read_at(extents, a->file, piece->data, size, at)
                        : input_file_read_at(a->file, piece->data, size, at);
    piece->filled = n > 0 ? (size_t)n : 0;
    frame_list_make(piece->frames, piece->data, piece->filled, at);
    clocks_leave(a->clocks, before, piece->filled);
}

/* ------------------------------------------------------------------ thread */

/* Waits until the piece may be filled. False: stop. */
static bool await_room(struct read_ahead *a, struct read_piece *piece)
{
    pthread_mutex_lock(&a->mutex);
    while (!a->stop && !task_ring_claim(&a->ring, slot_of(a, piece)))
        pthread_cond_wait(&a->room, &a->mutex);
    bool go_on = !a->stop;
    pthread_mutex_unlock(&a->mutex);
    return go_on;
}

/* Reports to the main thread that this many bytes of the piece have arrived. done: no more bytes will come into the
 * piece. */
static void publish(struct read_ahead *a, struct read_piece *piece, size_t filled, bool done)
{
    pthread_mutex_lock(&a->mutex);
    piece->filled = filled;
    if (done)
        task_ring_finish(&a->ring, slot_of(a, piece));
    pthread_cond_signal(&a->news);
    pthread_mutex_unlock(&a->mutex);
}

/* Waits until there is something to read. False: stop. */
static bool await_input(struct read_ahead *a)
{
    bool ready = false;
    while (!ready && !a->stop && !latch_tripped(a->file->latch))
        ready = input_file_ready(a->file, NAP);
    return ready;
}

/* Fills a piece. False: no other piece is to be filled. Waiting for the pipe counts as reading, because it shows that
 * the writer of the pipe sets the pace. */
static bool fill_piece(struct read_ahead *a, struct read_piece *piece)
{
    size_t filled = 0, size = a->piece_size;
    while (filled < size) {
        enum stage before = clocks_enter_as(a->clocks, a->slot, STAGE_READ);
        bool ready = await_input(a);
        ssize_t n = ready ? input_file_read(a->file, piece->data + filled, size - filled) : 0;
        clocks_leave_as(a->clocks, a->slot, before, n > 0 ? (uint64_t)n : 0);
        if (!ready)
            return false;
        filled += n > 0 ? (size_t)n : 0;
        publish(a, piece, filled, n <= 0 || filled == size);
        if (n <= 0)
            return false;
    }
    return filled == size;
}

static void *reader_main(void *arg)
{
    struct read_ahead *a = arg;
    struct read_piece *piece;
    uint64_t number = 0;
    a->slot = clocks_join(a->clocks, "reader");
    do
        piece = piece_of(a, number++);
    while (await_room(a, piece) && fill_piece(a, piece));
    return NULL;
}

/* Blocks signals in the reader thread, because they must interrupt the main thread's waiting. -1: no thread can be
 * started. */
static int start_reader(struct read_ahead *a)
{
    pthread_attr_t attr;
    sigset_t all, old;
    struct affinity bound;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, READER_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    affinity_widen(&bound);
    int failed = pthread_create(&a->thread, &attr, reader_main, a);
    affinity_narrow(&bound);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return failed ? -1 : 0;
}

/* -------------------------------------------------------------- main thread */

/* Reads once into the piece, on the main thread. */
static void read_here(struct read_ahead *a, struct read_piece *piece)
{
    uint8_t *to = piece->data + piece->filled;
    size_t room = a->piece_size - piece->filled;
    task_ring_claim(&a->ring, slot_of(a, piece));   /* succeeds the first time */
    enum stage before = clocks_enter(a->clocks, STAGE_READ);
    ssize_t n = input_file_read(a->file, to, room);
    clocks_leave(a->clocks, before, n > 0 ? (uint64_t)n : 0);
    piece->filled += n > 0 ? (size_t)n : 0;
    if (n <= 0 || piece->filled == a->piece_size)
        task_ring_finish(&a->ring, slot_of(a, piece));
}

/* Hands out the buffers that no block uses any more, to be filled again. A single thread gains nothing by reading
 * before bytes are needed: then the current piece and the next one are enough. */
static void begin_pieces(struct read_ahead *a)
{
    unsigned wanted = a->access == INPUT_ANYWHERE && !task_in_team() ? 2 : a->n_pieces;
    while (task_ring_head(&a->ring) < a->current + wanted) {
        struct read_piece *piece = piece_of(a, task_ring_head(&a->ring));
        if (atomic_load_explicit(&piece->users, memory_order_acquire) > 0)
            return;
        piece->number = task_ring_head(&a->ring);
        piece->filled = 0;
        pthread_mutex_lock(&a->mutex);
        task_ring_make_ready(&a->ring);
        pthread_cond_signal(&a->room);
        pthread_mutex_unlock(&a->mutex);
        if (a->access == INPUT_ANYWHERE && task_in_team())
            task_ring_make_task(&a->ring);
    }
}

/* Returns how many bytes of the piece are, or were, in the window. */
static size_t seen_of(const struct read_ahead *a, const struct read_piece *piece)
{
    return (size_t)(a->window.data + a->window.size - piece->data);
}

/* Moves the window to the next piece. */
static void move_on(struct read_ahead *a)
{
    struct read_piece *next = piece_of(a, ++a->current);
    byte_window_move(&a->window, next->data, &next->users);
}

/* 1: the window has grown; 0: the input ends at the end of the window; -1: it is not known yet. */
static int grow_window(struct read_ahead *a)
{
    for (;; move_on(a)) {
        struct read_piece *piece = piece_of(a, a->current);
        pthread_mutex_lock(&a->mutex);
        bool done = is_done(a, piece);
        size_t filled = done || a->access != INPUT_ANYWHERE ? piece->filled : 0, seen = seen_of(a, piece);
        pthread_mutex_unlock(&a->mutex);
        if (filled > seen) {
            a->window.size += filled - seen;
            a->window.frames = a->access == INPUT_ANYWHERE ? piece->frames : NULL;
            return 1;
        }
        if (done && filled < a->piece_size)
            return 0;
        if (!done || a->current + 1 == task_ring_head(&a->ring))
            return -1;
    }
}

/* Sleeps until the thread has read more of the piece. */
static void doze(struct read_ahead *a, const struct read_piece *piece)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += NAP * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&a->mutex);
    if (piece->filled == seen_of(a, piece) && !is_done(a, piece))
        pthread_cond_timedwait(&a->news, &a->mutex, &until);
    pthread_mutex_unlock(&a->mutex);
}

/* Works, or waits for a short time, until bytes arrive or until blocks have used up a buffer. */
static void await(struct read_ahead *a, task_help_fn *help, void *arg, unsigned *spins)
{
    struct read_piece *piece = piece_of(a, a->current);
    bool done = is_done(a, piece);
    task_batches_submit(a->ring.batches);
    enum stage before = clocks_enter(a->clocks, STAGE_WAIT);
    if (!done && a->access == INPUT_IN_TURN)
        read_here(a, piece);
    else if ((!done && a->access == INPUT_ANYWHERE && task_ring_run(&a->ring, slot_of(a, piece))) || help(arg))
        *spins = 0;
    else if (!done && a->access == INPUT_FROM_PIPE)
        doze(a, piece);
    else
        task_pause(spins);
    clocks_leave(a->clocks, before, 0);
}

static int more(struct byte_window *window, task_help_fn *help, void *arg)
{
    struct read_ahead *a = (struct read_ahead *)window;
    for (unsigned spins = 0; !latch_tripped(a->file->latch); await(a, help, arg, &spins)) {
        begin_pieces(a);
        int grown = grow_window(a);
        if (grown >= 0)
            return grown;
    }
    return -1;
}

void read_ahead_use_batches(struct read_ahead *a, struct task_batches *batches)
{
    task_ring_use_batches(&a->ring, batches);
}

struct byte_window *read_ahead_window(struct read_ahead *a)
{
    return &a->window;
}

/* -------------------------------------------------------- open and close */

static int alloc_pieces(struct read_ahead *a)
{
    struct task_ring_options ring = {.n_slots = a->n_pieces, .run = read_piece, .arg = a};
    if (task_ring_open(&a->ring, &ring) < 0)
        return -1;
    for (uint32_t i = 0; i < a->n_pieces; i++) {
        struct frame_list *frames = a->pieces[i].frames = malloc(sizeof *frames + BYTE_WINDOW_KEPT + a->piece_size);
        if (!frames)
            return -1;
        a->pieces[i].data = (uint8_t *)(frames + 1) + BYTE_WINDOW_KEPT;
    }
    a->window = (struct byte_window){.data = a->pieces[0].data, .users = &a->pieces[0].users,
                                     .most_held = a->n_pieces / 2, .more = more};
    return 0;
}

struct read_ahead *read_ahead_open(struct input_file *file, size_t piece_size, uint32_t n_pieces, struct clocks *clocks)
{
    struct read_ahead *a = calloc(1, sizeof *a + n_pieces * sizeof *a->pieces);
    if (!a)
        return NULL;
    *a = (struct read_ahead){.file = file, .piece_size = piece_size, .n_pieces = n_pieces, .clocks = clocks};
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->room, NULL);
    pthread_cond_init(&a->news, NULL);
    a->access = INPUT_IN_TURN;                   /* until there is memory, and a thread for a pipe */
    if (alloc_pieces(a) < 0) {
        read_ahead_close(a);
        return NULL;
    }
    enum input_access access = input_file_access(file);
    if (access == INPUT_ANYWHERE || (access == INPUT_FROM_PIPE && start_reader(a) == 0))
        a->access = access;
    if (a->access == INPUT_ANYWHERE && !file->extents)
        input_file_expect(file, 0, EXPECTED * piece_size);
    begin_pieces(a);
    return a;
}

static void end_reader(struct read_ahead *a)
{
    if (a->access != INPUT_FROM_PIPE)
        return;
    pthread_mutex_lock(&a->mutex);
    a->stop = true;
    pthread_cond_signal(&a->room);
    pthread_mutex_unlock(&a->mutex);
    pthread_join(a->thread, NULL);
    a->access = INPUT_IN_TURN;
}

static void free_pieces(struct read_ahead *a)
{
    for (uint32_t i = 0; i < a->n_pieces; i++) {
        free(a->pieces[i].frames);
        a->pieces[i].frames = NULL;
        a->pieces[i].data = NULL;
    }
}

/* A task may still be reading a piece after the end. A task that begins later finds no piece READY. */
void read_ahead_end(struct read_ahead *a)
{
    bool tasks_read = a->access == INPUT_ANYWHERE;
    end_reader(a);
    for (uint32_t i = 0; i < a->n_pieces; i++) {
        if (task_ring_claim(&a->ring, i))
            continue;
        for (unsigned spins = 0; tasks_read && task_ring_state(&a->ring, i) == TASK_TAKEN;)
            task_pause(&spins);
    }
    free_pieces(a);
}

void read_ahead_close(struct read_ahead *a)
{
    if (!a)
        return;
    end_reader(a);
    free_pieces(a);
    task_ring_close(&a->ring, false);            /* pieces after the end were handed out, too */
    pthread_cond_destroy(&a->news);
    pthread_cond_destroy(&a->room);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

size_t read_ahead_memory(size_t piece_size, uint32_t n_pieces)
{
    return task_ring_memory(n_pieces) + sizeof(struct read_ahead)
         + n_pieces * (sizeof(struct read_piece) + sizeof(struct frame_list) + BYTE_WINDOW_KEPT + piece_size);
}
