/* SPDX-License-Identifier: MIT */
/* Checks that a record which markdup wrote again equals the one that was read, except for the parts that markdup may
 * change. Serial. */
#ifndef DUP_KEPT_H
#define DUP_KEPT_H

#include <stdbool.h>
#include "bam/bam_record.h"

/* made: n bytes. They must be a record of this size with the same fields, name, CIGAR, bases, qualities and tags, in
 * order. Exceptions: DUP in FLAG; do, dt and dc; with umi, also the name and RX. */
bool dup_kept(const struct bam_record *record, const uint8_t *made, size_t n, bool umi);

#endif
