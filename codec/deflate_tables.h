/* SPDX-License-Identifier: MIT */
/* Inside the encoder, default level: the data that deflate_lanes.c works on. */
#ifndef DEFLATE_TABLES_H
#define DEFLATE_TABLES_H

#include <stdint.h>

enum {
    LANES = 16,                   /* positions whose costs one vector of 16-bit numbers holds */
    /* A lane begins this many positions after its end. There its costs are wrong, since no match is known yet; at its
     * end they are right to 0.1 % of the size. */
    LANE_WARM = 32,
    LANE_CHUNK = 32,              /* positions of a lane after which its costs are counted from a new zero */
    /* Bytes that are parsed at once. Their prices come from the counts before. */
    LANES_PART = 20 * 1024,
    LANE_STEPS = LANES_PART / LANES + LANE_CHUNK,        /* steps of a lane without LANE_WARM, at most */
    LANE_ROOM = LANES * (LANE_STEPS + LANE_WARM) + 64,

    LANE_COSTS = 256,             /* steps whose costs are kept: no match that is found ends further away */

    SPAN = 64,                    /* positions that are probed at once */
    LEAST_GAP = SPAN,             /* positions inside a match are passed if there are at least this many */

    BITS_OF_4 = 15, BITS_OF_10 = 14,                /* 64 and 32 KiB */
    ALL_SEEN = 16,                /* shorter lengths are distinguished; this and longer ones are not */

    PRICE = 4,                    /* price of one bit: prices are quarters of a bit */
    PRICE_MAX = 13 * PRICE,       /* largest price of a symbol */
};

/* The prices of symbols, by their counts so far. */
struct lane_prices {
    uint8_t literal[16];          /* by the higher half of the byte */
    uint8_t distance[16];         /* by log2_floor() of the distance, with its extra bits */
    uint8_t longer[16];           /* price of ALL_SEEN bytes and more, by length / 16 */
    /* The prices of lengths 4 to 15, and of ALL_SEEN without the price in `longer`: price << 4 | length - 3. So the
     * least of them states its length. */
    uint16_t length[ALL_SEEN + 1];
};

/* Positions inside a long match that are passed: n from x on. The match's last position comes after them, and has this
 * place in the part. */
struct gap {
    uint16_t place, x, n, dist;
};

struct lanes {
    /* The last position with the same first four and ten bytes, by the hash of these. */
    uint16_t of_4[1 << BITS_OF_4], of_10[1 << BITS_OF_10];
    /* For each place of a part, which is a position that is not passed: the match's length in len, its distance in
     * found, and in chosen the length to take, as `length` above has it; 0: a literal. */
    uint8_t len[LANE_ROOM], chosen[LANE_ROOM];
    uint16_t found[LANE_ROOM];
    uint8_t bytes[1 + LANE_ROOM]; /* the byte before a part's places, then theirs */
    uint32_t n_gaps;
    struct gap gap[LANES_PART / LEAST_GAP];
    uint16_t gaps[LANE_STEPS + LANE_WARM];         /* by step; bit k: lane k's place comes after a gap */
    uint16_t taken[LANE_ROOM];    /* by step * LANES + lane: the distance to take */
    /* The cost from the position to the end of its lane, minus zero[step / LANE_CHUNK]; of the last steps. */
    uint16_t cost[LANE_COSTS][LANES];
    int32_t zero[LANE_STEPS / LANE_CHUNK + 2][LANES];
    struct lane_prices price;
    /* The counts of the block so far. */
    uint32_t literals[256], lengths[32], distances[16];
};

#endif
