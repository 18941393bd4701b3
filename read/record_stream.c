/* SPDX-License-Identifier: MIT */
#include "read/record_stream.h"

int record_stream_end(const struct record_stream *stream, struct tally taken, const char *where, const char *path,
                      struct latch *latch)
{
    struct tally given;
    if (stream->end(stream->producer, &given) < 0)
        return -1;
    return tally_compare(given, taken, where, path, latch);
}
