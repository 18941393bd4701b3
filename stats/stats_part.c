/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "stats/stats_fasta.h"
#include "stats/stats_mismatch.h"
#include "stats/stats_part.h"
#include "stats/stats_region_cut.h"
#include "stats/stats_settings.h"

enum { SETTLE_ENTRIES = 1 << 14 };       /* in sequence, the log is emptied at this many entries, so that it stays in
                                          * the cache. A shared table needs the entries one by one */

#define OUT_OF_MEMORY "out of memory"

struct stats_part *stats_part_open(const struct stats_settings *settings)
{
    struct stats_part *part = calloc(1, sizeof *part);
    if (!part)
        return NULL;
    part->settings = settings;
    if (settings->has_targets) {
        part->pointers = calloc((size_t)settings->targets.n_refs + 1, sizeof *part->pointers);
        if (!part->pointers) {
            stats_part_close(part);
            return NULL;
        }
        memcpy(part->pointers, settings->targets.starts, (size_t)settings->targets.n_refs * sizeof *part->pointers);
    }
    return part;
}

void stats_part_close(struct stats_part *part)
{
    if (!part)
        return;
    stats_log_free(&part->log);
    stats_range_close(part->cover.range);
    stats_barcode_order_free(&part->barcodes);
    stats_whole_close(part->whole);
    if (part->sequence)
        stats_fasta_release(part->settings->fasta, part->sequence);
    free(part->pointers);
    free(part);
}

/* `after` follows the name. Returns -1. */
static int fail(const struct stats_part *part, struct stats_fault *fault, const char *text, const char *name,
                const char *after)
{
    if (!*fault->text) {
        fault->record = part->n_before + part->n_records - 1;
        snprintf(fault->text, sizeof fault->text, "%s%s%s", text, name, after);
    }
    return -1;
}

int stats_part_refuse(struct stats_part *part, const char *text, const char *name, const char *after)
{
    part->n_records++;
    return fail(part, &part->fault, text, name, after);
}

void stats_part_follow(struct stats_part *part, const struct stats_part *other)
{
    part->n_before = other->n_before;
    part->n_records = other->n_records;
}

/* ---- which records count ---- */

enum filtered { FILTER_FAULT = -1, FILTER_DROPS, FILTER_TAKES };

static bool is_of_group(const struct stats_settings *settings, const struct stats_view *v)
{
    int bad;
    const uint8_t *rg = bam_record_aux_find(v->tags, bam_record_end(v->record), "RG", &bad);
    if (!rg || !bam_record_aux_is_text(rg))
        return false;
    for (const char *group = (const char *)settings->groups.p; *group; group += strlen(group) + 1)
        if (strcmp(group, (const char *)rg + 1) == 0)
            return true;
    return false;
}

/* *region gets the number of the first region that the record meets. */
static enum filtered filter_regions(struct stats_part *part, const struct stats_view *v, size_t *region)
{
    const struct stats_regions *list = &part->settings->targets;
    if (v->ref < 0 || v->ref >= list->n_refs)
        return FILTER_DROPS;
    if (part->log.unsorted && v->ref < list->bound) {
        fail(part, &part->fault, "the file must be sorted by position for -t: a record before this one was not", "",
             "");
        return FILTER_FAULT;
    }
    bool in_order = stats_settings_in_sequence(part->settings);
    size_t from = in_order ? part->pointers[v->ref] : list->starts[v->ref], next;
    *region = stats_region_met(list, v, from, &next);
    if (in_order)
        part->pointers[v->ref] = next;
    return *region == SIZE_MAX ? FILTER_DROPS : FILTER_TAKES;
}

static enum filtered filter(struct stats_part *part, struct stats_sums *sums, const struct stats_view *v,
                            size_t *region)
{
    const struct stats_settings *settings = part->settings;
    if (settings->has_targets) {
        enum filtered result = filter_regions(part, v, region);
        if (result != FILTER_TAKES)
            return result;
    }
    if (settings->id && !is_of_group(settings, v))
        return FILTER_DROPS;
    if ((v->flag & settings->required) != settings->required || (v->flag & settings->filtered)) {
        sums->counts.filtered++;
        return FILTER_DROPS;
    }
    return settings->read_length == -1 || (int64_t)v->length == settings->read_length ? FILTER_TAKES : FILTER_DROPS;
}

/* ---- what depends on the order ---- */

static int log_blocks(struct stats_part *part, const struct stats_view *v, size_t region)
{
    int64_t place = v->pos;
    bool cuts = part->settings->has_targets;
    for (uint32_t i = 0; i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i), type = bam_cigar_op(op), n = bam_cigar_oplen(op);
        if ((type == BAM_CMATCH || type == BAM_CEQUAL || type == BAM_CDIFF) && n > 0) {
            int result = cuts ? stats_region_log(&part->log, &part->settings->targets, region, v->ref, place, place + n)
                              : stats_log_block(&part->log, place, place + n);
            if (result < 0)
                return -1;
        }
        if (bam_cigar_type(type) & 2)
            place += n;
    }
    return 0;
}

static uint32_t span_of(const struct stats_view *v)
{
    uint32_t sum = v->length;
    for (uint32_t i = 0; i < v->n_cigar; i++) {
        uint32_t op = stats_view_op(v, i);
        if (bam_cigar_op(op) == BAM_CDEL)
            sum += bam_cigar_oplen(op);
    }
    return sum;
}

static int log_mate(struct stats_part *part, const struct stats_view *v)
{
    int64_t tlen = (int32_t)load_le32(v->record->tlen);
    bool takes_part = (v->flag & BAM_FPAIRED) && !(v->flag & BAM_FMUNMAP) && v->end != STATS_OTHER
                   && (tlen < 0 ? -tlen : tlen) < 2 * (int64_t)v->length;
    return stats_log_mate(&part->log, bam_record_name(v->record), v->record->name_len,
                          takes_part ? (uint32_t)v->end : STATS_ALONE);
}

/* With -r: takes the sequence of the record's reference, and logs the mismatches of the record. Returns -1 if out of
 * memory. */
static int log_reference(struct stats_part *part, const struct stats_view *v)
{
    const struct stats_settings *settings = part->settings;
    if (!part->sequence || part->sequence->ref != v->ref) {
        stats_fasta_release(settings->fasta, part->sequence);
        const char *name = v->ref < 0 ? NULL : sam_hdr_tid2name(settings->sam, v->ref);
        part->sequence = name ? stats_fasta_take(settings->fasta, v->ref, name) : NULL;
        if (!part->sequence) {
            fail(part, &part->sorted_fault, "the FASTA file of -r has no sequence \"", name ? name : "*", "\"");
            return 0;
        }
    }
    switch (stats_mismatch_log(&part->log, v, part->sequence)) {
    case STATS_MISMATCH_NO_MEMORY:
        return -1;
    case STATS_MISMATCH_BEYOND:
        fail(part, &part->sorted_fault, "the record reaches beyond the end of the sequence \"",
             sam_hdr_tid2name(settings->sam, v->ref), "\" of -r");
        break;
    case STATS_MISMATCH_OK:
        break;
    }
    return 0;
}

/* Counts the coverage of the logged record, unless it depends on earlier records: those in the table of -p. Returns -1
 * if out of memory. */
static int cover(struct stats_part *part, const struct stats_view *v)
{
    const struct stats_settings *settings = part->settings;
    const struct stats_log *log = &part->log;
    size_t n = log->entries[log->n_entries - 1].n_blocks;
    if (settings->overlaps || stats_settings_in_sequence(settings) || !stats_range_takes(&settings->bins))
        return 0;
    if (!part->cover.range && !(part->cover.range = stats_range_open(&settings->bins, STATS_RING_SIZE)))
        return -1;
    return stats_range_add(part->cover.range, v->ref, v->pos, n > 0 ? log->blocks + log->n_blocks - n : NULL, n);
}

static int log_record(struct stats_part *part, const struct stats_view *v, uint32_t gc, size_t region)
{
    const struct stats_settings *settings = part->settings;
    stats_log_order(&part->log, v->ref, v->pos);
    if (part->log.unsorted)
        return 0;
    if (stats_log_record(&part->log, v->ref, v->pos, settings->fasta ? span_of(v) : 0, (float)gc / (float)v->length) < 0
        || (settings->fasta && log_reference(part, v) < 0)
        || (settings->overlaps && log_mate(part, v) < 0))
        return -1;
    return log_blocks(part, v, region) < 0 ? -1 : cover(part, v);
}

int stats_part_add(struct stats_part *part, struct stats_sums *sums, const uint8_t *record)
{
    if (*part->fault.text)
        return -1;
    struct stats_view v;
    stats_view_set(&v, record);
    part->n_records++;
    size_t region = 0;
    enum filtered taken = filter(part, sums, &v, &region);
    if (taken != FILTER_TAKES)
        return taken == FILTER_DROPS ? 0 : -1;
    uint32_t gc;
    enum stats_way way = stats_sums_add(sums, &part->barcodes, part->settings, &v, &gc);
    if (way == STATS_NO_MEMORY)
        return fail(part, &part->fault, OUT_OF_MEMORY, "", "");
    if (way != STATS_ENDS_HERE && stats_log_length(&part->log, v.whole) < 0)
        return fail(part, &part->fault, OUT_OF_MEMORY, "", "");
    if (way != STATS_IS_MAPPED)
        return 0;
    if (v.n_cigar == 0)
        return fail(part, &part->fault, "the record is mapped and has no CIGAR", "", "");
    if (part->settings->has_targets)
        sums->counts.cigar_bases += stats_region_bases(&part->settings->targets.each[region], &v);
    if (log_record(part, &v, gc, region) < 0)
        return fail(part, &part->fault, OUT_OF_MEMORY, "", "");
    if (part->log.n_entries >= (part->table ? 1 : SETTLE_ENTRIES) && stats_settings_in_sequence(part->settings)
        && stats_part_settle(part) < 0)
        return fail(part, &part->fault, OUT_OF_MEMORY, "", "");
    return 0;
}

/* ---- joining ---- */

/* Returns the first fault of the range that counts if the range follows `whole`, or NULL if there is none. */
static const struct stats_fault *first_fault(const struct stats_part *part, const struct stats_whole *whole)
{
    if (*part->sorted_fault.text && (!whole || stats_whole_goes_on(whole, &part->log)))
        return &part->sorted_fault;
    return *part->fault.text ? &part->fault : NULL;
}

const struct stats_fault *stats_part_fault(const struct stats_part *part)
{
    return first_fault(part, part->whole);
}

/* Takes the range of `part` into `whole`, which may belong to `part`. Returns -1 if out of memory. */
static int take(struct stats_whole *whole, struct stats_part *part)
{
    int result = stats_whole_take(whole, &part->log, &part->cover);
    if (part->cover.range)
        stats_range_leave(part->cover.range, whole->ring.size);
    return result;
}

static void clear(struct stats_part *part)
{
    stats_log_clear(&part->log);
    stats_barcode_order_clear(&part->barcodes);
    part->cover = (struct stats_cover){.range = part->cover.range};
    part->n_records = 0;
    *part->fault.text = *part->sorted_fault.text = 0;
}

int stats_part_settle(struct stats_part *part)
{
    if (!part->whole && !(part->whole = stats_whole_open(part->settings, part->table)))
        return -1;
    struct stats_log *log = &part->log;
    if (stats_part_fault(part) || take(part->whole, part) < 0)
        return stats_part_fault(part) ? 0 : -1;
    part->n_before += part->n_records;
    part->n_records = 0;
    *part->sorted_fault.text = 0;
    bool any = log->any && stats_settings_in_sequence(part->settings), unsorted = log->unsorted;
    stats_log_clear(log);
    if (any) {                   /* the next records have to be in order after these */
        log->any = true;
        log->unsorted = unsorted;
        log->first_ref = log->last_ref;
        log->first_pos = log->last_pos;
    }
    return 0;
}

static uint32_t longer(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

bool stats_part_pair(struct stats_part *left, const struct stats_part *last, struct stats_part *right)
{
    struct stats_cover *to = &left->cover, *from = &right->cover;
    if (!to->range || !from->range || !stats_log_goes_on(&last->log, &right->log)
        || !stats_range_pair(to->range, from->range))
        return false;
    to->n_more += 1 + from->n_more;
    to->longest = longer(to->longest, longer(from->longest, right->log.longest));
    *from = (struct stats_cover){.range = from->range, .is_before = true};
    return true;
}

int stats_part_join(struct stats_part *left, struct stats_part *right)
{
    int result = left->n_records > 0 || !left->whole ? stats_part_settle(left) : 0;
    if (result == 0 && !stats_part_fault(left)) {
        const struct stats_fault *fault = first_fault(right, left->whole);
        if (fault) {
            left->fault = *fault;
            left->fault.record += left->n_before;
        } else {
            result = take(left->whole, right);
            if (result == 0)
                result = stats_barcode_order_join(&left->barcodes, &right->barcodes);
            left->n_before += right->n_records;
        }
    }
    clear(right);
    return result;
}
