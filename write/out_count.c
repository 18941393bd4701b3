/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "bam/cram_count.h"
#include "write/cram_maps.h"
#include "base/latch.h"
#include "write/out_count.h"
#include "write/sam_count.h"

enum { MAPS_MAX = 32 << 10 };    /* bytes of a container that are checked; its maps take about 1 or 2 KiB */

struct out_count {
    enum htsExactFormat format;
    struct cram_count cram;      /* this and the next two: for CRAM only */
    bool maps_broken;            /* of some container */
    uint8_t maps[MAPS_MAX];      /* the first bytes of the container that is passing */
    struct sam_count sam;        /* for SAM only */
};

struct out_count *out_count_new(const htsFormat *format)
{
    struct out_count *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->format = format->format;
    cram_count_start(&c->cram);
    if (format->format != sam || sam_count_start(&c->sam, format->compression != no_compression) == 0)
        return c;
    free(c);
    return NULL;
}

void out_count_free(struct out_count *c)
{
    if (!c)
        return;
    sam_count_free(&c->sam);
    free(c);
}

/* Takes the next n bytes of a container. */
static void see_maps(struct out_count *c, const uint8_t *bytes, size_t n)
{
    uint64_t at = c->cram.at - c->cram.inside;
    if (c->cram.inside == 0 || at >= MAPS_MAX)
        return;
    bool all = n == cram_count_rest(&c->cram) || n >= MAPS_MAX - at;
    n = n < MAPS_MAX - at ? n : MAPS_MAX - at;
    memcpy(c->maps + at, bytes, n);
    if (all && !cram_maps_whole(c->maps, at + n))
        c->maps_broken = true;
}

static void see_cram(struct out_count *c, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        uint64_t rest = cram_count_rest(&c->cram);
        size_t part = rest == 0 ? 1 : rest < n ? rest : n;
        if (rest > 0)
            see_maps(c, bytes, part);
        cram_count_feed(&c->cram, bytes, part);
        bytes += part;
        n -= part;
    }
}

void out_count_see(void *count, const uint8_t *bytes, size_t n)
{
    struct out_count *c = count;
    if (c->format == cram)
        see_cram(c, bytes, n);
    else if (c->format == sam)
        sam_count_feed(&c->sam, bytes, n);
}

static int lost(const char *what, uint64_t put, uint64_t came, const char *path, struct latch *latch)
{
    return latch_fail(latch, "writing %s failed: of %llu %s htslib wrote %llu", path, (unsigned long long)put, what,
                      (unsigned long long)came);
}

/* There may be more lines than records: an end of line inside a tag of BAM makes two lines
 * of one, as it does in samtools. */
int out_count_check(const struct out_count *c, sam_hdr_t *header, uint64_t n, const char *path, struct latch *latch)
{
    uint64_t lines = n + (c->format == sam ? sam_count_lines(sam_hdr_str(header), sam_hdr_length(header)) : 0);
    if (c->maps_broken)
        return latch_fail(latch, "writing %s failed: htslib wrote a container that cannot be read", path);
    if (c->format == cram && !cram_count_agrees(&c->cram, n))
        return lost("records", n, c->cram.records, path, latch);
    if (c->format == sam && !sam_count_agrees(&c->sam, lines))
        return lost("lines", lines, c->sam.lines, path, latch);
    return 0;
}
