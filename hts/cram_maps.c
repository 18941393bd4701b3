/* SPDX-License-Identifier: MIT */
#include "hts/cram_maps.h"

enum { BLOCK_RAW = 0, BLOCK_COMPRESSION_HEADER = 1 };        /* method and type of a block */
enum map { PRESERVATION, DATA_SERIES, TAGS };

/* The bytes that are left. */
struct view {
    const uint8_t *at;
    size_t n;
};

static bool skip(struct view *v, size_t n)
{
    if (n > v->n)
        return false;
    v->at += n;
    v->n -= n;
    return true;
}

/* Reads the next itf8 number (CRAMv3 section 2.3). The first byte begins with 0 to 4 ones, and as many bytes follow it.
 * If there are 5 bytes, the last one holds 4 bits. */
static bool read_itf8(struct view *v, uint32_t *value)
{
    if (v->n == 0)
        return false;
    uint8_t first = *v->at;
    unsigned more = 0;
    while (more < 4 && first & 0x80 >> more)
        more++;
    const uint8_t *rest = v->at + 1;
    *value = more == 4 ? first & 15 : first & 0x7f >> more;
    if (!skip(v, 1 + more))
        return false;
    for (unsigned i = 0; i < more; i++)
        *value = i == 3 ? *value << 4 | (rest[i] & 15) : *value << 8 | rest[i];
    return true;
}

/* Skips a number and as many bytes as its value. */
static bool skip_counted(struct view *v)
{
    uint32_t n;
    return read_itf8(v, &n) && skip(v, n);
}

static bool skip_preservation(struct view *v)
{
    const uint8_t *name = v->at;
    if (!skip(v, 2))
        return false;
    if (name[0] == 'T' && name[1] == 'D')        /* the combinations of tags that occur */
        return skip_counted(v);
    return skip(v, name[0] == 'S' && name[1] == 'M' ? 5 : 1);
}

static bool skip_entry(struct view *v, enum map map)
{
    uint32_t name, codec;
    if (map == PRESERVATION)
        return skip_preservation(v);
    return (map == TAGS ? read_itf8(v, &name) : skip(v, 2)) && read_itf8(v, &codec) && skip_counted(v);
}

static bool skip_map(struct view *v, enum map map)
{
    uint32_t size, entries;
    if (!read_itf8(v, &size) || size > v->n)
        return false;
    struct view inside = {v->at, size};
    if (!read_itf8(&inside, &entries))
        return false;
    while (entries > 0 && skip_entry(&inside, map))
        entries--;
    return entries == 0 && inside.n == 0 && skip(v, size);
}

bool cram_maps_whole(const uint8_t *bytes, size_t n)
{
    struct view v = {bytes, n};
    uint32_t id, compressed, size;
    if (n < 2 || bytes[0] != BLOCK_RAW || bytes[1] != BLOCK_COMPRESSION_HEADER)
        return true;
    skip(&v, 2);
    if (!read_itf8(&v, &id) || !read_itf8(&v, &compressed) || !read_itf8(&v, &size) || size > v.n)
        return true;
    v.n = size;
    return skip_map(&v, PRESERVATION) && skip_map(&v, DATA_SERIES) && skip_map(&v, TAGS) && v.n == 0;
}
