/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "base/message.h"
#include "stats/stats_targets.h"

int stats_regions_add(struct stats_regions *list, int32_t ref, int64_t first, int64_t last)
{
    void *grown = byte_buffer_grow(list->each, list->n, &list->room, sizeof *list->each);
    if (!grown)
        return -1;
    list->each = grown;
    list->each[list->n++] = (struct stats_region){ref, first, last};
    return 0;
}

static int compare_regions(const void *a, const void *b)
{
    const struct stats_region *x = a, *y = b;
    if (x->ref != y->ref)
        return x->ref < y->ref ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->last > y->last) - (x->last < y->last);
}

/* Joins regions of the sorted list that share at least `shared` bases. */
static void unite(struct stats_regions *list, int shared)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct stats_region *last = kept ? &list->each[kept - 1] : NULL, *next = &list->each[i];
        if (!last || last->ref != next->ref || next->first + shared > last->last + 1)
            list->each[kept++] = *next;
        else if (next->last > last->last)
            last->last = next->last;
    }
    list->n = kept;
}

int stats_regions_close(struct stats_regions *list, sam_hdr_t *sam, int shared)
{
    int32_t n_refs = sam_hdr_nref(sam);
    list->n_refs = n_refs;
    list->starts = calloc((size_t)n_refs + 1, sizeof *list->starts);
    if (!list->starts)
        return -1;
    if (list->n > 0)
        qsort(list->each, list->n, sizeof *list->each, compare_regions);
    unite(list, shared);
    size_t i = 0;
    for (int32_t ref = 0; ref <= n_refs; ref++) {
        while (i < list->n && list->each[i].ref < ref)
            i++;
        list->starts[ref] = i;
    }
    return 0;
}

/* Reads one line of the file and cuts it up. Returns -1 if it cannot be read; the error is recorded in the latch. */
static int read_line(struct stats_regions *list, char *line, const char *path, uint64_t number, sam_hdr_t *sam,
                     bool *warned, struct latch *latch)
{
    char *name_end = line;
    while (*name_end && !isspace((unsigned char)*name_end))
        name_end++;
    if (!*name_end)
        return latch_fail(latch, "%s: line %" PRIu64 " has no blank after the name. A line is a name, the first and "
                          "the last base", path, number);
    *name_end = 0;
    int32_t ref = sam_hdr_name2tid(sam, line);
    if (ref < 0) {
        if (!*warned)
            message_warning("%s: no @SQ line has the name %s. Other names may be missing, too", path, line);
        *warned = true;
        return 0;
    }
    int64_t first, last;
    if (sscanf(name_end + 1, "%" SCNd64 " %" SCNd64, &first, &last) != 2)
        return latch_fail(latch, "%s: line %" PRIu64 " does not name the first and the last base", path, number);
    if (ref >= list->bound)
        list->bound = ref + 100;         /* samtools makes room for this many references at once */
    return stats_regions_add(list, ref, first, last) < 0 ? latch_fail(latch, "%s: out of memory", path) : 0;
}

/* Refuses a line that begins before the first line of its run of lines with the same name, as samtools does. */
static int check_run(const struct stats_regions *list, size_t before, size_t *run, const char *path, uint64_t number,
                     struct latch *latch)
{
    if (list->n == before)
        return 0;
    const struct stats_region *last = &list->each[list->n - 1];
    if (before == 0 || list->each[before - 1].ref != last->ref)
        *run = before;
    if (last->first < list->each[*run].first)
        return latch_fail(latch, "%s: line %" PRIu64 " begins before the lines above it. Sort the file", path, number);
    return 0;
}

int stats_regions_read(struct stats_regions *list, const char *path, sam_hdr_t *sam, struct latch *latch)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return latch_fail(latch, "%s: cannot open: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0, run = 0;
    uint64_t number = 0;
    bool warned = false;
    int result = 0;
    ssize_t n;
    while (result == 0 && (n = getline(&line, &room, file)) >= 0) {
        if (n > 0 && line[n - 1] == '\n')
            line[n - 1] = 0;
        size_t before = list->n;
        number++;
        if (line[0] == '#')
            continue;
        result = read_line(list, line, path, number, sam, &warned, latch);
        if (result == 0)
            result = check_run(list, before, &run, path, number, latch);
    }
    if (result == 0 && ferror(file))
        result = latch_fail(latch, "%s: cannot read: %s", path, strerror(errno));
    else if (result == 0 && list->n == 0)
        result = latch_fail(latch, "%s: no line names a reference of the header", path);
    free(line);
    fclose(file);
    return result;
}

int64_t stats_region_end(const struct stats_region *region, sam_hdr_t *sam)
{
    return region->last == HTS_POS_MAX ? sam_hdr_tid2len(sam, region->ref) : region->last;
}

uint64_t stats_regions_bases(const struct stats_regions *list, sam_hdr_t *sam)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < list->n; i++)
        sum += (uint64_t)(stats_region_end(&list->each[i], sam) - list->each[i].first + 1);
    return sum;
}

size_t stats_regions_find(const struct stats_regions *list, int32_t ref, size_t from, int64_t pos)
{
    size_t low = from, high = list->starts[ref + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->each[middle].last > pos)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void stats_regions_free(struct stats_regions *list)
{
    free(list->each);
    free(list->starts);
    *list = (struct stats_regions){0};
}
