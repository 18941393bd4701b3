/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>
#include "base/latch.h"
#include "sort/arenas.h"

int arenas_open(struct arenas *p, size_t size, struct latch *latch)
{
    *p = (struct arenas){.filled = &p->each[0]};
    for (int i = 0; i < 2; i++) {
        if (bam_arena_init(&p->each[i], size) < 0)
            return latch_fail(latch, "cannot reserve %zu MB of memory; use a smaller -m or -@", size >> 19);
        if (p->each[i].size < size)
            size = p->each[i].size;
    }
    bam_arena_reset(&p->each[0], size);
    return 0;
}

void arenas_close(struct arenas *p)
{
    for (int i = 0; i < 2; i++)
        bam_arena_free(&p->each[i]);
}

void arenas_give_back(const struct arenas *p, size_t share, size_t n_shares)
{
    const size_t PIECE = (size_t)32 << 20;
    for (int i = 0; i < 2; i++) {
        const struct bam_arena *a = &p->each[i];
        for (size_t at = share * PIECE; at < a->mapped; at += n_shares * PIECE)
            madvise(a->base + at, a->mapped - at < PIECE ? a->mapped - at : PIECE, MADV_DONTNEED);
    }
}

void arenas_expect(struct arenas *p, int32_t n_ref, const int64_t *lengths, const struct sort_rule *rule,
                   bool normalised)
{
    for (int i = 0; i < 2; i++) {
        p->each[i].n_ref = n_ref;
        p->each[i].lengths = lengths;
        p->each[i].rule = rule;
        p->each[i].normalised = normalised;
    }
}

bool arenas_beyond(const struct arenas *p)
{
    return p->each[0].beyond || p->each[1].beyond;
}

double arenas_with_keys(const struct arenas *p, double records)
{
    const struct bam_arena *a = p->filled;
    double keys = (double)(a->size - a->top);
    return a->walked > 0 ? records * (1 + keys / (double)a->walked) : 0;
}

uint64_t arenas_taken(const struct arenas *p)
{
    uint64_t taken = 0;
    for (int i = 0; i < 2; i++)
        taken += p->each[i].bottom + (p->each[i].size - p->each[i].top);
    return taken;
}

uint64_t arenas_records_to_fit(const struct arenas *p)
{
    const struct bam_arena *a = p->filled;
    size_t keys = a->size - a->top, records = keys / sizeof(struct bam_key);
    return records ? (a->top - a->walked) / ((a->walked + keys) / records) : 0;
}

static bool any_placed(const struct bam_arena *a)
{
    for (size_t i = 0; i < a->n_sublists; i++) {
        struct bam_key first = a->sublists[i].keys[0];
        if (bam_record_ref_id(bam_record_at(bam_key_record(a->base, first))) >= 0)
            return true;
    }
    return false;
}

void arenas_empty_other(struct arenas *p, size_t size)
{
    struct bam_arena *other = arenas_other(p);
    p->placed = p->placed || any_placed(other);
    bam_arena_reset(other, size);
}

int arenas_change(struct arenas *p, struct latch *latch)
{
    struct bam_arena *full = p->filled;
    p->filled = arenas_other(p);
    return bam_arena_carry(p->filled, full) < 0 ? latch_fail(latch, "out of memory for a long record") : 0;
}

int arenas_grow(struct arenas *p, size_t room, struct latch *latch)
{
    if (bam_arena_room(p->filled) < room && bam_arena_grow(p->filled, room) < 0)
        return latch_fail(latch, "out of memory for a long record");
    return 0;
}

bool arenas_unplaced(const struct arenas *p)
{
    return !p->placed && !any_placed(&p->each[0]) && !any_placed(&p->each[1]);
}
