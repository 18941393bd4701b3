/* SPDX-License-Identifier: MIT */
/* The tags that `stats` looks at, found in one walk. */
#ifndef STATS_TAGS_H
#define STATS_TAGS_H

#include <stdint.h>
#include "bam/bam_record.h"
#include "stats/stats_barcodes.h"

struct stats_tags {
    const uint8_t *nm;           /* the type byte of NM; NULL: there is no such tag */
    const uint8_t *barcodes[BARCODE_TAGS][2];    /* barcodes and their qualities: texts that are not empty */
};

/* Finds the first tag of each name from p on. */
void stats_tags_find(struct stats_tags *tags, const uint8_t *p, const uint8_t *end);

#endif
