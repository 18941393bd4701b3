/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: the fields before SEQ. Fixed fields and name are compared with the records
 * before, the mate, and records that have eight bytes in common at certain places. The end of the name (tile and
 * coordinates) and the CIGAR are matched lazily. */
#ifndef DEFLATE_HEADS_H
#define DEFLATE_HEADS_H

#include "codec/deflate_search.h"
#include "codec/deflate_records.h"

enum {
    /* doc/dev/tried.md has the costs of other numbers. */
    N_BEFORE = 22,                /* records that another one is compared with */
    PLACE_BITS = 11,
    NAME_TAIL = 28,               /* last bytes of a name that are matched lazily: tile and coordinates */
    N_FIXED_PLACES = 7,
    N_TILE_PLACES = 2,

    /* The places that a record's head is compared with: N_BEFORE records before, its mate, and records with the same
     * bytes at a place. */
    MATE = N_BEFORE,
    PLACES,
    N_HEADS = PLACES + N_FIXED_PLACES + N_TILE_PLACES,
};
_Static_assert((int)N_HEADS <= (int)MAX_DISTS, "which of them fits best_of()");

/* A place is eight bytes. fixed_places: bytes from the beginning of the record to the place (reference and position;
 * the mate's reference and position; size and reference; CIGAR operations to number of bases; name's length or MAPQ to
 * flag; template length and name). tile_places: bytes from the place to the tile; such a place ends with two or four
 * digits of the tile. The first two places share their slots, so mates at each other's place find each other. */
static const uint8_t fixed_places[N_FIXED_PLACES] = {4, 24, 0, 16, 12, 13, 32};
static const uint8_t tile_places[N_TILE_PLACES] = {8 - 2, 8 - 4};

struct heads {
    uint32_t record[N_BEFORE];                     /* where records begin, the last first */
    struct mates mates;
    uint16_t place[1 << PLACE_BITS];               /* by the hash of eight bytes at a place */
};

static const uint8_t colons[64] = {[0 ... 63] = ':'};

/* Returns the place after the third colon from the end of the name (run:flow cell:lane:tile:x:y), or where the name
 * begins. */
INLINE uint32_t find_tile(const struct parse *p, const struct fields *f, agree64_fn *agree)
{
    uint32_t name = f->at + BAM_FIXED, from = max_u32(name, max_u32(f->cigar, 64) - 64);
    if (from + 64 > p->n)
        return name;
    uint64_t found = agree(p->in + from, colons) & below(f->cigar - from);
    for (uint32_t k = 0; k < 2 && found; k++)
        found ^= 1ull << (63 - __builtin_clzll(found));
    return found ? from + 64 - (uint32_t)__builtin_clzll(found) : name;
}

/* Returns the distance to the last record with the same eight bytes at `at`, or 1 if there is none. Record f becomes
 * the last one. */
INLINE uint32_t place_distance(struct heads *h, const struct parse *p, const struct fields *f, uint32_t at)
{
    at = min_u32(at, p->n - 8);                    /* a last record may have no name */
    uint16_t *slot = &h->place[hash(load_le64(p->in + at), HASH_FACTOR(8), PLACE_BITS)];
    uint32_t dist = distance(at, *slot);
    *slot = (uint16_t)at;
    return dist <= f->at ? dist : 1;               /* a larger one would reach before the first record */
}

/* Returns where the lazy search of the name's end begins. */
INLINE uint32_t tail_of_head(const struct fields *f) { return max_u32(f->at + BAM_FIXED, f->cigar - NAME_TAIL); }

INLINE void match_head(struct deflate_parse *d, struct parse *p, struct heads *h, const struct fields *f,
                       agree64_fn *agree)
{
    uint32_t dist[N_HEADS];
    uint32_t tile = find_tile(p, f, agree), *place = dist + PLACES;
    uint16_t *mate = mate_slot(&h->mates, p, f);
    for (uint32_t k = 0; k < N_BEFORE; k++)
        dist[k] = distance(f->at, h->record[k]);
    dist[MATE] = distance(f->cigar, *mate);
    if (dist[MATE] > f->at)
        dist[MATE] = 1;
    for (uint32_t k = 0; k < N_FIXED_PLACES; k++)
        *place++ = place_distance(h, p, f, f->at + fixed_places[k]);
    for (uint32_t k = 0; k < N_TILE_PLACES; k++)
        *place++ = place_distance(h, p, f, tile - tile_places[k]);
    if (f->at > 0)
        match_at(d, p, f->at, tail_of_head(f), dist, N_HEADS, true, agree);
    *mate = (uint16_t)f->cigar;
    memmove(h->record + 1, h->record, sizeof h->record - sizeof *h->record);
    h->record[0] = f->at;
}

#endif
