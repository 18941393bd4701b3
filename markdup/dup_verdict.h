/* SPDX-License-Identifier: MIT */
/* The verdict of markdup on one record. */
#ifndef DUP_VERDICT_H
#define DUP_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

enum dup_type { DUP_TYPE_UNKNOWN, DUP_TYPE_LIBRARY, DUP_TYPE_SEQUENCING };   /* dt: none, LB, SQ */

/* The verdict on a record. A record without a verdict is an original, with dc 1. */
struct dup_verdict {
    uint64_t number;
    bool duplicate;
    enum dup_type type;
    const char *original;        /* the name for do, valid during the call; NULL: none */
    uint64_t count;              /* dc, if the record is not a duplicate */
};

#endif
