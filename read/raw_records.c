/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "base/byte_window.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"
#include "read/raw_records.h"
#include "read/record_slice.h"

enum { SHOWN = BAM_FIXED + UINT8_MAX };  /* bytes that consumers read before they check a record */

struct raw_records {
    struct byte_window *window;
    int32_t n_ref;
    const struct engine *engine;
    struct byte_buffer part;     /* bytes of a record that must be copied */
    struct record_slice next;    /* the next slice to lend, if is_made */
    atomic_int *users;           /* keeps the memory of `next` in the window; NULL: the slice owns its memory */
    bool is_made, has_ended;
    uint64_t n, n_lent;          /* number of records; number of slices */
    uint32_t most_lent;          /* slices that the consumer holds at one time */
    atomic_int *held[];          /* the `users` of the most_lent slices that were lent last; each entry is reused in
                                  * turn */
};

static int lacks_memory(const struct raw_records *r)
{
    return latch_fail(r->engine->latch, "out of memory for records");
}

/* ---- records where they lie ---- */

/* Returns whether p[n] begins with a complete record whose name ends with a NUL. The consumer checks everything
 * else. */
static bool is_plain(const uint8_t *p, size_t n)
{
    if (n < BAM_FIXED)
        return false;
    const struct bam_record *record = bam_record_at(p);
    uint64_t size = bam_record_said_size(p), name = BAM_FIXED + (uint64_t)record->name_len;
    return size <= n && size >= BAM_MIN_RECORD && name > BAM_FIXED && name <= size && p[name - 1] == 0;
}

/* Makes a slice from the complete records at the beginning of the window. -1: failed, and the error is in the latch. */
static int list(struct raw_records *r)
{
    struct byte_window *w = r->window;
    struct record_slice *s = &r->next;
    s->borrowed = true;
    s->records.p = (uint8_t *)(uintptr_t)w->data;
    for (size_t at = 0; is_plain(w->data + at, w->size - at); at = s->records.n) {
        s->records.n = at + (size_t)bam_record_said_size(w->data + at);
        if (record_slice_note(s, at) < 0)
            return lacks_memory(r);
    }
    r->is_made = s->n > 0;
    if (r->is_made) {
        r->users = byte_window_hold(w);
        byte_window_skip(w, s->records.n);
    } else {
        record_slice_drop_records(s);
    }
    return 0;
}

/* ---- a record that is cut, or unlike others ---- */

/* Returns how many more bytes of the record are needed before it can be looked at again. 0: it is complete, or
 * broken. */
static size_t missing(const struct raw_records *r)
{
    const struct byte_buffer *part = &r->part;
    if (part->n < BAM_FIXED)
        return BAM_FIXED - part->n;
    bool is_cut = bam_record_check(part->p, part->n, r->n_ref).fault == BAM_CUT;
    return is_cut ? (size_t)bam_record_said_size(part->p) - part->n : 0;
}

/* Collects the bytes of the record, or those up to the end of the input. -1: failed, and the error is in the latch. */
static int collect(struct raw_records *r)
{
    struct byte_window *w = r->window;
    size_t left;
    while ((left = missing(r)) > 0) {
        int more = byte_window_fill(w);
        size_t n = left < w->size ? left : w->size;
        if (more <= 0)
            return more;
        if (byte_buffer_append(&r->part, w->data, n) < 0)
            return lacks_memory(r);
        byte_window_skip(w, n);
    }
    return 0;
}

/* Makes a slice of this one record. The bytes after it are 0. */
static int make_alone(struct raw_records *r)
{
    struct record_slice *s = &r->next;
    r->part.n = 0;
    if (collect(r) < 0)
        return -1;
    enum bam_fault fault = bam_record_check(r->part.p, r->part.n, r->n_ref).fault;
    bool closes = bam_record_can_close(r->part.p, fault);
    r->has_ended = fault && !closes;
    if (closes ? bam_record_close(&s->records, r->part.p) < 0
               : byte_buffer_append(&s->records, r->part.p, r->part.n) < 0)
        return lacks_memory(r);
    if (byte_buffer_reserve(&s->records, s->records.n + SHOWN) < 0 || record_slice_note(s, 0) < 0)
        return lacks_memory(r);
    memset(s->records.p + s->records.n, 0, SHOWN);
    r->is_made = true;
    return 0;
}

/* ---- the stream ---- */

/* Makes the next slice, unless the input has ended. */
static int make(struct raw_records *r)
{
    struct byte_window *w = r->window;
    int more = byte_window_fill(w);
    r->has_ended = more == 0;
    if (more <= 0)
        return more;
    r->next.offset = w->offset;
    return list(r) < 0 ? -1 : r->is_made ? 0 : make_alone(r);
}

static enum chunk_state advance(void *records)
{
    struct raw_records *r = records;
    enum stage before = clocks_enter(r->engine->clocks, STAGE_FIND);
    int made = r->is_made || r->has_ended ? 0 : make(r);
    clocks_leave(r->engine->clocks, before, 0);    /* the consumer counts the bytes */
    return made < 0 ? CHUNK_FAILED : r->is_made ? CHUNK_MADE : CHUNK_NONE;
}

static void release(atomic_int **held)
{
    if (*held)
        byte_window_release(*held);
    *held = NULL;
}

/* Lends the next slice. The consumer does not use the slice that was lent most_lent slices ago any more. */
static int take(void *records, struct record_slice *slice)
{
    struct raw_records *r = records;
    struct record_slice back = *slice;
    atomic_int **held = &r->held[r->n_lent++ % r->most_lent];
    release(held);
    *held = r->users;
    *slice = r->next;
    slice->number = r->n + 1;
    r->n += slice->n;
    record_slice_drop_records(&back);
    r->next = back;
    r->users = NULL;
    r->is_made = false;
    return 0;
}

static int end(void *records, struct tally *given)
{
    const struct raw_records *r = records;
    *given = (struct tally){.n = r->n, .counts_only = true};
    return 0;
}

struct record_stream raw_records_stream(struct raw_records *r)
{
    return (struct record_stream){advance, take, task_no_help, end, r, .most_lent = r->most_lent};
}

struct raw_records *raw_records_open(struct byte_window *window, int32_t n_ref, const struct engine *engine)
{
    struct raw_records *r = calloc(1, sizeof *r + window->most_held * sizeof *r->held);
    if (!r) {
        latch_fail(engine->latch, "out of memory");
        return NULL;
    }
    r->window = window;
    r->most_lent = window->most_held;
    r->n_ref = n_ref;
    r->engine = engine;
    return r;
}

void raw_records_end(struct raw_records *r)
{
    for (uint32_t i = 0; i < r->most_lent; i++)
        release(&r->held[i]);
}

void raw_records_close(struct raw_records *r)
{
    if (!r)
        return;
    record_slice_free(&r->next);
    free(r->part.p);
    free(r);
}
