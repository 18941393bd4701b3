/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "base/endian_io.h"
#include "order/collate_key.h"
#include "order/key_room.h"

/* The hash and the bin take 33 bits at most: 2^32 hashes, and less than one extra value for each bin. */
enum { PLACE_BITS = 33 };

struct collate_key collate_key_init(uint32_t n_bins)
{
    return (struct collate_key){.n_bins = n_bins, .per_bin = (((uint64_t)1 << 32) + n_bins - 1) / n_bins};
}

/* A byte as a signed number, modulo 2^32. */
static uint32_t signed_byte(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte < 0x80 ? byte : byte + UINT32_C(0xffffff00);
}

/* The hash of a name. Bytes of 0x80 and above are negative numbers, as in samtools on x86. */
static uint32_t name_hash(const char *name)
{
    uint32_t h = signed_byte(*name);
    for (const char *c = name + 1; *name && *c; c++)
        h = 31 * h + signed_byte(*c);
    h += ~(h << 15);
    h ^= h >> 10;
    h += h << 3;
    h ^= h >> 6;
    h += ~(h << 11);
    h ^= h >> 16;
    return *name ? h : 0;
}

/* Hashes of one bin are n_bins apart, so h / n_bins has their order. */
static uint64_t key_of_hash(const struct collate_key *rule, uint32_t h)
{
    return h % rule->n_bins * rule->per_bin + h / rule->n_bins;
}

static unsigned mate(const struct bam_record *r)
{
    return bam_record_flag(r) >> 6 & 3;
}

/* The key holds no bytes of the name: the first bytes are the same in all names of a run and would decide nothing.
 * Names with the same place are compared completely. */
uint64_t collate_key_make(const struct collate_key *rule, const struct bam_record *r)
{
    return key_of_hash(rule, name_hash(bam_record_name(r))) << (64 - PLACE_BITS);
}

int collate_key_compare(const struct collate_key *rule, const struct bam_record *a, const struct bam_record *b)
{
    const char *x = bam_record_name(a), *y = bam_record_name(b);
    int by_name = strcmp(x, y);
    if (by_name == 0)
        return key_compare(mate(a), mate(b));
    int by_place = key_compare(key_of_hash(rule, name_hash(x)), key_of_hash(rule, name_hash(y)));
    return by_place ? by_place : by_name;
}
