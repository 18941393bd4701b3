/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "stats/stats_fasta.h"
#include "stats/stats_settings.h"
#include "stats/stats_whole.h"

enum { COLUMNS = 256 };

struct stats_whole *stats_whole_open(const struct stats_settings *settings)
{
    struct stats_whole *whole = calloc(1, sizeof *whole);
    if (!whole)
        return NULL;
    whole->settings = settings;
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
    stats_mates_free(&whole->mates);
    free(whole->mismatches);
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

static int take_record(struct stats_whole *whole, const struct stats_entry *entry, const struct stats_block *blocks,
                       const struct stats_mate *mate, const char *names, bool is_new)
{
    const struct stats_depth_bins *bins = &whole->settings->bins;
    if (mate)
        stats_mates_sweep(&whole->mates, entry->pos, is_new);
    if (stats_gcd_add(&whole->gcd, is_new, entry->pos, entry->span, entry->gc, whole->sequence) < 0)
        return -1;
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
static int take_entries(struct stats_whole *whole, const struct stats_log *log, bool is_sorted)
{
    const struct stats_block *blocks = log->blocks;
    const struct stats_mate *mate = log->n_mates ? log->mates : NULL;
    bool is_new = false;
    for (size_t i = 0; i < log->n_entries; i++) {
        const struct stats_entry *entry = &log->entries[i];
        int result = 0;
        if (entry->kind == STATS_LONGER) {
            result = stats_ring_fit(&whole->ring, entry->span);
        } else if (!is_sorted) {
            continue;
        } else if (entry->kind == STATS_REFERENCE) {
            is_new = entry->pos != whole->entry_ref;
            result = is_new ? enter_reference(whole, entry->pos) : 0;
        } else {
            result = take_record(whole, entry, blocks, mate, log->names, is_new);
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
        if (at >= whole->n_cycles * COLUMNS) {
            size_t n = 2 * (size_t)(at / COLUMNS) + 256;
            uint64_t *grown = realloc(whole->mismatches, n * COLUMNS * sizeof *grown);
            if (!grown)
                return -1;
            memset(grown + whole->n_cycles * COLUMNS, 0, (n - whole->n_cycles) * COLUMNS * sizeof *grown);
            whole->mismatches = grown;
            whole->n_cycles = n;
        }
        whole->mismatches[at]++;
    }
    return 0;
}

uint64_t stats_whole_mismatches(const struct stats_whole *whole, size_t cycle, int column)
{
    return cycle < whole->n_cycles ? whole->mismatches[cycle * COLUMNS + (size_t)column] : 0;
}

bool stats_whole_goes_on(const struct stats_whole *whole, const struct stats_log *log)
{
    return !whole->unsorted && !(log->any && log->first_ref == whole->ref && log->first_pos < whole->pos);
}

int stats_whole_take(struct stats_whole *whole, const struct stats_log *log)
{
    bool is_sorted = stats_whole_goes_on(whole, log);
    if (take_entries(whole, log, is_sorted) < 0 || (is_sorted && take_mismatches(whole, log) < 0))
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
