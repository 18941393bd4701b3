/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "checksum_file.h"
#include "latch.h"
#include "out_file.h"

int checksum_file_write(struct out_file *out, uint64_t n_records, uint64_t checksum, struct latch *latch)
{
    char line[80];
    int size = snprintf(line, sizeof line, "records=%" PRIu64 " xxh3sum=%016" PRIx64 "\n", n_records, checksum);
    for (int done = 0; done < size;) {
        ssize_t wrote = write(out->fd, line + done, (size_t)(size - done));
        if (wrote < 0 && errno == EINTR && !latch_tripped(latch))
            continue;
        if (wrote < 0)
            return latch_fail(latch, "writing %s failed: %s", out->path, strerror(errno));
        done += (int)wrote;
    }
    return out_file_finish(out, latch);
}
