/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>
#include "codec/gzip_member.h"

enum { GZIP_ONLY = 16 };         /* added to the window's bits for inflateInit2() (zlib.h) */

struct gzip_member {
    z_stream stream;
};

struct gzip_member *gzip_member_open(void)
{
    struct gzip_member *m = calloc(1, sizeof *m);
    if (m && inflateInit2(&m->stream, GZIP_ONLY + MAX_WBITS) == Z_OK)
        return m;
    free(m);
    return NULL;
}

void gzip_member_close(struct gzip_member *m)
{
    if (m)
        inflateEnd(&m->stream);
    free(m);
}

static uInt at_once(size_t n)
{
    return n < UINT_MAX ? (uInt)n : UINT_MAX;
}

enum gzip_member_state gzip_member_inflate(struct gzip_member *m, const uint8_t *in, size_t *n_in, uint8_t *out,
                                           size_t *n_out)
{
    uInt avail_in = at_once(*n_in), avail_out = at_once(*n_out);
    m->stream.next_in = (Bytef *)(uintptr_t)in;
    m->stream.avail_in = avail_in;
    m->stream.next_out = out;
    m->stream.avail_out = avail_out;
    int result = inflate(&m->stream, Z_NO_FLUSH);
    *n_in = avail_in - m->stream.avail_in;
    *n_out = avail_out - m->stream.avail_out;
    return result == Z_STREAM_END ? GZIP_MEMBER_ENDS
         : result == Z_OK || result == Z_BUF_ERROR ? GZIP_MEMBER_GOES_ON
         : result == Z_MEM_ERROR ? GZIP_MEMBER_NO_MEMORY : GZIP_MEMBER_IS_DAMAGED;
}
