/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/message.h"
#include "fixmate/parted_mates.h"

enum { BITS = 12, MATES = 1 << BITS };   /* bits of the index into `last`, and number of its entries */

size_t parted_mates_memory(void)
{
    return MATES * sizeof(uint64_t);
}

int parted_mates_open(struct parted_mates *m, const char *path)
{
    *m = (struct parted_mates){.path = path, .last = calloc(MATES, sizeof *m->last)};
    return m->last ? 0 : -1;
}

void parted_mates_free(struct parted_mates *m)
{
    free(m->last);
}

int parted_mates_put(void *parted_mates, const uint64_t *mates, size_t n)
{
    struct parted_mates *m = parted_mates;
    for (size_t i = 0; i < n && !m->found; i++) {
        uint64_t *last = &m->last[mates[i] >> (64 - BITS)];
        m->found = *last == (mates[i] ^ 1);
        *last = mates[i];
        if (m->found)
            message_warning("%s: it is not grouped by name, so some mates are not adjacent, and are not fixed as "
                            "pairs. Use samtools collate or sort -n first", m->path);
    }
    return 0;
}
