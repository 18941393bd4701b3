/* SPDX-License-Identifier: MIT */
#include "stats/stats_tags.h"

#define TAG(a, b) ((a) | (b) << 8)

/* Returns the place for the tag of this name, or NULL if it is not one of these tags. */
static const uint8_t **slot_for(struct stats_tags *tags, unsigned name)
{
    switch (name) {
    case TAG('N', 'M'): return &tags->nm;
    case TAG('B', 'C'): return &tags->barcodes[0][0];
    case TAG('Q', 'T'): return &tags->barcodes[0][1];
    case TAG('C', 'R'): return &tags->barcodes[1][0];
    case TAG('C', 'Y'): return &tags->barcodes[1][1];
    case TAG('O', 'X'): return &tags->barcodes[2][0];
    case TAG('B', 'Z'): return &tags->barcodes[2][1];
    case TAG('R', 'X'): return &tags->barcodes[3][0];
    case TAG('Q', 'X'): return &tags->barcodes[3][1];
    default: return NULL;
    }
}

void stats_tags_find(struct stats_tags *tags, const uint8_t *p, const uint8_t *end)
{
    *tags = (struct stats_tags){0};
    for (const uint8_t *next; end - p >= 3 && (next = bam_record_aux_next(p, end)); p = next) {
        const uint8_t **place = slot_for(tags, load_le16(p));
        if (place && !*place)
            *place = p + 2;
    }
}
