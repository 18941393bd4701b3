/* SPDX-License-Identifier: MIT */
/* Warnings about records whose name or barcode cannot be used: the first ones by name, all of them by number. Serial:
 * one thread calls it, in the order of the input. */
#ifndef DUP_WARNINGS_H
#define DUP_WARNINGS_H

#include <stdbool.h>
#include <stdint.h>

enum dup_warning { DUP_WARNING_COORDINATES, DUP_WARNING_BARCODE, DUP_WARNINGS };

/* A zero-initialised struct has no warnings. */
struct dup_warnings {
    uint64_t n[DUP_WARNINGS];
    uint64_t examined, untagged; /* records that take part, and those among them without the barcode tag */
};

/* Counts a record, and warns if it is one of the first ten of its kind. */
void dup_warnings_take(struct dup_warnings *warnings, enum dup_warning kind, const char *name);

/* Counts n more records without a warning. Call it only if the kind is silent: then dup_warnings_take() would only
 * count, too. */
void dup_warnings_count(struct dup_warnings *warnings, enum dup_warning kind, uint64_t n);
bool dup_warnings_is_silent(const struct dup_warnings *warnings, enum dup_warning kind);

/* Warns of the totals, if there are any, and of records without the barcode tag if most lack it. */
void dup_warnings_end(const struct dup_warnings *warnings, const char barcode_tag[2]);

#endif
