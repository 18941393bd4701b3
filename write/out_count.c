/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "hts/cram_count.h"
#include "base/latch.h"
#include "hts/cram_maps.h"
#include "write/out_count.h"

enum { MAPS_MAX = 32 << 10 };    /* bytes of a container that are checked; its maps usually take 1 or 2 KiB */

struct out_count {
    struct cram_count cram;
    bool maps_broken;            /* the maps of some container are broken */
    uint8_t maps[MAPS_MAX];      /* the first bytes of the current container */
};

struct out_count *out_count_new(void)
{
    struct out_count *c = calloc(1, sizeof *c);
    if (c)
        cram_count_start(&c->cram, false);
    return c;
}

void out_count_free(struct out_count *c)
{
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

void out_count_see(void *count, const uint8_t *bytes, size_t n)
{
    struct out_count *c = count;
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

int out_count_check(const struct out_count *c, uint64_t n, const char *path, struct latch *latch)
{
    if (c->maps_broken)
        return latch_fail(latch, "writing %s failed: htslib wrote a container that cannot be read", path);
    if (!cram_count_agrees(&c->cram, n))
        return latch_fail(latch, "writing %s failed: htslib wrote %llu records, not %llu", path,
                          (unsigned long long)c->cram.records, (unsigned long long)n);
    return 0;
}
