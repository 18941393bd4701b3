/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/bgzf.h>
#include <htslib/hts_log.h>
#include <htslib/kstring.h>
#include "bam/plain_header.h"
#include "base/latch.h"
#include "base/message.h"
#include "merge/merge_opts.h"
#include "merge/merge_regions.h"
#include "read/input.h"

bool merge_regions_wanted(const struct merge_opts *opts)
{
    return opts->region || opts->bed;
}

/* -------------------------------------------------------------------- -R */

static int parse_region(struct merge_regions *r, const char *text, const sam_hdr_t *joined)
{
    int ref = -1, level = hts_verbose;
    hts_pos_t begin, end;
    sam_hdr_t *copy = sam_hdr_dup(joined);       /* htslib parses this copy; `joined` stays plain (plain_header.h) */
    hts_verbose = HTS_LOG_OFF;
    const char *after = copy ? sam_parse_region(copy, text, &ref, &begin, &end, 0) : NULL;
    hts_verbose = level;
    sam_hdr_destroy(copy);
    if (!copy)
        return latch_fail(r->latch, "out of memory");
    if (!after || ref < 0)
        return latch_fail(r->latch, "-R %s: there is no such region, or no reference of that name. Nothing was written",
                          text);
    r->of_output = true;
    struct region region = {ref, begin, end};
    return ref_regions_add(&r->list, &region) < 0 ? latch_fail(r->latch, "out of memory") : 0;
}

/* -------------------------------------------------------------------- -L */

static int bad_line(const struct merge_regions *r, const char *path, unsigned long long number)
{
    return latch_fail(r->latch, "-L %s: line %llu is not BED: it needs the name of a reference, and the start and end "
                                "of the region. Nothing was written", path, number);
}

/* Reads a number that samtools' scanf() would accept here. */
static bool scan_number(char **text, uint64_t *value)
{
    char *end;
    *value = strtoull(*text, &end, 10);
    bool found = end > *text;
    *text = end;
    return found;
}

static int add_bed_line(struct merge_regions *r, char *name, const char *path, unsigned long long number)
{
    uint64_t begin = 0, end = 0;
    while (isspace((unsigned char)*name))
        name++;
    size_t n = strcspn(name, " \t\n\v\f\r");
    if (n == 0 || *name == '#')
        return 0;
    char *rest = name + n;
    bool has_begin = scan_number(&rest, &begin), has_end = has_begin && scan_number(&rest, &end);
    if (has_begin && !has_end)                   /* as in VCF: one base, counted from 1 */
        end = begin--;
    if (!has_begin || end < begin) {
        bool for_browsers = (n == 7 && strncmp(name, "browser", n) == 0) || (n == 5 && strncmp(name, "track", n) == 0);
        return for_browsers ? 0 : bad_line(r, path, number);
    }
    int32_t ref = name_table_find(&r->names, name, n);
    if (ref < 0)
        ref = name_table_add(&r->names, name, n);
    struct region region = {ref, begin < HTS_POS_MAX ? (int64_t)begin : HTS_POS_MAX,
                            end < HTS_POS_MAX ? (int64_t)end : HTS_POS_MAX};
    return ref < 0 || ref_regions_add(&r->list, &region) < 0 ? latch_fail(r->latch, "-L %s: out of memory", path) : 0;
}

static int read_bed(struct merge_regions *r, const char *path)
{
    errno = 0;
    BGZF *file = bgzf_open(path, "r");
    kstring_t line = KS_INITIALIZE;
    unsigned long long number = 0;
    int found = file ? bgzf_getline(file, '\n', &line) : -2, status = 0;
    for (; status == 0 && found >= 0; found = bgzf_getline(file, '\n', &line))
        status = add_bed_line(r, line.s, path, ++number);
    if (status == 0 && found < -1)
        status = latch_fail(r->latch, "-L %s cannot be read%s%s. Nothing was written", path, errno ? ": " : "",
                            errno ? strerror(errno) : "");
    ks_free(&line);
    if (file)
        bgzf_close(file);
    if (status == 0 && r->list.n == 0)
        status = latch_fail(r->latch, "-L %s: there are no regions in it. Nothing was written", path);
    ref_regions_unite(&r->list);
    return status;
}

/* ------------------------------------------------------------- of an input */

/* Returns the last reference of the input that became reference `ref` of the output; -1: there is none. */
static int32_t of_output(const struct input *in, int32_t ref)
{
    const int32_t *ids = in->remap.ref_ids;
    int32_t found = -1;
    for (int32_t i = 0; i < sam_hdr_nref(in->header.sam); i++)
        found = (ids ? ids[i] : i) == ref ? i : found;
    return found;
}

enum { UNKNOWN = -2 };           /* a reference that the input does not have; differs from REGION_UNPLACED */

/* Fills refs with the references of the names. A plain header has no other names of references, and stays plain. */
static void find_names(const struct merge_regions *r, sam_hdr_t *sam, int32_t *refs)
{
    size_t n = name_table_count(&r->names);
    bool plain = plain_header_is(sam);
    for (size_t i = 0; i < n; i++) {
        const char *name = name_table_at(&r->names, i);
        int32_t found = plain ? UNKNOWN : sam_hdr_name2tid(sam, name);
        refs[i] = strcmp(name, "*") == 0 ? REGION_UNPLACED : found < 0 ? UNKNOWN : found;
    }
    for (int32_t i = 0; plain && i < sam_hdr_nref(sam); i++) {
        const char *name = sam_hdr_tid2name(sam, i);
        int32_t found = name_table_find(&r->names, name, strlen(name));
        if (found >= 0)
            refs[found] = i;
    }
}

static int add_regions(const struct merge_regions *r, const int32_t *refs, struct ref_regions *list)
{
    for (size_t i = 0; i < r->list.n; i++) {
        struct region region = r->list.each[i];
        region.ref = refs[region.ref];
        if (region.ref == UNKNOWN)
            continue;
        if ((region.ref == REGION_UNPLACED ? ref_regions_add_unplaced(list) : ref_regions_add(list, &region)) < 0)
            return -1;
    }
    ref_regions_unite(list);
    return 0;
}

/* Lists the regions on the input's references; warns of unknown names. -1: out of memory. */
static int list_named(const struct merge_regions *r, const struct input *in, struct ref_regions *list)
{
    size_t n = name_table_count(&r->names);
    int32_t *refs = malloc(n * sizeof *refs);
    if (!refs)
        return -1;
    find_names(r, in->header.sam, refs);
    for (size_t i = 0; i < n; i++)
        if (refs[i] == UNKNOWN)
            message_warning("%s has no reference %s, which -L names", in->name, name_table_at(&r->names, i));
    int status = add_regions(r, refs, list);
    free(refs);
    return status;
}

int merge_regions_choose(const struct merge_regions *r, struct input *in, const char *index)
{
    struct ref_regions list = {.n = 0};
    int status = 0;
    if (name_table_find(&r->names, ".", 1) >= 0)
        return 0;                                /* the full reference, because htslib has this name */
    if (r->of_output) {
        struct region region = r->list.each[0];
        region.ref = of_output(in, region.ref);
        status = region.ref < 0 ? 0 : ref_regions_add(&list, &region);
    } else {
        status = list_named(r, in, &list);
    }
    if (status < 0) {
        free(list.each);
        return latch_fail(r->latch, "%s: out of memory for its regions", in->name);
    }
    return input_choose(in, &list, index);
}

int merge_regions_open(struct merge_regions *r, const struct merge_opts *opts, const sam_hdr_t *joined,
                       struct latch *latch)
{
    r->latch = latch;
    return opts->region ? parse_region(r, opts->region, joined) : read_bed(r, opts->bed);
}

void merge_regions_close(struct merge_regions *r)
{
    name_table_free(&r->names);
    free(r->list.each);
}
