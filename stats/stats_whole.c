/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "stats/stats_fasta.h"
#include "stats/stats_settings.h"
#include "stats/stats_whole.h"

enum { COLUMNS = 256 };

struct stats_whole *stats_whole_open(const struct stats_settings *settings, struct mate_table *table)
{
    struct stats_whole *whole = calloc(1, sizeof *whole);
    if (!whole)
        return NULL;
    whole->settings = settings;
    whole->mates.table = table ? table : &whole->own_table;
    whole->ref = -1;
    whole->entry_ref = -2;
    whole->gcd.size = settings->gc_bin;
    if (stats_ring_open(&whole->ring, &settings->bins) < 0) {
        stats_whole_close(whole);
        return NULL;
    }
    return whole;
}

void stats_whole_close(struct stats_whole *whole)
{
    if (!whole)
        return;
    if (whole->sequence)
        stats_fasta_release(whole->settings->fasta, whole->sequence);
    stats_ring_close(&whole->ring);
    stats_gcd_free(&whole->gcd);
    mate_table_free(&whole->own_table);
    free(whole->mismatches.n);
    free(whole);
}

/* The first entry of a record of another reference, or of none. */
static int enter_reference(struct stats_whole *whole, int32_t ref)
{
    whole->entry_ref = ref;
    if (!whole->settings->fasta)
        return 0;
    stats_fasta_release(whole->settings->fasta, whole->sequence);
    const char *name = ref < 0 ? NULL : sam_hdr_tid2name(whole->settings->sam, ref);
    whole->sequence = name ? stats_fasta_take(whole->settings->fasta, ref, name) : NULL;
    return whole->sequence ? 0 : -1;
}

/* Coverage of a record. */
static int cover(struct stats_whole *whole, const struct stats_entry *entry, const struct stats_block *blocks,
                 const struct stats_mate *mate, const char *names, bool is_new)
{
    const struct stats_depth_bins *bins = &whole->settings->bins;
    if (mate)
        stats_mates_sweep(&whole->mates, entry->pos, is_new);
    if (is_new || whole->entry_ref == -1)
        stats_ring_move(&whole->ring, bins, -1);
    stats_ring_move(&whole->ring, bins, entry->pos);
    if (mate && mate->end != STATS_ALONE)
        return stats_mates_cover(&whole->mates, &whole->ring, names + mate->name_at, mate->name_n, mate->end, blocks,
                                 entry->n_blocks);
    for (uint32_t i = 0; i < entry->n_blocks; i++)
        stats_ring_cover(&whole->ring, blocks[i].begin, blocks[i].end);
    return 0;
}

/* Without is_sorted, only longer reads count. */
static int take_entries(struct stats_whole *whole, const struct stats_log *log, bool is_sorted, bool is_covered)
{
    const struct stats_block *blocks = log->blocks;
    const struct stats_mate *mate = log->n_mates ? log->mates : NULL;
    bool is_new = false;
    bool is_plain = is_covered && !whole->settings->fasta;
    for (size_t i = 0; i < log->n_entries; i++) {
        if (is_plain && !is_new)
            i += stats_gcd_add_run(&whole->gcd, log->entries + i, log->n_entries - i);
        if (i == log->n_entries)
            break;
        const struct stats_entry *entry = &log->entries[i];
        int result = 0;
        if (entry->kind == STATS_LONGER) {
            result = is_covered ? 0 : stats_ring_fit(&whole->ring, entry->span);
        } else if (!is_sorted) {
            continue;
        } else if (entry->kind == STATS_REFERENCE) {
            is_new = entry->pos != whole->entry_ref;
            result = is_new ? enter_reference(whole, entry->pos) : 0;
        } else {
            result = stats_gcd_add(&whole->gcd, is_new, entry->pos, entry->span, entry->gc, whole->sequence);
            if (result == 0 && !is_covered)
                result = cover(whole, entry, blocks, mate, log->names, is_new);
            blocks += entry->n_blocks;
            mate += mate != NULL;
            is_new = false;
        }
        if (result < 0)
            return -1;
    }
    return 0;
}

static int take_mismatches(struct stats_whole *whole, const struct stats_log *log)
{
    for (size_t i = 0; i < log->n_mismatches; i++) {
        uint64_t at = log->mismatches[i];
        if (stats_column_reserve(&whole->mismatches, at / COLUMNS, COLUMNS) < 0)
            return -1;
        whole->mismatches.n[at]++;
    }
    return 0;
}

uint64_t stats_whole_mismatches(const struct stats_whole *whole, size_t cycle, size_t column)
{
    return stats_column_at(&whole->mismatches, cycle, COLUMNS, column);
}

bool stats_whole_goes_on(const struct stats_whole *whole, const struct stats_log *log)
{
    return !whole->unsorted && !(log->any && log->first_ref == whole->ref && log->first_pos < whole->pos);
}

int stats_whole_take(struct stats_whole *whole, const struct stats_log *log, const struct stats_range *range)
{
    bool is_sorted = stats_whole_goes_on(whole, log), grows = log->longest >= whole->ring.room;
    bool is_covered = range && is_sorted && !grows && stats_range_join(range, &whole->ring, whole->entry_ref);
    if (take_entries(whole, log, is_sorted, is_covered) < 0 || (is_sorted && take_mismatches(whole, log) < 0))
        return -1;
    whole->unsorted = !is_sorted || log->unsorted;
    if (log->any) {
        whole->ref = log->last_ref;
        whole->pos = log->last_pos;
    }
    return 0;
}

void stats_whole_end(struct stats_whole *whole)
{
    stats_ring_move(&whole->ring, &whole->settings->bins, -1);
}

size_t stats_whole_memory(size_t depths, int64_t gc_bin, sam_hdr_t *sam, size_t n)
{
    return sizeof(struct stats_whole) + stats_ring_memory(depths, n) + stats_gcd_memory(gc_bin, sam)
         + (n ? stats_column_memory(n, COLUMNS) : 0);
}
