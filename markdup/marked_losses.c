/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "markdup/marked_losses.h"

/* A loss, with both names until the round ends. The newcomer's name is in its record. */
struct kept_loss {
    struct dup_loss loss;
    size_t name;                 /* offset of the other name, in the shard's names */
};

/* The losses of one shard, in order. */
struct shard_losses {
    struct byte_buffer list;     /* struct kept_loss */
    struct byte_buffer names;
};

struct marked_losses {
    struct dup_chains *chains;
    struct shard_losses *shards;
    uint32_t n_shards;
    struct byte_buffer order;    /* struct dup_loss *: for each record of the round, as a single and as a pair end */
    size_t at, record;           /* slice of the round, and record in it, at which to continue; 0, 0: a new round */
    const struct marked_queue *waiting;  /* while records are reported */
    struct marked_slice *slice;  /* the slice that was reported to last; NULL: none */
    size_t step, n_settled;      /* bytes reported in one step: the maximum, and the number so far */
};

enum { KEPT = 1 << 20 };         /* bytes of a buffer that are kept from round to round */

/* ---- kept ---- */

int marked_losses_keep(struct marked_losses *l, uint32_t shard, const struct dup_loss *loss)
{
    struct shard_losses *s = &l->shards[shard];
    const struct dup_member *other = loss->newcomer_won ? &loss->loser : &loss->winner;
    struct kept_loss kept = {*loss, s->names.n};
    return byte_buffer_append(&s->names, other->name, other->name_len) < 0 ? -1
         : byte_buffer_append(&s->list, &kept, sizeof kept);
}

/* ---- in order ---- */

static uint64_t newcomer_number(const struct dup_loss *loss)
{
    return loss->newcomer_won ? loss->winner.number : loss->loser.number;
}

/* Puts the losses of the round in order. A record occurs once in each table, so each loss has its own place. */
static int put_in_order(struct marked_losses *l, uint64_t from, size_t n)
{
    size_t bytes = 2 * n * sizeof(struct dup_loss *);
    if (byte_buffer_reserve(&l->order, bytes + 1) < 0)
        return -1;
    memset(l->order.p, 0, bytes);
    struct dup_loss **order = (struct dup_loss **)(void *)l->order.p;
    for (uint32_t i = 0; i < l->n_shards; i++) {
        struct shard_losses *s = &l->shards[i];
        struct kept_loss *list = (struct kept_loss *)(void *)s->list.p;
        for (size_t k = 0; k < s->list.n / sizeof *list; k++) {
            struct dup_loss *loss = &list[k].loss;
            (loss->newcomer_won ? &loss->loser : &loss->winner)->name = (const char *)s->names.p + list[k].name;
            order[2 * (newcomer_number(loss) - from) + !loss->single] = loss;
        }
    }
    return 0;
}

static void forget_round(struct marked_losses *l)
{
    for (uint32_t i = 0; i < l->n_shards; i++) {
        byte_buffer_trim(&l->shards[i].list, KEPT);
        byte_buffer_trim(&l->shards[i].names, KEPT);
    }
    byte_buffer_trim(&l->order, KEPT);
}

/* ---- followed ---- */

static int settled(void *losses, const struct dup_verdict *verdict)
{
    struct marked_losses *l = losses;
    if (!l->slice || verdict->number - l->slice->first >= l->slice->records.n)
        l->slice = marked_queue_find(l->waiting, verdict->number);
    bool settled_before = l->slice->settled;
    if (marked_slice_settle(l->slice, verdict) < 0)
        return -1;
    if (!settled_before)
        l->n_settled += l->slice->records.n * sizeof *l->slice->settled;
    return l->n_settled > l->step;
}

static void begin(struct marked_losses *l, const struct marked_queue *waiting)
{
    l->waiting = waiting;
    l->slice = NULL;
    l->n_settled = 0;
}

/* Follows the losses of a record. If reporting pauses, the function has not begun with them. */
static enum dup_fault follow_record(struct marked_losses *l, const struct marked_slice *s, size_t i, bool breaks,
                                    struct dup_loss *const order[2])
{
    const struct marked_read *read = &s->entries->reads[i];
    enum dup_fault fault = breaks ? dup_chains_pass(l->chains, INT64_MAX)
                         : order[0] || order[1] ? dup_chains_pass(l->chains, read->before) : DUP_OK;
    for (int table = 0; table < 2 && !fault; table++)
        if (order[table]) {
            order[table]->loser.leads = !order[table]->newcomer_won && read->leads;
            fault = dup_chains_lose(l->chains, order[table]);
        }
    return fault;
}

/* Follows the losses of a slice, from l->record on. */
static enum dup_fault follow_slice(struct marked_losses *l, const struct marked_slice *s, struct dup_loss *const *order)
{
    const struct marked_entries *e = s->entries;
    size_t n_passed = 0;
    while (n_passed < e->n_breaks && e->breaks[n_passed] < l->record)
        n_passed++;
    for (; l->record < s->records.n; l->record++) {
        bool breaks = n_passed < e->n_breaks && e->breaks[n_passed] == l->record;
        enum dup_fault fault = follow_record(l, s, l->record, breaks, order + 2 * l->record);
        if (fault)
            return fault;
        n_passed += breaks;
    }
    return s->records.n == 0 ? DUP_OK : dup_chains_pass(l->chains, s->to.is_nowhere ? INT64_MAX : s->to.start);
}

enum dup_fault marked_losses_follow(struct marked_losses *l, const struct marked_queue *waiting, size_t entered)
{
    const struct marked_queued *from = waiting->list + entered, *end = waiting->list + waiting->n;
    const struct marked_slice *last = end[-1].slice;
    enum dup_fault fault = DUP_OK;
    bool goes_on = l->at || l->record;
    begin(l, waiting);
    if (!goes_on && put_in_order(l, from->first, (size_t)(last->first + last->records.n - from->first)) < 0)
        return DUP_NO_MEMORY;
    struct dup_loss *const *order = (struct dup_loss *const *)(const void *)l->order.p;
    for (const struct marked_queued *at = from + l->at; at < end && !fault; at++) {
        fault = follow_slice(l, at->slice, order + 2 * (at->first - from->first));
        if (!fault) {
            l->at++;
            l->record = 0;
        }
    }
    if (fault == DUP_PAUSED)
        return fault;
    l->at = l->record = 0;
    forget_round(l);
    return fault;
}

enum dup_fault marked_losses_end(struct marked_losses *l, const struct marked_queue *waiting)
{
    begin(l, waiting);
    return dup_chains_pass(l->chains, INT64_MAX);
}

uint64_t marked_losses_decided(struct marked_losses *l)
{
    return dup_chains_decided(l->chains);
}

size_t marked_losses_memory(const struct marked_losses *l)
{
    return dup_chains_memory(l->chains) + l->n_settled;
}

uint64_t marked_losses_culprit(const struct marked_losses *l)
{
    return dup_chains_culprit(l->chains);
}

/* ---- */

struct marked_losses *marked_losses_open(const struct dup_chains_opt *chains, uint32_t n_shards, size_t step)
{
    struct dup_chains_opt opt = *chains;
    struct marked_losses *l = calloc(1, sizeof *l);
    opt.settled = settled;
    opt.context = l;
    if (l) {
        l->n_shards = n_shards;
        l->step = step;
        l->shards = calloc(n_shards, sizeof *l->shards);
        l->chains = dup_chains_new(&opt);
    }
    if (l && l->shards && l->chains)
        return l;
    marked_losses_close(l);
    return NULL;
}

void marked_losses_close(struct marked_losses *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; l->shards && i < l->n_shards; i++) {
        free(l->shards[i].list.p);
        free(l->shards[i].names.p);
    }
    free(l->shards);
    free(l->order.p);
    dup_chains_free(l->chains);
    free(l);
}
