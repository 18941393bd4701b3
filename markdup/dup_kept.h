/* SPDX-License-Identifier: MIT */
/* Whether a record that markdup wrote anew is the one that was read, but for what markdup may change. Serial. */
#ifndef DUP_KEPT_H
#define DUP_KEPT_H

#include <stdbool.h>
#include "bam/bam_record.h"

/* made: n bytes. It must be a record of that size again, and have the same fields, name, CIGAR, bases, qualities and
 * tags, in order, but for DUP in FLAG, for do, dt and dc, and, with umi, for the name and RX. */
bool dup_kept(const struct bam_record *record, const uint8_t *made, size_t n, bool umi);

#endif
