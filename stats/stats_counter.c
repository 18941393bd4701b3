/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "stats/stats_counter.h"
#include "stats/stats_memory.h"
#include "stats/stats_part.h"
#include "stats/stats_settings.h"
#include "stats/stats_split.h"
#include "stats/stats_text.h"

static int begin(void *settings, sam_hdr_t *sam, const struct ref_regions *regions, struct latch *latch)
{
    return stats_settings_begin(settings, sam, regions, latch);
}

static int join_sums(void *left, void *right)
{
    return stats_sums_join(left, right);
}

static void *open_part(const void *settings)
{
    return stats_part_open(settings);
}

static int join_parts(void *left, void *right)
{
    return stats_part_join(left, right);
}

static bool pair_parts(void *left, const void *last, void *right)
{
    return stats_part_pair(left, last, right);
}

static void close_part(void *part)
{
    stats_part_close(part);
}

static int add(void *sums, void *part, const uint8_t *record, uint32_t size)
{
    (void)size;
    return stats_part_add(part, sums, record);
}

static const char *fault(const void *part, uint64_t *record)
{
    const struct stats_fault *found = stats_part_fault(part);
    if (!found)
        return NULL;
    *record = found->record;
    return found->text;
}

static int print(void *sums, void *part, FILE *out, struct latch *latch)
{
    return stats_text_print(part, sums, NULL, out, latch);
}

static void numbers(const void *sums, struct counter_numbers *found)
{
    stats_text_numbers(sums, found);
}

static bool in_sequence(const void *settings)
{
    return stats_settings_in_sequence(settings);
}

static void end(void *settings)
{
    stats_settings_free(settings);
}

struct counter stats_counter(struct stats_settings *settings)
{
    struct counter all = {
        .command = "stats", .settings = settings, .begin = begin,
        .sums = {stats_sums_open, join_sums, stats_sums_close, stats_memory_sums},
        .part = {open_part, join_parts, close_part, stats_memory_part},
        .whole_memory = stats_memory_whole, .pair = pair_parts,
        .in_sequence = in_sequence, .add = add, .fault = fault, .print = print, .numbers = numbers, .end = end,
    };
    return settings->split_tag ? stats_split_counter(all) : all;
}
