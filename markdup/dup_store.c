/* SPDX-License-Identifier: MIT */
#include "base/byte_hash.h"
#include "markdup/dup_store.h"

int dup_store_put(const struct dup_store *s, struct byte_buffer *bytes, struct byte_buffer *pieces)
{
    struct dup_piece piece = {.hash = byte_hash(bytes->p, bytes->n, 0)};
    if (s->put(s->context, bytes->p, bytes->n, &piece.place) < 0)
        return -1;
    bytes->n = 0;
    return byte_buffer_append(pieces, &piece, sizeof piece);
}

int dup_store_get(const struct dup_store *s, const struct dup_piece *piece, bool last, struct byte_buffer *to)
{
    size_t n = piece->place.size;
    if (byte_buffer_reserve(to, to->n + n) < 0
        || s->get(s->context, &piece->place, 0, n, piece->hash, to->p + to->n) < 0)
        return -1;
    if (last)
        s->drop(s->context, &piece->place);
    to->n += n;
    return 0;
}
