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

/* Enters another reference, or none, at its first record. */
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

/* Counts the coverage of a record. leaves: the record leaves all places before it. */
static int cover(struct stats_whole *whole, int32_t pos, const struct stats_block *blocks, size_t n,
                 const struct stats_mate *mate, const char *names, bool leaves)
{
    const struct stats_depth_bins *bins = &whole->settings->bins;
    if (leaves)
        stats_ring_move(&whole->ring, bins, -1);
    stats_ring_move(&whole->ring, bins, pos);
    if (mate && mate->end != STATS_ALONE)
        return stats_mates_cover(&whole->mates, &whole->ring, names + mate->name_at, mate->name_n, mate->end,
                                 blocks, n);
    for (size_t i = 0; i < n; i++)
        if (!mate || blocks[i].begin >= 0)       /* as in samtools */
            stats_ring_cover(&whole->ring, blocks[i].begin, blocks[i].end);
    return 0;
}

/* Counts the coverage of all records, and makes the ring grow for longer reads; without is_sorted it does only the
 * latter. */
static int cover_all(struct stats_whole *whole, const struct stats_log *log, bool is_sorted)
{
    const struct stats_block *blocks = log->blocks;
    const struct stats_mate *mate = log->n_mates ? log->mates : NULL;
    int32_t ref = whole->entry_ref;
    size_t record = 0, visit = 0;
    for (size_t i = 0; i < log->n_entries; i++) {
        const struct stats_entry *entry = &log->entries[i];
        if (entry->is_longer && stats_ring_fit(&whole->ring, entry->span) < 0)
            return -1;
        if (entry->is_longer || !is_sorted)
            continue;
        bool begins = visit < log->n_visits && log->visits[visit].first == record;
        bool is_new = begins && log->visits[visit].ref != ref;
        int32_t pos = log->places[record++];
        ref = begins ? log->visits[visit++].ref : ref;
        if (mate)
            stats_mates_sweep(&whole->mates, pos, is_new);
        if (cover(whole, pos, blocks, entry->n_blocks, mate, log->names, is_new || ref == -1) < 0)
            return -1;
        if (entry->n_blocks > 0)             /* otherwise the log may have no blocks at all */
            blocks += entry->n_blocks;
        if (mate)
            mate++;
    }
    return 0;
}

/* Counts the GC depth of the records of a visit, with -r. *entry: the entry of its first record. */
static int add_gcd(struct stats_whole *whole, bool is_new, const struct stats_log *log, size_t from, size_t to,
                   const struct stats_entry **entry)
{
    for (size_t i = from; i < to; i++, (*entry)++) {
        while ((*entry)->is_longer)
            (*entry)++;
        if (stats_gcd_add(&whole->gcd, is_new, log->places[i], (*entry)->span, log->gc[i], whole->sequence) < 0)
            return -1;
        is_new = false;
    }
    return 0;
}

static int take_visits(struct stats_whole *whole, const struct stats_log *log)
{
    const struct stats_entry *entry = log->entries;
    for (size_t v = 0; v < log->n_visits; v++) {
        size_t from = log->visits[v].first, to = v + 1 < log->n_visits ? log->visits[v + 1].first : log->n_records;
        bool is_new = log->visits[v].ref != whole->entry_ref;
        if (is_new && enter_reference(whole, log->visits[v].ref) < 0)
            return -1;
        int result = whole->settings->fasta ? add_gcd(whole, is_new, log, from, to, &entry)
                   : stats_gcd_add_visit(&whole->gcd, is_new, log->places + from, log->gc + from, to - from);
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

/* Takes the coverage of a part, and of the parts after it whose coverage its range has, too. Returns false if the
 * coverage of the part has to be counted from the log. */
static bool take_cover(struct stats_whole *whole, const struct stats_log *log, const struct stats_cover *cover)
{
    if (cover->is_before && whole->n_covered > 0) {
        whole->n_covered--;
        return true;
    }
    bool grows = log->longest >= whole->ring.room || cover->longest >= whole->ring.room;
    bool is_covered = cover->range && !grows && stats_range_join(cover->range, &whole->ring, whole->entry_ref);
    whole->n_covered = is_covered ? cover->n_more : 0;
    return is_covered;
}

int stats_whole_take(struct stats_whole *whole, const struct stats_log *log, const struct stats_cover *cover)
{
    bool is_sorted = stats_whole_goes_on(whole, log), is_covered = is_sorted && take_cover(whole, log, cover);
    if (!is_covered && cover_all(whole, log, is_sorted) < 0)
        return -1;
    if (is_sorted && (take_visits(whole, log) < 0 || take_mismatches(whole, log) < 0))
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
