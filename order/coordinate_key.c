/* SPDX-License-Identifier: MIT */
#include "order/coordinate_key.h"
#include "order/key_room.h"

/* Compares references and positions as unsigned numbers, as samtools does. So "none" (-1) comes last, and so do values
 * below -1 in a broken file. */
int coordinate_key_compare(const struct bam_record *a, const struct bam_record *b)
{
    int order = key_compare(load_le32(a->ref_id), load_le32(b->ref_id));
    if (!order)
        order = key_compare((uint64_t)long_pos(a) + 1, (uint64_t)long_pos(b) + 1);
    return order ? order : key_compare(bam_record_flag(a) & FLAG_REVERSE, bam_record_flag(b) & FLAG_REVERSE);
}
