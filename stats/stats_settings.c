/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/ref_regions.h"
#include "base/latch.h"
#include "stats/stats_fasta.h"
#include "stats/stats_settings.h"

struct stats_settings stats_settings_default(void)
{
    return (struct stats_settings){.read_length = -1, .max_insert = 8000, .most_inserts = 0.99F, .depth_min = 1,
                                   .depth_max = 1000, .depth_step = 1, .gc_bin = 20000};
}

static int add_group(struct stats_settings *s, const char *id)
{
    return byte_buffer_append(&s->groups, id, strlen(id) + 1);
}

/* Finds the read groups whose ID or SM is the argument of -I. */
static int find_groups(struct stats_settings *s)
{
    kstring_t id = {0}, sample = {0};
    int result = 0, n = sam_hdr_count_lines(s->sam, "RG");
    for (int i = 0; i < n && result == 0; i++) {
        if (sam_hdr_find_tag_pos(s->sam, "RG", i, "ID", &id) < 0)
            continue;
        bool takes = strcmp(ks_str(&id), s->id) == 0
                  || (sam_hdr_find_tag_pos(s->sam, "RG", i, "SM", &sample) == 0 && strcmp(ks_str(&sample), s->id) == 0);
        if (takes && *ks_str(&id))
            result = add_group(s, ks_str(&id));
    }
    ks_free(&id);
    ks_free(&sample);
    return result < 0 ? -1 : add_group(s, "");
}

/* Makes the settings for one value. As in samtools, -I, REGIONs and --ref-stats apply only to all records. */
static int set_value(struct stats_settings *s)
{
    if (!(s->value = malloc(sizeof *s->value)))
        return -1;
    *s->value = *s;
    s->value->id = NULL;
    s->value->ref_stats = false;
    if (!s->targets_path) {
        s->value->targets = (struct stats_regions){0};
        s->value->has_targets = false;
    }
    return 0;
}

/* Finds the regions in which stats counts. */
static int find_targets(struct stats_settings *s, sam_hdr_t *sam, const struct ref_regions *regions,
                        struct latch *latch)
{
    if (s->targets_path && stats_regions_read(&s->targets, s->targets_path, sam, latch) < 0)
        return -1;
    for (size_t i = 0; regions && !s->targets_path && i < regions->n; i++) {
        const struct region *r = &regions->each[i];
        if (stats_regions_add(&s->targets, r->ref, r->begin + 1, r->end) < 0)
            return latch_fail(latch, "out of memory");
    }
    s->has_targets = s->targets.n > 0;
    return s->has_targets && stats_regions_close(&s->targets, sam, s->targets_path ? 1 : 0) < 0
         ? latch_fail(latch, "out of memory") : 0;
}

int stats_settings_begin(struct stats_settings *s, sam_hdr_t *sam, const struct ref_regions *regions,
                         struct latch *latch)
{
    s->sam = sam;
    if (stats_depth_bins_set(&s->bins, s->depth_min, s->depth_max, s->depth_step) < 0)
        return latch_fail(latch, "-c %d,%d,%d: out of memory", s->depth_min, s->depth_max, s->depth_step);
    if (s->id && find_groups(s) < 0)
        return latch_fail(latch, "out of memory");
    if (find_targets(s, sam, regions, latch) < 0)
        return -1;
    if (s->fasta_path && !(s->fasta = stats_fasta_open(s->fasta_path, latch)))
        return -1;
    return s->split_tag && set_value(s) < 0 ? latch_fail(latch, "out of memory") : 0;
}

bool stats_settings_in_sequence(const struct stats_settings *s)
{
    return (s->targets_path && !s->sorted) || (s->split_tag && s->overlaps);
}

void stats_settings_free(struct stats_settings *s)
{
    free(s->value);
    free(s->command_line);
    free(s->groups.p);
    stats_regions_free(&s->targets);
    stats_fasta_close(s->fasta);
    *s = (struct stats_settings){0};
}
