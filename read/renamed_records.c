/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_window.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "bgzf_source.h"
#include "codec/bgzf_block.h"
#include "read/renamed_records.h"

/* Bytes that are given at once: some blocks' worth, so that the tasks have what to copy while more is made. */
enum { CHUNK_SIZE = 256 << 10, N_CHUNKS = 2 };

struct chunk {
    struct byte_buffer bytes;
    atomic_int users;            /* tasks that still read it */
};

struct renamed_records {
    struct byte_window window;   /* first: more() is told this alone */
    struct renamed_records_options opt;
    struct program_names names;
    int32_t n_ref;
    struct byte_buffer in;       /* as read, from a record's beginning at `at` */
    size_t at;
    bool broken;                 /* what begins there is no record */
    struct chunk chunks[N_CHUNKS];
    unsigned filled;             /* chunks that were filled so far */
};

static int no_room(const struct renamed_records *r)
{
    return latch_fail(r->opt.latch, "%s: out of memory for its records", r->opt.path);
}

/* Reads the next block behind the bytes that are not used yet. 1: done; 0: there is none; -1: failed. */
static int read_block(struct renamed_records *r)
{
    uint32_t size;
    int found = bgzf_source_peek(r->opt.source, &size);
    if (found <= 0)
        return found;
    r->in.n -= r->at;
    if (r->in.n)
        memmove(r->in.p, r->in.p + r->at, r->in.n);
    r->at = 0;
    if (byte_buffer_reserve(&r->in, r->in.n + size) < 0)
        return no_room(r);
    if (bgzf_source_inflate(r->opt.source, r->in.p + r->in.n) < 0)
        return -1;
    r->in.n += size;
    return 1;
}

/* Appends the bytes that are left as they are. */
static int pass(struct renamed_records *r, struct byte_buffer *to)
{
    if (r->at < r->in.n && byte_buffer_append(to, r->in.p + r->at, r->in.n - r->at) < 0)
        return no_room(r);
    r->at = r->in.n;
    return 0;
}

/* Appends the whole records that are there. */
static int rename_records(struct renamed_records *r, struct byte_buffer *to)
{
    enum bam_fault fault = BAM_OK;
    while (!r->broken && r->at < r->in.n
           && !(fault = bam_record_check(r->in.p + r->at, r->in.n - r->at, r->n_ref).fault)) {
        const struct bam_record *record = (const struct bam_record *)(r->in.p + r->at);
        int status = program_names_append(&r->names, to, record);
        if (status == -2)
            return latch_fail(r->opt.latch, "%s: a record is too long for the new ID in its PG tag. Nothing was "
                              "written; rename the @PG lines first", r->opt.path);
        if (status < 0)
            return no_room(r);
        r->at += bam_record_size(record);
    }
    r->broken |= fault != BAM_OK && fault != BAM_CUT;
    return r->broken ? pass(r, to) : 0;
}

/* The chunk that is filled next, when nobody reads it any more. NULL: an error is in the latch. */
static struct chunk *await_chunk(struct renamed_records *r, task_help_fn *help, void *arg)
{
    struct chunk *c = &r->chunks[r->filled++ % N_CHUNKS];
    for (unsigned spins = 0; atomic_load_explicit(&c->users, memory_order_acquire) > 0;) {
        if (latch_tripped(r->opt.latch))
            return NULL;
        if (help(arg))
            spins = 0;
        else
            task_pause(&spins);
    }
    byte_buffer_trim(&c->bytes, 2 * CHUNK_SIZE);
    return c;
}

/* Lends the next chunk. The bytes of the chunk before are used up by now. */
static int more(struct byte_window *window, task_help_fn *help, void *arg)
{
    struct renamed_records *r = (struct renamed_records *)window;
    byte_window_leave(window);
    struct chunk *c = await_chunk(r, help, arg);
    if (!c || rename_records(r, &c->bytes) < 0)
        return -1;
    int found = 1;
    while (c->bytes.n < CHUNK_SIZE && (found = read_block(r)) > 0)
        if (rename_records(r, &c->bytes) < 0)
            return -1;
    if (found < 0 || (found == 0 && pass(r, &c->bytes) < 0))
        return -1;
    window->data = c->bytes.p;
    window->size = c->bytes.n;
    window->offset = r->opt.file->offset;
    window->users = &c->users;
    return c->bytes.n > 0;
}

struct renamed_records *renamed_records_open(const struct renamed_records_options *options,
                                             struct program_names *names, struct bam_header *header)
{
    struct renamed_records *r = calloc(1, sizeof *r);
    if (!r) {
        program_names_free(names);
        latch_fail(options->latch, "%s: out of memory", options->path);
        return NULL;
    }
    r->opt = *options;
    r->window.more = more;
    r->names = *names;
    *names = (struct program_names){.n = 0};
    r->n_ref = sam_hdr_nref(header->sam);
    r->in = (struct byte_buffer){header->rest, header->rest_size, header->rest_size};
    header->rest = NULL;
    header->rest_size = 0;
    return r;
}

void renamed_records_close(struct renamed_records *r)
{
    if (!r)
        return;
    program_names_free(&r->names);
    free(r->in.p);
    for (size_t i = 0; i < N_CHUNKS; i++)
        free(r->chunks[i].bytes.p);
    free(r);
}

struct byte_window *renamed_records_window(struct renamed_records *r)
{
    return &r->window;
}

size_t renamed_records_memory(void)
{
    return sizeof(struct renamed_records) + N_CHUNKS * (2 * CHUNK_SIZE) + 4 * BGZF_MAX_BLOCK;
}
