/* SPDX-License-Identifier: MIT */
#include "order/bam_key.h"
#include "order/sort_key.h"

int bam_key_compare_records(const struct bam_key_order *order, const struct bam_key *a, const struct bam_key *b)
{
    return sort_key_compare(order->rule,
                            (const struct bam_record *)bam_key_record(order->base, *a),
                            (const struct bam_record *)bam_key_record(order->base, *b));
}
