/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/latch.h"
#include "merge/merge_ring.h"
#include "mpi/exchange.h"
#include "order/sort_key.h"

enum { MESSAGE = 1 << 18, N_OUT = 4, N_IN = 8 };   /* bytes; messages to others; buffers of what came */

struct out_message {
    uint8_t *data;
    MPI_Request request;
};

struct in_message {
    uint8_t *data;               /* behind BYTE_WINDOW_KEPT bytes for what was left before it */
    atomic_int users;
};

struct exchange {
    struct byte_window window;   /* first: more() is called with it */
    struct exchange_options opt;
    /* What is sent: */
    struct out_message out[N_OUT];
    struct merge_ring *merge;
    struct record_list list;     /* merged last */
    size_t at, upto;             /* the next record of the list, and the first one not for `to` */
    size_t offset;               /* bytes of the next record that are sent */
    int to;                      /* team.size: all is sent */
    bool ended;                  /* the merge has no more lists */
    uint64_t tied_key, tied;     /* bytes of records with that key that are behind us */
    /* What is received: */
    struct in_message in[N_IN];
    unsigned current;            /* the one that the window lies in */
    int from;                    /* team.size: all is there */
    uint64_t bytes[N_EXCHANGE_COUNTS];
};

/* ---- for whom a record is ---- */

static uint64_t key_of(const struct exchange *x, size_t i)
{
    return sort_key_sorted(x->opt.rule, x->opt.minhash, (const struct bam_record *)x->list.records[i].data);
}

/* The first record from `at` on with a key not below (above: beyond) this one. */
static size_t find_key(const struct exchange *x, uint64_t key, bool above)
{
    size_t low = x->at, high = x->list.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t k = key_of(x, middle);
        if (k < key || (above && k == key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of records that share the splitter's key, this rank sends the first ones down. */
static size_t part_ties(struct exchange *x, const struct splitter *s, size_t i)
{
    if (x->tied_key != s->key)
        x->tied = 0;
    x->tied_key = s->key;
    for (; i < x->list.n && x->tied < s->bytes && key_of(x, i) == s->key; i++)
        x->tied += x->list.records[i].size;
    return i;
}

/* The end of the list's records for rank x->to. */
static size_t limit(struct exchange *x)
{
    if (x->to >= x->opt.team.size - 1)
        return x->list.n;
    const struct splitter *s = &x->opt.splitters[x->to];
    int rank = x->opt.team.rank;
    size_t i = find_key(x, s->key, x->opt.keys_decide && rank < s->source);
    return x->opt.keys_decide && rank == s->source ? part_ties(x, s, i) : i;
}

/* ---- sending ---- */

/* 1: there is a record for x->to; 0: its records are all sent; -1: stop. */
static int next_record(struct exchange *x)
{
    while (x->at == x->list.n && !x->ended) {
        int merged = merge_ring_next(x->merge, &x->list);
        if (merged < 0)
            return -1;
        x->ended = merged == 0;
        x->list.n = x->ended ? 0 : x->list.n;
        x->at = 0;
        x->upto = limit(x);
    }
    return x->at < x->upto;
}

/* Fills a message for x->to. Returns its size, 0 if there are no more records for it; -1: stop. */
static int fill(struct exchange *x, uint8_t *data)
{
    size_t n = 0;
    int more = 1;
    while (n < MESSAGE && (more = next_record(x)) > 0) {
        const struct record_ref *r = &x->list.records[x->at];
        size_t part = r->size - x->offset;
        part = part < MESSAGE - n ? part : MESSAGE - n;
        memcpy(data + n, r->data + x->offset, part);
        n += part;
        x->offset += part;
        if (x->offset == r->size) {
            x->at++;
            x->offset = 0;
        }
    }
    return more < 0 ? -1 : (int)n;
}

/* Sends what can be sent now. 1: something was; 0: nothing; -1: stop. */
static int send_some(struct exchange *x)
{
    int sent = 0;
    for (int i = 0; i < N_OUT && x->to < x->opt.team.size; i++) {
        int free = 1;
        MPI_Test(&x->out[i].request, &free, MPI_STATUS_IGNORE);
        if (!free)
            continue;
        int n = fill(x, x->out[i].data);
        if (n < 0)
            return -1;
        MPI_Isend(x->out[i].data, n, MPI_BYTE, x->to, MPI_TEAM_RECORDS, MPI_COMM_WORLD, &x->out[i].request);
        sent = 1;
        x->bytes[EXCHANGE_MERGED] += (uint64_t)n;
        x->bytes[EXCHANGE_SENT] += x->to == x->opt.team.rank ? 0 : (uint64_t)n;
        if (n == 0) {
            x->to++;
            x->upto = limit(x);
        }
    }
    return sent;
}

static bool all_sent(struct exchange *x)
{
    int done = 0;
    for (int i = 0; i < N_OUT; i++) {
        MPI_Test(&x->out[i].request, &done, MPI_STATUS_IGNORE);
        if (!done)
            return false;
    }
    return x->to == x->opt.team.size;
}

/* ---- receiving ---- */

/* Receives n bytes into the next buffer, where they follow what is left in the window. */
static void receive(struct exchange *x, struct in_message *next, int n)
{
    struct byte_window *w = &x->window;
    assert(w->size <= BYTE_WINDOW_KEPT);
    uint8_t *to = next->data - w->size;
    memcpy(to, w->data, w->size);
    byte_window_leave(w);
    w->data = to;
    w->users = &next->users;
    MPI_Recv(next->data, n, MPI_BYTE, x->from, MPI_TEAM_RECORDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    w->size += (size_t)n;
    x->bytes[EXCHANGE_RECEIVED] += x->from == x->opt.team.rank ? 0 : (uint64_t)n;
}

/* 1: the window has grown; 0: nothing came, or there is no room for it. */
static int receive_some(struct exchange *x)
{
    while (x->from < x->opt.team.size) {
        unsigned number = (x->current + 1) % N_IN;
        MPI_Status status;
        int came, n;
        MPI_Iprobe(x->from, MPI_TEAM_RECORDS, MPI_COMM_WORLD, &came, &status);
        if (!came)
            return 0;
        MPI_Get_count(&status, MPI_BYTE, &n);
        if (n == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, x->from++, MPI_TEAM_RECORDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        if (atomic_load_explicit(&x->in[number].users, memory_order_acquire) > 0)
            return 0;
        receive(x, &x->in[number], n);
        x->current = number;
        return 1;
    }
    return 0;
}

static int stop(struct exchange *x)
{
    if (latch_tripped(x->opt.sender))
        latch_fail(x->opt.latch, "%s", x->opt.sender->message);
    return -1;
}

static int more(struct byte_window *window, task_help_fn *help, void *arg)
{
    struct exchange *x = (struct exchange *)window;
    for (unsigned spins = 0; !latch_tripped(x->opt.latch);) {
        if (receive_some(x))
            return 1;
        int sent = send_some(x);
        if (sent < 0)
            return stop(x);
        if (x->from == x->opt.team.size && all_sent(x))
            return 0;
        if (sent || help(arg))
            spins = 0;
        else
            task_pause(&spins);
    }
    return -1;
}

/* ---- open and close ---- */

static int alloc(struct exchange *x)
{
    for (int i = 0; i < N_OUT; i++) {
        x->out[i].request = MPI_REQUEST_NULL;
        if (!(x->out[i].data = malloc(MESSAGE)))
            return -1;
    }
    for (int i = 0; i < N_IN; i++) {
        uint8_t *buffer = malloc(BYTE_WINDOW_KEPT + MESSAGE);
        if (!buffer)
            return -1;
        x->in[i].data = buffer + BYTE_WINDOW_KEPT;
    }
    x->window = (struct byte_window){.data = x->in[0].data, .users = &x->in[0].users, .more = more};
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

void exchange_start(struct exchange *x, struct merge_ring *merge)
{
    x->merge = merge;
}

void exchange_close(struct exchange *x)
{
    if (!x)
        return;
    for (int i = 0; i < N_OUT; i++)
        free(x->out[i].data);
    for (int i = 0; i < N_IN; i++)
        if (x->in[i].data)
            free(x->in[i].data - BYTE_WINDOW_KEPT);
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
