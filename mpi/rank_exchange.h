/* SPDX-License-Identifier: MIT */
/* Deals the records of all ranks out: each gets those that it writes. */
#ifndef RANK_EXCHANGE_H
#define RANK_EXCHANGE_H

struct rank_parts;

/* Every rank calls it when sort A has its records. Opens sort B, and has it read what comes. -1: failed, and all know.
 * If parts->keeps, the records that the rank keeps are still sort A's. */
int rank_exchange(struct rank_parts *parts);

#endif
