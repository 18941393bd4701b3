/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts.h>
#include <htslib/sam.h>
#include "bam/ref_regions.h"
#include "base/byte_buffer.h"
#include "hts/hts_file.h"
#include "base/latch.h"
#include "codec/bgzf_block.h"
#include "read/file_extents.h"
#include "read/input_file.h"

enum { STORED_MORE = BGZF_HEADER + 5 + BGZF_FOOTER };    /* bytes of a stored block besides its data */

struct extent {
    uint64_t at;                 /* offset in the result */
    uint64_t offset;             /* offset in the file */
    uint32_t skip, keep;         /* bytes to skip and to keep of the one block that is inflated there; keep 0: the
                                  * file's bytes are taken unchanged */
};

struct file_extents {
    struct extent *each;
    size_t n, room;
    uint64_t size;               /* size of the result, without the EOF block */
};

/* Buffers for a block of the file: as it is, inflated, and stored again. */
struct work {
    uint8_t packed[BGZF_MAX_BLOCK], plain[BGZF_MAX_BLOCK], stored[2 * BGZF_MAX_BLOCK];
};

static int does_not_fit(const struct input_file *file)
{
    return hts_file_wrong_index(file->path, file->latch);
}

/* ------------------------------------------------------- what is named */

static int add_extent(struct file_extents *x, uint64_t offset, uint32_t skip, uint32_t keep, uint64_t size)
{
    struct extent *each = byte_buffer_grow(x->each, x->n, &x->room, sizeof *each);
    if (!each)
        return -1;
    x->each = each;
    x->each[x->n++] = (struct extent){x->size, offset, skip, keep};
    x->size += size;
    return 0;
}

static uint64_t stored_size(uint32_t n)
{
    return n + (uint64_t)(n + BGZF_FILL - 1) / BGZF_FILL * STORED_MORE;
}

/* Reads the block at this offset, and its frame. -1: failed, and the error is recorded in the latch. */
static int read_block(const struct input_file *file, uint64_t offset, uint8_t packed[BGZF_MAX_BLOCK],
                      struct bgzf_frame *frame)
{
    ssize_t n = input_file_read_at(file, packed, BGZF_MAX_BLOCK, offset);
    if (n < 0)
        return -1;
    return bgzf_block_frame(packed, (size_t)n, frame) == BGZF_OK ? 0 : does_not_fit(file);
}

/* Adds bytes begin .. end - 1 of a block. end UINT32_MAX: to the end of the block. *size: the size of the block in the
 * file. */
static int add_part(struct file_extents *x, const struct input_file *file, uint64_t offset, uint32_t begin,
                    uint32_t end, uint32_t *size)
{
    uint8_t packed[BGZF_MAX_BLOCK];
    struct bgzf_frame frame;
    if (read_block(file, offset, packed, &frame) < 0)
        return -1;
    end = end == UINT32_MAX ? frame.inflated_size : end;
    if (begin > end || end > frame.inflated_size)
        return does_not_fit(file);
    *size = frame.size;
    return begin == end ? 0 : add_extent(x, offset, begin, end - begin, stored_size(end - begin));
}

/* Adds the bytes between two virtual offsets. */
static int add_chunk(struct file_extents *x, const struct input_file *file, uint64_t from, uint64_t to)
{
    uint64_t block = from >> 16, last = to >> 16;
    uint32_t begin = from & 0xffff, end = to & 0xffff, size = 0;
    if (block == last)
        return add_part(x, file, block, begin, end, &size);
    if (begin && add_part(x, file, block, begin, UINT32_MAX, &size) < 0)
        return -1;
    block += size;
    if (last < block || last > (uint64_t)(file->end - file->begin))
        return does_not_fit(file);
    if (last > block && add_extent(x, block, 0, 0, last - block) < 0)
        return -1;
    return end ? add_part(x, file, last, 0, end, &size) : 0;
}

/* ------------------------------------------------------------ the index */

struct chunks {
    hts_pair64_max_t *each;
    size_t n;
};

static int add_chunks(struct chunks *all, const hts_pair64_max_t *more, size_t n)
{
    hts_pair64_max_t *each = n ? realloc(all->each, (all->n + n) * sizeof *each) : NULL;
    if (!each)
        return n ? -1 : 0;
    memcpy(each + all->n, more, n * sizeof *each);
    all->each = each;
    all->n += n;
    return 0;
}

/* Returns the virtual offset of the first record. 0: failed, and the error is recorded in the latch. */
static uint64_t first_record(const struct input_file *file, uint64_t header)
{
    uint8_t packed[BGZF_MAX_BLOCK];
    struct bgzf_frame frame;
    uint64_t offset = 0;
    for (; offset < (uint64_t)(file->end - file->begin); offset += frame.size) {
        if (read_block(file, offset, packed, &frame) < 0)
            return 0;
        if (header < frame.inflated_size)
            return offset << 16 | header;
        header -= frame.inflated_size;
    }
    return offset << 16;
}

/* Adds the chunks of a region. -1: out of memory, or the error is recorded in the latch. */
static int find_chunks(struct chunks *all, const hts_idx_t *index, const struct region *region)
{
    hts_itr_t *found = sam_itr_queryi(index, region->ref, region->begin, region_end(region));
    int status = found ? add_chunks(all, found->off, found->n_off > 0 ? (size_t)found->n_off : 0) : -1;
    hts_itr_destroy(found);
    return status;
}

/* Adds the chunk of the records without a reference, which come after all others. If there are no others, htslib gives
 * the beginning of the file. -1: as find_chunks(). */
static int find_unplaced(struct chunks *all, const hts_idx_t *index, const struct input_file *file, uint64_t header)
{
    errno = 0;
    hts_itr_t *found = sam_itr_queryi(index, HTS_IDX_NOCOOR, 0, 0);      /* also NULL if there are none */
    bool any = found && !found->finished && found->read_rest;
    hts_pair64_max_t chunk = {any ? found->curr_off : 0, (uint64_t)(file->end - file->begin) << 16, 0};
    hts_itr_destroy(found);
    if (!any)
        return errno == ENOMEM ? -1 : 0;
    if (chunk.u == 0 && (chunk.u = first_record(file, header)) == 0)
        return -1;
    return add_chunks(all, &chunk, 1);
}

static int compare(const void *first, const void *second)
{
    const hts_pair64_max_t *a = first, *b = second;
    return (a->u > b->u) - (a->u < b->u);
}

/* Adds the chunks in order. Chunks of several regions may overlap. */
static int take_chunks(struct file_extents *x, const struct input_file *file, const struct chunks *all)
{
    if (all->n)
        qsort(all->each, all->n, sizeof *all->each, compare);
    for (size_t i = 0, next; i < all->n; i = next) {
        uint64_t end = all->each[i].v;
        for (next = i + 1; next < all->n && all->each[next].u <= end; next++)
            end = all->each[next].v > end ? all->each[next].v : end;
        if (end > all->each[i].u && add_chunk(x, file, all->each[i].u, end) < 0)
            return -1;
    }
    return 0;
}

struct file_extents *file_extents_open(const struct input_file *file, const char *name, const char *index,
                                       uint64_t header, const struct ref_regions *regions)
{
    hts_idx_t *opened = hts_file_load_index(NULL, file->path, name, index, file->latch);
    struct file_extents *x = opened ? calloc(1, sizeof *x) : NULL;
    struct chunks all = {NULL, 0};
    int status = x ? 0 : -1;
    for (size_t i = 0; i < regions->n && status == 0; i++)
        status = regions->each[i].ref == REGION_UNPLACED ? find_unplaced(&all, opened, file, header)
               : find_chunks(&all, opened, &regions->each[i]);
    if (opened)
        hts_idx_destroy(opened);
    if (status == 0 && (status = take_chunks(x, file, &all)) == 0)
        status = add_extent(x, 0, 0, 0, 0);      /* marks where the last extent ends */
    free(all.each);
    if (status == 0)
        return x;
    latch_fail(file->latch, "%s: out of memory for its index", file->path);     /* has no effect if there is an error
                                  * already */
    file_extents_free(x);
    return NULL;
}

void file_extents_free(struct file_extents *x)
{
    if (x)
        free(x->each);
    free(x);
}

size_t file_extents_memory(const struct file_extents *x, int n)
{
    return x ? sizeof *x + x->room * sizeof *x->each + (size_t)n * sizeof(struct work) : 0;
}

/* ------------------------------------------------------------ reading it */

static uint32_t store(struct bgzf_codec *codec, struct work *work, const struct extent *e)
{
    uint32_t size = 0;
    for (uint32_t at = 0, n; at < e->keep; at += n) {
        n = e->keep - at < BGZF_FILL ? e->keep - at : BGZF_FILL;
        size += bgzf_block_deflate(codec, work->plain + e->skip + at, n, work->stored + size);
    }
    return size;
}

/* Makes the blocks of an extent that is a part of a block, and copies n bytes of them from offset `within` on. */
static int read_part(const struct input_file *file, const struct extent *e, uint8_t *to, size_t n, uint64_t within)
{
    struct work *work = malloc(sizeof *work);
    struct bgzf_codec *codec = work ? bgzf_codec_new(0) : NULL;
    struct bgzf_frame frame;
    int status = -1;
    if (!codec)
        latch_fail(file->latch, "%s: out of memory", file->path);
    else if (read_block(file, e->offset, work->packed, &frame) < 0)
        status = -1;
    else if (frame.inflated_size < e->skip + e->keep
             || bgzf_block_inflate(codec, work->packed, &frame, work->plain) != BGZF_OK
             || store(codec, work, e) != stored_size(e->keep))
        latch_fail(file->latch, "%s: block at file offset %llu: the compressed data are damaged, or its index is that "
                   "of another file. Nothing was written; make a new index (samtools index), or get a good copy of the "
                   "file", file->path, (unsigned long long)e->offset);
    else
        status = 0;
    if (status == 0)
        memcpy(to, work->stored + within, n);
    bgzf_codec_free(codec);
    free(work);
    return status;
}

/* Copies n bytes of the extent from offset `within` on. */
static int read_extent(const struct input_file *file, const struct extent *e, uint8_t *to, size_t n, uint64_t within)
{
    if (e->keep)
        return read_part(file, e, to, n, within);
    ssize_t got = input_file_read_at(file, to, n, e->offset + within);
    return got < 0 ? -1 : (size_t)got == n ? 0 : does_not_fit(file);
}

/* Returns the extent that contains the byte, or the last one, which marks the end. */
static size_t find_extent(const struct file_extents *x, uint64_t offset)
{
    size_t low = 0, high = x->n - 1;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        bool is_behind = x->each[middle].at > offset;
        high = is_behind ? middle - 1 : high;
        low = is_behind ? low : middle;
    }
    return low;
}

ssize_t file_extents_read_at(const struct file_extents *x, const struct input_file *file, void *buffer, size_t n,
                             uint64_t offset)
{
    uint8_t *to = buffer;
    size_t done = 0, i = find_extent(x, offset);
    for (; done < n && i + 1 < x->n; i++) {
        const struct extent *e = &x->each[i];
        uint64_t at = offset + done, left = e[1].at - at;
        size_t part = left < n - done ? (size_t)left : n - done;
        if (read_extent(file, e, to + done, part, at - e->at) < 0)
            return -1;
        done += part;
    }
    uint64_t ended = offset + done - x->size;    /* bytes of the last block that were read before */
    if (done < n && i + 1 == x->n && ended < BGZF_EOF_SIZE) {
        size_t part = BGZF_EOF_SIZE - ended < n - done ? (size_t)(BGZF_EOF_SIZE - ended) : n - done;
        memcpy(to + done, bgzf_block_eof + ended, part);
        done += part;
    }
    return (ssize_t)done;
}
