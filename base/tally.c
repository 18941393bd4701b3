/* SPDX-License-Identifier: MIT */
#include "base/latch.h"
#include "base/tally.h"

int tally_compare(struct tally in, struct tally out, const char *producer, const char *path, struct latch *latch)
{
    if (in.n == out.n && in.checksum == out.checksum)
        return 0;
    return latch_fail(latch, "%s: %s took %llu records with checksum %016llx, but gave %llu with %016llx. Memory may "
                      "be faulty, or this is our bug: please report it", path, producer, (unsigned long long)in.n,
                      (unsigned long long)in.checksum, (unsigned long long)out.n, (unsigned long long)out.checksum);
}
