/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include "base/latch.h"
#include "base/tally.h"

enum { TEXT_SIZE = 80 };

static const char *text_of(struct tally t, bool with_checksum, char text[TEXT_SIZE])
{
    int n = snprintf(text, TEXT_SIZE, "%" PRIu64 " records", t.n);
    if (with_checksum)
        snprintf(text + n, TEXT_SIZE - (size_t)n, " with checksum %016" PRIx64, t.checksum);
    return text;
}

int tally_compare(struct tally in, struct tally out, const char *where, const char *path, struct latch *latch)
{
    char came[TEXT_SIZE], went[TEXT_SIZE];
    bool summed = !in.counts_only && !out.counts_only;
    if (!summed)
        in.checksum = out.checksum = 0;
    if (in.n == out.n && in.checksum == out.checksum)
        return 0;
    return latch_fail(latch, "%s: records were lost, added or changed %s: %s came in, but %s came out. Memory may be "
                      "faulty, or this is our bug: please report it", path, where, text_of(in, summed, came),
                      text_of(out, summed, went));
}
