/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/latch.h"
#include "stats/stats_counter.h"
#include "stats/stats_part.h"
#include "stats/stats_settings.h"
#include "stats/stats_text.h"

static int begin(void *settings, sam_hdr_t *sam, struct latch *latch)
{
    return stats_settings_begin(settings, sam, latch);
}

static void *open_sums(const void *settings)
{
    (void)settings;
    return calloc(1, sizeof(struct stats_sums));
}

static int join_sums(void *left, void *right)
{
    return stats_sums_join(left, right);
}

static void close_sums(void *sums)
{
    if (sums)
        stats_sums_free(sums);
    free(sums);
}

/* Of reads up to a thousand bases. */
static size_t sums_memory(const void *settings, sam_hdr_t *sam)
{
    enum { TYPICAL = 4 << 20 };
    (void)settings;
    (void)sam;
    return TYPICAL;
}

static void *open_part(const void *settings)
{
    return stats_part_open(settings);
}

static int join_parts(void *left, void *right)
{
    return stats_part_join(left, right);
}

static void close_part(void *part)
{
    stats_part_close(part);
}

/* What 64 KiB of records may leave in a log, and the pointers into regions. */
static size_t part_memory(const void *settings, sam_hdr_t *sam)
{
    enum { TYPICAL = 256 << 10 };
    const struct stats_settings *s = settings;
    return TYPICAL + (s->targets_path ? (size_t)sam_hdr_nref(sam) * sizeof(size_t) : 0);
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

static int print(void *sums, void *part_, FILE *out, struct latch *latch)
{
    struct stats_part *part = part_;
    if (stats_part_settle(part) < 0)
        return latch_fail(latch, "out of memory");
    if (part->settings->sorted && part->settings->targets_path && part->whole->unsorted)
        return latch_fail(latch, "the records are not in order, as -t of stats needs them");
    if (stats_text_print(part->settings, sums, part->whole, &part->barcodes, out) < 0)
        return latch_fail(latch, "out of memory");
    return 0;
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
    return (struct counter){
        .command = "stats", .settings = settings, .begin = begin,
        .sums = {open_sums, join_sums, close_sums, sums_memory},
        .part = {open_part, join_parts, close_part, part_memory},
        .in_sequence = in_sequence, .add = add, .fault = fault, .print = print, .end = end,
    };
}
