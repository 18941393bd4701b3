/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/latch.h"
#include "sort/merge_ring.h"
#include "mpi/exchange.h"
#include "mpi/mpi_wait.h"
#include "order/sort_key.h"
#include "write/record_list.h"

enum {
    MESSAGE = 1 << 18,           /* bytes of a message at most: large enough for a network, and small enough to stay in
                                  * cache */
    MOST_REFS = 4096,            /* records of a message at most */
    N_OUT_LEAST = 4, N_OUT_MOST = 32,   /* messages in flight; more if more threads fill them */
    N_IN = 8,                    /* buffers for received messages */
};

/* A message to another rank: the main thread lists its records, a task copies them, and the main thread sends it. */
struct out_message {
    uint8_t *data;
    struct record_ref *refs;     /* its records, or parts of them */
    size_t n, size;              /* number of refs, and bytes of all of them */
    int to;
    MPI_Request request;
};

struct in_message {
    uint8_t *data;               /* follows BYTE_WINDOW_KEPT bytes of room for what the window had left */
    size_t size;
    int n_ends;                  /* ranks whose stream ends after this message, and before the next one */
    MPI_Request request;
    atomic_int users;
};

struct exchange {
    struct byte_window window;   /* first: more() is called with it */
    struct exchange_options opt;
    struct exchange_records records;
    int steps;                   /* streams that this rank sends, and receives */
    int first_steps;             /* the number of received streams that are the first input */
    uint64_t bytes[N_EXCHANGE_COUNTS];
    /* Outgoing messages: */
    struct out_message *out;
    struct task_ring ring;       /* the messages; a slot is taken back when MPI has its message */
    uint64_t sent, taken;        /* messages given to MPI, and taken back */
    int sending;                 /* step of the stream that is being listed; equals steps if all streams are listed */
    size_t offset;               /* bytes of the next record that are already listed */
    struct merge_way part;       /* the records of the list's part that are not yet listed */
    size_t list;                 /* number of the list whose part that is */
    struct record_list merged;   /* the records merged last: */
    size_t at, upto;             /* the next record of it, and the first one that is not for this stream */
    bool ended;                  /* the merge has no more lists */
    uint64_t tied;               /* bytes of the records already passed that tie with the splitter */
    /* Incoming messages: */
    struct in_message in[N_IN];
    uint64_t posted;             /* messages that MPI has a buffer for */
    uint64_t current;            /* the message in which the window lies */
    int posting, receiving;      /* steps: of the message posted next, and of the one that comes next to the window */
    int inputs;                  /* inputs that have ended */
};

/* ---- who sends to whom ---- */

/* Returns the rank that is sent to at this step; exchange.h has the table. */
static int receiver(const struct exchange *x, int step)
{
    const struct mpi_team *t = &x->opt.team;
    return x->records.shares ? (t->rank + t->size - 1 - step) % t->size : step;
}

static int sender(const struct exchange *x, int step)
{
    const struct mpi_team *t = &x->opt.team;
    return x->records.shares ? (t->rank + 1 + step) % t->size : step;
}

/* ---- records to send: from memory ---- */

/* Moves to the next part of the stream. False: there is none. */
static bool next_part(struct exchange *x)
{
    const struct record_shares *shares = x->records.shares;
    const struct merge_way *parts = record_shares_of(shares, receiver(x, x->sending));
    while (x->part.next == x->part.end && x->list < shares->n_lists)
        x->part = parts[x->list++];
    return x->part.next < x->part.end;
}

/* ---- records to send: from the merge ---- */

static int compare_merged(const void *exchange, size_t number, const struct splitter *s)
{
    const struct exchange *x = exchange;
    const uint8_t *record = x->merged.records[number].data;
    uint64_t key = sort_key_sorted(x->records.rule, x->records.minhash, (const struct bam_record *)record);
    return splitter_compare(s, x->records.keys_decide ? NULL : x->records.rule, key, record);
}

static uint64_t size_of_merged(const void *exchange, size_t number)
{
    const struct exchange *x = exchange;
    return x->merged.records[number].size;
}

/* Returns the end of the list's records for this stream. */
static size_t limit(struct exchange *x)
{
    if ((size_t)x->sending >= x->records.splitters->n)
        return x->merged.n;
    struct splitter_list list = {x, x->merged.n, compare_merged, size_of_merged};
    return splitter_below(&x->records.splitters->each[x->sending], &list, x->at, x->opt.team.rank, &x->tied);
}

/* Returns whether records that tie with one splitter also tie with the other. */
static bool tie(const struct exchange *x, const struct splitter *a, const struct splitter *b)
{
    if (a->key != b->key || a->rank != b->rank || !a->record != !b->record)
        return false;
    return !a->record || sort_key_compare(x->records.rule, (const struct bam_record *)a->record,
                                          (const struct bam_record *)b->record) == 0;
}

static bool all_filled(const struct exchange *x)
{
    for (uint64_t i = x->sent; i < task_ring_head(&x->ring); i++)
        if (task_ring_state(&x->ring, task_ring_slot(&x->ring, i)) != TASK_DONE)
            return false;
    return true;
}

/* Makes sure that there is a record at x->at, unless the merge has ended. 1: done; 0: not yet, because messages still
 * need the records merged last; -1: stop. */
static int merge_more(struct exchange *x)
{
    while (x->at == x->merged.n && !x->ended) {
        if (!all_filled(x))
            return 0;
        int more = merge_ring_next(x->records.merge, &x->merged);
        if (more < 0)
            return -1;
        x->ended = more == 0;
        x->merged.n = x->ended ? 0 : x->merged.n;
        x->at = 0;
        x->upto = limit(x);
    }
    return 1;
}

/* ---- listing ---- */

/* Lists the bytes of a record that are not listed yet, as far as the message has room. False: the message is full. */
static bool list_record_bytes(struct exchange *x, struct out_message *m, const uint8_t *record, size_t size)
{
    size_t left = size - x->offset, room = MESSAGE - m->size, n = left < room ? left : room;
    if (m->n == MOST_REFS || n == 0)
        return false;
    m->refs[m->n++] = (struct record_ref){record + x->offset, (uint32_t)n, 0, 0};
    m->size += n;
    x->bytes[EXCHANGE_LISTED] += n;
    x->offset = n < left ? x->offset + n : 0;
    return n == left;
}

static void list_parts(struct exchange *x, struct out_message *m)
{
    while (next_part(x)) {
        const struct bam_key *key = x->part.next;
        if (!list_record_bytes(x, m, bam_key_record(x->part.base, *key), bam_key_record_size(x->part.base, *key)))
            return;
        x->part.next++;
    }
}

/* A message has records of one list only, since a list is gone when the next one is merged. */
static int list_merged(struct exchange *x, struct out_message *m)
{
    int more = merge_more(x);
    for (; more > 0 && x->at < x->upto; x->at++)
        if (!list_record_bytes(x, m, x->merged.records[x->at].data, x->merged.records[x->at].size))
            return 1;
    return more;
}

/* Ends the stream, whose records are all listed. */
static void end_stream(struct exchange *x)
{
    const struct splitters *s = x->records.splitters;
    size_t step = (size_t)x->sending++;
    x->list = 0;
    if (x->records.shares)
        return;
    if (step + 1 < s->n && !tie(x, &s->each[step], &s->each[step + 1]))
        x->tied = 0;
    x->upto = limit(x);
}

/* Lists the next message of the stream, and hands it to a task. An empty one ends the stream. 1: done; 0: not yet; -1:
 * stop. */
static int hand_out(struct exchange *x)
{
    struct out_message *m = &x->out[task_ring_next(&x->ring)];
    m->n = m->size = 0;
    m->to = receiver(x, x->sending);
    int more = 1;
    if (x->records.shares)
        list_parts(x, m);
    else
        more = list_merged(x, m);
    if (more < 0 || (more == 0 && m->n == 0))
        return more;
    if (m->n == 0)
        end_stream(x);
    task_ring_hand_out(&x->ring);
    return 1;
}

static void fill(void *exchange, uint32_t slot)
{
    enum { AHEAD = 4 };
    const struct exchange *x = exchange;
    const struct out_message *m = &x->out[slot];
    uint8_t *to = m->data;
    for (size_t i = 0; i < m->n; i++) {
        if (i + AHEAD < m->n)
            record_list_prefetch(&m->refs[i + AHEAD]);
        memcpy(to, m->refs[i].data, m->refs[i].size);
        to += m->refs[i].size;
    }
}

/* ---- sending ---- */

static void count(struct exchange *x, enum exchange_count what, size_t bytes, int rank)
{
    x->bytes[what] += rank == x->opt.team.rank ? 0 : bytes;
}

/* Gives filled messages to MPI, in order. */
static void send_filled(struct exchange *x)
{
    for (; x->sent < task_ring_head(&x->ring); x->sent++) {
        uint32_t slot = task_ring_slot(&x->ring, x->sent);
        struct out_message *m = &x->out[slot];
        if (task_ring_state(&x->ring, slot) != TASK_DONE)
            return;
        MPI_Isend(m->data, (int)m->size, MPI_BYTE, m->to, MPI_TEAM_RECORDS, MPI_COMM_WORLD, &m->request);
        count(x, EXCHANGE_SENT, m->size, m->to);
    }
}

static void take_sent(struct exchange *x)
{
    for (; x->taken < x->sent; x->taken++) {
        int done;
        MPI_Test(&x->out[task_ring_oldest(&x->ring)].request, &done, MPI_STATUS_IGNORE);
        if (!done)
            return;
        task_ring_take(&x->ring);
    }
}

/* Does all that is possible now. The next message to be sent is filled here if no task has begun with it. Otherwise a
 * rank with one thread would send only while it has nothing to receive, and its neighbours would wait. 1: something was
 * sent; 0: nothing; -1: stop. */
static int send_some(struct exchange *x)
{
    uint64_t before = x->sent;
    take_sent(x);
    for (int more = 1; more > 0 && x->sending < x->steps && !task_ring_full(&x->ring);)
        if ((more = hand_out(x)) < 0)
            return -1;
    if (x->sent < task_ring_head(&x->ring))
        task_ring_run(&x->ring, task_ring_slot(&x->ring, x->sent));
    send_filled(x);
    return x->sent > before;
}

static bool all_sent(const struct exchange *x)
{
    return x->sending == x->steps && task_ring_empty(&x->ring);
}

/* ---- receiving ---- */

static struct in_message *message(struct exchange *x, uint64_t number)
{
    return &x->in[number % N_IN];
}

/* A message of 0 bytes ends the stream of its sender. It takes no buffer: with many ranks there may be more of these
 * than buffers between two messages whose bytes are held. */
static void receive_end(struct exchange *x, int from)
{
    MPI_WAIT_FOR(MPI_Irecv, NULL, 0, MPI_BYTE, from, MPI_TEAM_RECORDS);      /* it has arrived */
    x->posting++;
    if (x->posted == x->current)
        x->receiving++;
    else
        message(x, x->posted)->n_ends++;
}

/* Lets MPI receive the messages that have arrived, as long as there are buffers that are not in use. */
static void post(struct exchange *x)
{
    while (x->posting < x->steps && x->posted + 1 < x->current + N_IN) {
        struct in_message *m = message(x, x->posted + 1);
        MPI_Status status;
        int came, n, from = sender(x, x->posting);
        MPI_Iprobe(from, MPI_TEAM_RECORDS, MPI_COMM_WORLD, &came, &status);
        if (!came)
            return;
        MPI_Get_count(&status, MPI_BYTE, &n);
        if (n == 0) {
            receive_end(x, from);
        } else if (atomic_load_explicit(&m->users, memory_order_acquire) > 0) {
            return;
        } else {
            MPI_Irecv(m->data, n, MPI_BYTE, from, MPI_TEAM_RECORDS, MPI_COMM_WORLD, &m->request);
            m->size = (size_t)n;
            m->n_ends = 0;
            x->posted++;
        }
        count(x, EXCHANGE_RECEIVED, (size_t)n, from);
    }
}

/* Moves the window to the next message. */
static void move_window(struct exchange *x)
{
    struct in_message *next = message(x, ++x->current);
    byte_window_move(&x->window, next->data, &next->users);
    x->window.size += next->size;
    x->receiving += next->n_ends;
}

/* Returns whether the first input is complete and has not yet ended. */
static bool first_ends(const struct exchange *x)
{
    return x->inputs == 0 && x->receiving >= x->first_steps;
}

/* Returns whether the window has grown. */
static bool receive_some(struct exchange *x)
{
    int done = 1;
    size_t before = x->window.size;
    post(x);
    while (x->window.size == before && x->current < x->posted && !first_ends(x) && done) {
        MPI_Test(&message(x, x->current + 1)->request, &done, MPI_STATUS_IGNORE);
        if (done)
            move_window(x);
    }
    return x->window.size > before;
}

/* ---- the window ---- */

static int stop(struct exchange *x)
{
    if (latch_failed(x->opt.sender))
        latch_fail(x->opt.latch, "%s", x->opt.sender->message);
    return -1;
}

/* Returns whether an input ends here. */
static bool ends(struct exchange *x)
{
    bool first = first_ends(x), second = x->inputs == 1 && x->receiving == x->steps && all_sent(x);
    x->inputs += first || second;
    return first || second;
}

static int more(struct byte_window *window, task_help_fn *help, void *arg)
{
    struct exchange *x = (struct exchange *)window;
    for (unsigned spins = 0; !latch_tripped(x->opt.latch);) {
        int sent = send_some(x), before = x->receiving;
        if (sent < 0)
            return stop(x);
        if (ends(x))
            return 0;
        if (receive_some(x))
            return 1;
        if (sent || x->receiving > before || task_ring_help(&x->ring) || help(arg))
            spins = 0;
        else
            task_pause(&spins);
    }
    return -1;
}

/* ---- open and close ---- */

static int alloc(struct exchange *x)
{
    uint32_t n = (uint32_t)x->opt.n_threads + 2;
    n = n < N_OUT_LEAST ? N_OUT_LEAST : n > N_OUT_MOST ? N_OUT_MOST : n;
    struct task_ring_options ring = {.n_slots = n, .run = fill, .arg = x};
    if (task_ring_open(&x->ring, &ring) < 0 || !(x->out = calloc(n, sizeof *x->out)))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        x->out[i].data = malloc(MESSAGE);
        x->out[i].refs = malloc(MOST_REFS * sizeof *x->out[i].refs);
        if (!x->out[i].data || !x->out[i].refs)
            return -1;
    }
    for (int i = 0; i < N_IN; i++) {
        uint8_t *buffer = malloc(BYTE_WINDOW_KEPT + MESSAGE);
        if (!buffer)
            return -1;
        x->in[i].data = buffer + BYTE_WINDOW_KEPT;
    }
    x->window = (struct byte_window){.data = x->in[0].data, .users = &x->in[0].users, .most_held = N_IN / 2,
                                     .more = more};
    return 0;
}

struct exchange *exchange_open(const struct exchange_options *options)
{
    struct exchange *x = calloc(1, sizeof *x);
    if (x) {
        x->opt = *options;
        if (alloc(x) == 0)
            return x;
    }
    latch_fail(options->latch, "out of memory for messages");
    exchange_close(x);
    return NULL;
}

void exchange_start(struct exchange *x, const struct exchange_records *records)
{
    int size = x->opt.team.size;
    x->records = *records;
    x->steps = records->shares ? size - 1 : size;
    x->first_steps = records->shares ? size - 1 - x->opt.team.rank : size;
}

void exchange_close(struct exchange *x)
{
    if (!x)
        return;
    for (uint32_t i = 0; x->out && i < x->ring.opt.n_slots; i++) {
        free(x->out[i].data);
        free(x->out[i].refs);
    }
    for (int i = 0; i < N_IN; i++)
        if (x->in[i].data)
            free(x->in[i].data - BYTE_WINDOW_KEPT);
    task_ring_close(&x->ring, !latch_tripped(x->opt.latch));
    free(x->out);
    free(x);
}

uint64_t exchange_bytes(const struct exchange *x, enum exchange_count count)
{
    return x->bytes[count];
}

struct byte_window *exchange_window(struct exchange *x)
{
    return &x->window;
}
