/* SPDX-License-Identifier: MIT */
/* The core of markdup over records in memory, for tests: the tables in one shard or in several, and the consequences of
 * the losses. */
#ifndef DUP_DRIVER_H
#define DUP_DRIVER_H

#include <stdlib.h>
#include <string.h>
#include "base/byte_hash.h"
#include "markdup/dup_chains.h"
#include "markdup/dup_store.h"
#include "test/must.h"

struct dup_record {
    struct dup_read read;
    const char *name;
    int32_t ref;
    int64_t reach, before;       /* the driver's */
    bool ends_all;               /* has neither reference nor position */
    bool leads;                  /* set by the driver, from here on */
    bool lost;                   /* results: this and all below */
    enum dup_type type;
    char *original;              /* NULL: none */
    uint64_t count;
};

struct dup_driver {
    struct dup_record *records;
    size_t n, shards, n_losses, max_losses;
    int64_t window;
    struct dup_chains_opt opt;   /* without settled and context */
    struct dup_loss *losses;     /* losses of all shards */
    struct dup_counts *counts;   /* one for each group */
    struct dup_warnings warnings;
    bool away;                   /* losses leave memory, and reporting pauses sometimes ... */
    size_t most;                 /* ... when they take this many bytes */
    struct byte_buffer stored;   /* struct byte_buffer: the stored bytes */
};

static inline int driver_put(void *driver, const void *data, size_t n, struct dup_place *place)
{
    struct dup_driver *d = driver;
    struct byte_buffer copy = {.p = NULL};
    MUST(byte_buffer_append(&copy, data, n) == 0 && byte_buffer_append(&d->stored, &copy, sizeof copy) == 0);
    *place = (struct dup_place){.offset = d->stored.n / sizeof copy - 1, .size = (uint32_t)n};
    return 0;
}

static inline struct byte_buffer *driver_stored(const struct dup_driver *d, const struct dup_place *place)
{
    return (struct byte_buffer *)(void *)d->stored.p + place->offset;
}

static inline int driver_get(void *driver, const struct dup_place *place, size_t offset, size_t n, uint64_t hash,
                             void *data)
{
    const struct byte_buffer *stored = driver_stored(driver, place);
    MUST(stored->p && n <= stored->n && offset <= stored->n - n && byte_hash(stored->p + offset, n, 0) == hash);
    memcpy(data, stored->p + offset, n);
    return 0;
}

static inline void driver_drop(void *driver, const struct dup_place *place)
{
    struct byte_buffer *stored = driver_stored(driver, place);
    MUST(stored->p);
    free(stored->p);
    stored->p = NULL;
}

static inline uint64_t loss_number(const struct dup_loss *loss)
{
    return loss->newcomer_won ? loss->winner.number : loss->loser.number;
}

static inline int by_number(const void *x, const void *y)
{
    const struct dup_loss *a = x, *b = y;
    uint64_t i = 2 * loss_number(a) + !a->single, j = 2 * loss_number(b) + !b->single;
    return (i > j) - (i < j);
}

/* Keeps the loss. The records hold the names permanently. */
static inline int driver_lost(void *context, const struct dup_loss *loss)
{
    struct dup_driver *d = context;
    if (d->n_losses == d->max_losses) {
        d->max_losses = 2 * d->max_losses + 64;
        d->losses = realloc(d->losses, d->max_losses * sizeof *d->losses);
        MUST(d->losses);
    }
    struct dup_loss *kept = &d->losses[d->n_losses++];
    *kept = *loss;
    MUST(!loss->winner.name || strcmp(loss->winner.name, d->records[loss->winner.number].name) == 0);
    MUST(!loss->loser.name || strcmp(loss->loser.name, d->records[loss->loser.number].name) == 0);
    kept->winner.name = d->records[loss->winner.number].name;
    kept->loser.name = d->records[loss->loser.number].name;
    MUST(!d->records[loss->loser.number].lost);
    d->records[loss->loser.number].lost = true;
    struct dup_counts *counts = &d->counts[loss->loser.group];
    *(loss->single ? &counts->duplicate_single : &counts->duplicate_pair) += 1;
    return 0;
}

static inline int driver_settled(void *context, const struct dup_verdict *verdict)
{
    struct dup_driver *d = context;
    struct dup_record *r = &d->records[verdict->number];
    if (verdict->duplicate) {
        MUST(r->lost);
        r->type = verdict->type;
        free(r->original);
        r->original = verdict->original ? strdup(verdict->original) : NULL;
    } else {
        r->count = verdict->count;
    }
    return d->away && verdict->number % 3 == 0;
}

/* Sets places in the window, and the counts that depend on one record only. */
static inline void driver_place(struct dup_driver *d)
{
    int64_t reach = INT64_MIN, before = INT64_MIN;
    for (size_t i = 0; i < d->n; i++) {
        struct dup_record *r = &d->records[i], *last = i ? r - 1 : NULL;
        struct dup_counts *counts = &d->counts[r->read.group];
        if (last && (last->ref != r->ref || last->ends_all))
            reach = before = INT64_MIN;
        reach = r->read.place > reach ? r->read.place : reach;
        r->reach = reach;
        r->before = before;
        before = r->read.start;
        r->count = 1;
        r->lost = false;
        r->original = NULL;
        r->type = DUP_TYPE_UNKNOWN;
        counts->read++;
        counts->excluded += r->read.kind == DUP_EXCLUDED;
        counts->examined += r->read.kind != DUP_EXCLUDED;
        counts->paired += r->read.kind == DUP_PAIR_END;
        counts->single += r->read.kind == DUP_SINGLE;
    }
}

static inline bool driver_breaks(const struct dup_driver *d, size_t i)
{
    return i > 0 && d->records[i].before == INT64_MIN;
}

static inline size_t driver_shard(const struct dup_driver *d, const struct dup_key *key)
{
    return ((uint64_t)key->here * 31 + key->kind + (uint64_t)key->there * 17) % d->shards;
}

/* One shard over all records. */
static inline enum dup_fault driver_shard_run(struct dup_driver *d, size_t shard)
{
    struct dup_sets *sets = dup_sets_new(d->window, d->opt.names || d->opt.distance || d->opt.others, driver_lost, d);
    enum dup_fault fault = DUP_OK;
    MUST(sets);
    for (size_t i = 0; i < d->n && !fault; i++) {
        struct dup_record *r = &d->records[i];
        struct dup_entry entry = {.number = i, .reach = r->reach, .before = r->before, .name = r->name,
                                  .name_len = (uint8_t)(strlen(r->name) + 1), .read = &r->read};
        size_t n_before = d->n_losses;
        if (driver_breaks(d, i))
            dup_sets_pass(sets, INT64_MAX);
        uint64_t decided = dup_sets_decided(sets);
        if (r->read.kind != DUP_EXCLUDED && driver_shard(d, &r->read.single) == shard)
            fault = dup_sets_single(sets, &entry, &r->leads);
        if (!fault && r->read.kind == DUP_PAIR_END && driver_shard(d, &r->read.pair) == shard)
            fault = dup_sets_pair(sets, &entry);
        for (size_t k = n_before; k < d->n_losses; k++)
            MUST(d->losses[k].loser.number >= decided);
    }
    dup_sets_pass(sets, INT64_MAX);
    MUST(fault || dup_sets_decided(sets) == UINT64_MAX);
    dup_sets_free(sets);
    return fault;
}

/* Pauses must not change the result. */
static inline enum dup_fault driver_pass(struct dup_chains *chains, int64_t before)
{
    enum dup_fault fault;
    do
        fault = dup_chains_pass(chains, before);
    while (fault == DUP_PAUSED);
    return fault;
}

/* Follows the losses, record by record. */
static inline enum dup_fault driver_follow(struct dup_driver *d)
{
    d->opt.settled = driver_settled;
    d->opt.context = d;
    d->opt.totals = d->counts;
    dup_warnings_count(&d->warnings, DUP_WARNING_COORDINATES, 10);    /* none is reported */
    d->opt.warnings = &d->warnings;
    struct dup_store store = {.put = driver_put, .get = driver_get, .drop = driver_drop, .context = d,
                              .most = d->most, .is_open = true};
    d->opt.store = d->away ? &store : NULL;
    struct dup_chains *chains = dup_chains_new(&d->opt);
    enum dup_fault fault = DUP_OK;
    MUST(chains);
    for (size_t i = 0, k = 0; i < d->n && !fault; i++) {
        fault = driver_pass(chains, driver_breaks(d, i) ? INT64_MAX : d->records[i].before);
        for (; !fault && k < d->n_losses && loss_number(&d->losses[k]) == i; k++) {
            d->losses[k].loser.leads = !d->losses[k].newcomer_won && d->records[i].leads;
            fault = dup_chains_lose(chains, &d->losses[k]);
        }
    }
    if (!fault)
        fault = driver_pass(chains, INT64_MAX);
    MUST(fault || dup_chains_decided(chains) == UINT64_MAX);
    dup_chains_free(chains);
    return fault;
}

static inline enum dup_fault driver_run(struct dup_driver *d)
{
    enum dup_fault fault = DUP_OK;
    d->n_losses = 0;
    driver_place(d);
    for (size_t shard = 0; shard < d->shards && !fault; shard++)
        fault = driver_shard_run(d, shard);
    if (d->n_losses)
        qsort(d->losses, d->n_losses, sizeof *d->losses, by_number);
    return fault ? fault : driver_follow(d);
}

static inline void driver_free(struct dup_driver *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->records[i].original);
    for (size_t i = 0; i < d->stored.n / sizeof(struct byte_buffer); i++)
        free(((struct byte_buffer *)(void *)d->stored.p)[i].p);
    free(d->stored.p);
    d->stored = (struct byte_buffer){.p = NULL};
    free(d->losses);
    d->losses = NULL;
    d->max_losses = 0;
}

#endif
