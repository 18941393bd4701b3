/* SPDX-License-Identifier: MIT */
/* The bases of each cycle (GCC, GCT, FBC, LBC), of the reads of one end.
 *
 * BAM stores a base in four bits, one each for A, C, G and T. So the counters are bits, too: plane k has bit k of a
 * counter for each bit of SEQ. Reads first wait, and BASES_WAITING of them are added at once with the logic of a
 * carry-save adder, for 32 bases together. N and ambiguity codes have several bits or none. They are counted one by
 * one, and taken out of the bits before the read waits.
 *
 * A block is 16 bytes of SEQ. Forward reads are cut into blocks from the first byte on, reverse reads from the last
 * byte on, so that a bit of a block always belongs to the same cycle. For reverse reads that cycle also depends on
 * whether the length is odd, so there are three ways:
 *
 *     byte number          0     1     2    ..
 *     forward        cycles 0 1   2 3   4 5  ..
 *     reverse, even  cycles 1 0   3 2   5 4  ..   from the last byte on
 *     reverse, odd   cycles 0 -   2 1   4 3  ..   from the last byte on, which has one base
 */
#ifndef STATS_BASES_H
#define STATS_BASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stats_base { STATS_A, STATS_C, STATS_G, STATS_T, STATS_N, STATS_O, STATS_BASES };

enum {
    BASES_WAYS = 3,              /* forward, reverse of even length, reverse of odd length */
    BASES_BLOCK = 16,            /* bytes */
    BASES_WAITING = 16,
    BASES_PLANES = 48,           /* a counter never gets this many bits: that would take years */
};

typedef uint64_t bases_block __attribute__((vector_size(BASES_BLOCK)));

struct bases_waiting {
    uint32_t n;
    bases_block each[BASES_WAITING];
};

struct bases_planes {
    bases_block each[BASES_PLANES];
};

/* A zero-initialised struct is empty. */
struct stats_bases {
    size_t n_blocks;             /* the blocks of the longest read that there is room for */
    struct bases_waiting *waiting;       /* BASES_WAYS times n_blocks */
    struct bases_planes *planes;         /* BASES_WAYS times n_blocks */
    uint64_t (*others)[2];       /* for each cycle: N, and other bases */
    int n_planes;                /* planes from this one on are 0; stats_bases_close() sets it */
};

void stats_bases_free(struct stats_bases *c);

/* Counts a read of n bases. seq: as in a BAM record, so that there are bytes before it, and n qualities after it. *gc
 * gets the number of G and C. Returns -1 if out of memory. */
int stats_bases_add(struct stats_bases *c, bool is_reverse, const uint8_t *seq, uint32_t n, uint32_t *gc);

/* Adds the counts of `from`, which is empty afterwards. Returns -1 if out of memory. */
int stats_bases_join(struct stats_bases *c, struct stats_bases *from);

/* Call it before the next function. */
void stats_bases_close(struct stats_bases *c);

/* Adds the bases of a cycle to `seq` as SEQ has them, and to `read` as they were read (complemented if reverse; only
 * the first four). */
void stats_bases_cycle(const struct stats_bases *c, size_t cycle, uint64_t seq[STATS_BASES],
                       uint64_t read[STATS_BASES]);

/* Bytes of memory for reads of up to n bases. */
size_t stats_bases_memory(size_t n);

#endif
