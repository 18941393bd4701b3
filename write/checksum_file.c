/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include "write/checksum_file.h"
#include "base/out_file.h"

int checksum_file_write(struct out_file *out, uint64_t n_records, uint64_t checksum, struct latch *latch)
{
    char line[80];
    int size = snprintf(line, sizeof line, "records=%" PRIu64 " xxh3sum=%016" PRIx64 "\n", n_records, checksum);
    if (out_file_begin(out, latch) < 0 || out_file_write(out->fd, out->path, line, (size_t)size, latch) < 0)
        return -1;
    return out_file_finish(out, latch);
}
