/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/endian_io.h"
#include "base/latch.h"
#include "base/out_file.h"
#include "bgzip/gzi_index.h"

enum { NUMBER = 8, PAIR = 16, WRITTEN_AT_ONCE = 4096, READ_AT_ONCE = 1 << 16 };

int gzi_index_add(struct gzi_index *index, struct gzi_place place)
{
    struct gzi_place *places = byte_buffer_grow(index->places, index->n, &index->room, sizeof *places);
    if (!places)
        return -1;
    index->places = places;
    index->places[index->n++] = place;
    return 0;
}

void gzi_index_free(struct gzi_index *index)
{
    free(index->places);
    *index = (struct gzi_index){0};
}

/* Takes n pairs, and checks their order. Blocks are not empty, so each begins after the one before. Blocks without data
 * may be listed: their place in the data is that of the next one. */
static const char *take_pairs(struct gzi_index *index, const uint8_t *bytes, uint64_t n)
{
    struct gzi_place last = {0, 0};
    for (uint64_t i = 0; i < n; i++) {
        struct gzi_place place = {load_le64(bytes + PAIR * i), load_le64(bytes + PAIR * i + 8)};
        if (place.file <= last.file || place.data < last.data || place.file > INT64_MAX || place.data > INT64_MAX)
            return "its places are not in order";
        if (gzi_index_add(index, place) < 0)
            return "out of memory";
        last = place;
    }
    return NULL;
}

const char *gzi_index_parse(struct gzi_index *index, const uint8_t *bytes, size_t n)
{
    *index = (struct gzi_index){0};
    if (n < NUMBER || (n - NUMBER) % PAIR != 0 || load_le64(bytes) != (n - NUMBER) / PAIR)
        return "its size is not that of an index with so many places";
    const char *fault = take_pairs(index, bytes + NUMBER, (n - NUMBER) / PAIR);
    if (fault)
        gzi_index_free(index);
    return fault;
}

/* Reads all bytes of the file, which the caller frees; NULL: failed, with errno. */
static uint8_t *read_all(FILE *from, size_t *n)
{
    uint8_t *bytes = NULL;
    size_t got = READ_AT_ONCE, room = 0;
    for (*n = 0; got > 0; *n += got) {
        if (room - *n < READ_AT_ONCE) {
            uint8_t *more = realloc(bytes, room = 2 * room + READ_AT_ONCE);
            if (!more)
                break;
            bytes = more;
        }
        got = fread(bytes + *n, 1, READ_AT_ONCE, from);
    }
    if (got == 0 && !ferror(from))
        return bytes;
    free(bytes);
    return NULL;
}

int gzi_index_read(struct gzi_index *index, const char *path, struct latch *latch)
{
    size_t n;
    FILE *from = fopen(path, "rbe");
    uint8_t *bytes = from ? read_all(from, &n) : NULL;
    int failed = bytes ? 0 : latch_fail(latch, "cannot read the index %s: %s. bgzip -r makes one", path,
                                        strerror(errno));
    if (from)
        fclose(from);
    const char *fault = bytes ? gzi_index_parse(index, bytes, n) : NULL;
    free(bytes);
    return fault ? latch_fail(latch, "%s is not a .gzi index, or is damaged: %s. bgzip -r makes a new one", path, fault)
                 : failed;
}

int gzi_index_write(const struct gzi_index *index, int fd, const char *path, struct latch *latch)
{
    uint8_t bytes[WRITTEN_AT_ONCE * PAIR];
    store_le64(bytes, index->n);
    if (out_file_write(fd, path, bytes, NUMBER, latch) < 0)
        return -1;
    for (size_t i = 0, n; i < index->n; i += n) {
        n = index->n - i < WRITTEN_AT_ONCE ? index->n - i : WRITTEN_AT_ONCE;
        for (size_t k = 0; k < n; k++) {
            store_le64(bytes + PAIR * k, index->places[i + k].file);
            store_le64(bytes + PAIR * k + 8, index->places[i + k].data);
        }
        if (out_file_write(fd, path, bytes, PAIR * n, latch) < 0)
            return -1;
    }
    return 0;
}

struct gzi_place gzi_index_find(const struct gzi_index *index, uint64_t data)
{
    size_t low = 0, high = index->n;  /* places before low are at or before it, those from high on after it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->places[middle].data <= data)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? index->places[low - 1] : (struct gzi_place){0, 0};
}
