/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "base/out_parts.h"

enum { CACHE_LINE = 64, PAGE = 4096 };

/* The buffer of a part. Part p has buffer p modulo n, once part p - n is written. */
struct buffer {
    _Alignas(CACHE_LINE) _Atomic uint64_t number;   /* of the part; stored by who has written the one before it */
    atomic_size_t filled;        /* bytes copied in so far, and those before the first byte */
    uint8_t *bytes;
};

struct out_parts {
    struct out_parts_options opt;
    uint8_t *bytes;              /* of all buffers */
    struct buffer buffers[];
};

struct out_parts *out_parts_new(const struct out_parts_options *options)
{
    uint64_t size = options->part_size, n = options->n, first = options->begin / size;
    struct out_parts *p = aligned_alloc(CACHE_LINE, sizeof *p + n * sizeof *p->buffers);
    if (!p)
        return NULL;
    memset(p, 0, sizeof *p + n * sizeof *p->buffers);
    p->opt = *options;
    if (!(p->bytes = aligned_alloc(PAGE, n * size))) {
        free(p);
        return NULL;
    }
    for (uint64_t i = first; i < first + n; i++) {
        p->buffers[i % n].bytes = p->bytes + i % n * size;
        atomic_init(&p->buffers[i % n].number, i);
    }
    atomic_init(&p->buffers[first % n].filled, (size_t)(options->begin % size));
    return p;
}

void out_parts_free(struct out_parts *p)
{
    if (p)
        free(p->bytes);
    free(p);
}

static struct buffer *buffer_at(struct out_parts *p, uint64_t at)
{
    return &p->buffers[at / p->opt.part_size % p->opt.n];
}

bool out_parts_has_room(struct out_parts *p, uint64_t end)
{
    return atomic_load(&buffer_at(p, end - 1)->number) == (end - 1) / p->opt.part_size;
}

/* Writes the part's bytes before `end`, and gives its buffer to another part. */
static void write_part(struct out_parts *p, struct buffer *part, size_t end)
{
    uint64_t number = atomic_load(&part->number), at = number * p->opt.part_size, begin = p->opt.begin;
    size_t skip = at < begin ? (size_t)(begin - at) : 0;
    struct iovec iov = {part->bytes + skip, end - skip};
    out_file_write_at(p->opt.fd, p->opt.path, &iov, 1, (off_t)(at + skip), p->opt.latch);
    atomic_store(&part->filled, 0);
    atomic_store(&part->number, number + p->opt.n);
}

void out_parts_copy(struct out_parts *p, const uint8_t *data, size_t size, uint64_t at)
{
    while (size > 0) {
        struct buffer *part = buffer_at(p, at);
        size_t from = (size_t)(at % p->opt.part_size), room = p->opt.part_size - from, n = size < room ? size : room;
        memcpy(part->bytes + from, data, n);
        if (atomic_fetch_add(&part->filled, n) + n == p->opt.part_size)
            write_part(p, part, p->opt.part_size);
        data += n;
        size -= n;
        at += n;
    }
}

void out_parts_end(struct out_parts *p, uint64_t end)
{
    if (end % p->opt.part_size > 0)
        write_part(p, buffer_at(p, end), (size_t)(end % p->opt.part_size));
}
