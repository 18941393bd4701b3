/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/block_boundary.h"
#include "mpi/mpi_wait.h"

/* ---- chains of blocks ---- */

static int open_chains(struct block_chains *c)
{
    c->into = calloc(BLOCK_BOUNDARY_RECORDS, sizeof *c->into);
    c->begin = calloc(BLOCK_BOUNDARY_RECORDS, sizeof *c->begin);
    c->open = calloc(BLOCK_BOUNDARY_RECORDS, sizeof *c->open);
    return c->into && c->begin && c->open ? 0 : -1;
}

static void close_chains(struct block_chains *c)
{
    free(c->into);
    free(c->begin);
    free(c->open);
}

/* Returns how many bytes the last block of a chain has. */
static uint32_t fill_of(const struct block_chains *c, size_t chain)
{
    while (c->into[chain] != chain)
        chain = c->into[chain];
    return (uint32_t)(c->bytes - c->begin[chain]);
}

/* Adds a record to all chains. Chains whose last block has no room for it begin a block with it. number: the chain that
 * begins with this record; -1: no chain does. */
static void add_to_chains(struct block_chains *c, uint32_t size, int number)
{
    int begun = number;
    for (; c->n > 0 && size > BGZF_FILL - (c->bytes - c->begin[c->open[c->first]]); c->n--) {
        uint16_t chain = c->open[c->first];
        begun = begun < 0 ? chain : begun;
        c->into[chain] = (uint16_t)begun;
        c->first = (c->first + 1) % BLOCK_BOUNDARY_RECORDS;
    }
    if (begun >= 0) {
        c->into[begun] = (uint16_t)begun;
        c->begin[begun] = c->bytes;
        c->open[(c->first + c->n++) % BLOCK_BOUNDARY_RECORDS] = (uint16_t)begun;
    }
    c->bytes += size > BGZF_FILL ? (size - 1) % BGZF_FILL + 1 : size;
}

/* ---- the records of a rank ---- */

int block_boundary_open(struct block_boundary *s, size_t n_records, bool keeps)
{
    *s = (struct block_boundary){.room = n_records};
    s->lead = malloc(BGZF_FILL);
    s->tail = malloc(BGZF_FILL);
    if (!s->lead || !s->tail || open_chains(&s->chains) < 0)
        return -1;
    if (keeps)
        return record_list_alloc(&s->kept, n_records + 1);
    s->sizes = malloc((n_records + 1) * sizeof *s->sizes);
    return s->sizes ? 0 : -1;
}

void block_boundary_close(struct block_boundary *s)
{
    record_list_free(&s->kept);
    free(s->sizes);
    free(s->lead);
    free(s->tail);
    close_chains(&s->chains);
}

void block_boundary_add(struct block_boundary *s, const struct record_list *list)
{
    assert(list->n <= s->room - s->n);
    for (size_t i = 0; i < list->n; i++) {
        const struct record_ref *r = &list->records[i];
        bool all_before = s->n_lead == s->n;
        add_to_chains(&s->chains, r->size, all_before ? (int)s->n : -1);
        if (all_before && r->size <= BGZF_FILL - s->lead_size) {
            memcpy(s->lead + s->lead_size, r->data, r->size);
            s->lead_size += r->size;
            s->n_lead++;
        }
        if (s->sizes)
            s->sizes[s->n] = r->size;
        else
            record_list_add(&s->kept, r->data, r->size, 0);
        s->n++;
    }
}

static uint32_t record_size_at(const struct block_boundary *s, size_t i)
{
    return s->sizes ? s->sizes[i] : s->kept.records[i].size;
}

/* Finds the records that go into the block of an earlier rank, which is open and has `fill` bytes. Returns how many
 * bytes the last block has after all records. The ranks do this one after the other, so it looks only at the first
 * records. */
static uint32_t follow(struct block_boundary *s, uint32_t fill)
{
    s->n_lead = s->lead_size = 0;
    while (fill > 0 && s->n_lead < s->n && record_size_at(s, s->n_lead) <= BGZF_FILL - fill) {
        uint32_t size = record_size_at(s, s->n_lead++);
        s->lead_size += size;
        fill += size;
    }
    return s->n_lead == s->n ? fill : fill_of(&s->chains, s->n_lead);
}

void block_boundary_settle(struct block_boundary *s, const struct mpi_team *team)
{
    uint32_t fill = 0;
    int n = 0, before = team->rank - 1, after = team->rank + 1;
    if (before >= 0)
        mpi_wait_receive(&fill, 1, MPI_UINT32_T, before, MPI_TEAM_FILL);
    fill = follow(s, fill);
    if (after < team->size) {
        mpi_wait_send(&fill, 1, MPI_UINT32_T, after, MPI_TEAM_FILL);
        n = mpi_wait_receive(s->tail, BGZF_FILL, MPI_BYTE, after, MPI_TEAM_LEAD);
    }
    s->tail_size = (size_t)n;
    if (before < 0)
        return;
    if (s->n_lead == s->n) {                     /* no block begins here: the tail goes to the rank before, too */
        memcpy(s->lead + s->lead_size, s->tail, s->tail_size);
        s->lead_size += s->tail_size;
        s->tail_size = 0;
    }
    mpi_wait_send(s->lead, (int)s->lead_size, MPI_BYTE, before, MPI_TEAM_LEAD);
}

size_t block_boundary_tail(const struct block_boundary *s, struct record_ref *records)
{
    size_t n = 0;
    for (size_t at = 0; at < s->tail_size; n++) {
        size_t size = bam_record_size((const struct bam_record *)(s->tail + at));
        records[n] = (struct record_ref){s->tail + at, (uint32_t)size, 0, 0};
        at += size;
    }
    return n;
}
