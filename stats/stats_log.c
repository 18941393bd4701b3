/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "stats/stats_log.h"

void stats_log_free(struct stats_log *log)
{
    free(log->visits);
    free(log->entries);
    free(log->places);
    free(log->gc);
    free(log->blocks);
    free(log->mates);
    free(log->mismatches);
    free(log->names);
    *log = (struct stats_log){0};
}

void stats_log_clear(struct stats_log *log)
{
    log->n_visits = log->n_entries = log->n_records = 0;
    log->n_blocks = log->n_mates = log->n_mismatches = log->n_names = 0;
    log->longest = 0;
    log->any = log->unsorted = false;
}

/* Makes room for one more element of an array of the log. */
#define GROW(array, n, room) \
    ((grown = byte_buffer_grow(array, n, &(room), sizeof *(array))) ? ((array) = grown, 0) : -1)

static int add_entry(struct stats_log *log, struct stats_entry entry)
{
    void *grown;
    if (GROW(log->entries, log->n_entries, log->room_entries) < 0)
        return -1;
    log->entries[log->n_entries++] = entry;
    return 0;
}

/* Only a read that is longer than all before it can make the ring grow, because the room of the ring is more than the
 * length of each earlier read. */
int stats_log_length(struct stats_log *log, uint32_t whole)
{
    if (whole < STATS_RING_READ || whole <= log->longest)
        return 0;
    log->longest = whole;
    return add_entry(log, (struct stats_entry){.is_longer = true, .span = whole});
}

void stats_log_order(struct stats_log *log, int32_t ref, int32_t pos)
{
    if (!log->any) {
        log->any = true;
        log->first_ref = ref;
        log->first_pos = pos;
    } else if (ref == log->last_ref && pos < log->last_pos) {
        log->unsorted = true;
    }
    log->last_ref = ref;
    log->last_pos = pos;
}

bool stats_log_goes_on(const struct stats_log *log, const struct stats_log *right)
{
    return log->any && right->any && !log->unsorted
        && !(right->first_ref == log->last_ref && right->first_pos < log->last_pos);
}

static int add_visit(struct stats_log *log, int32_t ref)
{
    void *grown;
    if (GROW(log->visits, log->n_visits, log->room_visits) < 0)
        return -1;
    log->visits[log->n_visits++] = (struct stats_visit){ref, (uint32_t)log->n_records};
    return 0;
}

int stats_log_record(struct stats_log *log, int32_t ref, int32_t pos, uint32_t span, float gc)
{
    void *grown;
    bool is_visit = log->n_visits == 0 || log->visits[log->n_visits - 1].ref != ref;
    if ((is_visit && add_visit(log, ref) < 0) || GROW(log->places, log->n_records, log->room_places) < 0
        || GROW(log->gc, log->n_records, log->room_gc) < 0)
        return -1;
    log->places[log->n_records] = pos;
    log->gc[log->n_records++] = gc;
    return add_entry(log, (struct stats_entry){.span = span});
}

int stats_log_block(struct stats_log *log, int64_t begin, int64_t end)
{
    void *grown;
    if (GROW(log->blocks, log->n_blocks, log->room_blocks) < 0)
        return -1;
    log->blocks[log->n_blocks++] = (struct stats_block){begin, end};
    log->entries[log->n_entries - 1].n_blocks++;
    return 0;
}

int stats_log_mate(struct stats_log *log, const char *name, size_t n, uint32_t end)
{
    void *grown;
    if (GROW(log->mates, log->n_mates, log->room_mates) < 0)
        return -1;
    while (log->n_names + n > log->room_names) {
        if (!(grown = byte_buffer_grow(log->names, log->room_names, &log->room_names, 1)))
            return -1;
        log->names = grown;
    }
    memcpy(log->names + log->n_names, name, n);
    log->mates[log->n_mates++] = (struct stats_mate){(uint32_t)log->n_names, (uint32_t)n, end};
    log->n_names += n;
    return 0;
}

int stats_log_mismatch(struct stats_log *log, uint64_t cycle, unsigned column)
{
    void *grown;
    if (GROW(log->mismatches, log->n_mismatches, log->room_mismatches) < 0)
        return -1;
    log->mismatches[log->n_mismatches++] = cycle << 8 | column;
    return 0;
}

/* Bytes of memory of an array of n elements that grows by byte_buffer_grow(). */
static size_t array_memory(size_t n, size_t size)
{
    enum { LEAST = 64 };
    return (n < LEAST ? LEAST : 2 * n) * size;
}

size_t stats_log_memory(size_t bytes, bool with_mismatches, bool with_mates)
{
    enum { LEAST_RECORD = 36 + 8 + 8 + 54, OPERATION = 4 + 12, DIFFERING = 12 };
    size_t records = bytes / LEAST_RECORD;
    return array_memory(records, sizeof(struct stats_entry) + sizeof(struct stats_visit))
         + array_memory(records, sizeof(int32_t) + sizeof(float))
         + array_memory(bytes / OPERATION, sizeof(struct stats_block))
         + (with_mismatches ? array_memory(bytes / DIFFERING, sizeof(uint64_t)) : 0)
         + (with_mates ? array_memory(records, sizeof(struct stats_mate)) + array_memory(bytes / 4, 1) : 0);
}
