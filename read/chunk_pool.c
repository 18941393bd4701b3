/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "read/chunk_pool.h"

/* An input may borrow four times as much as it leaves to the others. So the first one gets at most four fifths, and the
 * next one four fifths of the rest. An input may keep borrowed chunks for long, full of records whose turn is far
 * ahead. */
enum { TIMES_THE_REST = 4 };
enum { PARTS = 64 };             /* parts in which memory is freed, for as many threads */

static void free_text(struct chunk_text *text)
{
    free(text->bytes);
    free(text->blocks);
    free(text->kept);
    *text = (struct chunk_text){.bytes = NULL};
}

/* Frees every PARTS-th buffer. */
static void free_part(void *pool, uint32_t number)
{
    struct chunk_pool *p = pool;
    for (size_t i = number; i < p->n_texts; i += PARTS)
        free_text(&p->texts[i]);
    for (size_t i = number; i < p->n_records; i += PARTS)
        record_slice_free(&p->records[i]);
}

static size_t most_texts(const struct chunk_pool_options *o)
{
    return o->n_inputs * o->own_chunks + o->n_shared;
}

static size_t most_records(const struct chunk_pool_options *o)
{
    return most_texts(o) + o->n_inputs * o->own_slices + o->n_shared;
}

size_t chunk_pool_memory(const struct chunk_pool_options *o)
{
    return o->n_shared * sizeof(struct chunk_borrower *) + most_texts(o) * sizeof(struct chunk_text)
         + most_records(o) * sizeof(struct record_slice) + task_ring_memory(PARTS);
}

int chunk_pool_open(struct chunk_pool *p, const struct chunk_pool_options *o)
{
    struct task_ring_options ring = {.n_slots = PARTS, .run = free_part, .arg = p};
    *p = (struct chunk_pool){.opt = *o, .chunks = o->n_shared, .slices = o->n_shared};
    p->most_texts = most_texts(o);
    p->most_records = most_records(o);
    p->last = calloc(o->n_shared, sizeof *p->last);
    p->texts = calloc(p->most_texts, sizeof *p->texts);
    p->records = calloc(p->most_records, sizeof *p->records);
    return p->last && p->texts && p->records ? task_ring_open(&p->ring, &ring) : -1;
}

void chunk_pool_end(struct chunk_pool *p)
{
    if (p->ring.slots)
        task_ring_hand_out_all(&p->ring);
}

void chunk_pool_close(struct chunk_pool *p)
{
    for (uint32_t i = 0; i < PARTS; i++)
        free_part(p, i);
    task_ring_close(&p->ring, false);
    free(p->last);
    free(p->texts);
    free(p->records);
    *p = (struct chunk_pool){.chunks = 0};
}

/* ------------------------------------------------------------------ shares */

void chunk_pool_note(struct chunk_borrower *borrower)
{
    struct chunk_pool *p = borrower->pool;
    struct chunk_borrower **oldest = &p->last[p->n_left++ % p->opt.n_shared];
    if (*oldest)
        (*oldest)->n_recent--;
    *oldest = borrower;
    borrower->n_recent++;
}

static bool may_borrow(const struct chunk_borrower *borrower, size_t has, size_t own, size_t borrowed, size_t rest)
{
    return has < own || (rest > 0 && borrowed < borrower->pool->opt.borrows && borrowed < borrower->n_recent
                         && borrowed < TIMES_THE_REST * rest);
}

bool chunk_pool_may_fill(const struct chunk_borrower *borrower, size_t chunks)
{
    return may_borrow(borrower, chunks, borrower->pool->opt.own_chunks, borrower->chunks, borrower->pool->chunks);
}

bool chunk_pool_may_keep(const struct chunk_borrower *borrower, size_t slices)
{
    return may_borrow(borrower, slices, borrower->pool->opt.own_slices, borrower->slices, borrower->pool->slices);
}

/* Updates what the input has borrowed, and the rest. */
static void settle(size_t *borrowed, size_t *rest, size_t has, size_t own)
{
    size_t now = has > own ? has - own : 0;
    *rest += *borrowed - now;                    /* the difference is modulo 2^64 if `now` is larger */
    *borrowed = now;
}

void chunk_pool_fills(struct chunk_borrower *borrower, size_t chunks)
{
    settle(&borrower->chunks, &borrower->pool->chunks, chunks, borrower->pool->opt.own_chunks);
}

void chunk_pool_keeps(struct chunk_borrower *borrower, size_t slices)
{
    settle(&borrower->slices, &borrower->pool->slices, slices, borrower->pool->opt.own_slices);
}

/* ------------------------------------------------------------------ memory */

bool chunk_pool_take_text(struct chunk_pool *p, struct chunk_text *text)
{
    if (p->n_texts == 0)
        return false;
    *text = p->texts[--p->n_texts];
    return true;
}

bool chunk_pool_take_records(struct chunk_pool *p, struct record_slice *records)
{
    if (p->n_records == 0)
        return false;
    *records = p->records[--p->n_records];
    return true;
}

void chunk_pool_put_text(struct chunk_pool *p, struct chunk_text text)
{
    if (text.bytes && p->n_texts < p->most_texts)
        p->texts[p->n_texts++] = text;
    else
        free_text(&text);
}

void chunk_pool_put_records(struct chunk_pool *p, struct record_slice records)
{
    record_slice_reuse(&records, p->opt.records_size);
    if (records.records.p && p->n_records < p->most_records)
        p->records[p->n_records++] = records;
    else
        record_slice_free(&records);
}
