/* SPDX-License-Identifier: MIT */
/* Distributes the records of all ranks: each rank gets those that it writes. */
#ifndef RANK_EXCHANGE_H
#define RANK_EXCHANGE_H

struct rank_parts;

/* Every rank calls it when sort A has its records. It opens sort B, which reads the records that arrive. -1: failed,
 * and all ranks know. If parts->keeps, sort A still has the records that the rank keeps. */
int rank_exchange(struct rank_parts *parts);

#endif
