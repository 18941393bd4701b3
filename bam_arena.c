/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "bam_arena.h"
#include "bam/record_fault.h"
#include "bam/record_search.h"
#include "base/byte_buffer.h"
#include "base/byte_hash.h"
#include "base/latch.h"

enum {
    SIZE_MIN = 256 << 10,        /* bytes of the smallest arena: some blocks and their keys */
    /* Bytes for which huge pages are requested at a time. The requests end once a huge page comes slowly: once the
     * first touch takes more than SLOW_NANOSECONDS of CPU time. Wall time would include other programs that get the CPU
     * meanwhile. Clearing 2 MiB takes 0.1 to 0.2 ms. In a virtual machine that gives its free memory back to the host,
     * large blocks first, it takes 4 ms, which is 2 s for each GB. The main thread makes these trials, which take it up
     * to 6 ms for each GB. */
    WINDOW = 32 << 20,
    SLOW_NANOSECONDS = 1000000,
    RECORDS_AT_ONCE = 64,        /* keys that the main thread lists on its stack */
};

static long cpu_nanoseconds_to_touch(volatile uint8_t *p)
{
    struct timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    *p = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
}

/* Decides whether to use huge pages for the window after the one that contains bottom. That window is still empty. */
static void advise_windows(struct bam_arena *arena)
{
#if defined(MADV_HUGEPAGE) && defined(MADV_NOHUGEPAGE)
    while (arena->advised < arena->bottom + WINDOW && arena->advised < arena->top) {
        uint8_t *window = arena->base + arena->advised;
        size_t n = arena->size - arena->advised < WINDOW ? arena->size - arena->advised : WINDOW;
        madvise(window, n, arena->huge_pages_are_slow ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
        if (!arena->huge_pages_are_slow && cpu_nanoseconds_to_touch(window) > SLOW_NANOSECONDS) {
            madvise(window, n, MADV_NOHUGEPAGE);
            arena->huge_pages_are_slow = true;
        }
        arena->advised += n;
    }
#else
    (void)arena;
#endif
}

uint8_t *bam_arena_take(struct bam_arena *arena, size_t size)
{
    uint8_t *place = arena->base + arena->bottom;
    arena->bottom += size;
    advise_windows(arena);
    return place;
}

static void *map_region(size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

/* A page is 4 KiB on most machines, and 16 or 64 KiB on some arm64 machines. Memory that is given back must begin at a
 * page boundary. */
static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_down_to_pages(size_t size)
{
    return size & ~(page_size() - 1);
}

int bam_arena_init(struct bam_arena *arena, size_t size)
{
    memset(arena, 0, sizeof *arena);
    for (size *= 2; !arena->base && size / 2 >= SIZE_MIN;) {
        size = round_down_to_pages(size / 2);
        arena->base = map_region(size);
    }
    if (!arena->base)
        return -1;
    arena->size = arena->mapped = arena->top = arena->sublist_top = size;
    advise_windows(arena);
    return 0;
}

void bam_arena_reset(struct bam_arena *arena, size_t size)
{
    size = round_down_to_pages(size);
    if (size < arena->size) {
        size_t kept = arena->grown ? 0 : size;   /* a slice that needed so much is read back elsewhere */
        madvise(arena->base + kept, arena->size - kept, MADV_DONTNEED);
        arena->size = size;
        arena->grown = false;
    }
    arena->bottom = arena->walked = arena->sublist_bottom = 0;
    arena->top = arena->sublist_top = arena->size;
    arena->n_sublists = 0;
}

/* Moves bytes and gives their pages back on the way, so that a large record is not in memory twice. */
static void move_bytes(uint8_t *to, uint8_t *from, size_t n)
{
    enum { STEP = 4 << 20 };
    for (size_t at = 0; at < n; at += STEP) {
        size_t k = n - at < STEP ? n - at : STEP, before = (uintptr_t)(from + at) % page_size();
        memcpy(to + at, from + at, k);
        size_t pages = round_down_to_pages(k + before), part = before ? page_size() : 0;
        if (n > STEP && pages > part)            /* other bytes of the first page may be in use */
            madvise(from + at - before + part, pages - part, MADV_DONTNEED);
    }
}

int bam_arena_carry(struct bam_arena *to, const struct bam_arena *from)
{
    size_t cut = from->bottom - from->walked;
    to->n_records = from->n_records;
    to->checksum = from->checksum;
    to->origin = from->origin + from->walked;
    to->n_before = from->n_before;
    to->huge_pages_are_slow |= from->huge_pages_are_slow;
    if (bam_arena_room(to) < cut && bam_arena_grow(to, cut) < 0)
        return -1;
    if (cut)
        move_bytes(bam_arena_take(to, cut), from->base + from->walked, cut);
    return 0;
}

/* The factor 2 is there because bam_arena_room() assumes the smallest records, each with its key. */
int bam_arena_grow(struct bam_arena *arena, size_t room)
{
    size_t size = round_down_to_pages((arena->bottom + room) * 2 + page_size());
    uint8_t *base = map_region(size);
    if (!base)
        return -1;
    struct bam_arena old = *arena;
    arena->base = base;
    arena->size = arena->mapped = arena->top = arena->sublist_top = size;
    arena->advised = 0;
    arena->grown = true;
    /* This comes before the bytes are moved: it writes to the pages that it tests. */
    advise_windows(arena);
    move_bytes(base, old.base, old.bottom);
    munmap(old.base, old.mapped);
    return 0;
}

void bam_arena_free(struct bam_arena *arena)
{
    if (arena->base)
        munmap(arena->base, arena->mapped);
    free(arena->sublists);
    memset(arena, 0, sizeof *arena);
}

size_t bam_arena_room(const struct bam_arena *arena)
{
    size_t unlisted = arena->bottom - arena->walked;
    size_t keys = (unlisted / BAM_MIN_RECORD + 1) * sizeof(struct bam_key);
    size_t gap = arena->top - arena->bottom;
    if (gap <= keys)
        return 0;
    return (gap - keys) / (BAM_MIN_RECORD + sizeof(struct bam_key)) * BAM_MIN_RECORD;
}

struct bam_key_order bam_arena_order(const struct bam_arena *arena)
{
    return (struct bam_key_order){arena->rule, arena->base};
}

/* Walks from start until end, until a record begins at stop, or until max keys are listed. */
static struct bam_walk walk(const struct bam_arena *arena, uint64_t start, uint64_t end,
                            uint64_t stop, struct bam_key *keys, uint32_t max)
{
    struct bam_walk w = {.start = start, .end = start};
    struct bam_key_order order = bam_arena_order(arena);
    while (w.end < end && w.end != stop && w.n < max) {
        const uint8_t *record = arena->base + w.end;
        const struct bam_record *r = bam_record_at(record);
        struct bam_verdict verdict = bam_record_check(record, end - w.end, arena->n_ref);
        w.fault = verdict.fault ? verdict.fault : bam_key_make(&order, r, &keys[w.n]);
        if (w.fault)
            break;
        w.n++;
        size_t size = bam_record_size(r);
        w.n_fix += (uint32_t)(verdict.needs_fix && !arena->normalised);
        w.beyond |= bam_record_is_beyond(r, arena->lengths);
        w.checksum += record_checksum(record, size);
        w.end += size;
    }
    return w;
}

struct bam_walk bam_arena_walk(const struct bam_arena *arena, uint64_t start, uint64_t end, struct bam_key *keys)
{
    return walk(arena, start, end, UINT64_MAX, keys, UINT32_MAX);
}

static bool sound(const struct bam_walk *w)
{
    return w->fault == BAM_OK || w->fault == BAM_CUT;
}

struct bam_walk bam_arena_guess(const struct bam_arena *arena, uint64_t start, uint64_t end, struct bam_key *keys)
{
    struct bam_walk w = bam_arena_walk(arena, start, end, keys);
    if (sound(&w))
        return w;
    start += record_search_chain(arena->base + start, end - start, arena->n_ref).begin;
    w = bam_arena_walk(arena, start, end, keys);
    return sound(&w) ? w : (struct bam_walk){.start = end, .end = end};
}

struct bam_key *bam_arena_list(struct bam_arena *arena, uint32_t n)
{
    arena->top -= n * sizeof(struct bam_key);
    arena->n_records += n;
    arena->walked = arena->bottom;
    return (struct bam_key *)(arena->base + arena->top);
}

struct bam_walk bam_arena_take_known(const struct bam_arena *arena, uint64_t start, uint64_t end,
                                     const struct bam_key *known, uint32_t n, struct bam_key *keys)
{
    struct bam_walk w = {.start = start, .end = start};
    if (!known)
        return walk(arena, start, end, UINT64_MAX, keys, n);
    for (; w.n < n; w.n++) {
        const struct bam_record *record = bam_record_at(arena->base + w.end);
        size_t size = bam_record_size(record);
        keys[w.n] = (struct bam_key){known[w.n].sort, bam_key_place(w.end, size)};
        w.beyond |= bam_record_is_beyond(record, arena->lengths);
        w.checksum += record_checksum(arena->base + w.end, size);
        w.end += size;
    }
    return w;
}

int bam_arena_fix(const struct bam_arena *arena, struct bam_key *keys, uint32_t n, uint64_t *checksum)
{
    struct bam_key_order order = bam_arena_order(arena);
    for (uint32_t i = 0; i < n; i++) {
        struct bam_record *r = (struct bam_record *)(arena->base + (keys[i].place >> BAM_KEY_SIZE_BITS));
        size_t size = bam_record_size(r);
        if (!bam_record_check((uint8_t *)r, size, arena->n_ref).needs_fix)
            continue;
        *checksum -= record_checksum((uint8_t *)r, size);
        if (bam_record_fix(r) < 0)
            return -1;
        bam_key_make(&order, r, &keys[i]);   /* the record had no fault before, so it has none now */
        *checksum += record_checksum((uint8_t *)r, bam_record_size(r));
    }
    return 0;
}

/* Lists and normalises the records that w found. Reports an error if the record after them is bad. 1: the name of that
 * record lacks its NUL. */
static int accept_walk(struct bam_arena *arena, const struct bam_walk *w, const struct bam_key *keys,
                       struct bam_key **place, struct latch *latch, const struct bam_origin *origin)
{
    arena->top -= w->n * sizeof(struct bam_key);
    arena->n_records += w->n;
    arena->checksum += w->checksum;
    arena->beyond |= w->beyond;
    arena->walked = w->end;
    struct bam_key *placed = (struct bam_key *)(arena->base + arena->top);
    if (place && w->n && !w->n_fix)
        *place = placed;
    else if (w->n)
        memcpy(placed, keys, w->n * sizeof *keys);
    if (w->n_fix && bam_arena_fix(arena, placed, w->n, &arena->checksum) < 0)
        return latch_fail(latch, "%s: out of memory while fixing a CIGAR", origin->file);
    if (sound(w))
        return 0;
    if (bam_record_can_close(arena->base + w->end, w->fault))
        return 1;
    struct record_place at = {origin->file, arena->n_records - arena->n_before + 1, arena->origin + w->end,
                              origin->offset};
    return record_fault_report(latch, &at, w->fault, arena->base + w->end);
}

int bam_arena_accept(struct bam_arena *arena, const struct bam_walk *guess, const struct bam_key *keys,
                     uint64_t block_end, struct bam_key **place, struct latch *latch, const struct bam_origin *origin)
{
    if (place)
        *place = NULL;
    struct bam_key few[RECORDS_AT_ONCE];
    while (arena->walked != guess->start && arena->walked < block_end) {
        struct bam_walk w = walk(arena, arena->walked, block_end, guess->start, few, RECORDS_AT_ONCE);
        int status = accept_walk(arena, &w, few, NULL, latch, origin);
        if (status)
            return status;
        if (w.fault == BAM_CUT)
            return 0;
    }
    return arena->walked == guess->start ? accept_walk(arena, guess, keys, place, latch, origin) : 0;
}

size_t bam_arena_open_records(const struct bam_arena *arena)
{
    return (arena->sublist_top - arena->top) / sizeof(struct bam_key);
}

/* Each block's keys lie below the keys of the previous block, but ascend within the block. A cut inside a block would
 * put the block's newer keys into the earlier sublist, whose records come first among equal records. */
int bam_arena_cut_sublist(struct bam_arena *arena, size_t min_records, struct bam_sublist *sublist)
{
    const struct bam_key *keys = (const struct bam_key *)(arena->base + arena->top);
    size_t all = bam_arena_open_records(arena), n = all < min_records ? all : min_records;
    while (n > 0 && n < all && keys[all - n - 1].place < keys[all - n].place)
        n++;
    if (n == 0)
        return 0;
    struct bam_sublist *sublists = byte_buffer_grow(arena->sublists, arena->n_sublists, &arena->max_sublists,
                                                    sizeof *sublists);
    if (!sublists)
        return -1;
    arena->sublists = sublists;
    arena->sublist_top -= n * sizeof(struct bam_key);
    *sublist = (struct bam_sublist){(struct bam_key *)(arena->base + arena->sublist_top), n};
    arena->sublists[arena->n_sublists++] = *sublist;
    arena->sublist_bottom = arena->walked;
    return 1;
}

int bam_arena_close_sublist(struct bam_arena *arena, size_t min_records, size_t min_bytes, struct bam_sublist *sublist)
{
    size_t n = bam_arena_open_records(arena);
    if (n < min_records && arena->walked - arena->sublist_bottom < min_bytes)
        return 0;
    return bam_arena_cut_sublist(arena, n, sublist);
}
