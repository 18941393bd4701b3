/* SPDX-License-Identifier: MIT */
/* bam_inflate accepts the same input as zlib, and makes the same bytes from it. The first two bytes of the input are
 * the requested size; 0: the size that zlib makes. */
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>
#include "codec/bam_inflate.h"
#include "base/endian_io.h"

enum { MAX = 65536 };

static void needed(int holds)
{
    if (!holds)
        abort();
}

/* zlib's output for in[n], at most *size bytes; -1: invalid, or more. */
static int zlib_inflate(const uint8_t *in, size_t n, uint8_t *out, size_t *size)
{
    z_stream z = {.next_in = in, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)*size};
    needed(inflateInit2(&z, -15) == Z_OK);
    int end = inflate(&z, Z_FINISH);
    *size = z.total_out;
    inflateEnd(&z);
    return end == Z_STREAM_END ? 0 : -1;
}

static void compare(struct bam_inflate *d, const uint8_t *in, size_t n,
                    const uint8_t *expected, size_t size, int verdict)
{
    uint8_t *exact = malloc(n), *out = malloc(size);
    if (n > 0)
        memcpy(exact, in, n);
    needed(bam_inflate(d, exact, n, out, size) == verdict);
    needed(verdict < 0 || size == 0 || memcmp(out, expected, size) == 0);
    free(exact);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static uint8_t expected[MAX];
    static struct bam_inflate *newer, *portable;             /* the state left by a stream must not matter */
    if (!newer)
        needed((newer = bam_inflate_new(false)) && (portable = bam_inflate_new(true)));
    if (n < 2)
        return 0;
    size_t wanted = load_le16(data), size = wanted ? wanted : MAX;
    int verdict = zlib_inflate(data + 2, n - 2, expected, &size);
    if (wanted && size != wanted)
        verdict = -1;
    size = wanted ? wanted : size;
    compare(newer, data + 2, n - 2, expected, size, verdict);
    compare(portable, data + 2, n - 2, expected, size, verdict);
    return 0;
}
