/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: what deflate_lanes.c works on. */
#ifndef DEFLATE_TABLES_H
#define DEFLATE_TABLES_H

#include <stdint.h>

enum {
    LANES = 16,                   /* positions whose costs one vector of 16-bit numbers holds */
    /* A lane begins so many positions behind its end. There its costs are still those of no match, which is wrong; at
     * its end they are right to 0.1 % of the size. */
    LANE_WARM = 32,
    LANE_CHUNK = 32,              /* positions of a lane after which its costs are counted from a new zero */
    /* Bytes parsed at once: their prices come from what was counted before. */
    LANES_PART = 20 * 1024,
    LANE_STEPS = LANES_PART / LANES + LANE_CHUNK,        /* of a lane at most, without LANE_WARM */
    LANE_ROOM = LANES * (LANE_STEPS + LANE_WARM) + 64,

    SPAN = 64,                    /* positions are probed at once */
    LEAST_GAP = SPAN,             /* positions inside of a match are passed if they are so many */

    BITS_OF_4 = 15, BITS_OF_7 = 14,                /* 64 and 32 KiB */
    ALL_SEEN = 16,                /* lengths below are told from each other; those from here on are one */

    PRICE = 4,                    /* of one bit: prices are quarters of a bit */
    PRICE_MAX = 13 * PRICE,       /* of a symbol */
};

/* The prices of symbols, by their counts so far. */
struct lane_prices {
    uint8_t literal[16];          /* by the higher half of the byte */
    uint8_t distance[16];         /* by log2_floor() of the distance, with its extra bits */
    uint8_t longer[16];           /* of ALL_SEEN bytes and more, by length / 16 */
    /* The prices of 4 to 15 bytes, and of ALL_SEEN without what `longer` adds: price << 4 | length - 3. So the
     * cheapest says which it is. */
    uint16_t length[ALL_SEEN + 1];
};

/* Positions inside of a long match that are passed: n from x on. The match's last position is behind them, and has this
 * place in the part. */
struct gap {
    uint16_t place, x, n, dist;
};

struct lanes {
    /* The last position with the same first bytes, by their hash. */
    uint16_t of_4[1 << BITS_OF_4], of_7[1 << BITS_OF_7];
    /* For each place of a part, a position that is not passed: how many bytes of the match agree, and how far back it
     * is; then the length to take, as `length` above has it, 0: a literal. */
    uint8_t len[LANE_ROOM], chosen[LANE_ROOM];
    uint16_t found[LANE_ROOM];
    uint8_t bytes[1 + LANE_ROOM]; /* of a part's places, and the byte before them */
    uint32_t n_gaps;
    struct gap gap[LANES_PART / LEAST_GAP];
    uint16_t gaps[LANE_STEPS + LANE_WARM];         /* by step, bit k: the place of lane k is behind a gap */
    /* By step * LANES + lane: the distance to take, and what the position costs to the end of its lane, less
     * zero[step / LANE_CHUNK]. */
    uint16_t taken[LANE_ROOM], cost[LANE_ROOM];
    int32_t zero[LANE_STEPS / LANE_CHUNK + 2][LANES];
    struct lane_prices price;
    /* Counts of the block up to here. */
    uint32_t literals[256], lengths[32], distances[16];
};

#endif
