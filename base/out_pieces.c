/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "base/out_pieces.h"

enum { CACHE_LINE = 64, PAGE = 4096 };

/* The buffer of a piece. Piece p uses buffer p modulo n, once piece p - n is written. */
struct piece_buffer {
    _Alignas(CACHE_LINE) _Atomic uint64_t number;   /* number of the piece; stored by the writer of the one before */
    _Atomic uint64_t filled;     /* bytes copied in so far, of all its pieces, plus those before the first byte */
    uint8_t *bytes;
};

struct out_pieces {
    struct out_pieces_options opt;
    uint8_t *bytes;              /* bytes of all buffers */
    struct piece_buffer buffers[];
};

struct out_pieces *out_pieces_new(const struct out_pieces_options *options)
{
    uint64_t size = options->piece_size, n = options->n, first = options->begin / size;
    struct out_pieces *p = aligned_alloc(CACHE_LINE, sizeof *p + n * sizeof *p->buffers);
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
        atomic_init(&p->buffers[i % n].filled, i / n * size + (i == first ? options->begin % size : 0));
    }
    return p;
}

void out_pieces_free(struct out_pieces *p)
{
    if (p)
        free(p->bytes);
    free(p);
}

static struct piece_buffer *buffer_at(struct out_pieces *p, uint64_t at)
{
    return &p->buffers[at / p->opt.piece_size % p->opt.n];
}

bool out_pieces_has_room(struct out_pieces *p, uint64_t end)
{
    return atomic_load(&buffer_at(p, end - 1)->number) == (end - 1) / p->opt.piece_size;
}

/* Writes the piece's bytes before `end`, and passes its buffer to another piece. */
static void write_piece(struct out_pieces *p, struct piece_buffer *piece, size_t end)
{
    uint64_t number = atomic_load(&piece->number), at = number * p->opt.piece_size, begin = p->opt.begin;
    size_t skip = at < begin ? (size_t)(begin - at) : 0;
    struct iovec iov = {piece->bytes + skip, end - skip};
    out_file_write_at(p->opt.fd, p->opt.path, &iov, 1, (off_t)(at + skip), p->opt.latch);
    atomic_store(&piece->number, number + p->opt.n);
}

void out_pieces_copy(struct out_pieces *p, const uint8_t *data, size_t size, uint64_t at)
{
    while (size > 0) {
        struct piece_buffer *piece = buffer_at(p, at);
        uint64_t full = (at / p->opt.piece_size / p->opt.n + 1) * p->opt.piece_size;
        size_t from = (size_t)(at % p->opt.piece_size), room = p->opt.piece_size - from, n = size < room ? size : room;
        memcpy(piece->bytes + from, data, n);
        if (atomic_fetch_add(&piece->filled, n) + n == full)
            write_piece(p, piece, p->opt.piece_size);
        data += n;
        size -= n;
        at += n;
    }
}

void out_pieces_end(struct out_pieces *p, uint64_t end)
{
    if (end % p->opt.piece_size > 0)
        write_piece(p, buffer_at(p, end), (size_t)(end % p->opt.piece_size));
}
